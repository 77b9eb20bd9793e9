// SPDX-License-Identifier: BSD-3-Clause
// What calls in which a program waits take: patterns of messages between neighbours and with a
// server, and what a call costs that does not wait.
//
//   kind BUDGET_S MOST_TIMES
//
// A pattern runs BUDGET_S seconds or MOST_TIMES times, whichever ends first. Its row has the time
// of one step. The patterns:
//   none      MPI_Send to MPI_PROC_NULL: the wrapper and the MPI's own entry
//   ring      MPI_Sendrecv with both neighbours of a ring
//   halo      Irecv and Isend with both neighbours, then MPI_Waitall
//   server    rank 0 probes for questions of any rank, receives and answers them
//   compute   as halo, and each rank computes 100 us between steps
#include <mpi.h>
#include <time.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

double now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct World {
  int rank = 0, size = 0, before = 0, after = 0, bytes = 0;
  std::vector<char> out, in, other;

  explicit World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    before = (rank + size - 1) % size;
    after = (rank + 1) % size;
  }
  void resize(int length) {
    bytes = length;
    const std::vector<char> fresh(static_cast<std::size_t>(length) + 1);
    out = in = other = fresh;
  }
};

void none(World& w) { MPI_Send(w.out.data(), w.bytes, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD); }

void ring(World& w) {
  MPI_Sendrecv(w.out.data(), w.bytes, MPI_BYTE, w.after, 1, w.in.data(), w.bytes, MPI_BYTE, w.before, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

void halo(World& w) {
  std::array<MPI_Request, 4> requests{};
  MPI_Irecv(w.in.data(), w.bytes, MPI_BYTE, w.before, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(w.other.data(), w.bytes, MPI_BYTE, w.after, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(w.out.data(), w.bytes, MPI_BYTE, w.after, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(w.out.data(), w.bytes, MPI_BYTE, w.before, 2, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
}

// A step is one question of each other rank.
void server(World& w) {
  if (w.rank != 0) {
    MPI_Send(w.out.data(), w.bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    MPI_Recv(w.in.data(), w.bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  for (int asked = 1; asked < w.size; asked++) {
    MPI_Status status;
    MPI_Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
    MPI_Recv(w.in.data(), w.bytes, MPI_BYTE, status.MPI_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(w.in.data(), w.bytes, MPI_BYTE, status.MPI_SOURCE, 2, MPI_COMM_WORLD);
  }
}

void compute(World& w) {
  const double end = now_s() + 100e-6;
  while (now_s() < end) {
  }
  halo(w);
}

struct Pattern {
  const char* name;
  void (*step)(World&);
  std::array<int, 2> bytes;
};
constexpr std::array<Pattern, 5> kPatterns = {{{"none", none, {8, -1}},
                                               {"ring", ring, {8, 65536}},
                                               {"halo", halo, {8, 65536}},
                                               {"server", server, {8, -1}},
                                               {"compute", compute, {8, 65536}}}};

double seconds_of(const Pattern& pattern, World& world, long times) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = now_s();
  for (long i = 0; i < times; i++) pattern.step(world);
  double mine = now_s() - began, most = 0;
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

// More and more steps, until a run takes a third of the budget at least. That run counts.
void measure(const Pattern& pattern, World& world, double budget_s, long most_times) {
  long times = 2;
  double seconds = seconds_of(pattern, world, times);
  while (seconds < budget_s / 3 && times < most_times) {
    times = times * 3 < most_times ? times * 3 : most_times;
    seconds = seconds_of(pattern, world, times);
  }
  if (world.rank != 0) return;
  std::printf("{\"event\": \"row\", \"pattern\": \"%s\", \"bytes\": %d, \"times\": %ld, \"us\": %.5g}\n", pattern.name,
              world.bytes, times, 1e6 * seconds / static_cast<double>(times));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  World world;
  for (const Pattern& pattern : kPatterns) {
    for (const int bytes : pattern.bytes) {
      if (bytes < 0) continue;
      world.resize(bytes);
      measure(pattern, world, std::atof(argv[1]), std::atol(argv[2]));
    }
  }
  if (world.rank == 0) std::printf("{\"event\": \"done\"}\n");
  MPI_Finalize();
  return 0;
}
