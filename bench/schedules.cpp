// SPDX-License-Identifier: BSD-3-Clause
// Executes schedules over the MPI's point-to-point messages and times them. These are collectives
// for `stretto model compare` and `stretto tune`, and the exercises from which `stretto model
// measure` finds parameters. One executor runs what the model learns from and what it is compared
// with. Runs begin at one time on all ranks (clock.hpp), and end when the last rank does.
//
//   schedules [--ranks LIST] [--processors LIST] [--places FILE] [--crowded 1] [--far 1]
//             [--rest MS] REPEAT JOB...
//
// It writes one JSON object for each job to stdout.
//
//   --ranks       the ranks that take part, in this order, numbered from 0 again; the others sleep
//   --processors  binds each of them to the processor in its place: hosts may share one
//   --places      where the ranks are (topo/placement_file.hpp): compositions need it
//   --crowded     there are fewer processors than ranks: hosts of namespaces do not tell
//   --far         messages go through a network: "late" waits longer
//   --rest        a pause before every run: links that let so many bytes through at once have
//                 recovered from the run before
//
// A JOB is one of these:
//
//   OP:CANDIDATE:BYTES:K:SEGMENTS
//       A collective. CANDIDATE is as in exercises.hpp, or "mpi": the MPI's own bcast, reduce,
//       allreduce or allgather.
//   NAME:BYTES
//       An exercise of ranks 0 and 1, of 2 and 3, and so on. It is one of exercises.hpp, or "late":
//       oneway, but rank 1 looks only when the message has come. "late" times that look, and in
//       "first" what MPI_Isend takes: what a message costs the processors. "sendrecv" is 8
//       exchanges by MPI_Sendrecv, which rank 1 begins late: the executor's messages are shorter.
//
// Times are in ns. "time" lasts until the last rank is done: the mean of the repetitions between
// the quartiles, which are "low" and "high". "first" lasts until rank 0 is done. (The median would
// not do: TCP acknowledges every other message at once, which makes times alternate.)
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "clock.hpp"
#include "coll/algorithm.hpp"
#include "exercises.hpp"
#include "messages.hpp"
#include "sched/execute.hpp"
#include "select/candidates.hpp"
#include "topo/placement_file.hpp"

namespace {

using namespace stretto;

MPI_Comm team = MPI_COMM_WORLD;  // of the ranks that take part
int me = 0, size = 0;
topo::Hierarchies hierarchies;  // without levels: the places are not given
bool crowded = false;           // fewer processors than ranks
bool far = false;               // messages go through a network
timespec rest{0, 0};            // before every run

// Sums of doubles. A unit is 8 bytes.
void add(void*, char* out, const char* left, const char* right, std::uint64_t units) {
  if (out == right) std::swap(left, right);
  if (out != left) std::memcpy(out, left, units * 8);
  MPI_Reduce_local(right, out, static_cast<int>(units), MPI_DOUBLE, MPI_SUM);
}

struct Run {
  std::string op, algorithm;
  std::uint64_t bytes = 8;
  coll::Parameters parameters;
};

// Exercises have no algorithm.
Run parse(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (parts.size() == 2) parts.insert(parts.begin() + 1, "");
  parts.resize(5);
  return {parts[0],
          benching::candidate_key(parts[1]),
          std::strtoull(parts[2].c_str(), nullptr, 10),
          {std::max(1, std::atoi(parts[4].c_str())), std::atoi(parts[3].c_str()), 0}};
}

bool is_of_one_vector(Collective collective) {
  return collective == Collective::bcast || collective == Collective::reduce || collective == Collective::allreduce;
}

class Bench {
 public:
  explicit Bench(const Run& run) : run_(run) {
    problem_.collective = collective_named(run.op.c_str());
    problem_.size = size;
    problem_.rank = me;
    problem_.commutative = true;
    problem_.count = (run.bytes + 7) / 8;
    const std::uint64_t part = problem_.count;
    const bool of_parts = coll::regular_form(problem_.collective) == Collective::alltoall;
    send_.assign(part * (of_parts ? static_cast<std::uint64_t>(size) : 1), 1.0);
    receive_.assign(part * (is_of_one_vector(problem_.collective) ? 1 : static_cast<std::uint64_t>(size)), 0);
    if (crowded) policy_.crowd();
  }
  bool prepare() {
    if (run_.algorithm == "mpi") return problem_.collective != Collective::count_;
    sched::Builder builder;
    return build(builder) && execution_.prepare(program_) && scratch_.resize(program_.scratch_units() * 8 + 1, 0);
  }
  // Before every run each rank writes what it sends, as programs do. So the data are in this
  // processor's cache if they fit.
  void write_operands() {
    const bool of_root = problem_.collective == Collective::bcast;
    std::vector<double>& buffer = of_root ? receive_ : send_;
    if (of_root && me != problem_.root) return;
    for (std::size_t at = 0; at < buffer.size(); at += 8) buffer[at] += 1.0;
  }
  // The time at which this rank is done, in a run that began at `begin`.
  double once(const benching::Clock& clock, double begin) {
    if (run_.algorithm == "mpi") {
      host();
      return clock.now() - begin;
    }
    if (run_.op == "sendrecv") {
      if ((me ^ 1) < size) send_and_receive(clock);
      return clock.now() - begin;
    }
    sched::Binding binding;
    binding.buffers[0] = reinterpret_cast<char*>(send_.data());
    binding.buffers[1] = reinterpret_cast<char*>(receive_.data());
    binding.buffers[2] = scratch_.data();
    binding.unit_bytes = 8;
    binding.combination = {nullptr, add};
    binding.transport = messages_.transport();
    if (run_.op == "late" && (me ^ 1) < size) return me % 2 == 1 ? receive_late(clock, binding) : send_timed(clock);
    if (execution_.run(binding, policy_) != Status::ok) MPI_Abort(MPI_COMM_WORLD, 3);
    return clock.now() - begin;
  }

