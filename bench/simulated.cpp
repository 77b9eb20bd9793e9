// SPDX-License-Identifier: BSD-3-Clause
// Schedules and the MPI's own collectives on clusters that SimGrid's SMPI simulates, for `stretto
// cluster simulate`. It is the library's builder and executor, as on real hosts, over SMPI's
// messages and clocks.
//
//   simulated LEVELS JOB...      one JSON object for each job on stdout
//
//   LEVELS   NAME:N,...: N ranks to the lowest domain, N of these to the next (topo/placement.hpp)
//   JOB      OP:BYTES:CANDIDATE:SEGMENTS:K; CANDIDATE as in exercises.hpp, or "mpi", or "built-in":
//            what select/across_nodes.hpp has for the call; OP bcast, reduce, allreduce, gather,
//            scatter, allgather, alltoall. Or an exercise (exercises.hpp) of ranks 0 and K
//
// "time" is seconds of simulated time, from the common begin of all ranks until the last rank is
// done. Computation takes no time, on either side. Buffers are folded: all ranks' bytes lie in the
// same memory. So results are not checked here. `stretto verify` and the tests between hosts do
// that.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "exercises.hpp"
#include "messages.hpp"
#include "sched/execute.hpp"
#include "select/candidates.hpp"

namespace {

using namespace stretto;

// Ranks are threads of one process here, so nothing is global.
struct World {
  int rank = 0, size = 0, nodes = 1;
  topo::Hierarchies hierarchies;
};

// Memory that all ranks share, unless it is small.
class Folded {
 public:
  explicit Folded(std::uint64_t bytes) : shared_(bytes >= kLeast) {
    memory_ = static_cast<char*>(shared_ ? SMPI_SHARED_MALLOC(bytes) : std::calloc(bytes + 1, 1));
  }
  ~Folded() {
    if (shared_)
      SMPI_SHARED_FREE(memory_);
    else
      std::free(memory_);
  }
  Folded(const Folded&) = delete;
  Folded& operator=(const Folded&) = delete;
  [[nodiscard]] char* get() const { return memory_; }

