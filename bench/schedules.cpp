// SPDX-License-Identifier: BSD-3-Clause
// Executes schedules over the MPI's point-to-point messages and times them, for `stretto model compare`: what the model predicts is
// measured with the same schedules. Jobs on the command line, one JSON object a line on stdout.
//
//   schedules REPEAT OP:ALGORITHM:BYTES:K:SEGMENTS...     ALGORITHM "mpi": the MPI's own, of bcast, reduce, allreduce, allgather
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "coll/algorithm.hpp"
#include "sched/execute.hpp"

namespace {

using namespace stretto;

int me = 0, size = 0;

// Messages by MPI_Isend and MPI_Irecv; the number of a message is its tag.
class Messages {
 public:
  sched::Transport transport() { return {this, &Messages::send, &Messages::receive, &Messages::poll}; }

 private:
  static Messages& of(void* context) { return *static_cast<Messages*>(context); }
  static bool send(void* context, int peer, std::uint32_t edge, const char* data, std::uint64_t bytes, std::uint32_t ticket) {
    MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, static_cast<int>(edge), MPI_COMM_WORLD, of(context).next(ticket));
    return true;
  }
  static bool receive(void* context, int peer, std::uint32_t edge, char* data, std::uint64_t bytes, std::uint32_t ticket) {
    MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, static_cast<int>(edge), MPI_COMM_WORLD, of(context).next(ticket));
    return true;
  }
  static int poll(void* context, std::uint32_t* tickets, int capacity) {
    Messages& self = of(context);
    if (self.requests_.empty()) return 0;
    self.done_.resize(self.requests_.size());
    int count = 0;
    const int look = std::min(capacity, static_cast<int>(self.requests_.size()));
    MPI_Testsome(look == capacity ? capacity : static_cast<int>(self.requests_.size()), self.requests_.data(), &count, self.done_.data(), MPI_STATUSES_IGNORE);
    if (count <= 0) return 0;
    for (int i = 0; i < count; ++i) tickets[i] = self.tickets_[static_cast<std::size_t>(self.done_[i])];
    self.drop_finished();
    return count;
  }
  MPI_Request* next(std::uint32_t ticket) {
    tickets_.push_back(ticket);
    requests_.push_back(MPI_REQUEST_NULL);
    return &requests_.back();
  }
  void drop_finished() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      requests_[kept] = requests_[i];
      tickets_[kept++] = tickets_[i];
    }
    requests_.resize(kept);
    tickets_.resize(kept);
  }

  std::vector<MPI_Request> requests_;
  std::vector<std::uint32_t> tickets_;
  std::vector<int> done_;
};

// Sums of doubles; a unit is 8 bytes.
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

Run parse(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':') parts.emplace_back();
    else parts.back() += c;
  }
  parts.resize(5);
  return {parts[0], parts[1], std::strtoull(parts[2].c_str(), nullptr, 10), {std::max(1, std::atoi(parts[4].c_str())), std::atoi(parts[3].c_str()), 0}};
}

Collective collective(const std::string& name) {
  for (int c = 0; c < kCollectives; ++c) {
    if (name == kCollectiveNames[c]) return static_cast<Collective>(c);
  }
  return Collective::count_;
}

class Bench {
 public:
  explicit Bench(const Run& run) : run_(run) {
    problem_.collective = collective(run.op);
    problem_.size = size;
    problem_.rank = me;
    problem_.commutative = true;
    problem_.count = (run.bytes + 7) / 8;
    const std::uint64_t part = problem_.count * 8;
    send_.assign(part * static_cast<std::uint64_t>(size), 0);
    receive_.assign(part * static_cast<std::uint64_t>(size), 0);
  }
  bool prepare() {
    if (run_.algorithm == "mpi") return true;
    const coll::Algorithm* const algorithm = coll::find_algorithm(problem_.collective, run_.algorithm.c_str());
    if (!algorithm) return false;
    sched::Builder builder;
    if (!program_.prepare(coll::build(builder, *algorithm, problem_, run_.parameters)) || !execution_.prepare(program_)) return false;
    scratch_.resize(program_.scratch_units() * 8 + 1);
    return true;
  }
  void once() {
    if (run_.algorithm == "mpi") return host();
    sched::Binding binding;
    binding.buffers[0] = send_.data();
    binding.buffers[1] = receive_.data();
    binding.buffers[2] = scratch_.data();
    binding.unit_bytes = 8;
    binding.combination = {nullptr, add};
    binding.transport = messages_.transport();
    execution_.start(binding);
    while (!execution_.done()) execution_.advance();
  }

 private:
  void host() {
    const int count = static_cast<int>(problem_.count);
    switch (problem_.collective) {
      case Collective::bcast: MPI_Bcast(receive_.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD); return;
      case Collective::reduce: MPI_Reduce(send_.data(), receive_.data(), count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); return;
      case Collective::allreduce: MPI_Allreduce(send_.data(), receive_.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); return;
      case Collective::allgather: MPI_Allgather(send_.data(), count, MPI_DOUBLE, receive_.data(), count, MPI_DOUBLE, MPI_COMM_WORLD); return;
      default: MPI_Barrier(MPI_COMM_WORLD);
    }
  }

  Run run_;
  coll::Problem problem_;
  std::vector<char> send_, receive_, scratch_;
  sched::Program program_;
  sched::Execution execution_;
  Messages messages_;
};

// The longest of all ranks, the median over repetitions.
void measure(const std::string& text, int repeat) {
  const Run run = parse(text);
  Bench bench(run);
  if (collective(run.op) == Collective::count_ || !bench.prepare()) {
    if (me == 0) std::fprintf(stderr, "no such job: %s\n", text.c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  std::vector<double> times;
  for (int i = -2; i < repeat; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    bench.once();
    const double own = MPI_Wtime() - begin;
    double most = 0;
    MPI_Allreduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i >= 0) times.push_back(most * 1e9);
  }
  std::sort(times.begin(), times.end());
  if (me != 0) return;
  const std::size_t n = times.size();
  std::printf("{\"job\": \"%s\", \"time\": %.1f, \"low\": %.1f, \"high\": %.1f}\n", text.c_str(), times[n / 2], times[n / 4], times[n * 3 / 4]);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int repeat = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  for (int i = 2; i < argc; ++i) measure(argv[i], repeat);
  MPI_Finalize();
}
