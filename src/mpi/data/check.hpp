// SPDX-License-Identifier: BSD-3-Clause
// STRETTO_CHECK=3: Stretto and the host's function both make every served call, and the results are
// compared byte by byte. Before the call Stretto saves the data that the call may change. After its
// own turn it keeps the result and puts the saved bytes back. The host's function then works in the
// program's own buffers. Only the bytes of the datatypes count, not the gaps.
//
// Reductions of floating-point numbers depend on the order, which the MPI may choose. There results
// may differ by what rounding can do. Results of user-defined operations are not compared, because
// nothing is known of these operations.
#pragma once
#include "mpi/data/operations.hpp"
#include "mpi/state/call.hpp"
#include "mpi/state/state.hpp"

namespace stretto::mpi {

// What one rank may receive in a call, before and after Stretto's turn. A rank that receives
// nothing has an empty snapshot and compares nothing. The host's turn comes there, too, because it
// is collective. If the data of some rank are lost, it comes on no rank.
struct Snapshot {
  Blocks blocks{};
  int ranks = 0;  // blocks 0 to ranks - 1
  MPI_Datatype type{};
  std::uint64_t bytes = 0;
  bool lost = false;  // the old data cannot be put back: only the host may touch them, or there is no memory
  char* before = nullptr;
  char* ours = nullptr;
  // If each block has a layout of its own: our copies of the layouts, and of counts and
  // displacements, which may end with the call.
  const Layout** layouts = nullptr;
  std::int64_t* arrays = nullptr;
  enum class Compare : std::uint8_t { bytes, numbers, nothing } compare = Compare::bytes;
  reduce::Type numbers{};  // the type of the numbers, for Compare::numbers
  bool product = false;    // `tolerance` is a factor of the result, otherwise an absolute difference
  double tolerance = 0;    // how far apart the numbers may be
};

// Called before Stretto's turn. `type` is the type of the blocks' layout, which is held until the
// comparison. `staged` says that only the host may touch the data.
void check_begin(Call& call, const Blocks& blocks, int ranks, MPI_Datatype type, bool staged = false);
// The same with a type for each block (MPI_Alltoallw). The layouts are those of `blocks`.
void check_begin(Call& call, const Blocks& blocks, int ranks, const MPI_Datatype* types, bool staged);
// Collective. Called before Stretto's turn in a reduction, and after check_begin if this rank
// receives anything. `own` is this rank's contribution, `count` elements of a type that kernels
// know. It is null if nothing is known about it.
void check_reduction(Call& call, const Combining& combining, const void* own, std::uint64_t count);
// Called if Stretto has no turn and the host makes the call alone.
void check_cancel(Call& call);
// Called after Stretto's turn. Returns whether the host's turn follows: the call succeeded on every
// rank, and nothing is lost.
bool check_turn(Call& call);
// Whether number `index` of the results differs by more than it may (check_numbers.cpp).
bool numbers_differ(const Snapshot& snapshot, std::uint64_t index);
std::uint64_t numbers_in(const Snapshot& snapshot);
std::size_t number_bytes(const Snapshot& snapshot);
// Called after the host's turn. Returns the host's code, or ends the job if the results differ.
int check_end(Call& call, int code);

}  // namespace stretto::mpi
