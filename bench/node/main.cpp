// SPDX-License-Identifier: BSD-3-Clause
// stretto-node-bench: what `stretto model node --calibrate` compares its model with. Two threads on
// two processors of this machine measure how long a cache line takes from one to the other, and
// what the engine's calls take between two ranks. Arguments: the two processors.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.hpp"
#include "engine/policy.hpp"
#include "engine/settings.hpp"
#include "reduce/reduce.hpp"

namespace {

using namespace stretto;

constexpr int kRanks = 2;
// Short trials, so that most of them pass without another program on these processors.
constexpr int kTrials = 400, kTrips = 400, kCalls = 60;

int processors[kRanks];

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void bind(int rank) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processors[rank], &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
    std::fprintf(stderr, "stretto-node-bench: cannot use processor %d\n", processors[rank]);
    std::exit(2);
  }
}

// What a quick trial takes: only one in twenty is quicker.
double quick(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 20];
}

// Both ranks run `body(rank)` at once. Returns what a quick trial took rank 0.
double quick_trial(const std::function<void(int)>& body) {
  std::vector<double> took;
  std::barrier<> both(kRanks);
  std::thread peer([&] {
    bind(1);
    for (int t = 0; t < kTrials; ++t) both.arrive_and_wait(), body(1);
  });
  bind(0);
  for (int t = 0; t < kTrials; ++t) {
    both.arrive_and_wait();
    const double begun = now_ns();
    body(0);
    took.push_back(now_ns() - begun);
  }
  peer.join();
  return quick(took);
}

// One way of a line that both change in turn, as core-to-core-latency measures it.
double exchange_ns() {
  alignas(128) static std::atomic<unsigned long> line;
  static unsigned long begin[kRanks];
  return quick_trial([](int rank) {
           for (unsigned long i = 0; i < kTrips; ++i) {
             const unsigned long mine = begin[rank] + 2 * i + rank;
             unsigned long expected = mine;
             while (!line.compare_exchange_strong(expected, mine + 1)) expected = mine;
           }
           begin[rank] += 2 * kTrips;
         }) /
         (2 * kTrips);
}

// One way of a flag: one rank stores, the other loads, each its own line.
double flag_ns() {
  struct alignas(128) Flag {
    std::atomic<unsigned long> value;
  };
  static Flag flags[kRanks];
  static unsigned long begin[kRanks];
  return quick_trial([](int rank) {
           for (unsigned long i = begin[rank] + 1; i <= begin[rank] + kTrips; ++i) {
             if (rank == 0) flags[0].value.store(i, std::memory_order_release);
             while (flags[1 - rank].value.load(std::memory_order_acquire) != i) {
             }
             if (rank == 1) flags[1].value.store(i, std::memory_order_release);
           }
           begin[rank] += kTrips;
         }) /
         (2 * kTrips);
}

// ---- the engine's calls ----

class Job {
 public:
  Job() {
    engine::Settings settings;
    settings.fragments = engine::fragments_of(0);
    settings.single_copy = SingleCopyChoice::off;
    settings.ranks_on_node = kRanks;
    for (engine::Process*& process : processes_) {
      process = engine::process_create(settings, {});
      engine::process_set_concurrent(*process, false);
    }
  }
  ~Job() {
    for (engine::Process* process : processes_) engine::process_destroy(process);
  }

  engine::Comm* join(int rank) {
    Member member{this, rank};
    const engine::Bootstrap members{rank, kRanks, &member,
                                    [](void* context, const void* mine, void* all, std::size_t n) {
                                      const auto* self = static_cast<Member*>(context);
                                      return self->job->allgather(self->rank, mine, all, n);
                                    }};
    engine::Decline why;
    engine::Comm* const comm = engine::comm_create(*processes_[rank], members, kNativeCollectives, why);
    if (!comm) {
      std::fprintf(stderr, "stretto-node-bench: %s\n", why.reason);
      std::exit(1);
    }
    return comm;
  }

 private:
  struct Member {
    Job* job;
    int rank;
  };
  bool allgather(int rank, const void* mine, void* all, std::size_t bytes) {
    if (rank == 0) words_.resize(bytes * kRanks);
    both_.arrive_and_wait();
    std::memcpy(words_.data() + rank * bytes, mine, bytes);
    both_.arrive_and_wait();
    std::memcpy(all, words_.data(), bytes * kRanks);
    both_.arrive_and_wait();
    return true;
  }