 private:
  bool build(sched::Builder& builder) {
    if (problem_.collective == Collective::count_) {
      const int peer = me ^ 1;
      return benching::emit_exercise(builder, run_.op, problem_.count, peer < size ? me % 2 : -1, peer, size) &&
             program_.prepare(builder.finish());
    }
    const select::Shape shape{problem_.collective, size, problem_.count};
    select::Candidate candidate;
    if (!select::named_candidate(shape, run_.algorithm.c_str(), &candidate) ||
        (!candidate.algorithm && hierarchies.all.levels() < 2))
      return false;
    candidate.parameters = run_.parameters;
    return program_.prepare(select::build(builder, select::Machine{&hierarchies, {}}, shape, candidate, me));
  }
  double receive_late(const benching::Clock& clock, const sched::Binding& binding) {
    const double patience_ns = (far ? 300e3 : 20e3) + (far ? 40 : 2) * static_cast<double>(run_.bytes);
    execution_.start(binding);
    execution_.advance();
    const double until = clock.now() + patience_ns;
    while (clock.now() < until) {
    }
    const double looked = clock.now();
    while (!execution_.done()) execution_.advance();
    return clock.now() - looked;
  }
  double send_timed(const benching::Clock& clock) {
    const transport::Transport transport = messages_.transport();
    std::uint32_t ticket = 0;
    const double begin = clock.now();
    transport.send(transport.context, me + 1, 0, reinterpret_cast<char*>(send_.data()), run_.bytes, 0);
    const double took = clock.now() - begin;
    while (transport.poll(transport.context, &ticket, 1) == 0) {
    }
    return took;
  }
  // In an MPI that sends requests for data behind data, a late rank makes both go by turns.
  void send_and_receive(const benching::Clock& clock) {
    constexpr double kLate = 100e3;
    const int count = static_cast<int>(problem_.count), peer = me ^ 1;
    for (const double until = clock.now() + (me % 2 == 1 ? kLate : 0); clock.now() < until;) {
    }
    for (int i = 0; i < benching::kSendrecvs; ++i)
      MPI_Sendrecv(send_.data(), count, MPI_DOUBLE, peer, 0, receive_.data(), count, MPI_DOUBLE, peer, 0, team,
                   MPI_STATUS_IGNORE);
  }
  void host() {
    const int count = static_cast<int>(problem_.count);
    switch (problem_.collective) {
      case Collective::bcast: MPI_Bcast(receive_.data(), count, MPI_DOUBLE, 0, team); return;
      case Collective::reduce: MPI_Reduce(send_.data(), receive_.data(), count, MPI_DOUBLE, MPI_SUM, 0, team); return;
      case Collective::allreduce:
        MPI_Allreduce(send_.data(), receive_.data(), count, MPI_DOUBLE, MPI_SUM, team);
        return;
      case Collective::allgather:
        MPI_Allgather(send_.data(), count, MPI_DOUBLE, receive_.data(), count, MPI_DOUBLE, team);
        return;
      default: MPI_Barrier(team);
    }
  }

