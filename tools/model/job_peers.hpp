// SPDX-License-Identifier: BSD-3-Clause
// Whom a call names, as a rule of the rank, the number of ranks, and the turn of the loop around
// it.
#pragma once
#include <string>
#include <vector>

namespace stretto::modelling {

// A rank of a communicator names a peer in some turn. kNoPeer: MPI_PROC_NULL.
struct NamedPeer {
  int ranks, me, turn;
  int peer;
};
inline constexpr int kNoPeer = -1;

class PeerRule {
 public:
  // Looks for one that all samples follow. False: there is none.
  bool find(const std::vector<NamedPeer>& samples);
  [[nodiscard]] int at(int ranks, int me, int turn) const;
  [[nodiscard]] std::string name() const;

 private:
  std::size_t form_ = 0;
  int parameter_ = 0;
};

// Extents of a grid of so many ranks, as MPI_Dims_create makes them: as even as can be, not rising.
std::vector<int> grid_extents(int ranks, int dimensions);

}  // namespace stretto::modelling
