// SPDX-License-Identifier: BSD-3-Clause
// Where one member of a gather or scatter by a k-nomial tree keeps the parts of its subtree. The
// root has them in its buffer, in the members' order, which begins somewhere inside the tree. An
// inner member has them packed in the schedule's own memory. A leaf has its own part only. What the
// root sends or receives is cut where its buffer's order begins again.
#pragma once
#include "coll/algorithm.hpp"
#include "coll/shape/tree.hpp"

namespace stretto::coll {

class Subtree {
 public:
  // `own` is this member's part outside of `parts`, in the caller's buffer.
  Subtree(Builder& builder, const Group& places, const Tree& tree, const Ring& parts, Slice own)
      : places_(places), tree_(tree), parts_(parts), own_(own), packed_(own) {
    const int end = tree.subtree_end(places.me);
    if (places.me == 0) {
      parts_.each_piece(0, 1, [&](Slice part) { packed_ = part; });
    } else if (end > places.me + 1) {
      packed_ = builder.scratch(parts.before(end) - parts.before(places.me));
    }
  }

  [[nodiscard]] bool is_root() const { return places_.me == 0; }
  [[nodiscard]] bool is_leaf() const { return !is_root() && packed_ == own_; }
  [[nodiscard]] int parent() const { return tree_.parent(places_.me); }
  // Where this member's own part lies among those of the subtree.
  [[nodiscard]] Slice own_part() const { return is_root() || is_leaf() ? packed_ : packed_.part(0, own_.length); }

  // Visits the messages of a subtree, between `place` and its parent. `place` is this member's or
  // its child's.
  template <class Visit>
  void each_message(int place, Visit visit) const {
    const int end = tree_.subtree_end(place);
    if (is_root()) return parts_.each_piece(place, end, visit);
    if (is_leaf()) return visit(own_);
    const Slice whole =
        packed_.part(parts_.before(place) - parts_.before(places_.me), parts_.before(end) - parts_.before(place));
    if (tree_.parent(place) != 0) return visit(whole);
    std::uint64_t at = 0;
    parts_.each_piece(place, end, [&](Slice piece) {
      visit(whole.part(at, piece.length));
      at += piece.length;
    });
  }

 private:
  const Group& places_;
  const Tree& tree_;
  const Ring& parts_;
  Slice own_;
  Slice packed_;
};

}  // namespace stretto::coll
