// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking collectives: Stretto's beside the MPI's own, in one run.
//
//   latency   from the call to the return of MPI_Wait
//   overlap   the program computes between the call and MPI_Wait, for as long as the slower of the
//             two takes. `exposed` is what comes on top of computing. `tests` times on the way it
//             calls MPI_Test
//   many      K calls are under way, each on a communicator of its own or, persistent ones, on the
//             same. From the first start to the return of MPI_Waitall
//
//   requests ROUNDS [--under-way K]... BYTES...    run by `stretto bench --suite nonblocking`
//
// Rounds of both take turns. Times are the slowest rank's, and medians over rounds.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "by_turns.hpp"

namespace {

int g_rank = 0, g_size = 1;

struct Functions {
  decltype(&MPI_Ibarrier) ibarrier;
  decltype(&MPI_Ibcast) ibcast;
  decltype(&MPI_Iallreduce) iallreduce;
  decltype(&MPI_Iallgather) iallgather;
  decltype(&MPI_Ialltoall) ialltoall;
  decltype(&MPI_Ialltoallv) ialltoallv;
  decltype(&MPI_Ireduce) ireduce;
  decltype(&MPI_Ireduce_scatter_block) ireduce_scatter_block;
  decltype(&MPI_Igather) igather;
  decltype(&MPI_Iscatter) iscatter;
  decltype(&MPI_Wait) wait;
  decltype(&MPI_Waitall) waitall;
  decltype(&MPI_Test) test;
#if MPI_VERSION >= 4
  decltype(&MPI_Bcast_init) bcast_init;
  decltype(&MPI_Allreduce_init) allreduce_init;
  decltype(&MPI_Alltoall_init) alltoall_init;
  decltype(&MPI_Startall) startall;
  decltype(&MPI_Request_free) request_free;
#endif
};
Functions g_functions[2];  // Stretto's, the MPI's
const char* const kNames[] = {"ibarrier",  "ibcast",     "iallreduce", "iallgather",
                              "ialltoall", "ialltoallv", "ireduce",    "ireduce_scatter_block",
                              "igather",   "iscatter"};

void find_functions(Functions& f, void* handle, const char* prefix) {
  const auto find = [&](auto& function, const char* name) { bench::find_function(function, handle, prefix, name); };
  find(f.ibarrier, "Ibarrier");
  find(f.ibcast, "Ibcast");
  find(f.iallreduce, "Iallreduce");
  find(f.iallgather, "Iallgather");
  find(f.ialltoall, "Ialltoall");
  find(f.ialltoallv, "Ialltoallv");
  find(f.ireduce, "Ireduce");
  find(f.ireduce_scatter_block, "Ireduce_scatter_block");
  find(f.igather, "Igather");
  find(f.iscatter, "Iscatter");
  find(f.wait, "Wait");
  find(f.waitall, "Waitall");
  find(f.test, "Test");
#if MPI_VERSION >= 4
  find(f.bcast_init, "Bcast_init");
  find(f.allreduce_init, "Allreduce_init");
  find(f.alltoall_init, "Alltoall_init");
  find(f.startall, "Startall");
  find(f.request_free, "Request_free");
#endif
}

struct Work {
  std::vector<char> send, receive;
  std::vector<int> counts, displacements;  // of equal blocks
  int bytes = 0;
};

void post(const Functions& f, int op, Work& w, int turn, MPI_Request* request) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  const int n = w.bytes, words = n / 8, root = turn % g_size;
  const char* const send = w.send.data();
  char* const receive = w.receive.data();
  switch (op) {
    case 0: f.ibarrier(comm, request); break;
    case 1: f.ibcast(receive, n, MPI_CHAR, root, comm, request); break;
    case 2: f.iallreduce(send, receive, words, MPI_LONG_LONG, MPI_SUM, comm, request); break;
    case 3: f.iallgather(send, n, MPI_CHAR, receive, n, MPI_CHAR, comm, request); break;
    case 4: f.ialltoall(send, n, MPI_CHAR, receive, n, MPI_CHAR, comm, request); break;
    case 5: {
      const int *const counts = w.counts.data(), *const displacements = w.displacements.data();
      f.ialltoallv(send, counts, displacements, MPI_CHAR, receive, counts, displacements, MPI_CHAR, comm, request);
      break;
    }
    case 6: f.ireduce(send, receive, words, MPI_LONG_LONG, MPI_SUM, root, comm, request); break;
    case 7: f.ireduce_scatter_block(send, receive, words, MPI_LONG_LONG, MPI_SUM, comm, request); break;
    case 8: f.igather(send, n, MPI_CHAR, receive, n, MPI_CHAR, root, comm, request); break;
    default: f.iscatter(send, n, MPI_CHAR, receive, n, MPI_CHAR, root, comm, request); break;
  }
}

