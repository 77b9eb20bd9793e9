// SPDX-License-Identifier: BSD-3-Clause
#include "coll/direct/ordered.hpp"

#include "coll/direct/steps.hpp"

namespace stretto::coll::direct {

namespace {

void receive(shm::Call& call, int from, const Region& to, bool good) {
  shm::Incoming message;
  message.start(good ? to : kNothing, !good);
  receive_all(call, message, call.team().member(from).channel);
}

void send(shm::Call& call, int to, const Region& from, bool good) {
  shm::Outgoing message;
  message.start(good ? from : kNothing, !good);
  send_all(call, message, call.team().member(to).to);
}

Region part(const Region& region, std::uint64_t begin, std::uint64_t end) {
  if (!region.layout) return region;
  return {address_at(region.base, static_cast<std::ptrdiff_t>(begin) * region.layout->extent), end - begin,
          region.layout};
}

// At `root`: grown = c0 op (c1 op ( ... )), one contribution after the other, the last rank's first. Elsewhere: send.
void grow_at(shm::Call& call, const Operands& o, const Operation& operation, int root) {
  shm::Team& team = call.team();
  if (team.rank() != root) return send(call, root, o.own, o.good);
  for (int r = team.size() - 1; r >= 0; --r) {
    const bool first = r == team.size() - 1;
    const Region& place = first ? o.grown : o.arrived;
    if (r != root) {
      receive(call, r, place, o.good);
    } else if (o.good) {
      region_copy(place, o.own);  // the operation may write to what it is given
    }
    if (!first && o.good && call.status() == Status::ok) operation.fold(operation.context, place.base, o.grown.base);
  }
}

}  // namespace

void reduce_ordered(shm::Call& call, const Operands& o, const Operation& operation, int root) {
  grow_at(call, o, operation, root);
  if (call.team().rank() == root && o.good) region_copy(o.out, o.grown);
}

void allreduce_ordered(shm::Call& call, const Operands& o, const Operation& operation) {
  constexpr int kRoot = 0;
  shm::Team& team = call.team();
  grow_at(call, o, operation, kRoot);
  if (team.rank() == kRoot) {
    const bool fine = o.good && call.status() == Status::ok;
    shm::Outgoing result;
    result.start(fine ? o.grown : kNothing, !fine);
    send_all(call, result, team.board());
    if (fine) region_copy(o.out, o.grown);
  } else {
    shm::Incoming result;
    result.start(o.good ? o.out : kNothing, !o.good);
    receive_all(call, result, team.member(kRoot).board);
  }
}

void reduce_scatter_ordered(shm::Call& call, const Operands& o, const Operation& operation,
                            const std::uint64_t* begins) {
  constexpr int kRoot = 0;
  shm::Team& team = call.team();
  grow_at(call, o, operation, kRoot);
  if (team.rank() != kRoot) return receive(call, kRoot, o.out, o.good);
  const bool fine = o.good && call.status() == Status::ok;
  for (int r = 1; r < team.size(); ++r) send(call, r, part(o.grown, begins[r], begins[r + 1]), fine);
  if (fine) region_copy(o.out, part(o.grown, begins[0], begins[1]));
}

void scan_ordered(shm::Call& call, const Operands& o, const Operation& operation, bool exclusive) {
  shm::Team& team = call.team();
  const int rank = team.rank();
  if (o.good) region_copy(o.grown, o.own);
  if (rank > 0) receive(call, rank - 1, o.arrived, o.good);
  const bool fine = o.good && call.status() == Status::ok;
  if (fine && exclusive && rank > 0) region_copy(o.out, o.arrived);
  if (fine && rank > 0) operation.fold(operation.context, o.arrived.base, o.grown.base);
  if (fine && !exclusive) region_copy(o.out, o.grown);
  if (rank + 1 < team.size()) send(call, rank + 1, o.grown, fine);
}

}  // namespace stretto::coll::direct
