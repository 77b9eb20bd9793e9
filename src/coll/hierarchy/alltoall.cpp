// SPDX-License-Identifier: BSD-3-Clause
// Alltoall over nodes, by carriers or in turn.
//
// By carriers, all that one node's ranks have for another node travels in one message. Every rank
// of a node is the carrier for some of the other nodes. The carrier collects what the ranks of its
// node have for them, sends it, and hands out what comes back.
//
// Cost, for N nodes of n ranks and parts of m units. Between nodes each rank sends N / n messages
// of n^2 m; without carriers it sends N n of m. Within the node each rank sends 2 N messages of n
// m, and the carrier copies what arrives. Wins for short parts.
//
// Parts of different lengths go so, too, once the ranks of each node have told its carriers their
// lengths (nodes.hpp). Only parts of up to `plan.most_carried` units do; longer ones go in turn.
// Both ends of a part know its length, so both know which way it goes. Where nodes have nothing
// short for each other, no message goes. Each message begins with a number for the lengths of all
// parts (LengthsDigest), which the carrier finds in its check words in the end, next to its own.
//
// In turn, every part is sent once, straight to its rank. All ranks of a node first serve the next
// node, then the one behind it, with few exchanges in flight. So a node's port receives from one
// node at a time, whatever the order of ranks on nodes. Wins for long parts, and for parts of
// different lengths, on networks that lose what too many senders have for one port at once.
//
// After Bienz, Gropp, Olson 2019 (node-aware communication).
#include <algorithm>
#include <utility>

#include "coll/hierarchy/composition.hpp"
#include "coll/hierarchy/nodes.hpp"
#include "coll/phase/window.hpp"

namespace stretto::coll {
namespace {

using Node = Nodes::Node;

constexpr std::uint64_t kCheckUnits = sizeof(std::uint64_t);

Nodes nodes_of(const Composition& c) { return {c.hierarchy, c.plan.node_level, c.problem.rank}; }

// The parts within a node, straight.
void exchange_within(Composition& c, const Nodes& nodes) {
  const Node& home = nodes.home();
  c.b.copy(c.whole.ins.at(c.problem.rank), c.whole.outs.at(c.problem.rank));
  for (int distance = 1; distance < home.size; ++distance) {
    const int to = nodes.rank(home, (nodes.me() + distance) % home.size);
    const int from = nodes.rank(home, (nodes.me() + home.size - distance) % home.size);
    c.b.send(to, c.whole.ins.at(to));
    c.b.recv(from, c.whole.outs.at(from));
  }
}

class InTurn {
 public:
  InTurn(Composition& c, const Nodes& nodes) : c_(c), nodes_(nodes) {
    for (int i = 0; i < nodes_.count(); ++i) most_ = std::max(most_, nodes_.node(i).size);
  }

  // All parts.
  void run(Window&& window) {
    c_.b.copy(c_.whole.ins.at(c_.problem.rank), c_.whole.outs.at(c_.problem.rank));
    for (int turn = 1; turn < most_; ++turn) take(window, nodes_.home(), nodes_.home(), turn);
    between_nodes(window, 0);
  }
  // Those of more than `carried` units, of ranks on other nodes.
  void between_nodes(Window& window, std::uint64_t carried) {
    carried_ = carried;
    for (int distance = 1; distance < nodes_.count(); ++distance) {
      const Node to = nodes_.behind(distance), from = nodes_.before(distance);
      for (int turn = 0; turn < most_; ++turn) take(window, to, from, turn);
    }
  }

 private:
  // Nodes of fewer ranks have nothing to do in some turns.
  void take(Window& window, const Node& to, const Node& from, int turn) {
    const int target = peer(to, (nodes_.me() + turn) % most_);
    const int source = peer(from, (nodes_.me() + most_ - turn) % most_);
    const Slice sent = part(c_.whole.ins, target), received = part(c_.whole.outs, source);
    window.admit([&] { return c_.b.send(target, sent); }, [&] { return c_.b.recv(source, received); },
                 std::max(sent.length, received.length));
  }
  [[nodiscard]] int peer(const Node& node, int i) const { return i < node.size ? nodes_.rank(node, i) : -1; }
  [[nodiscard]] Slice part(const Parts& parts, int of) const {
    const Slice whole = of >= 0 ? parts.at(of) : Slice{};
    return whole.length > carried_ ? whole : Slice{};
  }

