// SPDX-License-Identifier: BSD-3-Clause
// A halo exchange as finite-element programs make it: MPI_Neighbor_alltoallv on a distributed
// graph, Stretto's beside the MPI's own, in one run.
//
// Ranks own the boxes of a periodic grid in three dimensions. A rank sends a block to each rank
// whose box touches its own: `bytes` to those behind a face, an eighth of it behind an edge, and a
// sixty-fourth behind a corner. What goes to the same rank is one block.
//
//   neighbors ROUNDS BYTES...      run by `stretto bench --suite neighbors`
//
// Rounds of both take turns. Times are the slowest rank's, and medians over rounds.
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "by_turns.hpp"

namespace {

int g_rank = 0, g_size = 1;

using Exchange = decltype(&MPI_Neighbor_alltoallv);
Exchange g_exchange[2];  // Stretto's, the MPI's

// The ranks around this one, and the share of a face that each gets.
std::map<int, double> neighbors() {
  int dims[3] = {0, 0, 0};
  MPI_Dims_create(g_size, 3, dims);
  const int at[3] = {g_rank % dims[0], g_rank / dims[0] % dims[1], g_rank / dims[0] / dims[1]};
  std::map<int, double> found;
  for (int way = 0; way < 27; ++way) {
    const int step[3] = {way % 3 - 1, way / 3 % 3 - 1, way / 9 - 1};
    int rank = 0, moved = 0;
    for (int d = 2; d >= 0; --d) {
      rank = rank * dims[d] + (at[d] + step[d] + dims[d]) % dims[d];
      moved += step[d] != 0 ? 1 : 0;
    }
    constexpr double kShare[] = {0, 1, 1.0 / 8, 1.0 / 64};
    if (rank != g_rank) found[rank] += kShare[moved];
  }
  return found;
}

struct Halo {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<double> shares;
  std::vector<int> counts, displs;
  std::vector<char> send, receive;

  Halo() {
    std::vector<int> ranks;
    for (const auto& [rank, share] : neighbors()) {
      ranks.push_back(rank);
      shares.push_back(share);
    }
    const int degree = static_cast<int>(ranks.size());
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, ranks.data(), MPI_UNWEIGHTED, degree, ranks.data(),
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  }
  void resize(int bytes) {
    counts.clear();
    displs.clear();
    int end = 0;
    for (const double share : shares) {
      counts.push_back(std::max(1, static_cast<int>(share * bytes)));
      displs.push_back(end);
      end += counts.back();
    }
    send.assign(static_cast<std::size_t>(end) + 1, static_cast<char>(g_rank));
    receive.assign(send.size(), -1);
  }
  void exchange(Exchange by) {
    by(send.data(), counts.data(), displs.data(), MPI_BYTE, receive.data(), counts.data(), displs.data(), MPI_BYTE,
       comm);
  }
};

void measure(Halo& halo, int bytes, int rounds) {
  halo.resize(bytes);
  const auto time = [&](int which, int calls) {
    return bench::time_of(calls, [&](int) { halo.exchange(g_exchange[which]); });
  };
  const auto times = bench::medians(rounds, bench::calls_of_a_round(500, time), time);
  if (g_rank != 0) return;
  const auto about = "\"bytes\": " + std::to_string(bytes) + ", \"neighbors\": " + std::to_string(halo.shares.size());
  bench::print_result(about, times);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  bench::find_function(g_exchange[0], RTLD_DEFAULT, "MPI_", "Neighbor_alltoallv");
  bench::find_function(g_exchange[1], bench::host_library(), "PMPI_", "Neighbor_alltoallv");
  Halo halo;
  for (int i = 0; i < 8; ++i) PMPI_Barrier(halo.comm);  // its members agree
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
  for (int i = 2; i < argc; ++i) measure(halo, std::atoi(argv[i]), rounds);
  MPI_Comm_free(&halo.comm);
  if (g_rank == 0) std::puts("{\"event\": \"done\"}");
  MPI_Finalize();
  return 0;
}
