// SPDX-License-Identifier: BSD-3-Clause
// A route is who serves a call, with all that the call needs there. All routes have the same
// members, so a collective is written once:
//
//   data(i), typed(i)        buffer number i of the call; the second has a datatype for each block
//   keep(arguments, extents) the program's counts and displacements, as long as the call needs them
//   work(), hold()           what a reduction by a function needs
//   overlap(bytes)           the way of a call that may return early, if it is one
//   leaves_overlap(why)      it would be one, but goes another way
//   refuse(arguments)        ends the call before it has begun
//   run(arguments, part, buffers...)
//                            runs the engine's part, finishes the buffers, and ends the call
//
// This file has what the two routes of a blocking call share. What it needs lies on its stack.
#pragma once
#include "mpi/calls/calls.hpp"
#include "mpi/data/data.hpp"
#include "mpi/data/function_work.hpp"
#include "mpi/data/typed_data.hpp"
#include "mpi/host/windows.hpp"
#include "mpi/overlap/overlap.hpp"
#include "mpi/requests/progress.hpp"
#include "mpi/state/errors.hpp"
#include "mpi/stats/count.hpp"

namespace stretto::mpi {

// Ends a blocking call with an error. Neither the host nor shared memory serves it.
[[gnu::cold]] bool end_with(Call& call, int code, const char* what);
// The same before it has begun, with the error of its arguments.
[[gnu::cold]] bool refuse(Call& call, const Arguments& arguments);
// Ends the call with its error, because the error handler has freed the communicator.
[[gnu::cold]] bool without_communicator(Call& call);

class BlockingRoute {
 public:
  explicit BlockingRoute(Call& call) : call_(call) {}

  [[nodiscard]] Call& call() const { return call_; }
  [[gnu::always_inline]] static Data data(int) { return Data(); }
  [[gnu::always_inline]] static TypedData typed(int) { return TypedData(); }
  static FunctionWork work() { return FunctionWork(); }
  [[gnu::always_inline]] static const Extents& keep(Arguments&, const Extents& extents) { return extents; }
  static void hold(Handle, Handle) {}
  // What the engine's reductions by a function get, in the place of what run() gives.
  template <class To>
  static To& by_function(To& to) {
    return to;
  }
  // What is not inlined gets the call alone: a route stays in a register.
  bool refuse(const Arguments& arguments) const { return mpi::refuse(call_, arguments); }

 protected:
  // Copies staged results to the program's buffers, and raises what has failed in a call that has
  // been made. Returns false if the host must make the call, too, for STRETTO_CHECK=3.
  template <class... Buffers>
  [[gnu::always_inline]] bool end(const State& state, const engine::Outcome& outcome, Buffers&... buffers) const {
    Call& call = call_;
    const int code = finish_all(buffers...);
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

 private:
  Call& call_;
};

}  // namespace stretto::mpi
