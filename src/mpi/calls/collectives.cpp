// SPDX-License-Identifier: BSD-3-Clause
// Barrier, Bcast, and the Gather, Scatter and Allgather families: which arguments are
// significant on this rank.
#include "mpi/calls/routed.hpp"
#include "mpi/comm/comm_agreement.hpp"

namespace stretto::mpi {

namespace {

// ---- Gather, scatter and allgather, for both forms ----

// This rank's block of the others' buffer is its own data.
void judge_own_block(Arguments& arguments, const State& state, const Region& own, Handle type, const Blocks& blocks,
                     Handle type_of_blocks) {
  const Region block = blocks.at(state.rank);
  judge_alias(arguments, state, own.base, block.base, type == type_of_blocks && own.count != 0 && block.count != 0);
}

template <class Route>
bool serve_gather(Route route, Arguments& arguments, const void* send, std::int64_t send_count, Handle send_type,
                  const void* receive, const Extents& given, Handle receive_type, int root) {
  Call& call = route.call();
  const State& state = *call.state;
  const Extents& extents = route.keep(arguments, given);
  const bool is_root = state.rank == root;
  const bool in_place = is_root && send == MPI_IN_PLACE;
  auto&& source = route.data(0);
  auto&& target = route.data(1);
  Blocks to{nullptr, &kNoBytes};
  if (is_root) {
    target.watch(call);
    to = target.blocks(arguments, state, receive, extents, receive_type, Staged::write);
  }
  const Region from = in_place ? Region{} : source.region(arguments, state, send, send_count, send_type, Staged::read);
  if (is_root) judge_own_block(arguments, state, from, send_type, to, receive_type);
  return route.run(
      arguments,
      [&](auto& comm, bool good) {
        const std::uint64_t own = is_root && in_place ? to.at(root).bytes() : from.bytes();
        if (Overlap* const overlap = route.overlap(own * static_cast<std::uint64_t>(state.size)))
          return overlap->gather(from, to, root, in_place, overlap->may_defer(target.is_staged()));
        return engine::gather(comm, call.collective(), from, to, root, in_place, good);
      },
      source, target);
}

template <class Route>
bool serve_scatter(Route route, Arguments& arguments, const void* send, const Extents& given, Handle send_type,
                   const void* receive, std::int64_t receive_count, Handle receive_type, int root) {
  Call& call = route.call();
  const State& state = *call.state;
  const Extents& extents = route.keep(arguments, given);
  const bool is_root = state.rank == root;
  const bool in_place = is_root && receive == MPI_IN_PLACE;
  auto&& source = route.data(0);
  auto&& target = route.data(1);
  Blocks from{nullptr, &kNoBytes};
  Region to;
  if (is_root) from = source.blocks(arguments, state, send, extents, send_type, Staged::read);
  if (!in_place) {
    target.watch(call);
    to = target.region(arguments, state, receive, receive_count, receive_type, Staged::write);
    if (is_root) judge_own_block(arguments, state, to, receive_type, from, send_type);
  }
  return route.run(
      arguments,
      [&](auto& comm, bool good) {
        const std::uint64_t own = is_root ? from.at(root).bytes() : to.bytes();
        if (Overlap* const overlap = route.overlap(own * static_cast<std::uint64_t>(state.size)))
          return overlap->scatter(from, to, root, in_place, overlap->may_defer(target.is_staged()));
        return engine::scatter(comm, call.collective(), from, to, root, in_place, good);
      },
      source, target);
}

template <class Route>
bool serve_allgather(Route route, Arguments& arguments, const void* send, std::int64_t send_count, Handle send_type,
                     const void* receive, const Extents& given, Handle receive_type) {
  Call& call = route.call();
  const State& state = *call.state;
  const Extents& extents = route.keep(arguments, given);
  const bool in_place = send == MPI_IN_PLACE;
  auto&& source = route.data(0);
  auto&& target = route.data(1);
  target.watch(call);
  const Blocks to = target.blocks(arguments, state, receive, extents, receive_type, Staged::write);
  const Region from = in_place ? Region{} : source.region(arguments, state, send, send_count, send_type, Staged::read);
  judge_own_block(arguments, state, from, send_type, to, receive_type);
  return route.run(
      arguments,
      [&](auto& comm, bool good) {
        std::uint64_t bytes = 0;
        for (int r = 0; r < state.size && std::is_same_v<decltype(route), RouteSchedule>; ++r)
          bytes += to.at(r).bytes();
        if (Overlap* const overlap = route.overlap(bytes))
          return overlap->allgather(from, to, in_place, overlap->may_defer(target.is_staged()));
        return engine::allgather(comm, call.collective(), from, to, in_place, good);
      },
      source, target);
}

}  // namespace

// ---- What the wrappers call ----

bool barrier(Call& call, Handle comm) {
  call_sized(-1, 0, 0);
  return routed(call, comm,
                [&](auto route) { return route.run(Arguments{}, [](auto& c, bool) { return engine::barrier(c); }); });
}

bool bcast(Call& call, void* buffer, std::int64_t count, Handle type, int root, Handle comm) {
  call_sized(root, count, type);
  return routed(call, comm, [&](auto route) {
    const State& state = *call.state;
    Arguments arguments;
    auto&& data = route.data(0);
    const int from = valid_root(arguments, root, state);
    const bool is_root = state.rank == from;
    if (!is_root) data.watch(call);
    const Region region = data.region(arguments, state, buffer, count, type, is_root ? Staged::read : Staged::write);
    return route.run(
        arguments,
        [&](auto& c, bool good) {
          if (Overlap* const overlap = route.overlap(region.bytes()))
            return overlap->bcast(region, from, overlap->may_defer(data.is_staged()));
          return engine::bcast(c, region, from, good);
        },
        data);
  });
}

bool gather(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
            std::int64_t receive_count, Handle receive_type, int root, Handle comm) {
  send == MPI_IN_PLACE ? call_sized(root, receive_count, receive_type) : call_sized(root, send_count, send_type);
  return routed(call, comm, [&](auto route) {
    const State& state = *call.state;
    Arguments arguments;
    const int to = valid_root(arguments, root, state);
    const Extents extents = state.rank == to ? regular(arguments, receive_count, state.size) : Extents{};
    return serve_gather(route, arguments, send, send_count, send_type, receive, extents, receive_type, to);
  });
}

bool gatherv(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive, CountArray counts,
             CountArray displs, Handle receive_type, int root, Handle comm) {
  send == MPI_IN_PLACE ? call_sized(CallSize::Counts::own, counts, receive_type, root)
                       : call_sized(root, send_count, send_type);
  return routed(call, comm, [&](auto route) {
    const State& state = *call.state;
    Arguments arguments;
    const int to = valid_root(arguments, root, state);
    const Extents extents = state.rank == to ? irregular(arguments, counts, displs, state.size) : Extents{};
    return serve_gather(route, arguments, send, send_count, send_type, receive, extents, receive_type, to);
  });
}

bool scatter(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
             std::int64_t receive_count, Handle receive_type, int root, Handle comm) {
  receive == MPI_IN_PLACE ? call_sized(root, send_count, send_type) : call_sized(root, receive_count, receive_type);
  return routed(call, comm, [&](auto route) {
    const State& state = *call.state;
    Arguments arguments;
    const int from = valid_root(arguments, root, state);
    const Extents extents = state.rank == from ? regular(arguments, send_count, state.size) : Extents{};
    return serve_scatter(route, arguments, send, extents, send_type, receive, receive_count, receive_type, from);
  });
}

bool scatterv(Call& call, const void* send, CountArray counts, CountArray displs, Handle send_type, void* receive,
              std::int64_t receive_count, Handle receive_type, int root, Handle comm) {
  receive == MPI_IN_PLACE ? call_sized(CallSize::Counts::own, counts, send_type, root)
                          : call_sized(root, receive_count, receive_type);
  return routed(call, comm, [&](auto route) {
    const State& state = *call.state;
    Arguments arguments;
    const int from = valid_root(arguments, root, state);
    const Extents extents = state.rank == from ? irregular(arguments, counts, displs, state.size) : Extents{};
    return serve_scatter(route, arguments, send, extents, send_type, receive, receive_count, receive_type, from);
  });
}

bool allgather(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
               std::int64_t receive_count, Handle receive_type, Handle comm) {
  send == MPI_IN_PLACE ? call_sized(-1, receive_count, receive_type) : call_sized(-1, send_count, send_type);
  return routed(call, comm, [&](auto route) {
    Arguments arguments;
    const Extents extents = regular(arguments, receive_count, call.state->size);
    return serve_allgather(route, arguments, send, send_count, send_type, receive, extents, receive_type);
  });
}

bool allgatherv(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
                CountArray counts, CountArray displs, Handle receive_type, Handle comm) {
  send == MPI_IN_PLACE ? call_sized(CallSize::Counts::own, counts, receive_type)
                       : call_sized(-1, send_count, send_type);
  return routed(call, comm, [&](auto route) {
    Arguments arguments;
    const Extents extents = irregular(arguments, counts, displs, call.state->size);
    return serve_allgather(route, arguments, send, send_count, send_type, receive, extents, receive_type);
  });
}

int host_done(Call& call, int code) {
  if (call.snapshot != nullptr) return check_end(call, code);
  if (call.state != nullptr) {
    count_call(call, Path::host, 0);
    if (!call.state->agreed || call.state->withheld != 0) [[unlikely]]
      call_before_agreement(*call.state, call.collective(), code);
  } else {
    t_thread.last_path = kPathNames[static_cast<int>(Path::host)];
  }
  return code;
}

}  // namespace stretto::mpi
