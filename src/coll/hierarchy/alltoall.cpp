// SPDX-License-Identifier: BSD-3-Clause
// Alltoall over nodes, by carriers or in turn.
//
// By carriers, all that one node's ranks have for another node travels in one message. Every rank
// of a node is the carrier for some of the other nodes. The carrier collects what the ranks of its
// node have for them, sends it, and hands out what comes back.
//
// Cost, for N nodes of n ranks and parts of m units. Between nodes each rank sends N / n messages
// of n^2 m; without carriers it sends N n of m. Within the node each rank sends 2 N messages of n
// m, and the carrier copies what arrives. Wins for short parts. Equal parts only: no rank knows the
// lengths of others' parts.
//
// In turn, every part is sent once, straight to its rank. All ranks of a node first serve the next
// node, then the one behind it, with few exchanges in flight. So a node's port receives from one
// node at a time, whatever the order of ranks on nodes. Wins for long parts, and for parts of
// different lengths, on networks that lose what too many senders have for one port at once.
//
// After Bienz, Gropp, Olson 2019 (node-aware communication).
#include <algorithm>

#include "coll/hierarchy/composition.hpp"
#include "coll/phase/window.hpp"

namespace stretto::coll {
namespace {

// The nodes, numbered from 0, and this rank's place on its own.
class Nodes {
 public:
  explicit Nodes(Composition& c)
      : c_(c),
        nodes_(c.hierarchy.groups_on(c.plan.node_level)),
        home_(node(c.levels.group(c.plan.node_level) - c.hierarchy.group_on(c.plan.node_level, 0))),
        me_(c.hierarchy.position(c.problem.rank) - home_.begin) {}

 protected:
  struct Node {
    int number, begin, size;
    bool neighbours;  // its ranks are numbered one after the other
  };
  [[nodiscard]] Node node(int number) const {
    const int group = c_.hierarchy.group_on(c_.plan.node_level, number);
    Node n{number, c_.hierarchy.order_begin(group), c_.hierarchy.under(group), true};
    for (int i = 1; i < n.size; ++i) n.neighbours = n.neighbours && rank(n, i) == rank(n, 0) + i;
    return n;
  }
  [[nodiscard]] int rank(const Node& n, int i) const {
    return c_.hierarchy.order()[static_cast<std::size_t>(n.begin + i)];
  }

  Composition& c_;
  int nodes_;
  Node home_;
  int me_;  // among the ranks of the node
};

class InTurn : Nodes {
 public:
  explicit InTurn(Composition& c) : Nodes(c) {
    for (int i = 0; i < nodes_; ++i) most_ = std::max(most_, node(i).size);
  }

  void run(Window&& window) {
    c_.b.copy(c_.whole.ins.at(c_.problem.rank), c_.whole.outs.at(c_.problem.rank));
    for (int distance = 0; distance < nodes_; ++distance) {
      const Node to = node((home_.number + distance) % nodes_);
      const Node from = node((home_.number + nodes_ - distance) % nodes_);
      for (int turn = distance == 0 ? 1 : 0; turn < most_; ++turn) {
        const int target = (me_ + turn) % most_, source = (me_ + most_ - turn) % most_;
        const std::uint64_t sent = target < to.size ? c_.whole.ins.at(rank(to, target)).length : 0;
        const std::uint64_t received = source < from.size ? c_.whole.outs.at(rank(from, source)).length : 0;
        window.admit([&] { return send(to, target); }, [&] { return receive(from, source); }, std::max(sent, received));
      }
    }
  }

 private:
  // Nodes of fewer ranks have nothing to do in some turns.
  sched::StepId send(const Node& to, int i) {
    return i < to.size ? c_.b.send(rank(to, i), c_.whole.ins.at(rank(to, i))) : sched::kNoStep;
  }
  sched::StepId receive(const Node& from, int i) {
    return i < from.size ? c_.b.recv(rank(from, i), c_.whole.outs.at(rank(from, i))) : sched::kNoStep;
  }

  int most_ = 1;  // ranks of a node
};

class Carriers : Nodes {
 public:
  explicit Carriers(Composition& c) : Nodes(c), part_(c.whole.ins.each) {}

  void run() {
    // One box for each other node. It has a length only where this rank is the carrier.
    Array<Slice> boxes;
    within_node();
    each_node([&](const Node& to) { boxes.push(collect(to)); });
    if (boxes.failed()) return c_.b.fail();
    std::size_t next = 0;
    each_node([&](const Node& to) {
      Slice& box = boxes[next++];
      if (is_carrier(to)) box = exchange(to, box);
    });
    next = 0;
    each_node([&](const Node& from) { hand_out(from, boxes[next++]); });
  }

