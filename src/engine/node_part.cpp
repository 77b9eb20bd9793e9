// SPDX-License-Identifier: BSD-3-Clause
#include "engine/node_part.hpp"

#include <algorithm>

#include "base/tuning.hpp"
#include "coll/shm/collectives.hpp"
#include "coll/shm/reduce.hpp"
#include "engine/process.hpp"
#include "shm/call_check.hpp"

namespace stretto::engine {
namespace {

// Of a barrier.
constexpr KernelOp kNothing{[](void*, const void*, const void*, std::size_t) {}, 1, shm::CallDescriptor::kUserOp};

std::uint64_t bytes_of(const Scheduled& call) { return call.problem.count * call.unit_bytes; }

coll_shm::Selection usual(const Comm& node) { return {nullptr, node.tier_choice}; }

}  // namespace

bool NodePart::join(Comm& node, const int* ranks) {
  node_ = &node;
  const auto size = static_cast<std::size_t>(comm_size(node));
  if (!ranks_.resize(size, 0)) return false;
  std::copy_n(ranks, size, ranks_.data());
  return node.tiers == nullptr || sum_.resize(kTuning.tiers_reduce_bytes, 0);
}

bool NodePart::able() const { return node_ != nullptr && node_->tiers != nullptr; }

bool NodePart::serves(const Scheduled& call) const {
  if (bytes_of(call) > kTuning.tiers_reduce_bytes) return false;
  return !is_reduction(call.problem.collective) || (call.kernel != nullptr && call.problem.commutative);
}

int NodePart::index_of(int rank) const {
  return static_cast<int>(std::lower_bound(ranks_.begin(), ranks_.end(), rank) - ranks_.begin());
}

// The progress lines tell peers that wait whether a rank has done its part before it ended.
template <class Body>
void NodePart::call_as(Part& part, Collective collective, const shm::CallDescriptor& descriptor, const Body& body) {
  shm::MemberCalls& calls = node_->team->calls();
  shm::Call call(*node_->team, collective, descriptor);
  calls.begin(call.number(), 0);
  body(call);
  const Status failed = call.status();
  if (failed != Status::ok) {
    if (failed == Status::peer_gone) part.lost = ranks_[static_cast<std::size_t>(call.mismatch().rank)];
    const bool lost = failed == Status::peer_lost || failed == Status::peer_gone;
    node_->team->give_up(call.number(), lost ? shm::GivenUp::lost : shm::GivenUp::failed);
    node_->team->set_troubled();
    if (part.status == Status::ok) part.status = failed;
  }
  calls.end(call.number(), 0);
  part.bytes += call.bytes();
}

// Of a leader that has sent poison: it has given up the part before this one, and has said why.
Status NodePart::failure_of(int leader) const {
  const shm::MemberCalls& calls = node_->team->calls();
  const Status why = calls.given_up(leader, calls.made() - 1);
  return why == Status::ok ? Status::peer_failed : why;
}

void NodePart::up(Part& part) {
  const Scheduled& call = part.call;
  const bool has_target = call.problem.collective == Collective::allreduce ||
                          (call.problem.collective == Collective::reduce && call.problem.rank == call.problem.root);
  const bool in_place = has_target && call.problem.in_place;
  const KernelArgs vector = {in_place ? call.receive : call.send, has_target ? call.receive : sum_.data(),
                             bytes_of(call)};
  const bool is_barrier = call.problem.collective == Collective::barrier;
  const KernelOp& operation = is_barrier ? kNothing : *call.kernel;
  const int root = index_of(part.leader);
  call_as(part, Collective::reduce, {vector.bytes, root, operation.op, operation.element}, [&](shm::Call& shared) {
    coll_shm::reduce(shared, is_barrier ? KernelArgs{} : vector, operation, root, usual(*node_));
  });
}

void NodePart::down(Part& part) {
  const Region result = plain(part.call.receive, bytes_of(part.call));
  const int root = index_of(part.leader);
  const bool good = part.status == Status::ok;
  call_as(part, Collective::bcast, {result.bytes(), root, 0, 0, good},
          [&](shm::Call& shared) { coll_shm::bcast(shared, result, root, good, usual(*node_)); });
  if (good && part.status == Status::peer_failed) part.status = failure_of(root);
}

}  // namespace stretto::engine
