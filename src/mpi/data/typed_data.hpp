// SPDX-License-Identifier: BSD-3-Clause
// One side of a call whose blocks have a datatype each: Alltoallw and Neighbor_alltoallw. The call
// may go on after it has returned. Then all that the program may change or free is copied or held.
#pragma once
#include "mpi/data/data.hpp"

namespace stretto::mpi {

// What the program says of the blocks. `types` has the host's handles.
struct TypedBlocks {
  CountArray counts, displs;
  const void* types;
};

// The layouts, held while the call lasts, and the staged blocks.
class TypedData {
 public:
  TypedData() {}  // NOLINT: few_layouts_ is filled when it is used
  ~TypedData();
  TypedData(const TypedData&) = delete;
  TypedData& operator=(const TypedData&) = delete;

  // The call goes on after it has returned. Call it before blocks().
  void keep() { keeps_ = true; }
  // Gives the datatypes back, after finish().
  void let_go();
  Blocks blocks(Arguments& arguments, const State& state, int count, const void* buffer, const TypedBlocks& given,
                Staged::Direction direction);
  // For STRETTO_CHECK: says that the call may change these blocks. Call it after blocks().
  void watch(Call& call, const Blocks& blocks, const void* types) const {
    if (call.state->check != 3) [[likely]]
      return;
    check_begin(call, blocks, blocks.layouts != nullptr ? count_ : 0, static_cast<const MPI_Datatype*>(types),
                staged_ != nullptr);
  }
  [[nodiscard]] bool is_staged() const { return staged_ != nullptr; }
  [[nodiscard]] int finish();

 private:
  bool acquire(Arguments& arguments, const Blocks& blocks, const MPI_Datatype* types);
  int stage_some(Blocks& blocks, const MPI_Datatype* types, const State& state, Staged::Direction direction);
  bool copy_arrays(Blocks& blocks, const TypedBlocks& given);
  bool hold_types(const MPI_Datatype* types);

  static constexpr int kFewBlocks = 16;

  int count_ = 0;
  bool held_ = false;     // some layout must be released
  bool foreign_ = false;  // some block must be staged
  const Layout** layouts_ = nullptr;
  const Layout* few_layouts_[kFewBlocks];  // for up to kFewBlocks blocks: a short call uses no heap
  Staged* staged_ = nullptr;               // one for each block, most of them empty
  // Our copies of counts and displacements, if some blocks are staged, if the two differ in width,
  // or if the call goes on.
  std::int64_t* arrays_ = nullptr;
  bool keeps_ = false;
  Handle* types_ = nullptr;  // those that are held; 0: none
};

}  // namespace stretto::mpi
