// SPDX-License-Identifier: BSD-3-Clause
// Reduce, Allreduce, Reduce_scatter, Reduce_scatter_block, Scan, Exscan. Operation and datatype
// decide who combines (operations.hpp): kernels, a function in rank order, or the host. MPI
// requires that both are the same on all ranks.
#include <climits>
#include <cstdlib>

#include "base/tuning.hpp"
#include "engine/begins.hpp"
#include "mpi/calls/routed.hpp"
#include "mpi/data/operations.hpp"

namespace stretto::mpi {
namespace {

using By = Combining::By;
using engine::FunctionArgs;
using engine::FunctionOp;
using engine::KernelArgs;
using engine::KernelOp;

// What this rank contributes to a reduction and what it gets.
struct Part {
  const void* own = nullptr;  // where its contribution is; in place: where the result will be
  std::int64_t count = 0;     // elements of a contribution
  void* out = nullptr;
  std::int64_t out_count = 0;
  bool gets = true;  // whether it gets a result
  bool aliased = false;
};

// Sets `own`, where MPI_IN_PLACE is allowed for `send`.
Part in_place_or(const void* send, Part part) {
  part.own = send == MPI_IN_PLACE ? part.out : send;
  part.aliased = send == part.out;
  return part;
}

// ---- Kernels ----

// For device memory and for STRETTO_CHECK=3, which need layouts.
[[gnu::cold, gnu::noinline]] void by_layout(Call& call, Arguments& arguments, const Part& part, Handle type,
                                            KernelArgs& vector, Data& source, Data& target) {
  const State& state = *call.state;
  if (part.gets) {
    target.watch(call);
    vector.out = target.region(arguments, state, part.out, part.out_count, type, Staged::write).flat();
  }
  vector.own = source.region(arguments, state, part.own, part.count, type, Staged::read).flat();
}

template <class Route, class Run>
[[gnu::always_inline]] inline bool by_kernel(Route route, Arguments& arguments, const Part& part, Handle type,
                                             const Combining& combining, Run run) {
  Call& call = route.call();
  auto&& source = route.data(0);
  auto&& target = route.data(1);
  KernelArgs vector{static_cast<const char*>(part.own), static_cast<char*>(part.out),
                    static_cast<std::uint64_t>(part.count) * combining.element_bytes};
  const bool null =
      (part.own == nullptr && part.count != 0) || (part.gets && part.out == nullptr && part.out_count != 0);
  if (null) [[unlikely]]
    arguments.wrong(MPI_ERR_BUFFER, "null buffer");
  const bool misplaced = part.own == MPI_IN_PLACE || (part.gets && part.out == MPI_IN_PLACE);
  if (misplaced) [[unlikely]]
    arguments.wrong(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed for this buffer");
  if (arguments.refused) [[unlikely]]
    return route.refuse(arguments);  // before peers learn of the call
  if (call.state->check == 3 ||
      (part.count != 0 && (is_device_memory(part.own) || (part.gets && is_device_memory(part.out))))) [[unlikely]] {
    by_layout(call, arguments, part, type, vector, source, target);
    check_reduction(call, combining, arguments.good() ? vector.own : nullptr, static_cast<std::uint64_t>(part.count));
  }
  const KernelOp reduction{combining.three, combining.element_bytes, combining.code, combining.element,
                           combining.rounds};
  return route.run(
      arguments,
      [&](auto& comm, bool good) {
        vector.good = good;
        return run(comm, vector, reduction);
      },
      source, target);
}

// ---- Functions ----

void fold(void* context, char* in, char* inout, std::uint64_t count) {
  Function& f = *static_cast<Function*>(context);
  if (f.kernel != nullptr) return f.kernel(inout, in, static_cast<std::size_t>(count));
  // The count fits an int: it is at most engine::elements_at_once().
  const int code = host().Reduce_local(in, inout, static_cast<int>(count), f.type, f.op);
  if (f.code == MPI_SUCCESS) f.code = code;
}

bool is_commutative(const Combining& combining, MPI_Op op) {
  if (combining.by != By::user) return true;  // MPI's own operations all are
  int commutative = 0;
  return host().Op_commutative(op, &commutative) == MPI_SUCCESS && commutative != 0;
}

// The way of a reduction that may return early. Its ranks combine in the order of the nodes.
template <class Route>
Overlap* overlap_of(Route route, const KernelArgs& vector, const KernelOp& reduction) {
  const bool keeps_order = reduction.rounds && route.call().state->reproducible == ReproducibleChoice::rank;
  return keeps_order ? nullptr : route.overlap(vector.bytes);
}

// Of a call with a request, whether ranks would need too much memory for all contributions. Count
// and type are the same on all ranks.
template <class Route>
bool is_too_much(Route, const State& state, const Part& part, const Layout* layout) {
  if (!std::is_same_v<Route, RouteRequest> || layout == nullptr || part.count <= 0) return false;
  const std::uint64_t most = kTuning.requests_function_bytes / static_cast<std::uint64_t>(state.size);
  return layout->size != 0 && static_cast<std::uint64_t>(part.count) > most / layout->size;
}

template <class Route, class Run>
bool by_function(Route route, Arguments& arguments, const Part& part, Handle handle, Handle op,
                 const Combining& combining, Run run) {
  Call& call = route.call();
  const State& state = *call.state;
  const auto type = as<MPI_Datatype>(handle);
  auto&& source = route.data(0);
  auto&& target = route.data(1);
  auto&& work = route.work();
  work.layout = part.count != 0 ? layout_acquire(type) : nullptr;
  const Layout* const layout = work.layout;
  if (is_too_much(route, state, part, layout)) return false;
  FunctionArgs operands;
  if (part.gets) {
    target.watch(call);
    operands.out = target.region(arguments, state, part.out, part.out_count, handle, Staged::write);
  }
  operands.own = source.region(arguments, state, part.own, part.count, handle, Staged::read);
  Function& function = work.function;
  function = {as<MPI_Op>(op), type, combining.by == By::padded ? combining.two : nullptr};
  if (arguments.good() && layout != nullptr && layout->size != 0) {
    const auto all = static_cast<std::uint64_t>(part.count);
    const std::uint64_t at_once = engine::elements_at_once(layout->size);
    operands.grown = work.grown.make(arguments, type, layout, all < at_once ? all : at_once);
    operands.arrived = work.arrived.make(arguments, type, layout, all < at_once ? all : at_once);
  }
  if (arguments.refused) {
    (void)finish_all(source, target);
    return route.refuse(arguments);
  }
  route.hold(op, handle);
  check_reduction(call, combining, nullptr, 0);
  route.leaves_overlap("no kernel of Stretto's combines, and other functions run on the program's threads alone");
  const ElementCode element = layout != nullptr ? layout->signature.element() : combining.element;
  const bool commutative = std::is_same_v<Route, RouteSchedule> && is_commutative(combining, function.op);
  const FunctionOp operation{&function, fold, combining.code, element, commutative, combining.rounds};
  return route.run(
      arguments,
      [&](auto& comm, bool good) {
        operands.good = good;
        return run(route.by_function(comm), operands, operation);
      },
      work, source, target);
}

// ---- Both ----

// A user-defined function gets data in the type's layout. A type of too many runs has no
// layout to unpack data with.
bool too_many_runs(MPI_Datatype type) {
  const Layout* const layout = layout_acquire(type);
  const bool opaque = layout != nullptr && layout_is_opaque(*layout);
  layout_release(layout);
  return opaque;
}

bool is_type(MPI_Datatype type) {
  const Layout* const layout = layout_acquire(type);
  layout_release(layout);
  return layout != nullptr;
}

// Whether the host serves the call. Operation, type and the members' agreement decide, so
// all members decide alike.
bool left_to_host(const State& state, const Combining& combining, MPI_Datatype type) {
  if (combining.rounds && state.reproducible == ReproducibleChoice::mpi && (combining.by != By::user || is_type(type)))
      [[unlikely]]
    return true;
  if (combining.by <= By::function) [[likely]]
    return false;
  if (combining.by == By::host) return combining.element_bytes != 0 || is_type(type);
  return combining.by == By::user && too_many_runs(type);
}

// The engine's parts are `kernels(comm, vector, reduction)` and `functions(comm,
// operands, operation)`.
template <class Route, class Kernels, class Functions>
[[gnu::always_inline]] inline bool serve_reduction(Route route, Arguments& arguments, Part part, Handle type, Handle op,
                                                   const Combining& combining, Kernels kernels, Functions functions) {
  Call& call = route.call();
  if (part.count < 0 || part.out_count < 0) [[unlikely]] {
    arguments.wrong(MPI_ERR_COUNT, "negative count");
    part.count = part.out_count = 0;
  }
  if (part.aliased && part.count != 0) [[unlikely]]
    refuse_alias(arguments, *call.state);
  if (combining.by == By::kernel) [[likely]]
    return by_kernel(route, arguments, part, type, combining, kernels);
  if (combining.by == By::nobody) arguments.wrong(MPI_ERR_OP, "not an operation");
  if (combining.by != By::user && combining.element_bytes == 0) arguments.wrong(MPI_ERR_TYPE, "invalid datatype");
  if (!arguments.good()) return route.refuse(arguments);
  return by_function(route, arguments, part, type, op, combining, functions);
}

// Gives a call to the engine or to schedules by `serve(route, combining)`. Returns false
// if the host serves it.
template <class Serve>
[[gnu::always_inline]] inline bool routed(Call& call, Handle comm, Handle op, Handle type, Serve serve) {
  return routed(call, comm, [&](auto route) {
    const Combining combining = combining_of(as<MPI_Op>(op), as<MPI_Datatype>(type));
    return !left_to_host(*call.state, combining, as<MPI_Datatype>(type)) && serve(route, combining);
  });
}

template <class Route, class CountOf>
bool serve_reduce_scatter(Route route, Arguments& arguments, const void* send, void* receive, CountOf count_of,
                          Handle type, Handle op, const Combining& combining) {
  Call& call = route.call();
  const State& state = *call.state;
  const bool by_bytes = combining.by != By::padded && combining.by != By::function && combining.by != By::user;
  const std::size_t unit = by_bytes ? combining.element_bytes : 1;
  std::int64_t total = 0;
  engine::Begins begins;
  const bool filled = begins.fill(state.size, [&](int rank) {
    const std::int64_t count = count_of(rank);
    total += count;
    return static_cast<std::uint64_t>(count) * unit;
  });
  if (!filled) std::abort();  // a few bytes a rank, and peers wait for this rank
  const Part part = in_place_or(send, {nullptr, total, receive, count_of(state.rank), true});
  const Collective as = call.collective();
  return serve_reduction(
      route, arguments, part, type, op, combining,
      [&](auto& c, const KernelArgs& v, const KernelOp& r) {
        if (Overlap* const overlap = overlap_of(route, v, r))
          return overlap->reduce_scatter(v, r, begins.get(), overlap->may_defer(v.out != receive));
        return engine::reduce_scatter(c, as, v, r, begins.get());
      },
      [&](auto& c, const FunctionArgs& o, const FunctionOp& f) {
        return engine::reduce_scatter(c, as, o, f, begins.get());
      });
}

bool serve_scan(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, Handle comm,
                bool exclusive) {
  call_sized(-1, count, type);
  return routed(call, comm, op, type, [&](auto route, const Combining& combining) {
    Arguments arguments;
    const bool gets = !exclusive || call.state->rank != 0;
    const Part part = in_place_or(send, {nullptr, count, receive, gets ? count : 0, gets});
    return serve_reduction(
        route, arguments, part, type, op, combining,
        [&](auto& c, const KernelArgs& v, const KernelOp& r) {
          if (Overlap* const overlap = overlap_of(route, v, r))
            return overlap->scan(v, r, exclusive, overlap->may_defer(v.out != receive));
          return engine::scan(c, v, r, exclusive);
        },
        [&](auto& c, const FunctionArgs& o, const FunctionOp& f) { return engine::scan(c, o, f, exclusive); });
  });
}

}  // namespace

// ---- What the wrappers call ----

bool allreduce(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, Handle comm) {
  call_sized(-1, count, type);
  return routed(call, comm, op, type, [&](auto route, const Combining& combining) {
    Arguments arguments;
    const Part part = in_place_or(send, {nullptr, count, receive, count, true});
    return serve_reduction(
        route, arguments, part, type, op, combining,
        [&](auto& c, const KernelArgs& v, const KernelOp& r) {
          if (Overlap* const overlap = overlap_of(route, v, r))
            return overlap->allreduce(v, r, overlap->may_defer(v.out != receive));
          return engine::allreduce(c, v, r);
        },
        [](auto& c, const FunctionArgs& o, const FunctionOp& f) { return engine::allreduce(c, o, f); });
  });
}

bool reduce(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, int root,
            Handle comm) {
  call_sized(root, count, type);
  return routed(call, comm, op, type, [&](auto route, const Combining& combining) {
    const State& state = *call.state;
    Arguments arguments;
    const int to = valid_root(arguments, root, state);
    const bool is_root = state.rank == to;
    Part part{send, count, receive, is_root ? count : 0, is_root};
    if (is_root) part = in_place_or(send, part);
    return serve_reduction(
        route, arguments, part, type, op, combining,
        [&](auto& c, const KernelArgs& v, const KernelOp& r) {
          if (Overlap* const overlap = overlap_of(route, v, r))
            return overlap->reduce(v, r, to, overlap->may_defer(is_root && v.out != receive));
          return engine::reduce(c, v, r, to);
        },
        [&](auto& c, const FunctionArgs& o, const FunctionOp& f) { return engine::reduce(c, o, f, to); });
  });
}

bool reduce_scatter(Call& call, const void* send, void* receive, CountArray counts, Handle type, Handle op,
                    Handle comm) {
  call_sized(CallSize::Counts::mean, counts, type);
  return routed(call, comm, op, type, [&](auto route, const Combining& combining) {
    Arguments arguments;
    const Extents extents = irregular(arguments, counts, counts, call.state->size);
    (void)all_empty(arguments, extents);  // finds negative counts
    const auto count_of = [&](int rank) -> std::int64_t {
      if (!arguments.good()) return 0;
      return counts.wide ? static_cast<const std::int64_t*>(counts.data)[rank]
                         : static_cast<const int*>(counts.data)[rank];
    };
    return serve_reduce_scatter(route, arguments, send, receive, count_of, type, op, combining);
  });
}

bool reduce_scatter_block(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op,
                          Handle comm) {
  call_sized(-1, count, type);
  return routed(call, comm, op, type, [&](auto route, const Combining& combining) {
    Arguments arguments;
    const Extents extents = regular(arguments, count, call.state->size);
    const auto count_of = [&](int) { return static_cast<std::int64_t>(extents.count); };
    return serve_reduce_scatter(route, arguments, send, receive, count_of, type, op, combining);
  });
}

bool scan(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, Handle comm) {
  return serve_scan(call, send, receive, count, type, op, comm, false);
}

bool exscan(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, Handle comm) {
  return serve_scan(call, send, receive, count, type, op, comm, true);
}

}  // namespace stretto::mpi
