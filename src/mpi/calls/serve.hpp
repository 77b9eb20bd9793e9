// SPDX-License-Identifier: BSD-3-Clause
// What all collectives that Stretto serves have in common: who serves a call, and how errors are
// raised. It is in a header, because all of it is inlined into short calls.
//
// Facts that all ranks share decide whether Stretto serves a call, so all members decide alike.
#pragma once
#include <type_traits>

#include "engine/prepared.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/comm/communicator.hpp"
#include "mpi/comm/schedules.hpp"
#include "mpi/data/data.hpp"
#include "mpi/host/windows.hpp"
#include "mpi/overlap/overlap.hpp"
#include "mpi/requests/posted.hpp"
#include "mpi/requests/progress.hpp"
#include "mpi/requests/requests.hpp"
#include "mpi/state/errors.hpp"
#include "mpi/stats/count.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {

// The way of a call with a request. What the call needs lies in `posted` and not on the stack.
struct ByRequest {
  Posted& posted;
};

// A buffer of a call, number `which`: on the stack of a blocking call.
template <class Route>
[[gnu::always_inline]] inline Data data_of(Route, int) {
  return Data();
}
inline Data& data_of(ByRequest route, int which) { return posted_data(route.posted, which); }

// One side of a call whose blocks have types of their own, likewise.
template <class Route>
[[gnu::always_inline]] inline TypedData typed_data_of(Route, int) {
  return TypedData();
}
inline TypedData& typed_data_of(ByRequest route, int which) { return posted_typed(route.posted, which); }

template <class Route>
[[gnu::always_inline]] inline const Extents& kept(Route, Arguments&, const Extents& extents) {
  return extents;
}
inline Extents kept(ByRequest route, Arguments& arguments, const Extents& extents) {
  return posted_extents(route.posted, arguments, extents);
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

// Who serves a call: the engine over shared memory, or schedules over the transport. The engine's
// functions have the same names and arguments for both.
struct ByEngine {
  static engine::Comm& of(State& state) { return *state.engine; }
};
struct BySchedule {
  static engine::Scheduler& of(State& state) { return schedules_scheduler(*state.schedules); }
};

// The way of this call, if it may be deferred. Null for all others.
template <class Route>
Overlap* overlap_of(Route, Call& call, std::uint64_t bytes) {
  if constexpr (std::is_same_v<Route, BySchedule>) {
    Overlap& overlap = schedules_overlap(*call.state->schedules);
    if (overlap.takes(call.collective(), bytes)) return &overlap;
  }
  return nullptr;
}

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

template <class Route, class Run>
[[gnu::always_inline]] inline bool serve(Route route, Call& call, const Arguments& arguments, Data* first, Data* second,
                                         Run run) {
  return serve(route, call, arguments, [&] { return finish_all(first, second); }, run);
}

}  // namespace stretto::mpi
