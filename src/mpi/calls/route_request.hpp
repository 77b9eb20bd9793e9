// SPDX-License-Identifier: BSD-3-Clause
// The route of a call with a request. What the call needs lies in a Posted and not on the stack.
#pragma once
#include "mpi/data/data.hpp"
#include "mpi/overlap/overlap.hpp"
#include "mpi/requests/posted.hpp"
#include "mpi/requests/requests.hpp"

namespace stretto::mpi {

class RouteRequest {
 public:
  RouteRequest(Call& call, Posted& posted) : call_(call), posted_(posted) {}

  // The call, if Stretto serves its collective on this communicator by requests. Null: the host
  // does.
  [[gnu::cold]] static Posted* begin(Call& call, Handle comm);
  // Frees it, unless it has been given to the program, or to the persistent request that tries it.
  [[gnu::cold]] static void end(Call& call, Posted* posted);

  [[nodiscard]] Call& call() const { return call_; }
  [[nodiscard]] Data& data(int which) const;
  [[nodiscard]] TypedData& typed(int which) const;
  [[nodiscard]] FunctionWork& work() const { return posted_.work; }
  // Copies of the program's arrays.
  Extents keep(Arguments& arguments, const Extents& extents) const { return posted_.copy(arguments, extents); }
  // The call needs this operation and this datatype until it ends.
  void hold(Handle op, Handle type) const { posted_.hold(op, type); }
  [[nodiscard]] engine::Contributed& by_function(engine::Prepared&) const { return posted_.contributed; }
  static constexpr Overlap* overlap(std::uint64_t) { return nullptr; }
  static constexpr void leaves_overlap(const char*) {}

  // The refused call has no number in the order of blocking calls, so no peer hears of it.
  [[gnu::cold]] bool refuse(const Arguments& arguments) const;

  // Prepares the call by `run(prepared, good)`, and gives the program its request. Errors of its
  // data come with the request.
  template <class Run, class... Buffers>
  bool run(const Arguments& arguments, Run run, Buffers&... buffers) const {
    if (arguments.good() && !call_.requested->tries) return go(run(static_cast<engine::Prepared&>(posted_), true));
    (void)finish_all(buffers...);  // staged data come back unchanged
    return arguments.good() || refuse(arguments);
  }

 private:
  bool go(const engine::Outcome& prepared) const;

  Call& call_;
  Posted& posted_;
};

}  // namespace stretto::mpi