 private:
  // The carrier of node `at` for traffic with node `other`.
  [[nodiscard]] static int carrier(const Node& at, const Node& other) { return other.number % at.size; }
  [[nodiscard]] bool is_carrier(const Node& other) const { return carrier(home_, other) == me_; }
  // All other nodes, beginning with the next one.
  template <class Visit>
  void each_node(Visit visit) const {
    for (int distance = 1; distance < nodes_; ++distance) visit(node((home_.number + distance) % nodes_));
  }
  [[nodiscard]] std::uint64_t units(int parts) const { return part_ * static_cast<std::uint64_t>(parts); }

  void within_node() {
    c_.b.copy(c_.whole.ins.at(c_.problem.rank), c_.whole.outs.at(c_.problem.rank));
    for (int distance = 1; distance < home_.size; ++distance) {
      const int to = rank(home_, (me_ + distance) % home_.size);
      const int from = rank(home_, (me_ + home_.size - distance) % home_.size);
      c_.b.send(to, c_.whole.ins.at(to));
      c_.b.recv(from, c_.whole.outs.at(from));
    }
  }

  // What this rank has for a node, in the order of its ranks.
  Slice share_for(const Node& to) {
    if (to.neighbours) return c_.whole.ins.range(rank(to, 0), rank(to, 0) + to.size);
    const Slice packed = c_.b.scratch(units(to.size));
    for (int i = 0; i < to.size; ++i) c_.b.copy(c_.whole.ins.at(rank(to, i)), packed.part(units(i), part_));
    return packed;
  }
  // Collects what all ranks of this node have for another, at its carrier: by sender, then
  // receiver.
  Slice collect(const Node& to) {
    const Slice mine = share_for(to);
    if (!is_carrier(to)) {
      c_.b.send(rank(home_, carrier(home_, to)), mine);
      return {};
    }
    const Slice box = c_.b.scratch(units(home_.size * to.size));
    for (int i = 0; i < home_.size; ++i) {
      const Slice place = box.part(units(i * to.size), mine.length);
      if (i == me_) {
        c_.b.copy(mine, place);
      } else {
        c_.b.recv(rank(home_, i), place);
      }
    }
    return box;
  }
  Slice exchange(const Node& with, Slice box) {
    const int peer = rank(with, carrier(with, home_));
    c_.b.send(peer, box);
    const Slice arrived = c_.b.scratch(box.length);
    c_.b.recv(peer, arrived);
    return arrived;
  }
  // Hands out the parts from another node. The carrier has them in `arrived`: by sender, then
  // receiver.
  void hand_out(const Node& from, Slice arrived) {
    if (!is_carrier(from)) return receive(from);
    for (int i = 0; i < home_.size; ++i) {
      const auto part = [&](int sender) { return arrived.part(units(sender * home_.size + i), part_); };
      if (i == me_) {
        for (int s = 0; s < from.size; ++s) c_.b.copy(part(s), c_.whole.outs.at(rank(from, s)));
        continue;
      }
      const Slice packed = c_.b.scratch(units(from.size));
      for (int s = 0; s < from.size; ++s) c_.b.copy(part(s), packed.part(units(s), part_));
      c_.b.send(rank(home_, i), packed);
    }
  }
  void receive(const Node& from) {
    const int peer = rank(home_, carrier(home_, from));
    if (from.neighbours) {
      c_.b.recv(peer, c_.whole.outs.range(rank(from, 0), rank(from, 0) + from.size));
      return;
    }
    const Slice packed = c_.b.scratch(units(from.size));
    c_.b.recv(peer, packed);
    for (int s = 0; s < from.size; ++s) c_.b.copy(packed.part(units(s), part_), c_.whole.outs.at(rank(from, s)));
  }

  std::uint64_t part_;
};

// What a rank may have in flight. Many short parts hide each other's way through the network. Of
// long ones, two keep a port busy from one exchange to the next. Ranks that know other lengths take
// other windows. All the same, the first turn that is not complete anywhere is under way at both of
// its ends.
constexpr std::uint64_t kInFlightBytes = 32 << 10;

}  // namespace

void compose_alltoall(Composition& c) {
  const int top = c.levels.top();
  if (c.plan.node_level >= top) return compose_flat(c);
  const Algorithm* const chosen = c.plan.choices[static_cast<int>(Collective::alltoall)][top].algorithm;
  if (chosen && chosen == find_algorithm(Collective::alltoall, "pairwise")) return InTurn(c).run(Window(c.b, 1));
  if (chosen && chosen == find_algorithm(Collective::alltoall, "linear")) return InTurn(c).run(Window(c.b, 0));
  const bool equal = c.problem.collective == Collective::alltoall && !c.whole.ins.begins && !c.whole.outs.begins;
  equal ? Carriers(c).run() : InTurn(c).run(Window::of_units(c.b, kInFlightBytes));
}

}  // namespace stretto::coll
