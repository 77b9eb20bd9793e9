// SPDX-License-Identifier: BSD-3-Clause
// From MPI's arguments to the engine's and back: which arguments are wrong, and what the engine
// reads and writes. It is in a header, because all of it is inlined into short calls.
//
// Wrong arguments of a rank raise an error before the call has begun, as in any MPI. Such a call
// takes no number, and the rank publishes nothing. Its peers wait for the rank's next call. A rank
// that fails later, because its data could not be packed, takes part with good = false. So its
// peers fail and do not hang.
#pragma once
#include <new>

#include "mpi/data/check.hpp"
#include "mpi/data/datatype.hpp"
#include "mpi/data/held_handles.hpp"
#include "mpi/data/staging.hpp"
#include "mpi/state/call.hpp"

namespace stretto::mpi {

// The first thing that is wrong with this rank's arguments, or that failed with its data.
struct Arguments {
  int code = MPI_SUCCESS;
  const char* what = nullptr;
  bool refused = false;  // the arguments are wrong, so the call does not begin

  [[gnu::cold]] void wrong(int error_class, const char* words) {
    if (refused) return;
    refused = true;
    code = error_class;
    what = words;
  }
  [[gnu::cold]] void failed(int error_code, const char* words) {
    if (code != MPI_SUCCESS) return;
    code = error_code;
    what = words;
  }
  [[nodiscard]] bool good() const { return code == MPI_SUCCESS; }
};

// How many elements the block of each rank has and where it is: one count for all, or arrays.
struct Extents {
  std::uint64_t count = 0;
  const void* counts = nullptr;
  const void* displs = nullptr;
  bool wide = false;
  int ranks = 1;
};

// The layout of blocks without data: the engine reads the layout of every block.
inline constexpr Layout kNoBytes = {0, 0, nullptr, 0, false};

// A call that reads and writes the same memory is wrong. Some MPIs refuse it where the two buffers
// begin at one address. Stretto refuses what the host does, with STRETTO_CHECK=1 or more. It asks
// the host once, at MPI_Init.
void aliases_ask_host();
[[gnu::cold]] void refuse_alias(Arguments& arguments, const State& state);
// `data`: whether there are any.
inline void judge_alias(Arguments& arguments, const State& state, const void* send, const void* receive, bool data) {
  if (send == receive && data) [[unlikely]]
    refuse_alias(arguments, state);
}

// Whether data of this layout, `displacement` bytes behind a null buffer, begin in page 0, where no
// memory is. MPI_BOTTOM is null, too, but the type then has absolute addresses, far from page 0.
[[nodiscard]] bool starts_in_page_zero(const Layout& layout, std::int64_t displacement);

// One buffer of a call. It holds the buffer's layout while the call lasts, and the staged bytes if
// the engine must not touch the buffer.
class Data {
 public:
  Data() {}  // NOLINT: `staged_` is made when it is needed, because clearing it costs 20 ns
  ~Data() {
    if (layout_ != nullptr) layout_release(layout_);
    let_go();
  }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;

  Region region(Arguments& arguments, const State& state, const void* buffer, std::int64_t count, Handle type,
                Staged::Direction direction);
  Blocks blocks(Arguments& arguments, const State& state, const void* buffer, const Extents& extents, Handle type,
                Staged::Direction direction);
  // For STRETTO_CHECK=3: says that the call may change this buffer. Call it before region() or
  // blocks(), which may stage the data.
  void watch(Call& call) { watched_ = call.state->check == 3 ? &call : nullptr; }
  // The call goes on after it has returned, and the program may free the datatype.
  void keep() { keeps_ = true; }
  // Gives the datatype back, after finish().
  void let_go() {
    if (holds_) [[unlikely]]
      held_release(held_);
    holds_ = false;
  }
  [[nodiscard]] bool is_staged() const { return is_staged_; }
  [[nodiscard]] int finish() { return is_staged_ ? unstage(staged_) : MPI_SUCCESS; }

 private:
  // For buffers of any kind. region() and blocks() handle the usual kind themselves.
  Region any_region(Arguments& arguments, const State& state, const void* buffer, std::int64_t count, MPI_Datatype type,
                    Staged::Direction direction);
  Blocks any_blocks(Arguments& arguments, const State& state, const void* buffer, const Extents& extents, bool empty,
                    MPI_Datatype type, Staged::Direction direction);
  [[nodiscard]] const Layout* usual(const Arguments& arguments, const void* buffer, MPI_Datatype type) const;
  bool prepare(Arguments& arguments, const void* buffer, bool empty, bool checkable, MPI_Datatype type);
  Staged& start_staging() {
    is_staged_ = true;
    return *new (&staged_) Staged;
  }

