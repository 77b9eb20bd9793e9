// SPDX-License-Identifier: BSD-3-Clause
// What all collectives that Stretto serves have in common, from MPI's arguments to the engine's and
// back: which arguments are wrong, what the engine reads and writes, and how errors are raised. It
// is in a header, because all of it is inlined into short calls.
//
// Facts that all ranks share decide whether Stretto serves a call, so all members decide alike.
// Wrong arguments of a rank raise an error before the call has begun, as in any MPI. Such a call
// takes no number, and the rank publishes nothing. Its peers wait for the rank's next call. A rank
// that fails later, because its data could not be packed, takes part with good = false. So its
// peers fail and do not hang.
#pragma once
#include <new>
#include <type_traits>

#include "engine/prepared.hpp"
#include "mpi/check.hpp"
#include "mpi/datatype.hpp"
#include "mpi/errors.hpp"
#include "mpi/held_handles.hpp"
#include "mpi/profile.hpp"
#include "mpi/progress.hpp"
#include "mpi/requests.hpp"
#include "mpi/schedules.hpp"
#include "mpi/staging.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {

template <class T>
T as(Handle handle) {
  return (T)handle;  // NOLINT: an int or a pointer; if it is an int, the upper half of the register is undefined
}

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
  for (int r = 0; r < e.ranks; r++) {
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

inline Extents irregular(Arguments& arguments, const Array& counts, const Array& displs, int blocks) {
  if (counts.data == nullptr || displs.data == nullptr) [[unlikely]] {
    arguments.wrong(MPI_ERR_ARG, "null array of counts or displacements");
    return {0, nullptr, nullptr, false, blocks};
  }
  return {0, counts.data, displs.data, counts.wide, blocks};
}

// ---- Calls with a request ----

struct Posted;        // nonblocking.hpp: such a call, and all that it needs until it ends
struct FunctionWork;  // function_work.hpp
class TypedData;      // typed_data.hpp
// The way of a call with a request. What the call needs lies in `posted` and not on the stack.
struct ByRequest {
  Posted& posted;
};
// The call, if Stretto serves its collective on this communicator by requests. Null: the host does.
[[gnu::cold]] Posted* posted_begin(Call& call, Handle comm);
// Frees it, unless it has been given to the program, or to the persistent request that tries it.
[[gnu::cold]] void posted_end(Call& call, Posted* posted);
Data& posted_data(Posted& posted, int which);
TypedData& posted_typed(Posted& posted, int which);
engine::Prepared& posted_prepared(Posted& posted);
FunctionWork& posted_work(Posted& posted);
engine::Contributed& posted_contributed(Posted& posted);
// The call needs this operation and this datatype until it ends.
void posted_hold(Posted& posted, Handle op, Handle type);
// Ends a call whose arguments are wrong, or whose data could not be packed.
[[gnu::cold]] bool posted_refuse(Call& call, const Arguments& arguments);
// Gives the program its request.
bool posted_go(Call& call, Posted& posted, const engine::Outcome& prepared);
// Copies of the program's arrays.
Extents posted_extents(Posted& posted, Arguments& arguments, const Extents& extents);

// A buffer of a call, number `which`: on the stack of a blocking call.
template <class Route>
[[gnu::always_inline]] inline Data data_of(Route, int) {
  return Data();
}
inline Data& data_of(ByRequest route, int which) { return posted_data(route.posted, which); }

template <class Route>
[[gnu::always_inline]] inline const Extents& kept(Route, Arguments&, const Extents& extents) {
  return extents;
}
inline Extents kept(ByRequest route, Arguments& arguments, const Extents& extents) {
  return posted_extents(route.posted, arguments, extents);
}

// Returns the root, or -1 if it is no rank of the communicator.
inline int valid_root(Arguments& arguments, int root, const State& state) {
  if (root >= 0 && root < state.size) [[likely]]
    return root;
  arguments.wrong(MPI_ERR_ROOT, "the root is no rank of this communicator");
  return -1;
}

// The communicator's state, if shared memory serves this collective on it. Null otherwise.
[[gnu::always_inline]] inline State* serving_state(Call& call, Handle comm) {
  State* const state = state_of(as<MPI_Comm>(comm), call.collective());
  call.state = state;
  if (state == nullptr) return nullptr;
  if (g_timed) [[unlikely]] {
    if (call.began_ns == 0) call.began_ns = sys::now_ns();  // the first call's wrapper had not read the options yet
    profile_open(call);
  }
  return (state->served >> static_cast<int>(call.collective()) & 1) != 0 ? state : nullptr;
}

// Schedules leave the call to the host, or to shared memory, before any side effect.
[[gnu::cold]] bool leave_to_host(Call& call);
[[gnu::cold]] bool leave_to_memory(Call& call);
// Ends the call with its error, because the error handler has freed the communicator.
[[gnu::cold]] bool without_communicator(Call& call);
// Ends the call before it has begun, with the error of its arguments.
[[gnu::cold]] bool refuse(Call& call, const Arguments& arguments);
template <class Route>
bool refuse(Route, Call& call, const Arguments& arguments) {
  return refuse(call, arguments);
}
inline bool refuse(ByRequest, Call& call, const Arguments& arguments) { return posted_refuse(call, arguments); }
// Ends a call by schedule that cannot go on on this rank. Peers wait for messages of this call that
// never come. They must not take messages of a later call for them. So this rank makes no more
// calls by schedule on this communicator.
[[gnu::cold]] bool fail_schedule(Call& call, int code, const char* what);
[[gnu::cold]] bool fail_after_schedule(Call& call);

inline void count_call(const Call& call, Path path, std::uint64_t bytes) {
  Counter& counter = call.state->counters.of[static_cast<int>(call.collective())];
  counter.calls[static_cast<int>(path)]++;
  counter.bytes += bytes;
  std::uint64_t ns = 0;
  if (g_timed) [[unlikely]]
    counter.ns += ns = profile_call(call, path, bytes);
  g_tally.load(std::memory_order_relaxed)[static_cast<int>(call.collective())].count(
      path, bytes, ns, g_concurrent.load(std::memory_order_relaxed));
  if (call.note != 0) [[unlikely]]
    call_ended(call.note);
  t_thread.last_path = kPathNames[static_cast<int>(path)];
}

// Who serves a call: the engine over shared memory, or schedules over the transport. The engine's
// functions have the same names and arguments for both.
struct ByEngine {
  static engine::Comm& of(State& state) { return *state.engine; }
};
struct BySchedule {
  static engine::Scheduler& of(State& state) { return schedules_scheduler(*state.schedules); }
};

// Gives a call to the engine or to schedules. Returns false if the host serves it.
template <class Serve>
[[gnu::always_inline]] inline bool routed(Call& call, Handle comm, Serve serve) {
  if (call.requested != nullptr) [[unlikely]] {
    Posted* const posted = posted_begin(call, comm);
    if (posted == nullptr) return false;
    const bool served = serve(ByRequest{*posted});
    posted_end(call, posted);
    return served;
  }
  if (serving_state(call, comm) == nullptr) [[unlikely]] {
    const bool by_schedule = goes_by_schedule(call);
    if (call.state != nullptr) call.note = call_noted(call.collective(), by_schedule);
    if (by_schedule && serve(BySchedule{})) return true;
    if (!call.to_memory) return false;
  }
  return serve(ByEngine{});
}

// Raises what is wrong on this rank, runs the engine's part `run(where, good)`, and raises what
// failed in it. `finish` copies staged results to the program's buffers and returns the first error
// code. Returns false if the host must make the call: after a decline, or for STRETTO_CHECK=3. It
// returns false, too, if schedules leave the call to shared memory.
template <class Route, class Finish, class Run>
[[gnu::always_inline]] inline bool serve(Route, Call& call, const Arguments& arguments, Finish finish, Run run) {
  State& state = *call.state;
  if (arguments.refused) [[unlikely]] {
    (void)finish();  // staged data come back unchanged
    return refuse(call, arguments);
  }
  if constexpr (std::is_same_v<Route, BySchedule>) {
    const bool broken = schedules_broken(*state.schedules);
    if (!arguments.good() || broken) [[unlikely]] {
      (void)finish();
      return broken ? fail_after_schedule(call) : fail_schedule(call, arguments.code, arguments.what);
    }
  }
  // Raised before this rank waits for peers: a fatal handler ends the job at once, and says why.
  if (!arguments.good()) [[unlikely]] {
    if (!raise(call, arguments.code, arguments.what)) {
      (void)finish();
      return without_communicator(call);
    }
  }
  const engine::Outcome outcome = run(Route::of(state), arguments.good());
  if constexpr (std::is_same_v<Route, BySchedule>) {
    if (outcome.path == Path::host || outcome.path == Path::cico) {
      (void)finish();  // staged data come back unchanged
      return outcome.path == Path::host ? leave_to_host(call) : leave_to_memory(call);
    }
    if (outcome.status != Status::ok) [[unlikely]]
      schedules_failed(*state.schedules, outcome.status);
  }
  const int code = finish();
  count_call(call, outcome.path, outcome.bytes);
  if (g_windows.load(std::memory_order_relaxed)) [[unlikely]]
    progress_poke(nullptr);
  if (call.code == MPI_SUCCESS && code != MPI_SUCCESS) [[unlikely]] {
    if (!raise(call, code, "the MPI failed to unpack, or to combine")) return without_communicator(call);
  }
  if (call.code == MPI_SUCCESS && outcome.status != Status::ok) [[unlikely]] {
    if (!raise(call, outcome.status)) return without_communicator(call);
  }
  if (state.check != 3) [[likely]]
    return true;
  if (call.snapshot == nullptr) check_begin(call, {}, 0, host().constants.datatype_null);
  return !check_turn(call);
}

// The same for a call with a request. Errors of its data come with the request.
template <class Finish, class Run>
bool serve(ByRequest route, Call& call, const Arguments& arguments, Finish finish, Run run) {
  if (arguments.good() && call.requested->tries) {
    (void)finish();
    return true;
  }
  if (arguments.good()) return posted_go(call, route.posted, run(posted_prepared(route.posted), true));
  (void)finish();  // staged data come back unchanged
  return posted_refuse(call, arguments);
}

// Finishes both buffers and returns the first error code.
[[gnu::always_inline]] inline int finish_all(Data* first, Data* second) {
  int code = MPI_SUCCESS;
  for (Data* data : {first, second}) {
    const int now = data != nullptr ? data->finish() : MPI_SUCCESS;
    if (code == MPI_SUCCESS) code = now;
  }
  return code;
}

template <class Route, class Run>
[[gnu::always_inline]] inline bool serve(Route route, Call& call, const Arguments& arguments, Data* first, Data* second,
                                         Run run) {
  return serve(route, call, arguments, [&] { return finish_all(first, second); }, run);
}

}  // namespace stretto::mpi