 private:
  static constexpr std::uint64_t kLeast = 4096;
  char* memory_;
  bool shared_;
};

struct Job {
  std::string op;
  select::Shape shape;
  std::string candidate;
  coll::Parameters parameters;
  [[nodiscard]] bool is_exercise() const { return shape.collective == Collective::count_; }
  // Of all ranks' parts, or of the one vector.
  [[nodiscard]] std::uint64_t whole() const {
    switch (shape.collective) {
      case Collective::gather:
      case Collective::scatter:
      case Collective::allgather:
      case Collective::alltoall: return shape.bytes * static_cast<std::uint64_t>(shape.ranks);
      default: return shape.bytes * (is_exercise() ? benching::kBurst : 1);
    }
  }
};

[[noreturn]] void stop(const std::string& what) {
  std::fprintf(stderr, "simulated: %s\n", what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 2);
  std::abort();
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

Job parse(const std::string& text, int ranks) {
  std::vector<std::string> parts = split(text, ':');
  if (parts.size() != 5) stop("OP:BYTES:CANDIDATE:SEGMENTS:K expected, not " + text);
  Job job;
  job.op = parts[0];
  job.shape.collective = collective_named(parts[0].c_str());
  job.shape.ranks = ranks;
  job.shape.bytes = std::strtoull(parts[1].c_str(), nullptr, 10);
  job.candidate = benching::candidate_key(parts[2]);
  job.parameters = {std::atoi(parts[3].c_str()), std::atoi(parts[4].c_str()), 0};
  return job;
}

topo::Placement placement_of(const std::string& levels, int ranks) {
  topo::Placement placement;
  placement.start(ranks);
  int each = 1;
  for (const std::string& level : split(levels, ',')) {
    const std::vector<std::string> parts = split(level, ':');
    if (parts.size() == 2) each *= std::max(1, std::atoi(parts[1].c_str()));
    if (parts.size() != 2 || !placement.add_level_of(parts[0].c_str(), each))
      stop("NAME:N,... expected, not " + levels);
  }
  return placement;
}

void nothing(void*, char*, const char*, const char*, std::uint64_t) {}

// The greatest of all ranks' values, on all of them, by dissemination (Hensgen, Finkel, Manber
// 1988). SMPI's own Allreduce first finds out by a ring which ranks share a node. Among 2,304 ranks
// that takes five million messages and four minutes.
double greatest(const World& world, double value) {
  for (int distance = 1; distance < world.size; distance *= 2) {
    double other = 0;
    MPI_Sendrecv(&value, 1, MPI_DOUBLE, (world.rank + distance) % world.size, 0, &other, 1, MPI_DOUBLE,
                 (world.rank - distance + world.size) % world.size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    value = std::max(value, other);
  }
  return value;
}

// Lets all ranks go on at one time, and returns that time.
double begin_together(const World& world) {
  constexpr double kMargin = 0.1;
  const double begin = greatest(world, MPI_Wtime()) + kMargin, wait = begin - MPI_Wtime();
  if (wait < 0) stop("a rank came too late to begin with the others");
  timespec rest{0, static_cast<long>(wait * 1e9)};
  smpi_nanosleep(&rest, nullptr);
  return begin;
}

// How many messages from one rank to another are under way. On a real connection they follow each
// other. In SMPI they share its rate: of 64 segments sent at once, the first would arrive with the
// last. This many keep a link of these latencies busy.
//
// SMPI also ends sends below 64 KiB before they arrive, and simulates each more slowly the more
// there are. With this limit, an Allreduce of 1 MiB by rails among 2,304 ranks takes 10 s, and more
// than 170 s without it.
constexpr int kPartsUnderWay = 4;

constexpr char kBuiltIn[] = "built-in";

bool goes_in_parts(const Job& job) {
  return job.parameters.segments > 1 || job.candidate.starts_with("hierarchy") || job.candidate == kBuiltIn;
}

// The time from the common begin until this rank is done.
double execute(const World& world, const sched::Program& program, int most_to_one, char* send, char* receive) {
  sched::Execution execution;
  if (!execution.prepare(program)) stop("no memory");
  const Folded scratch(program.scratch_units());
  benching::Messages messages(MPI_COMM_WORLD, benching::Messages::Polls::nothing,
                              most_to_one);  // a rank waits where a real one would poll
  sched::Binding binding;
  binding.buffers[0] = send;
  binding.buffers[1] = receive;
  binding.buffers[2] = scratch.get();
  binding.combination = {nullptr, nothing};
  binding.transport = messages.transport();
  const double begin = begin_together(world);
  execution.start(binding);
  while (!execution.done()) {
    if (!execution.advance()) messages.wait();
  }
  return MPI_Wtime() - begin;
}

sched::Schedule exercise(sched::Builder& builder, const World& world, const Job& job) {
  const int far = job.parameters.k, role = world.rank == 0 ? 0 : world.rank == far ? 1 : -1;
  if (!benching::emit_exercise(builder, job.op, job.shape.bytes, role, role == 0 ? far : 0, benching::kBurst))
    stop("no such collective, nor exercise: " + job.op);
  return builder.finish();
}

sched::Schedule built_in(sched::Builder& builder, const World& world, const Job& job) {
  select::CommTraits traits{.ranks = world.size, .nodes = world.nodes};
  traits.place(world.hierarchies);
  const select::Selection& selection = select::selection_across_nodes(job.shape.collective, traits, job.whole());
  return select::schedule_of(builder, selection, world.hierarchies, traits, job.whole(),
                             select::problem_of(job.shape, world.rank));
}

sched::Schedule collective(sched::Builder& builder, const World& world, const Job& job) {
  if (job.candidate == kBuiltIn) return built_in(builder, world, job);
  select::Candidate candidate;
  if (!select::named_candidate(job.shape, job.candidate.c_str(), &candidate))
    stop("no such algorithm: " + job.candidate);
  candidate.parameters = job.parameters;
  return select::build(builder, select::Machine{&world.hierarchies, {}}, job.shape, candidate, world.rank);
}

double by_schedule(const World& world, const Job& job, char* send, char* receive) {
  sched::Builder builder;
  sched::Program program;
  if (!program.prepare(job.is_exercise() ? exercise(builder, world, job) : collective(builder, world, job)))
    stop("no memory");
  return execute(world, program, goes_in_parts(job) ? kPartsUnderWay : 0, send, receive);
}

void call_mpi(Collective op, int bytes, char* send, char* receive) {
  switch (op) {
    case Collective::bcast: MPI_Bcast(receive, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); break;
    case Collective::reduce: MPI_Reduce(send, receive, bytes / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); break;
    case Collective::allreduce: MPI_Allreduce(send, receive, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case Collective::gather: MPI_Gather(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); break;
    case Collective::scatter: MPI_Scatter(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); break;
    case Collective::allgather: MPI_Allgather(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, MPI_COMM_WORLD); break;
    case Collective::alltoall: MPI_Alltoall(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, MPI_COMM_WORLD); break;
    default: stop("no such collective");
  }
}

// SMPI makes a communicator's groups of nodes in the first call whose algorithm wants them. That
// call takes much longer.
void warm_up(const World& world, const Job& job) {
  constexpr int kMost = 16 << 10;
  const bool vector = job.whole() == job.shape.bytes;
  const Folded send(kMost * static_cast<std::uint64_t>(world.size)),
      receive(kMost * static_cast<std::uint64_t>(world.size));
  for (int bytes = 4; bytes <= (vector ? kMost : 4); bytes *= 16)
    call_mpi(job.shape.collective, bytes, send.get(), receive.get());
}

double by_mpi(const World& world, const Job& job, char* send, char* receive) {
  const double begin = begin_together(world);
  call_mpi(job.shape.collective, static_cast<int>(job.shape.bytes), send, receive);
  return MPI_Wtime() - begin;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  World world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  if (argc < 3) stop("usage: simulated LEVELS JOB...");
  const topo::Placement placement = placement_of(argv[1], world.size);
  for (int level = 0; level < placement.levels; ++level) {
    if (placement.names[level].is("node")) world.nodes = placement.at(level, world.size - 1) + 1;
  }
  if (!world.hierarchies.build(placement)) stop("no memory");
  bool warm[static_cast<int>(Collective::count_)] = {};
  for (int i = 2; i < argc; ++i) {
    const Job job = parse(argv[i], world.size);
    if (job.candidate == "mpi" && !std::exchange(warm[static_cast<int>(job.shape.collective)], true))
      warm_up(world, job);
    const Folded send(job.whole()), receive(job.whole());
    const double mine = job.candidate == "mpi" ? by_mpi(world, job, send.get(), receive.get())
                                               : by_schedule(world, job, send.get(), receive.get());
    const double last = greatest(world, mine);
    if (world.rank == 0) {
      std::printf("{\"job\": \"%s\", \"time\": %.9f}\n", argv[i], last);
      std::fflush(stdout);
    }
  }
  MPI_Finalize();
}
