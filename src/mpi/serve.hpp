// SPDX-License-Identifier: BSD-3-Clause
// What the collectives we serve have in common, from MPI's arguments to the engine's and back: which arguments are wrong,
// what the engine reads and writes, who is told. In a header, because all of it is inlined into short calls.
//
// Whether a call is served follows from facts that all ranks share, so all members decide alike. A rank whose arguments are
// wrong raises the error and takes part all the same (good = false), so that its peers fail instead of hanging.
#pragma once
#include <new>

#include "mpi/check.hpp"
#include "mpi/datatype.hpp"
#include "mpi/errors.hpp"
#include "mpi/progress.hpp"
#include "mpi/staging.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {

extern constinit std::atomic<bool> g_windows;  // the program has made a window

template <class T>
T as(Handle handle) {
  return (T)handle;  // NOLINT: an int or a pointer; the upper half of an int's register is not ours to read
}

// The first thing found wrong with this rank's arguments.
struct Arguments {
  int code = MPI_SUCCESS;
  const char* what = nullptr;

  [[gnu::cold]] void wrong(int error_class, const char* words) {
    if (code != MPI_SUCCESS) return;
    code = error_class;
    what = words;
  }
  [[nodiscard]] bool good() const { return code == MPI_SUCCESS; }
};

// How many elements a rank's block has and where: one count for all, or arrays.
struct Extents {
  std::uint64_t count = 0;
  const void* counts = nullptr;
  const void* displs = nullptr;
  bool wide = false;
  int ranks = 1;
};

// Blocks without data still need a layout to be asked for.
inline constexpr Layout kNoBytes = {0, 0, nullptr, 0, false};

// One buffer of a call: its layout, held while the call lasts, and its staged bytes if the engine must not touch it.
class Data {
 public:
  Data() {}  // NOLINT: `staged_` is made when it is needed, clearing it costs 20 ns
  ~Data() {
    if (layout_ != nullptr) layout_release(layout_);
  }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;

  Region region(Arguments& arguments, const State& state, const void* buffer, std::int64_t count, Handle type,
                Staged::Direction direction);
  Blocks blocks(Arguments& arguments, const State& state, const void* buffer, const Extents& extents, Handle type,
                Staged::Direction direction);
  // For STRETTO_CHECK: this is what the call may change. Call before region() or blocks() is used for staging.
  void watch(Call& call) { watched_ = call.state->check == 3 ? &call : nullptr; }
  [[nodiscard]] int finish() { return is_staged_ ? unstage(staged_) : MPI_SUCCESS; }

 private:
  // What any region, and any blocks, take; the rest is for calls of the usual kind.
  [[gnu::noinline]] inline Region any_region(Arguments& arguments, const State& state, const void* buffer, std::int64_t count,
                                      MPI_Datatype type, Staged::Direction direction);
  [[gnu::noinline]] inline Blocks any_blocks(Arguments& arguments, const State& state, const void* buffer, const Extents& extents,
                                      MPI_Datatype type, Staged::Direction direction);
  [[nodiscard]] const Layout* usual(const Arguments& arguments, const void* buffer, MPI_Datatype type) const;
  bool prepare(Arguments& arguments, const void* buffer, bool empty, bool checkable, MPI_Datatype type);
  Staged& start_staging() {
    is_staged_ = true;
    return *new (&staged_) Staged;
  }

  const Layout* layout_ = nullptr;
  Call* watched_ = nullptr;
  bool is_staged_ = false;
  union {
    Staged staged_;
  };
};

// MPI_BOTTOM is null too: then the type's own addresses say where the data lie, far from page 0.
inline bool starts_in_page_zero(const Layout& layout) {
  return layout.run_count != 0 && layout.runs[0].offset >= 0 && layout.runs[0].offset < 4096;
}