  Composition& c_;
  const Nodes& nodes_;
  int most_ = 1;  // ranks of a node
  std::uint64_t carried_ = 0;
};

class Carriers {
 public:
  // `told`: what the ranks of this node have told. Null: all parts have one length.
  Carriers(Composition& c, const Nodes& nodes, const std::uint64_t* told)
      : c_(c),
        nodes_(nodes),
        home_(nodes.home()),
        told_(told),
        of_each_(told != nullptr ? nodes.words_told(nodes.me()) : 0),
        part_(c.whole.ins.each) {}

  void run() {
    // One box for each other node. It holds something only where this rank is the carrier.
    Array<Box> boxes;
    const std::uint64_t* words = told_;
    exchange_within(c_, nodes_);
    nodes_.each_other([&](const Node& to) {
      boxes.push(collect(to, words));
      if (words != nullptr && is_carrier(to)) words += 2 * to.size;
    });
    if (boxes.failed()) return c_.b.fail();
    std::size_t next = 0;
    nodes_.each_other([&](const Node& with) {
      Box& box = boxes[next++];
      if (is_carrier(with)) exchange(with, box);
    });
    next = 0;
    nodes_.each_other([&](const Node& from) { hand_out(from, boxes[next++]); });
  }

 private:
  // What the ranks of this node have for another one, then what that one has for them. Parts lie by
  // sender, then receiver.
  struct Box {
    const std::uint64_t* told;  // about parts to and from this node
    Slice parts;
  };

  [[nodiscard]] bool is_carrier(const Node& other) const { return Nodes::carrier(home_, other) == nodes_.me(); }
  [[nodiscard]] std::uint64_t carried(std::uint64_t length) const {
    return told_ == nullptr || length <= c_.plan.most_carried ? length : 0;
  }
  // How much of a part goes by carriers: all or nothing. From rank i of this node to rank x of
  // another one, and back.
  [[nodiscard]] std::uint64_t sent(const Box& box, const Node& to, int i, int x) const {
    if (i == nodes_.me()) return carried(c_.whole.ins.at(nodes_.rank(to, x)).length);
    return told_ == nullptr ? part_ : carried(box.told[static_cast<std::size_t>(i) * of_each_ + x]);
  }
  [[nodiscard]] std::uint64_t received(const Box& box, const Node& from, int x, int i) const {
    if (i == nodes_.me()) return carried(c_.whole.outs.at(nodes_.rank(from, x)).length);
    return told_ == nullptr ? part_ : carried(box.told[static_cast<std::size_t>(i) * of_each_ + from.size + x]);
  }
  [[nodiscard]] std::uint64_t share(const Box& box, const Node& to, int i) const {
    std::uint64_t units = 0;
    for (int x = 0; x < to.size; ++x) units += sent(box, to, i, x);
    return units;
  }
  // The parts of a node's ranks in the caller's buffer, if all of them are carried, and lie there
  // one behind the other.
  bool in_one_piece(const Parts& parts, const Node& of, std::uint64_t units, Slice* piece) const {
    if (!nodes_.has_neighbours(of)) return false;
    *piece = parts.range(nodes_.rank(of, 0), nodes_.rank(of, 0) + of.size);
    return piece->length == units;
  }

