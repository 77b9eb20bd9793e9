// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking collectives: Stretto's beside the MPI's own, in one run.
//
//   latency   from the call to the return of MPI_Wait
//   overlap   the program computes as long as the call takes, between the call and MPI_Wait. What
//             of the call is hidden: 1 - (all - computing) / latency. `tests` times on the way it
//             calls MPI_Test
//
//   mpicxx -O2 -std=c++20 bench/requests.cpp -o requests -ldl
//   ./stretto run -n 8 -s nonblocking=on -- ./requests 11 8 1024 65536 1048576
//
// Rounds of both take turns. Times are the slowest rank's, and medians over rounds.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "host_functions.hpp"

namespace {

int g_rank = 0, g_size = 1;

struct Functions {
  decltype(&MPI_Ibarrier) ibarrier;
  decltype(&MPI_Ibcast) ibcast;
  decltype(&MPI_Iallreduce) iallreduce;
  decltype(&MPI_Iallgather) iallgather;
  decltype(&MPI_Ialltoall) ialltoall;
  decltype(&MPI_Wait) wait;
  decltype(&MPI_Test) test;
};
Functions g_functions[2];  // Stretto's, the MPI's
const char* const kNames[] = {"ibarrier", "ibcast", "iallreduce", "iallgather", "ialltoall"};

void find_functions(Functions& f, void* handle, const char* prefix) {
  const auto find = [&](auto& function, const char* name) { bench::find_function(function, handle, prefix, name); };
  find(f.ibarrier, "Ibarrier");
  find(f.ibcast, "Ibcast");
  find(f.iallreduce, "Iallreduce");
  find(f.iallgather, "Iallgather");
  find(f.ialltoall, "Ialltoall");
  find(f.wait, "Wait");
  find(f.test, "Test");
}

struct Work {
  std::vector<char> send, receive;
  int bytes = 0;
};

void post(const Functions& f, int op, Work& w, int turn, MPI_Request* request) {
  const int n = w.bytes;
  switch (op) {
    case 0: f.ibarrier(MPI_COMM_WORLD, request); break;
    case 1: f.ibcast(w.send.data(), n, MPI_CHAR, turn % g_size, MPI_COMM_WORLD, request); break;
    case 2:
      f.iallreduce(w.send.data(), w.receive.data(), n / 8, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD, request);
      break;
    case 3: f.iallgather(w.send.data(), n, MPI_CHAR, w.receive.data(), n, MPI_CHAR, MPI_COMM_WORLD, request); break;
    default: f.ialltoall(w.send.data(), n, MPI_CHAR, w.receive.data(), n, MPI_CHAR, MPI_COMM_WORLD, request); break;
  }
}

void compute(double seconds) {
  const double until = MPI_Wtime() + seconds;
  while (MPI_Wtime() < until) {
  }
}

// The slowest rank's time of a call with so much computing, per call.
double time_of(const Functions& f, int op, Work& w, int calls, double computing, int tests) {
  PMPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (int i = 0; i < calls; ++i) {
    MPI_Request request;
    int flag = 0;
    post(f, op, w, i, &request);
    for (int t = 0; t < tests; ++t) {
      compute(computing / (tests + 1));
      if (flag == 0) f.test(&request, &flag, MPI_STATUS_IGNORE);
    }
    compute(computing / (tests + 1));
    f.wait(&request, MPI_STATUS_IGNORE);
  }
  double mine = (MPI_Wtime() - began) / calls, slowest = 0;
  PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

void measure(int op, int bytes, int rounds) {
  constexpr int kTests[] = {0, 8};
  Work w;
  w.bytes = bytes;
  w.send.assign(static_cast<std::size_t>(bytes) * static_cast<std::size_t>(g_size) + 8, 1);
  w.receive = w.send;
  std::vector<double> latency[2], all[2][2];
  double computing[2] = {};
  int calls = 0;
  for (int which = 0; which < 2; ++which) {
    const double once = time_of(g_functions[which], op, w, 4, 0, 0);
    calls = std::max(calls, static_cast<int>(std::clamp(0.02 / once, 4.0, 200.0)));
  }
  for (int round = 0; round < rounds; ++round) {
    for (int which = 0; which < 2; ++which) latency[which].push_back(time_of(g_functions[which], op, w, calls, 0, 0));
  }
  for (int which = 0; which < 2; ++which) computing[which] = bench::median(latency[which]);
  PMPI_Bcast(computing, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int round = 0; round < rounds; ++round) {
    for (int which = 0; which < 2; ++which) {
      for (int t = 0; t < 2; ++t)
        all[which][t].push_back(time_of(g_functions[which], op, w, calls, computing[which], kTests[t]));
    }
  }
  if (g_rank != 0) return;
  const auto hidden = [&](int which, int t) {
    return std::clamp(1 - (bench::median(all[which][t]) - computing[which]) / computing[which], 0.0, 1.0);
  };
  std::printf(
      "RESULT {\"op\": \"%s\", \"bytes\": %d, \"us\": %.3f, \"mpi_us\": %.3f, \"ratio\": %.3f, \"hidden\": %.2f, "
      "\"mpi_hidden\": %.2f, \"hidden_with_tests\": %.2f, \"mpi_hidden_with_tests\": %.2f}\n",
      kNames[op], op == 0 ? 0 : bytes, computing[0] * 1e6, computing[1] * 1e6, computing[0] / computing[1],
      hidden(0, 0), hidden(1, 0), hidden(0, 1), hidden(1, 1));
  std::fflush(stdout);
}

}  // namespace

// requests ROUNDS BYTES...
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  find_functions(g_functions[0], RTLD_DEFAULT, "MPI_");
  find_functions(g_functions[1], bench::host_library(), "PMPI_");
  for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  measure(0, 8, rounds);
  for (int op = 1; op < 5; ++op) {
    for (int i = 2; i < argc; ++i) measure(op, std::atoi(argv[i]), rounds);
  }
  MPI_Finalize();
  return 0;
}