void compute(double seconds) {
  const double until = MPI_Wtime() + seconds;
  while (MPI_Wtime() < until) {
  }
}

// One call, and so much computing before its wait.
void call_once(const Functions& f, int op, Work& w, int turn, double computing, int tests) {
  MPI_Request request;
  int flag = 0;
  post(f, op, w, turn, &request);
  for (int t = 0; t < tests; ++t) {
    compute(computing / (tests + 1));
    if (flag == 0) f.test(&request, &flag, MPI_STATUS_IGNORE);
  }
  compute(computing / (tests + 1));
  f.wait(&request, MPI_STATUS_IGNORE);
}

void measure(int op, int bytes, int rounds) {
  Work w;
  w.bytes = bytes;
  w.send.assign(static_cast<std::size_t>(bytes) * static_cast<std::size_t>(g_size) + 8, 1);
  w.receive = w.send;
  for (int r = 0; r < g_size; ++r) {
    w.counts.push_back(bytes);
    w.displacements.push_back(r * bytes);
  }
  double computing = 0;
  int tests = 0;
  const auto time = [&](int which, int calls) {
    return bench::time_of(calls, [&](int i) { call_once(g_functions[which], op, w, i, computing, tests); });
  };
  const int calls = bench::calls_of_a_round(200, time);
  const auto latency = bench::medians(rounds, calls, time);
  computing = std::max(latency[0], latency[1]);
  PMPI_Bcast(&computing, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  const auto alone = bench::medians(rounds, calls, time);
  tests = 8;
  const auto tested = bench::medians(rounds, calls, time);
  if (g_rank != 0) return;
  const auto exposed_us = [&](double all) { return std::max(all - computing, 0.0) * 1e6; };
  char about[64], more[200];
  std::snprintf(about, sizeof about, "\"op\": \"%s\", \"bytes\": %d", kNames[op], op == 0 ? 0 : bytes);
  std::snprintf(more, sizeof more,
                "\"exposed_us\": %.3f, \"mpi_exposed_us\": %.3f, \"exposed_with_tests_us\": %.3f, "
                "\"mpi_exposed_with_tests_us\": %.3f",
                exposed_us(alone[0]), exposed_us(alone[1]), exposed_us(tested[0]), exposed_us(tested[1]));
  bench::print_result(about, latency, more);
}

// ---- Many calls under way ----

constexpr int kManyBytes[] = {40'000, 200'000};
enum Many { kBcast, kAllreduce, kAlltoall, kPersistentBcast, kPersistentAllreduce, kPersistentAlltoall };
const char* const kManyNames[] = {"ibcast", "iallreduce", "ialltoall", "bcast_init", "allreduce_init", "alltoall_init"};
constexpr int kManyOps = MPI_VERSION >= 4 ? 6 : 3;

// The calls of one contender.
struct UnderWay {
  const Functions* f;
  Many op;
  int bytes;
  std::vector<MPI_Comm> comms;
  std::vector<std::vector<char>> send, receive;
  std::vector<MPI_Request> requests;

  [[nodiscard]] bool is_persistent() const { return op >= kPersistentBcast; }

  UnderWay(const Functions& functions, Many what, int length, int count) : f(&functions), op(what), bytes(length) {
    const std::size_t all = static_cast<std::size_t>(bytes) * static_cast<std::size_t>(g_size);
    comms.assign(static_cast<std::size_t>(count), MPI_COMM_WORLD);
    requests.assign(comms.size(), MPI_REQUEST_NULL);
    send.assign(comms.size(), std::vector<char>(all, 1));
    receive = send;
    for (std::size_t c = 0; c < comms.size(); ++c) {
      if (is_persistent()) {
        prepare(c);
        continue;
      }
      MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
      for (int i = 0; i < 3; ++i) MPI_Barrier(comms[c]);
    }
  }
  ~UnderWay() {
    for (std::size_t c = 0; c < comms.size(); ++c) is_persistent() ? release(c) : void(MPI_Comm_free(&comms[c]));
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  void run() {
    if (is_persistent()) {
      start_all();
    } else {
      for (std::size_t c = 0; c < comms.size(); ++c) post(c);
    }
    f->waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }

 private:
  void post(std::size_t c) {
    const int words = bytes / 8, root = static_cast<int>(c) % g_size;
    const void* const from = send[c].data();
    void* const to = receive[c].data();
    switch (op) {
      case kBcast: f->ibcast(to, bytes, MPI_CHAR, root, comms[c], &requests[c]); break;
      case kAllreduce: f->iallreduce(from, to, words, MPI_LONG_LONG, MPI_SUM, comms[c], &requests[c]); break;
      default: f->ialltoall(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, comms[c], &requests[c]); break;
    }
  }
#if MPI_VERSION >= 4
  void prepare(std::size_t c) {
    const int words = bytes / 8, root = static_cast<int>(c) % g_size;
    const MPI_Comm comm = comms[c];
    const void* const from = send[c].data();
    void* const to = receive[c].data();
    MPI_Request* const request = &requests[c];
    switch (op) {
      case kPersistentBcast: f->bcast_init(to, bytes, MPI_CHAR, root, comm, MPI_INFO_NULL, request); break;
      case kPersistentAllreduce:
        f->allreduce_init(from, to, words, MPI_LONG_LONG, MPI_SUM, comm, MPI_INFO_NULL, request);
        break;
      default: f->alltoall_init(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, comm, MPI_INFO_NULL, request); break;
    }
  }
  void start_all() { f->startall(static_cast<int>(requests.size()), requests.data()); }
  void release(std::size_t c) { f->request_free(&requests[c]); }
#else
  void prepare(std::size_t) {}
  void start_all() {}
  void release(std::size_t) {}
#endif
};

void measure_many(Many op, int bytes, int count, int rounds) {
  UnderWay ours(g_functions[0], op, bytes, count), mpis(g_functions[1], op, bytes, count);
  const auto time = [&](int which, int calls) {
    return bench::time_of(calls, [&](int) { (which == 0 ? ours : mpis).run(); });
  };
  const int calls = bench::calls_of_a_round(200, time);
  const auto seconds = bench::medians(rounds, calls, time);
  if (g_rank != 0) return;
  char about[80];
  std::snprintf(about, sizeof about, "\"op\": \"%s\", \"bytes\": %d, \"under_way\": %d", kManyNames[op], bytes, count);
  bench::print_result(about, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  find_functions(g_functions[0], RTLD_DEFAULT, "MPI_");
  find_functions(g_functions[1], bench::host_library(), "PMPI_");
  for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  measure(0, 8, rounds);
  std::vector<int> lengths, counts;
  for (int i = 2; i < argc; ++i) {
    const bool many = std::strcmp(argv[i], "--under-way") == 0 && i + 1 < argc;
    many ? counts.push_back(std::atoi(argv[++i])) : lengths.push_back(std::atoi(argv[i]));
  }
  for (int op = 1; op < static_cast<int>(std::size(kNames)); ++op) {
    for (const int bytes : lengths) measure(op, bytes, rounds);
  }
  for (int op = 0; op < kManyOps; ++op) {
    for (const int bytes : kManyBytes) {
      for (const int count : counts) measure_many(static_cast<Many>(op), bytes, count, rounds);
    }
  }
  if (g_rank == 0) std::puts("{\"event\": \"done\"}");
  MPI_Finalize();
  return 0;
}