  Run run_;
  coll::Problem problem_;
  std::vector<double> send_, receive_;
  Array<char> scratch_;
  shm::WaitPolicy policy_;
  sched::Program program_;
  sched::Execution execution_;
  benching::Messages messages_{team, benching::Messages::Polls::test};
};

// ---- Timing ----

double slack_ns = 5e3;

// When each rank was done, repetition by repetition: all ranks together, on rank 0. Repetitions in
// which a rank came late do not count.
std::vector<std::vector<double>> ends_of(Bench& bench, const benching::Clock& clock, int repeat) {
  std::vector<double> own, all(static_cast<std::size_t>(repeat * size));
  for (int i = 0; i < repeat; ++i) {
    nanosleep(&rest, nullptr);
    bench.write_operands();
    const double begin = clock.begin_together(slack_ns);
    const double end = bench.once(clock, std::max(begin, 0.0));
    own.push_back(begin < 0 ? -1 : end);
  }
  MPI_Gather(own.data(), repeat, MPI_DOUBLE, all.data(), repeat, MPI_DOUBLE, 0, team);
  std::vector<std::vector<double>> result;
  for (int i = 0; i < repeat && me == 0; ++i) {
    std::vector<double> ends;
    for (int rank = 0; rank < size; ++rank) ends.push_back(all[static_cast<std::size_t>(rank * repeat + i)]);
    if (*std::min_element(ends.begin(), ends.end()) >= 0) result.push_back(ends);
  }
  return result;
}

// Runs as often as asked for. If ranks often come late, it gives them more time to get ready.
std::vector<std::vector<double>> enough_ends_of(Bench& bench, const benching::Clock& clock, int repeat) {
  constexpr int kMostRounds = 12;
  std::vector<std::vector<double>> all;
  ends_of(bench, clock, 2);
  for (int round = 0; round < kMostRounds; ++round) {
    const int wanted = repeat - static_cast<int>(all.size());
    const auto found = ends_of(bench, clock, wanted);
    all.insert(all.end(), found.begin(), found.end());
    int state[] = {static_cast<int>(all.size()) < repeat, static_cast<int>(all.size())};
    if (me == 0 && 2 * static_cast<int>(found.size()) < wanted) slack_ns *= 2;
    MPI_Bcast(state, 2, MPI_INT, 0, team);
    if (!state[0]) break;
    all.resize(static_cast<std::size_t>(state[1]));
  }
  return all;
}

double quantile(std::vector<double>& values, double q) {
  std::sort(values.begin(), values.end());
  return values.empty()
             ? 0
             : values[std::min(values.size() - 1, static_cast<std::size_t>(q * static_cast<double>(values.size())))];
}

double midmean(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const auto cut = static_cast<std::ptrdiff_t>(values.size() / 4);
  const auto begin = values.begin() + cut, end = values.end() - cut;
  return values.empty() ? 0 : std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}

void measure(const benching::Clock& clock, const std::string& text, int repeat) {
  Bench bench(parse(text));
  if (!bench.prepare()) {
    if (me == 0) std::fprintf(stderr, "no such job: %s\n", text.c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const bool only_receiver = text.rfind("late:", 0) == 0;
  std::vector<double> last, first;
  for (const auto& ends : enough_ends_of(bench, clock, repeat)) {
    if (me != 0) break;
    last.push_back(only_receiver ? ends[1] : *std::max_element(ends.begin(), ends.end()));
    first.push_back(ends[0]);
  }
  if (me != 0) return;
  std::printf("{\"job\": \"%s\", \"time\": %.1f, \"low\": %.1f, \"high\": %.1f, \"first\": %.1f}\n", text.c_str(),
              midmean(last), quantile(last, 0.25), quantile(last, 0.75), midmean(first));
  std::fflush(stdout);
}

// Touches the library's slots, and the MPI's own buffers, for the first time. With 4 KiB a call, a
// first touch takes 6 us instead of one, for 128 calls.
void touch_buffers() {
  constexpr int kCalls = 16, kDoubles = 8 << 10;
  std::vector<double> mine(kDoubles), all(static_cast<std::size_t>(kDoubles) * static_cast<std::size_t>(size));
  for (int i = 0; i < kCalls; ++i)
    MPI_Allgather(mine.data(), kDoubles, MPI_DOUBLE, all.data(), kDoubles, MPI_DOUBLE, team);
}

// After this, a library has made what it makes only for communicators that are used often.
void warm_up() {
  constexpr int kCalls = 64;
  double word = 0;
  for (int i = 0; i < kCalls; ++i) MPI_Bcast(&word, 1, MPI_DOUBLE, 0, team);
}

// ---- Ranks that take part ----

bool short_of_processors() {
  MPI_Comm node;
  int ranks = 0;
  MPI_Comm_split_type(team, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &ranks);
  MPI_Comm_free(&node);
  cpu_set_t set;
  int mine = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1 ? ranks > CPU_COUNT(&set) : 0, any = 0;
  MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, team);
  return any != 0;
}

std::vector<int> numbers(const char* list) {
  std::vector<int> result;
  while (*list) {
    char* end = nullptr;
    result.push_back(static_cast<int>(std::strtol(list, &end, 10)));
    list = *end == ',' ? end + 1 : end + std::strlen(end);
  }
  return result;
}

void choose_team(const std::vector<int>& members) {
  int world = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  const auto found = std::ranges::find(members, world);
  const bool takes_part = found != members.end();
  MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, static_cast<int>(found - members.begin()), &team);
}

void bind(const std::vector<int>& processors) {
  int place = 0;
  MPI_Comm_rank(team, &place);
  if (static_cast<std::size_t>(place) >= processors.size()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processors[static_cast<std::size_t>(place)], &set);
  if (sched_setaffinity(0, sizeof set, &set) == 0) return;
  std::fprintf(stderr, "processor %d cannot be used\n", processors[static_cast<std::size_t>(place)]);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

void find_places(const char* name) {
  std::ifstream stream(name);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  topo::PlacementFile file;
  topo::Placement placement;
  FileError error;
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (stream && file.parse(text.data(), text.size(), &error) && file.place(ranks, &placement) &&
      hierarchies.build(placement))
    return;
  std::fprintf(stderr, "%s is no file of places\n", name);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

// Sleeps until the others are done.
void sleep_through() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; !done;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    const timespec nap{0, 2'000'000};
    if (!done) nanosleep(&nap, nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int at = 1;
  for (; at + 1 < argc && std::strncmp(argv[at], "--", 2) == 0; at += 2) {
    if (std::strcmp(argv[at], "--ranks") == 0)
      choose_team(numbers(argv[at + 1]));
    else if (std::strcmp(argv[at], "--processors") == 0 && team != MPI_COMM_NULL)
      bind(numbers(argv[at + 1]));
    else if (std::strcmp(argv[at], "--places") == 0)
      find_places(argv[at + 1]);
    else if (std::strcmp(argv[at], "--crowded") == 0)
      crowded = std::atoi(argv[at + 1]) != 0;
    else if (std::strcmp(argv[at], "--far") == 0)
      far = std::atoi(argv[at + 1]) != 0;
    else if (std::strcmp(argv[at], "--rest") == 0)
      rest.tv_nsec = std::atoi(argv[at + 1]) * 1'000'000L;
  }
  if (team != MPI_COMM_NULL) {
    MPI_Comm_rank(team, &me);
    MPI_Comm_size(team, &size);
    crowded = crowded || short_of_processors();
    if (crowded) slack_ns *= 20;
    const benching::Clock clock(team, crowded);
    warm_up();
    if (!crowded) touch_buffers();
    const int repeat = at < argc ? std::max(1, std::atoi(argv[at++])) : 1;
    for (; at < argc; ++at) measure(clock, argv[at], repeat);
  }
  sleep_through();
  MPI_Finalize();
}
