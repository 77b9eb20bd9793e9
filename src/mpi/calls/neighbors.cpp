// SPDX-License-Identifier: BSD-3-Clause
// Neighbor_allgather(v), Neighbor_alltoall(v, w). The communicator's topology says how many blocks
// a rank sends and receives. Whether Stretto serves the call depends on none of the arguments.
#include "base/neighborhood.hpp"
#include "mpi/calls/routed.hpp"

namespace stretto::mpi {
namespace {

// A rank without neighbours may pass anything for arrays and buffers.
Extents regular_if(bool any, Arguments& arguments, std::int64_t count, int blocks) {
  return any || count < 0 ? regular(arguments, count, blocks) : Extents{0, nullptr, nullptr, false, blocks};
}
Extents irregular_if(bool any, Arguments& arguments, const CountArray& counts, const CountArray& displs, int blocks) {
  return any ? irregular(arguments, counts, displs, blocks) : Extents{0, nullptr, nullptr, false, 0};
}

const Neighborhood& neighborhood_in(const Call& call) { return *call.state->neighborhood; }

Extents taken(Arguments& arguments, const Neighborhood& n, std::int64_t count) {
  return regular_if(n.receives(), arguments, count, n.sources());
}
Extents taken(Arguments& arguments, const Neighborhood& n, const CountArray& counts, const CountArray& displs) {
  return irregular_if(n.receives(), arguments, counts, displs, n.sources());
}

template <class Route>
bool serve_allgather(Route route, Arguments& arguments, const void* send, std::int64_t send_count, Handle send_type,
                     const void* receive, const Extents& take, Handle receive_type) {
  Call& call = route.call();
  const State& state = *call.state;
  const Extents& kept_take = route.keep(arguments, take);
  auto&& source = route.data(0);
  auto&& target = route.data(1);
  target.watch(call);
  const Blocks to = target.blocks(arguments, state, receive, kept_take, receive_type, Staged::write);
  const std::int64_t given = neighborhood_in(call).sends() || send_count < 0 ? send_count : 0;
  const Region from = source.region(arguments, state, send, given, send_type, Staged::read);
  return route.run(
      arguments, [&](auto& comm, bool good) { return engine::neighbors(comm, call.collective(), from, to, good); },
      source, target);
}

template <class Route>
bool serve_alltoall(Route route, Arguments& arguments, const void* send, const Extents& give, Handle send_type,
                    const void* receive, const Extents& take, Handle receive_type) {
  Call& call = route.call();
  const State& state = *call.state;
  const Extents& kept_take = route.keep(arguments, take);
  const Extents& kept_give = route.keep(arguments, give);
  auto&& source = route.data(0);
  auto&& target = route.data(1);
  target.watch(call);
  const Blocks to = target.blocks(arguments, state, receive, kept_take, receive_type, Staged::write);
  const Blocks from = source.blocks(arguments, state, send, kept_give, send_type, Staged::read);
  return route.run(
      arguments, [&](auto& comm, bool good) { return engine::neighbors(comm, call.collective(), from, to, good); },
      source, target);
}

}  // namespace

bool neighbor_allgather(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
                        std::int64_t receive_count, Handle receive_type, Handle comm) {
  call_sized(-1, send_count, send_type);
  return routed(call, comm, [&](auto route) {
    Arguments arguments;
    const Extents take = taken(arguments, neighborhood_in(call), receive_count);
    return serve_allgather(route, arguments, send, send_count, send_type, receive, take, receive_type);
  });
}

bool neighbor_allgatherv(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
                         CountArray counts, CountArray displs, Handle receive_type, Handle comm) {
  call_sized(-1, send_count, send_type);
  return routed(call, comm, [&](auto route) {
    Arguments arguments;
    const Extents take = taken(arguments, neighborhood_in(call), counts, displs);
    return serve_allgather(route, arguments, send, send_count, send_type, receive, take, receive_type);
  });
}

bool neighbor_alltoall(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
                       std::int64_t receive_count, Handle receive_type, Handle comm) {
  call_sized(-1, send_count, send_type);
  return routed(call, comm, [&](auto route) {
    Arguments arguments;
    const Neighborhood& n = neighborhood_in(call);
    const Extents give = regular_if(n.sends(), arguments, send_count, n.destinations());
    const Extents take = taken(arguments, n, receive_count);
    return serve_alltoall(route, arguments, send, give, send_type, receive, take, receive_type);
  });
}

bool neighbor_alltoallv(Call& call, const void* send, CountArray send_counts, CountArray send_displs, Handle send_type,
                        void* receive, CountArray receive_counts, CountArray receive_displs, Handle receive_type,
                        Handle comm) {
  call_sized(-1, 0, 0);  // the length of a block is not told
  return routed(call, comm, [&](auto route) {
    Arguments arguments;
    const Neighborhood& n = neighborhood_in(call);
    const Extents give = irregular_if(n.sends(), arguments, send_counts, send_displs, n.destinations());
    const Extents take = taken(arguments, n, receive_counts, receive_displs);
    return serve_alltoall(route, arguments, send, give, send_type, receive, take, receive_type);
  });
}

bool neighbor_alltoallw(Call& call, const void* send, CountArray send_counts, const void* send_displs,
                        const void* send_types, void* receive, CountArray receive_counts, const void* receive_displs,
                        const void* receive_types, Handle comm) {
  call_sized(-1, 0, 0);  // the length of a block is not told
  const auto wide = [](const void* displs) { return CountArray(static_cast<const std::int64_t*>(displs), true); };
  return routed(call, comm, [&](auto route) {
    const State& state = *call.state;
    const Neighborhood& n = neighborhood_in(call);
    Arguments arguments;
    auto&& source = route.typed(0);
    auto&& target = route.typed(1);
    const Blocks to = target.blocks(arguments, state, n.receives() ? n.sources() : 0, receive,
                                    {receive_counts, wide(receive_displs), receive_types}, Staged::write);
    target.watch(call, to, receive_types);
    const Blocks from = source.blocks(arguments, state, n.sends() ? n.destinations() : 0, send,
                                      {send_counts, wide(send_displs), send_types}, Staged::read);
    return route.run(
        arguments,
        [&](auto& c, bool good) { return engine::neighbors(c, Collective::neighbor_alltoallw, from, to, good); },
        source, target);
  });
}

}  // namespace stretto::mpi
