// SPDX-License-Identifier: BSD-3-Clause
// STRETTO_CHECK=3: every served call is done twice, by us and by the host's function, and the results are compared byte by
// byte. The data that the call may change are saved before it; after our turn the result is kept, the saved bytes are put
// back, and the host's function works in the user's own buffers. Only the bytes of the datatypes count, not the gaps.
#pragma once
#include "mpi/communicator.hpp"

namespace stretto::mpi {

// What one rank may receive in a call, before and after our turn. An empty one compares nothing (no receive side on this
// rank, or data that only the host may touch), but the host's turn comes all the same: it is collective.
struct Snapshot {
  Blocks blocks{};
  int ranks = 0;  // blocks 0 to ranks - 1
  MPI_Datatype type{};
  std::uint64_t bytes = 0;
  char* before = nullptr;
  char* ours = nullptr;
};

// Before our turn. `type` is that of the blocks' layout, which is held until the comparison.
void check_begin(Call& call, const Blocks& blocks, int ranks, MPI_Datatype type);
// After our turn: true if the host's follows (every rank's call succeeded).
bool check_turn(Call& call);
// After the host's turn: returns the host's code, or ends the job if the results differ.
int check_end(Call& call, int code);

}  // namespace stretto::mpi
