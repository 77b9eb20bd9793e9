// SPDX-License-Identifier: BSD-3-Clause
// STRETTO_CHECK=3: every served call is done twice, by us and by the host's function, and the results are compared byte
// by byte. The data that the call may change are saved before it; after our turn the result is kept, the saved bytes
// are put back, and the host's function works in the user's own buffers. Only the bytes of the datatypes count, not the
// gaps.
//
// Reductions of floating-point numbers depend on the order, which is the MPI's own affair: there results may differ by
// what rounding can do. Those of user-defined operations are not compared: nothing is known about them.
#pragma once
#include "mpi/communicator.hpp"
#include "mpi/operations.hpp"

namespace stretto::mpi {

// What one rank may receive in a call, before and after our turn. An empty one compares nothing (no receive side on
// this rank), but the host's turn comes all the same: it is collective. It comes on no rank if some rank's data are
// lost.
struct Snapshot {
  Blocks blocks{};
  int ranks = 0;  // blocks 0 to ranks - 1
  MPI_Datatype type{};
  std::uint64_t bytes = 0;
  bool lost = false;  // what was there cannot be put back: only the host may touch it, or there was no memory
  char* before = nullptr;
  char* ours = nullptr;
  const Layout** layouts = nullptr;  // of blocks with a layout each: a copy of ours
  enum class Compare : std::uint8_t { bytes, numbers, nothing } compare = Compare::bytes;
  reduce::Type numbers{};  // Compare::numbers: what they are,
  bool product = false;    // and how far apart they may be: a factor of a product's result, or an absolute difference
  double tolerance = 0;
};

// Before our turn. `type` is that of the blocks' layout, which is held until the comparison. `staged`: only the host
// may touch the data.
void check_begin(Call& call, const Blocks& blocks, int ranks, MPI_Datatype type, bool staged = false);
// The same with a type for each block (MPI_Alltoallw); layouts are those of `blocks`.
void check_begin(Call& call, const Blocks& blocks, int ranks, const MPI_Datatype* types, bool staged);
// Before our turn in a reduction, after check_begin (if this rank receives anything); collective. `own`: what this rank
// contributes, `count` elements of a type that kernels know, null if nothing is known about it.
void check_reduction(Call& call, const Combining& combining, const void* own, std::uint64_t count);
// There will be no turn of ours: the host has the call alone.
void check_cancel(Call& call);
// After our turn: true if the host's follows (every rank's call succeeded, and nothing is lost).
bool check_turn(Call& call);
// Number `index` of the results, if it differs by more than it may; check_numbers.cpp.
bool numbers_differ(const Snapshot& snapshot, std::uint64_t index);
std::uint64_t numbers_in(const Snapshot& snapshot);
std::size_t number_bytes(const Snapshot& snapshot);
// After the host's turn: returns the host's code, or ends the job if the results differ.
int check_end(Call& call, int code);

}  // namespace stretto::mpi