  // What this rank has for a node, in the order of its ranks.
  Slice share_for(const Box& box, const Node& to) {
    const std::uint64_t units = share(box, to, nodes_.me());
    Slice packed;
    if (in_one_piece(c_.whole.ins, to, units, &packed)) return packed;
    packed = c_.b.scratch(units);
    std::uint64_t at = 0;
    for (int x = 0; x < to.size; ++x) {
      const std::uint64_t length = sent(box, to, nodes_.me(), x);
      c_.b.copy(c_.whole.ins.at(nodes_.rank(to, x)).part(0, length), packed.part(at, length));
      at += length;
    }
    return packed;
  }
  // A place for parts of so many units in all, with a word in front if lengths were told.
  Slice box_of(std::uint64_t units) {
    return units == 0 ? Slice{} : c_.b.scratch((told_ != nullptr ? kCheckUnits : 0) + units);
  }
  [[nodiscard]] Slice parts_in(const Slice& box) const {
    return told_ == nullptr || box.length == 0 ? box : box.part(kCheckUnits, box.length - kCheckUnits);
  }
  // Collects what all ranks of this node have for another, at its carrier.
  Box collect(const Node& to, const std::uint64_t* told) {
    Box box{told, {}};
    const Slice mine = share_for(box, to);
    if (!is_carrier(to)) {
      c_.b.send(nodes_.rank(home_, Nodes::carrier(home_, to)), mine);
      return box;
    }
    std::uint64_t units = 0, at = 0;
    for (int i = 0; i < home_.size; ++i) units += share(box, to, i);
    box.parts = box_of(units);
    for (int i = 0; i < home_.size; ++i) {
      const Slice place = parts_in(box.parts).part(at, share(box, to, i));
      if (i == nodes_.me()) {
        c_.b.copy(mine, place);
      } else {
        c_.b.recv(nodes_.rank(home_, i), place);
      }
      at += place.length;
    }
    return box;
  }
  void exchange(const Node& with, Box& box) {
    const int peer = nodes_.rank(with, Nodes::carrier(with, home_));
    std::uint64_t units = 0;
    for (int x = 0; x < with.size; ++x) {
      for (int i = 0; i < home_.size; ++i) units += received(box, with, x, i);
    }
    const Slice arrived = box_of(units);
    const Slice words = c_.b.check(told_ != nullptr ? 2 * kCheckUnits : 0);
    const auto word = [&](int n) { return words.part(static_cast<std::uint64_t>(n) * kCheckUnits, kCheckUnits); };
    if (told_ != nullptr && box.parts.length != 0) c_.b.copy(word(0), box.parts.part(0, kCheckUnits));
    c_.b.send(peer, box.parts);
    c_.b.recv(peer, arrived);
    if (told_ != nullptr && arrived.length != 0) c_.b.copy(arrived.part(0, kCheckUnits), word(1));
    box.parts = parts_in(arrived);
  }
  // Hands out the parts from another node.
  void hand_out(const Node& from, const Box& box) {
    if (!is_carrier(from)) return receive(from, box);
    Array<std::uint64_t> begins;  // of the parts in the box
    std::uint64_t end = 0;
    for (int x = 0; x < from.size; ++x) {
      for (int i = 0; i < home_.size; ++i) {
        begins.push(end);
        end += received(box, from, x, i);
      }
    }
    if (begins.failed()) return c_.b.fail();
    for (int i = 0; i < home_.size; ++i) {
      const auto part = [&](int x) {
        return box.parts.part(begins[static_cast<std::size_t>(x * home_.size + i)], received(box, from, x, i));
      };
      if (i == nodes_.me()) {
        for (int x = 0; x < from.size; ++x) place(part(x), from, x);
        continue;
      }
      std::uint64_t units = 0, at = 0;
      for (int x = 0; x < from.size; ++x) units += part(x).length;
      const Slice packed = c_.b.scratch(units);
      for (int x = 0; x < from.size; ++x) {
        c_.b.copy(part(x), packed.part(at, part(x).length));
        at += part(x).length;
      }
      c_.b.send(nodes_.rank(home_, i), packed);
    }
  }
  void place(const Slice& part, const Node& from, int x) {
    c_.b.copy(part, c_.whole.outs.at(nodes_.rank(from, x)).part(0, part.length));
  }
  void receive(const Node& from, const Box& box) {
    const int peer = nodes_.rank(home_, Nodes::carrier(home_, from));
    std::uint64_t units = 0, at = 0;
    for (int x = 0; x < from.size; ++x) units += received(box, from, x, nodes_.me());
    Slice piece;
    if (in_one_piece(c_.whole.outs, from, units, &piece)) {
      c_.b.recv(peer, piece);
      return;
    }
    const Slice packed = c_.b.scratch(units);
    c_.b.recv(peer, packed);
    for (int x = 0; x < from.size; ++x) {
      const std::uint64_t length = received(box, from, x, nodes_.me());
      place(packed.part(at, length), from, x);
      at += length;
    }
  }

  Composition& c_;
  const Nodes& nodes_;
  const Node& home_;
  const std::uint64_t* told_;
  std::size_t of_each_;  // words that a rank has told
  std::uint64_t part_;   // of parts of one length
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
  const Nodes nodes = nodes_of(c);
  const Algorithm* const chosen = c.plan.choices[static_cast<int>(Collective::alltoall)][top].algorithm;
  const auto is_chosen = [&](const char* name) {
    return chosen != nullptr && chosen == find_algorithm(Collective::alltoall, name);
  };
  const bool equal = c.problem.collective == Collective::alltoall && !c.whole.ins.begins && !c.whole.outs.begins;
  const bool told = c.plan.form == Form::carriers && c.problem.told != nullptr;
  const bool pairwise = is_chosen("pairwise"), in_turn = pairwise || is_chosen("linear");
  if (equal && !in_turn) return Carriers(c, nodes, nullptr).run();
  Window window = in_turn ? Window(c.b, pairwise ? 1 : 0) : Window::of_units(c.b, kInFlightBytes);
  if (!told) return InTurn(c, nodes).run(std::move(window));
  Carriers(c, nodes, c.problem.told).run();
  InTurn(c, nodes).between_nodes(window, c.plan.most_carried);
}

}  // namespace stretto::coll