  engine::Process* processes_[kRanks];
  std::vector<char> words_;
  std::barrier<> both_{kRanks};
};

struct Call {
  const char* op;
  std::size_t bytes;
  void (*make)(engine::Comm& comm, char* own, char* out, std::size_t bytes);
};

Region region(char* base, std::size_t bytes) { return {base, bytes, &kPlainByte}; }
Blocks blocks(char* base, std::size_t bytes) { return {base, &kPlainByte, bytes}; }
engine::KernelOp sum() { return {reduce::kernel3(reduce::Op::sum, reduce::Type::f64), sizeof(double)}; }

void make_barrier(engine::Comm& comm, char*, char*, std::size_t) { engine::barrier(comm); }
void make_bcast(engine::Comm& comm, char* own, char*, std::size_t bytes) {
  engine::bcast(comm, region(own, bytes), 0, true);
}
void make_reduce(engine::Comm& comm, char* own, char* out, std::size_t bytes) {
  engine::reduce(comm, engine::KernelArgs{own, out, bytes, true}, sum(), 0);
}
void make_allreduce(engine::Comm& comm, char* own, char* out, std::size_t bytes) {
  engine::allreduce(comm, engine::KernelArgs{own, out, bytes, true}, sum());
}
void make_gather(engine::Comm& comm, char* own, char* out, std::size_t bytes) {
  engine::gather(comm, Collective::gather, region(own, bytes), blocks(out, bytes), 0, false, true);
}
void make_allgather(engine::Comm& comm, char* own, char* out, std::size_t bytes) {
  engine::allgather(comm, Collective::allgather, region(own, bytes), blocks(out, bytes), false, true);
}
void make_alltoall(engine::Comm& comm, char* own, char* out, std::size_t bytes) {
  engine::alltoall(comm, Collective::alltoall, blocks(own, bytes), blocks(out, bytes), false, true);
}

constexpr std::size_t kShort = 8, kLong = 4096;
constexpr Call kMeasured[] = {
    {"barrier", 0, make_barrier},          {"bcast", kShort, make_bcast},        {"bcast", kLong, make_bcast},
    {"reduce", kShort, make_reduce},       {"reduce", kLong, make_reduce},       {"allreduce", kShort, make_allreduce},
    {"allreduce", kLong, make_allreduce},  {"gather", kShort, make_gather},      {"gather", kLong, make_gather},
    {"allgather", kShort, make_allgather}, {"allgather", kLong, make_allgather}, {"alltoall", kShort, make_alltoall},
    {"alltoall", kLong, make_alltoall},
};

// One trial of a call: both ranks make it again and again.
double loop_ns(engine::Comm& comm, const Call& call, char* own, char* out) {
  engine::barrier(comm);
  const double begun = now_ns();
  for (int i = 0; i < kCalls; ++i) call.make(comm, own, out, call.bytes);
  const double took = (now_ns() - begun) / kCalls;
  engine::barrier(comm);
  return took;
}

void rank_main(Job& job, int rank) {
  bind(rank);
  engine::Comm* const comm = job.join(rank);
  std::vector<double> own(kRanks * kLong / sizeof(double), 1.0), out(own);
  const char* separator = "";
  for (const Call& call : kMeasured) {
    std::vector<double> took;
    for (int t = 0; t < kTrials; ++t)
      took.push_back(loop_ns(*comm, call, reinterpret_cast<char*>(own.data()), reinterpret_cast<char*>(out.data())));
    if (rank == 0) {
      std::printf("%s{\"op\": \"%s\", \"bytes\": %zu, \"loop_us\": %.4f}", separator, call.op, call.bytes,
                  quick(took) / 1e3);
    }
    separator = ", ";
  }
  engine::comm_free(comm);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 1 + kRanks) {
    std::fprintf(stderr, "usage: stretto-node-bench PROCESSOR PROCESSOR\n");
    return 2;
  }
  for (int r = 0; r < kRanks; ++r) processors[r] = std::atoi(argv[1 + r]);
  std::printf("{\"exchange_ns\": %.2f, ", exchange_ns());
  std::printf("\"flag_ns\": %.2f, \"calls\": [", flag_ns());
  Job job;
  std::thread peer(rank_main, std::ref(job), 1);
  rank_main(job, 0);
  peer.join();
  std::printf("]}\n");
}
