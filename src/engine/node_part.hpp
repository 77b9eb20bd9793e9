// SPDX-License-Identifier: BSD-3-Clause
// The node's part of a call by schedule that goes level by level (coll/hierarchy), where the ranks
// of the node have tiers (topo/groups.hpp). They bring what they have to the rank that leads the
// node, and get the result from it, over boards and tiers as in a call on one node. The leaders
// alone run a schedule, of the levels above the node:
//
//   barrier, allreduce   up, the leaders' schedule, down
//   reduce               up, the leaders' schedule
//   bcast                the leaders' schedule, down; on the root's node the other way round
//
// Each of the three is a call of the node's team, on all its ranks. A node without tiers goes by
// messages below the leaders' levels. Leaders send each other the same either way, so what one node
// does is no other node's affair, and its ranks have agreed on it (comm_create).
//
// No rank waits for ever. Going up, and down on the root's node, ranks wait for ranks of their node
// in the same part. Leaders wait for leaders, and ranks going down for their leader's schedule. A
// rank that fails going up gives that up, and refuses the leaders' schedule. A leader that has
// failed sends poison down.
#pragma once
#include "base/array.hpp"
#include "engine/scheduled.hpp"

namespace stretto::shm {
class Call;
struct CallDescriptor;
}  // namespace stretto::shm

namespace stretto::engine {

class NodePart {
 public:
  // `node`: the members on this node, which have these ranks, in ascending order. The communicator
  // stays. False: no memory.
  bool join(Comm& node, const int* ranks);
  // Whether the node has tiers.
  [[nodiscard]] bool able() const;
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  // Whether it can make the node's part of this call, if the call splits there.
  [[nodiscard]] bool serves(const Scheduled& call) const;

  // What this rank does of a call, whose node `leader` leads, a rank of the communicator.
  struct Part {
    const Scheduled& call;
    int leader;
    Status status = Status::ok;
    std::uint64_t bytes = 0;  // sent and received
    int lost = -1;            // a rank of the communicator that has ended
  };
  // Combines the node's contributions at the leader: in the call's target, or else in sum().
  void up(Part& part);
  // The leader's target goes to all others; poison if the part has failed at the leader.
  void down(Part& part);
  // Where a leader without a target has its node's sum.
  [[nodiscard]] const char* sum() const { return sum_.data(); }

 private:
  template <class Body>
  void call_as(Part& part, Collective collective, const shm::CallDescriptor& descriptor, const Body& body);
  [[nodiscard]] int index_of(int rank) const;
  [[nodiscard]] Status failure_of(int leader) const;

  Comm* node_ = nullptr;
  Array<int> ranks_;
  Array<char> sum_;
};

}  // namespace stretto::engine
