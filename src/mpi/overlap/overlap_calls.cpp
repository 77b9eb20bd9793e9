// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm each collective goes by, and where its data lie.
#include <algorithm>
#include <cstring>

#include "coll/algorithm.hpp"
#include "mpi/overlap/overlap.hpp"
#include "overlap/played_schedule.hpp"

namespace stretto::mpi {
namespace {

constexpr char kPipeline[] = "pipeline";  // data go from each rank to the next, node after node

Blocks one(const Region& region) {
  return {region.base, region.layout != nullptr ? region.layout : &kPlainByte, region.count};
}

}  // namespace

// One call: the problem in its algorithm's numbers of ranks, and the program's buffers.
struct Overlap::Played {
  const char* name;       // for messages to the user
  const char* algorithm;  // of coll/manifest.cpp
  const int* job_ranks;
  coll::Problem problem;
  overlap::PlacedParts send, receive;
  overlap::Fold fold;
  overlap::Ends ends;
  int own = -1;  // the part of `receive` that this rank fills itself

  Played(const Overlap& by, const char* called, Collective as, const char* goes_by, int root = 0)
      : name(called), algorithm(goes_by) {
    const bool by_nodes = std::strcmp(goes_by, kPipeline) == 0 && as != Collective::scan;  // a Scan's order counts
    const auto number = [&](int rank) {
      return by_nodes ? static_cast<int>(std::find(by.ring_.begin(), by.ring_.end(), rank) - by.ring_.begin()) : rank;
    };
    job_ranks = by_nodes ? by.ring_jobs_.data() : by.job_ranks_;
    problem.collective = as;
    problem.size = by.state_->size;
    problem.rank = number(by.state_->rank);
    problem.root = number(root);
    problem.commutative = true;  // all of MPI's own operations are
  }
};

// `gets`: something comes to this rank's program.
engine::Outcome Overlap::play(Played& call, bool gets, std::uint64_t bytes, bool may_defer) {
  coll::Builder builder;
  overlap::PlayedSchedule played(call.send, call.receive, call.job_ranks);
  overlap::Exchange exchange;
  exchange.name = call.name;
  exchange.fold = call.fold;
  exchange.ends = call.ends;
  exchange.is_pipeline = std::strcmp(call.algorithm, kPipeline) == 0;
  exchange.may_return_early = may_defer;
  overlap::GappedParts gapped;
  if (gets && may_defer && call.receive.is_copy()) {
    exchange.may_return_early = call.receive.describe(&gapped);
    if (exchange.may_return_early) exchange.gapped = &gapped;
  }
  const coll::Algorithm& algorithm = *coll::find_algorithm(call.problem.collective, call.algorithm);
  if (!played.play(coll::build(builder, algorithm, call.problem, {}), call.own, &exchange)) return give_up();
  if (!gets) exchange.buffer = nullptr, exchange.buffer_bytes = 0;
  const engine::Outcome outcome = run(exchange, bytes);
  if (!gets) return outcome;
  if (outcome.path != Path::deferred)
    call.receive.unpack();
  else if (exchange.gapped != nullptr)
    call.receive.give_away_copy();
  return outcome;
}

engine::Outcome Overlap::bcast(const Region& buffer, int root, bool may_defer) {
  Played call(*this, "Bcast", Collective::bcast, kPipeline, root);
  if (!call.receive.start(one(buffer), 1)) return give_up();
  call.problem.count = call.receive.bytes();
  return play(call, state_->rank != root, call.problem.count, may_defer);
}

engine::Outcome Overlap::reduce(const engine::KernelArgs& vector, const engine::KernelOp& reduction, int root,
                                bool may_defer) {
  Played call(*this, "Reduce", Collective::reduce, kPipeline, root);
  return combine(call, vector, reduction, state_->rank == root, may_defer);
}

engine::Outcome Overlap::allreduce(const engine::KernelArgs& vector, const engine::KernelOp& reduction,
                                   bool may_defer) {
  Played call(*this, "Allreduce", Collective::allreduce, kPipeline);
  struct Combined {
    Overlap& by;
    const engine::KernelOp& reduction;
  } ends{*this, reduction};
  std::uint64_t end_bytes = 0;
  if (VectorEnds::has(vector.bytes)) {
    if (!ends_.prepare(state_->rank, state_->size)) return give_up();
    ends_.pack(vector.own, vector.bytes);
    end_bytes = VectorEnds::kBytes;
    call.ends.context = &ends;
    call.ends.bring = [](void* context, const overlap::Ends::Wait& wait) {
      auto& all = *static_cast<Combined*>(context);
      const Status status = all.by.ends_.combine(all.reduction, all.by.next_, wait);
      return status == Status::ok ? all.by.ends_.result() : nullptr;
    };
    call.ends.blocks[0] = {0, end_bytes};
    call.ends.blocks[1] = {vector.bytes - end_bytes, end_bytes};
  }
  Array<std::uint64_t> begins;
  if (!deal_to_nodes(end_bytes, vector.bytes - end_bytes, &begins)) return give_up();
  call.problem.begins = begins.data();
  return combine(call, vector, reduction, true, may_defer);
}

// The last member of each node on the ring owns a part.
bool Overlap::deal_to_nodes(std::uint64_t begin, std::uint64_t end, Array<std::uint64_t>* begins) const {
  constexpr std::uint64_t kGrain = 64;  // no element is cut
  const int size = state_->size;
  const auto is_last = [&](int i) { return i + 1 == size || nodes_[ring_jobs_[i]] != nodes_[ring_jobs_[i + 1]]; };
  int nodes = 0, node = 0;
  for (int i = 0; i < size; ++i) nodes += is_last(i) ? 1 : 0;
  const coll::Parts parts = coll::Parts::deal({coll::Buffer::send, 0, end - begin}, nodes, nodes, kGrain);
  for (int i = 0; i <= size; ++i) {
    begins->push(begin + parts.begin(node));
    if (i < size && is_last(i)) ++node;
  }
  return !begins->failed();
}

engine::Outcome Overlap::combine(Played& call, const engine::KernelArgs& vector, const engine::KernelOp& reduction,
                                 bool gets, bool may_defer) {
  if (!call.send.start(one(plain(vector.own, vector.bytes)), 1)) return give_up();
  if (gets && !call.receive.start(one(plain(vector.out, vector.bytes)), 1)) return give_up();
  call.problem.count = vector.bytes;
  call.problem.in_place = gets && vector.own == vector.out;
  call.fold = {reduction.fold, reduction.element_bytes};
  return play(call, gets, vector.bytes, may_defer);
}

// What a rank contributes is copied before anything comes. So it may lie where the result goes.
engine::Outcome Overlap::reduce_scatter(const engine::KernelArgs& vector, const engine::KernelOp& reduction,
                                        const std::uint64_t* begins, bool may_defer) {
  Played call(*this, "Reduce_scatter", Collective::reduce_scatter, kPipeline);
  Array<std::uint64_t> lengths;
  for (int r = 0; r < state_->size; ++r) lengths.push(begins[r + 1] - begins[r]);
  if (lengths.failed()) return give_up();
  const Blocks parts{const_cast<char*>(vector.own), &kPlainByte, 0, lengths.data(), begins, true};
  const std::uint64_t bytes = lengths[state_->rank];
  if (!call.send.start(parts, state_->size, ring_.data()) || !call.receive.start(one(plain(vector.out, bytes)), 1))
    return give_up();
  call.problem.begins = call.send.begins();
  call.fold = {reduction.fold, reduction.element_bytes};
  return play(call, bytes != 0, bytes, may_defer);
}

// An Exscan sends what a Scan sends. Its buffer gets what comes, without this rank's part.
engine::Outcome Overlap::scan(const engine::KernelArgs& vector, const engine::KernelOp& reduction, bool exclusive,
                              bool may_defer) {
  Played call(*this, exclusive ? "Exscan" : "Scan", Collective::scan, kPipeline);
  const bool is_first = state_->rank == 0;
  if (is_first && !exclusive && vector.out != vector.own) std::memcpy(vector.out, vector.own, vector.bytes);
  if (!call.send.start(one(plain(vector.own, vector.bytes)), 1)) return give_up();
  if (!is_first && !call.receive.start(one(plain(vector.out, vector.bytes)), 1)) return give_up();
  call.problem.count = vector.bytes;
  call.fold = {reduction.fold, reduction.element_bytes, !exclusive};
  return play(call, !is_first, vector.bytes, may_defer);
}

engine::Outcome Overlap::gather(const Region& send, const Blocks& receive, int root, bool in_place, bool may_defer) {
  Played call(*this, "Gather", Collective::gather, "flat", root);
  const bool is_root = state_->rank == root;
  if (is_root && !in_place) region_copy(receive.at(root), send);
  if (!(is_root ? call.receive.start(receive, state_->size) : call.send.start(one(send), 1))) return give_up();
  call.own = root;
  call.problem.in_place = is_root;
  call.problem.count = call.send.bytes();
  call.problem.begins = call.receive.begins();
  return play(call, is_root, call.send.bytes() + call.receive.bytes(), may_defer);
}

engine::Outcome Overlap::scatter(const Blocks& send, const Region& receive, int root, bool in_place, bool may_defer) {
  Played call(*this, "Scatter", Collective::scatter, "flat", root);
  const bool is_root = state_->rank == root;
  if (is_root && !in_place) region_copy(receive, send.at(root));
  if (!(is_root ? call.send.start(send, state_->size) : call.receive.start(one(receive), 1))) return give_up();
  call.problem.in_place = is_root;
  call.problem.count = call.receive.bytes();
  call.problem.begins = call.send.begins();
  return play(call, !is_root, call.send.bytes() + call.receive.bytes(), may_defer);
}

engine::Outcome Overlap::allgather(const Region& send, const Blocks& receive, bool in_place, bool may_defer) {
  Played call(*this, "Allgather", Collective::allgather, kPipeline);
  if (!in_place) region_copy(receive.at(state_->rank), send);
  if (!call.receive.start(receive, state_->size, ring_.data())) return give_up();
  call.own = call.problem.rank;
  call.problem.in_place = true;
  call.problem.begins = call.receive.begins();
  return play(call, true, call.receive.bytes(), may_defer);
}

engine::Outcome Overlap::alltoall(const Blocks& send, const Blocks& receive, bool in_place, bool may_defer) {
  Played call(*this, "Alltoall", Collective::alltoall, "linear");
  if (!in_place) region_copy(receive.at(state_->rank), send.at(state_->rank));
  // In place, what comes would overwrite what is to be sent.
  if (!call.receive.start(receive, state_->size) ||
      !call.send.start(in_place ? receive : send, state_->size, nullptr, in_place))
    return give_up();
  call.own = state_->rank;
  call.problem.begins = call.receive.begins();
  call.problem.sent_begins = call.send.begins();
  return play(call, true, call.receive.bytes(), may_defer);
}

}  // namespace stretto::mpi