  const Layout* layout_ = nullptr;
  Call* watched_ = nullptr;
  bool is_staged_ = false, keeps_ = false, holds_ = false;
  Handle held_;  // if it holds one
  union {
    Staged staged_;
  };
};

// The type's layout, if the buffer is of the usual kind: elements of a plain type in memory that is
// not a device's. Nearly every buffer is. Null for all others.
inline const Layout* Data::usual(const Arguments& arguments, const void* buffer, MPI_Datatype type) const {
  constexpr std::uintptr_t kPage = 4096;
  const auto address = reinterpret_cast<std::uintptr_t>(buffer);
  const bool names_memory = address - kPage < ~std::uintptr_t{0} - 2 * kPage;  // not null, MPI_BOTTOM or MPI_IN_PLACE
  const bool sound = names_memory && watched_ == nullptr && arguments.good() && g_host_chunks.have(buffer);
  return sound ? plain_layout(type) : nullptr;
}

inline Region Data::region(Arguments& arguments, const State& state, const void* buffer, std::int64_t count,
                           Handle handle, Staged::Direction direction) {
  const auto type = as<MPI_Datatype>(handle);
  if (count > 0) [[likely]] {
    const Layout* const layout = usual(arguments, buffer, type);
    if (layout != nullptr) [[likely]] {
      return {static_cast<char*>(const_cast<void*>(buffer)), static_cast<std::uint64_t>(count), layout};
    }
  }
  return any_region(arguments, state, buffer, count, type, direction);
}

// Whether every count is zero. A negative count is an error.
inline bool all_empty(Arguments& arguments, const Extents& e) {
  if (e.counts == nullptr) return e.count == 0;
  bool empty = true;
  for (int r = 0; r < e.ranks; ++r) {
    const std::int64_t count =
        e.wide ? static_cast<const std::int64_t*>(e.counts)[r] : static_cast<const int*>(e.counts)[r];
    if (count < 0) arguments.wrong(MPI_ERR_COUNT, "negative count");
    empty = empty && count == 0;
  }
  return empty;
}

inline Blocks Data::blocks(Arguments& arguments, const State& state, const void* buffer, const Extents& e,
                           Handle handle, Staged::Direction direction) {
  const auto type = as<MPI_Datatype>(handle);
  const bool empty = all_empty(arguments, e);
  if (!empty) [[likely]] {
    const Layout* const layout = usual(arguments, buffer, type);
    auto* const base = static_cast<char*>(const_cast<void*>(buffer));
    if (layout != nullptr) [[likely]]
      return {base, layout, e.count, e.counts, e.displs, e.wide};
  }
  return any_blocks(arguments, state, buffer, e, empty, type, direction);
}

// Of so many blocks.
inline Extents regular(Arguments& arguments, std::int64_t count, int blocks) {
  if (count < 0) [[unlikely]] {
    arguments.wrong(MPI_ERR_COUNT, "negative count");
    count = 0;
  }
  return {static_cast<std::uint64_t>(count), nullptr, nullptr, false, blocks};
}

inline Extents irregular(Arguments& arguments, const CountArray& counts, const CountArray& displs, int blocks) {
  if (counts.data == nullptr || displs.data == nullptr) [[unlikely]] {
    arguments.wrong(MPI_ERR_ARG, "null array of counts or displacements");
    return {0, nullptr, nullptr, false, blocks};
  }
  return {0, counts.data, displs.data, counts.wide, blocks};
}

inline int first_error(int one, int other) { return one != MPI_SUCCESS ? one : other; }

// Finishes all, and returns the first error code.
template <class... Buffers>
[[gnu::always_inline]] inline int finish_all(Buffers&... buffers) {
  int code = MPI_SUCCESS;
  ((code = first_error(code, buffers.finish())), ...);
  return code;
}

// Returns the root, or -1 if it is no rank of the communicator.
inline int valid_root(Arguments& arguments, int root, const State& state) {
  if (root >= 0 && root < state.size) [[likely]]
    return root;
  arguments.wrong(MPI_ERR_ROOT, "the root is no rank of this communicator");
  return -1;
}

}  // namespace stretto::mpi