// True if there are data to touch.
inline bool Data::prepare(Arguments& arguments, const void* buffer, bool empty, bool checkable, MPI_Datatype type) {
  layout_ = layout_acquire(type);
  if (layout_ == nullptr) {
    // Nothing of no type: hosts differ, and programs do it.
    if (!empty || type != host().constants.datatype_null) arguments.wrong(MPI_ERR_TYPE, "invalid datatype");
    return false;
  }
  if (!arguments.good() || empty || layout_->size == 0) return false;
  if (buffer == MPI_IN_PLACE) arguments.wrong(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed for this buffer");
  if (buffer == nullptr && checkable && starts_in_page_zero(*layout_)) arguments.wrong(MPI_ERR_BUFFER, "null buffer");
  return arguments.good();
}

// Memory of the host's that holds elements of a plain type: nearly every buffer. The type's layout, or null.
inline const Layout* Data::usual(const Arguments& arguments, const void* buffer, MPI_Datatype type) const {
  constexpr std::uintptr_t kPage = 4096;
  const auto address = reinterpret_cast<std::uintptr_t>(buffer);
  const bool names_memory = address - kPage < ~std::uintptr_t{0} - 2 * kPage;  // not null, MPI_BOTTOM or MPI_IN_PLACE
  const bool sound = names_memory && watched_ == nullptr && arguments.good() && g_host_chunks.have(buffer);
  return sound ? plain_layout(type) : nullptr;
}

inline Region Data::region(Arguments& arguments, const State& state, const void* buffer, std::int64_t count, Handle handle,
                           Staged::Direction direction) {
  const auto type = as<MPI_Datatype>(handle);
  if (count > 0) [[likely]] {
    const Layout* const layout = usual(arguments, buffer, type);
    if (layout != nullptr) [[likely]] {
      return {static_cast<char*>(const_cast<void*>(buffer)), static_cast<std::uint64_t>(count), layout};
    }
  }
  return any_region(arguments, state, buffer, count, type, direction);
}

inline Region Data::any_region(Arguments& arguments, const State& state, const void* buffer, std::int64_t count,
                               MPI_Datatype type, Staged::Direction direction) {
  if (count < 0) [[unlikely]] arguments.wrong(MPI_ERR_COUNT, "negative count");
  const bool some = prepare(arguments, buffer, count == 0, true, type);
  auto* const base = static_cast<char*>(const_cast<void*>(buffer));
  Region region = some ? Region{base, static_cast<std::uint64_t>(count), layout_} : Region{};
  const bool staged = some && must_stage(*layout_, buffer);
  if (watched_ != nullptr) [[unlikely]] {
    check_begin(*watched_, {base, region.layout, region.count}, some && !staged ? 1 : 0, type);
  }
  if (staged) [[unlikely]] {
    const int code = stage(start_staging(), region, type, state.handle, direction);
    if (code != MPI_SUCCESS) arguments.wrong(code, "the data could not be packed");
  }
  return region;
}

// Whether every count is zero; a negative one is wrong.
inline bool all_empty(Arguments& arguments, const Extents& e) {
  if (e.counts == nullptr) return e.count == 0;
  bool empty = true;
  for (int r = 0; r < e.ranks; r++) {
    const std::int64_t count = e.wide ? static_cast<const std::int64_t*>(e.counts)[r] : static_cast<const int*>(e.counts)[r];
    if (count < 0) arguments.wrong(MPI_ERR_COUNT, "negative count");
    empty = empty && count == 0;
  }
  return empty;
}

inline Blocks Data::blocks(Arguments& arguments, const State& state, const void* buffer, const Extents& e, Handle handle,
                           Staged::Direction direction) {
  const auto type = as<MPI_Datatype>(handle);
  if (e.counts == nullptr && e.count != 0) [[likely]] {
    const Layout* const layout = usual(arguments, buffer, type);
    if (layout != nullptr) [[likely]] return {static_cast<char*>(const_cast<void*>(buffer)), layout, e.count};
  }
  return any_blocks(arguments, state, buffer, e, type, direction);
}

inline Blocks Data::any_blocks(Arguments& arguments, const State& state, const void* buffer, const Extents& e,
                               MPI_Datatype type, Staged::Direction direction) {
  const bool empty = all_empty(arguments, e);
  // With 64-bit displacements a null base may stand for absolute addresses.
  const bool some = prepare(arguments, buffer, empty, !e.wide, type);
  auto* const base = static_cast<char*>(const_cast<void*>(buffer));
  Blocks blocks = some ? Blocks{base, layout_, e.count, e.counts, e.displs, e.wide} : Blocks{nullptr, &kNoBytes};
  const bool staged = some && must_stage(*layout_, buffer);
  if (watched_ != nullptr) [[unlikely]] check_begin(*watched_, blocks, some && !staged ? e.ranks : 0, type);
  if (staged) [[unlikely]] {
    const int code = stage(start_staging(), blocks, e.ranks, type, state.handle, direction);
    if (code != MPI_SUCCESS) arguments.wrong(code, "the data could not be packed");
  }
  return blocks;
}

inline Extents regular(Arguments& arguments, std::int64_t count, const State& state) {
  if (count < 0) [[unlikely]] {
    arguments.wrong(MPI_ERR_COUNT, "negative count");
    count = 0;
  }
  return {static_cast<std::uint64_t>(count), nullptr, nullptr, false, state.size};
}

inline Extents irregular(Arguments& arguments, const Array& counts, const Array& displs, const State& state) {
  if (counts.data == nullptr || displs.data == nullptr) [[unlikely]] {
    arguments.wrong(MPI_ERR_ARG, "null array of counts or displacements");
    return {0, nullptr, nullptr, false, state.size};
  }
  return {0, counts.data, displs.data, counts.wide, state.size};
}

// A root that names nobody becomes rank 0, so that ranks with the same mistake at least meet.
inline int valid_root(Arguments& arguments, int root, const State& state) {
  if (root >= 0 && root < state.size) [[likely]] return root;
  arguments.wrong(MPI_ERR_ROOT, "the root is no rank of this communicator");
  return 0;
}

// The communicator's state if this collective is served on it.
[[gnu::always_inline]] inline State* serving_state(Call& call, Handle comm) {
  State* const state = state_of(as<MPI_Comm>(comm));
  call.state = state;
  if (state == nullptr) return nullptr;
  if (g_timed) [[unlikely]] call.began_ns = sys::now_ns();
  return (state->served >> static_cast<int>(call.collective()) & 1) != 0 ? state : nullptr;
}

inline void count_call(const Call& call, Path path, std::uint64_t bytes) {
  Counter& counter = call.state->counters.of[static_cast<int>(call.collective())];
  counter.calls[static_cast<int>(path)]++;
  counter.bytes += bytes;
  if (g_timed) [[unlikely]] counter.ns += sys::now_ns() - call.began_ns;
  t_thread.last_path = kPathNames[static_cast<int>(path)];
}

// Runs the engine's part between raising what is wrong here and raising what came of it. `finish` brings staged results
// to the user and returns the first error code. Returns what the wrapper wants to know: false if the host's turn follows
// (STRETTO_CHECK).
template <class Finish, class Run>
[[gnu::always_inline]] inline bool serve(Call& call, const Arguments& arguments, Finish finish, Run run) {
  State& state = *call.state;
  // Raised before peers are waited for: a fatal handler then ends the job at once, with a reason.
  if (!arguments.good()) [[unlikely]] raise(call, state, arguments.code, arguments.what);
  const engine::Outcome outcome = run(*state.engine, arguments.good());
  call.code = arguments.code;
  const int code = finish();
  if (code != MPI_SUCCESS && call.code == MPI_SUCCESS) [[unlikely]] call.code = raise(call, state, code, "unpacking failed");
  count_call(call, outcome.path, outcome.bytes);
  if (g_windows.load(std::memory_order_relaxed)) [[unlikely]] progress_poke(nullptr);
  if (outcome.status != Status::ok && call.code == MPI_SUCCESS) [[unlikely]] {
    call.code = raise(call, state, outcome.status);
  }
  if (state.check != 3) [[likely]] return true;
  if (call.snapshot == nullptr) check_begin(call, {}, 0, host().constants.datatype_null);
  return !check_turn(call);
}

template <class Run>
[[gnu::always_inline]] inline bool serve(Call& call, const Arguments& arguments, Data* first, Data* second, Run run) {
  const auto finish = [&] {
    int code = MPI_SUCCESS;
    for (Data* data : {first, second}) {
      const int now = data != nullptr ? data->finish() : MPI_SUCCESS;
      if (code == MPI_SUCCESS) code = now;
    }
    return code;
  };
  return serve(call, arguments, finish, run);
}

}  // namespace stretto::mpi
