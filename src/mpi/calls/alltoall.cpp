// SPDX-License-Identifier: BSD-3-Clause
// Alltoall, Alltoallv, Alltoallw. The arguments of a rank say what it sends and where data go.
// Whether Stretto serves the call depends on none of these arguments.
#include "mpi/calls/routed.hpp"

namespace stretto::mpi {
namespace {

// Whether one array says how much is sent and how much is received, and there are data.
bool have_same_counts(Arguments& arguments, CountArray give, CountArray take, const Extents& taken) {
  return give.data == take.data && !all_empty(arguments, taken);
}

// Only for calls that may return early.
template <class Route>
std::uint64_t received_bytes(const Route& route, const Blocks& to) {
  std::uint64_t bytes = 0;
  const int ranks = std::is_same_v<Route, RouteSchedule> ? route.call().state->size : 0;
  for (int r = 0; r < ranks; ++r) bytes += to.at(r).bytes();
  return bytes;
}

template <class Route>
bool serve_alltoall(Route route, Arguments& arguments, const void* send, const Extents& give, Handle send_type,
                    const void* receive, const Extents& take, Handle receive_type) {
  Call& call = route.call();
  const State& state = *call.state;
  const bool in_place = send == MPI_IN_PLACE;
  auto&& source = route.data(0);
  auto&& target = route.data(1);
  target.watch(call);
  const Extents& taken = route.keep(arguments, take);
  const Extents& given = route.keep(arguments, give);
  const Blocks to = target.blocks(arguments, state, receive, taken, receive_type, Staged::write);
  Blocks from{nullptr, &kNoBytes};
  if (!in_place) from = source.blocks(arguments, state, send, given, send_type, Staged::read);
  return route.run(
      arguments,
      [&](auto& comm, bool good) {
        if (Overlap* const overlap = route.overlap(received_bytes(route, to)))
          return overlap->alltoall(from, to, in_place, overlap->may_defer(target.is_staged()));
        return engine::alltoall(comm, call.collective(), from, to, in_place, good);
      },
      source, target);
}

}  // namespace

bool alltoall(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
              std::int64_t receive_count, Handle receive_type, Handle comm) {
  send == MPI_IN_PLACE ? call_sized(-1, receive_count, receive_type) : call_sized(-1, send_count, send_type);
  return routed(call, comm, [&](auto route) {
    const State& state = *call.state;
    Arguments arguments;
    const Extents give = send == MPI_IN_PLACE ? Extents{} : regular(arguments, send_count, state.size);
    const Extents take = regular(arguments, receive_count, state.size);
    judge_alias(arguments, state, send, receive,
                send_count == receive_count && send_type == receive_type && send_count != 0);
    return serve_alltoall(route, arguments, send, give, send_type, receive, take, receive_type);
  });
}

bool alltoallv(Call& call, const void* send, CountArray send_counts, CountArray send_displs, Handle send_type,
               void* receive, CountArray receive_counts, CountArray receive_displs, Handle receive_type, Handle comm) {
  send == MPI_IN_PLACE ? call_sized(CallSize::Counts::mean, receive_counts, receive_type)
                       : call_sized(CallSize::Counts::mean, send_counts, send_type);
  return routed(call, comm, [&](auto route) {
    const State& state = *call.state;
    Arguments arguments;
    const Extents give = send == MPI_IN_PLACE ? Extents{} : irregular(arguments, send_counts, send_displs, state.size);
    const Extents take = irregular(arguments, receive_counts, receive_displs, state.size);
    judge_alias(
        arguments, state, send, receive,
        send == receive && send_type == receive_type && have_same_counts(arguments, send_counts, receive_counts, take));
    return serve_alltoall(route, arguments, send, give, send_type, receive, take, receive_type);
  });
}

bool alltoallw(Call& call, const void* send, CountArray send_counts, CountArray send_displs, const void* send_types,
               void* receive, CountArray receive_counts, CountArray receive_displs, const void* receive_types,
               Handle comm) {
  send == MPI_IN_PLACE ? call_sized(CallSize::Counts::mean, receive_counts, 0, -1, receive_types)
                       : call_sized(CallSize::Counts::mean, send_counts, 0, -1, send_types);
  return routed(call, comm, [&](auto route) {
    const State& state = *call.state;
    Arguments arguments;
    const bool in_place = send == MPI_IN_PLACE;
    if (send == receive && send_types == receive_types) [[unlikely]] {
      const Extents take = irregular(arguments, receive_counts, receive_displs, state.size);
      judge_alias(arguments, state, send, receive, have_same_counts(arguments, send_counts, receive_counts, take));
    }
    auto&& source = route.typed(0);
    auto&& target = route.typed(1);
    const Blocks to = target.blocks(arguments, state, state.size, receive,
                                    {receive_counts, receive_displs, receive_types}, Staged::write);
    target.watch(call, to, receive_types);
    Blocks from{nullptr, &kNoBytes};
    if (!in_place)
      from = source.blocks(arguments, state, state.size, send, {send_counts, send_displs, send_types}, Staged::read);
    return route.run(
        arguments,
        [&](auto& c, bool good) {
          if (Overlap* const overlap = route.overlap(received_bytes(route, to)))
            return overlap->alltoall(from, to, in_place, overlap->may_defer(target.is_staged()));
          return engine::alltoall(c, Collective::alltoallw, from, to, in_place, good);
        },
        source, target);
  });
}

}  // namespace stretto::mpi
