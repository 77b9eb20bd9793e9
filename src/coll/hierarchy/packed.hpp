// SPDX-License-Identifier: BSD-3-Clause
// One part for each rank, packed in the order of the tree of groups: the parts under any group lie
// together. Where that order is the rank order, the caller's buffer is packed already. A leader
// that does not have the whole buffer keeps the parts under the highest group that it leads.
#pragma once
#include "coll/algorithm.hpp"
#include "topo/hierarchy.hpp"

namespace stretto::coll {

class Packed {
 public:
  // `whole`: this rank keeps all parts, in the buffer of `parts` if that is in order. `top_led`:
  // the highest group that it leads; -1: none.
  Packed(Builder& builder, const topo::Hierarchy& hierarchy, const Parts& parts, bool whole, int top_led)
      : builder_(builder), hierarchy_(hierarchy), parts_(parts), whole_(whole), top_led_(top_led) {
    if (!whole) return;
    in_order_ = hierarchy.keeps_rank_order();
    memory_ = in_order_ ? parts.all() : builder.scratch(parts.total());
  }

  // The parts under a group, one for each member. If this rank leads there, they are in its memory;
  // otherwise `parts` has lengths only. False: no memory.
  bool parts_of(int group, Parts* parts) {
    Array<std::uint64_t>& begins = begins_[level_count_++];
    const int first = hierarchy_.order_begin(group);
    int position = first;
    begins.push(0);
    for (int i = 0; i < hierarchy_.members(group); ++i) {
      const int end = position + hierarchy_.under_member(group, i);
      begins.push(begins.back() + units(position, end));
      position = end;
    }
    if (begins.failed()) return false;
    *parts = Parts::given(Buffer::scratch, hierarchy_.members(group), begins.data());
    if (whole_ || leads(group)) *parts = parts->moved_to(place(first, position));
    return true;
  }
  // Where the parts under a group that this rank leads are in its memory; of_rank() is the same for
  // one rank.
  Slice of_group(int group) {
    const int first = hierarchy_.order_begin(group);
    return place(first, first + hierarchy_.under(group));
  }
  Slice of_rank(int rank) {
    const int position = hierarchy_.position(rank);
    return place(position, position + 1);
  }
  [[nodiscard]] Slice all() const { return memory_; }

  // Copies from the caller's order to this one, and back. Copies nothing if they are the same.
  Slice pack(const Parts& from) {
    if (!in_order_) each_rank([&](int rank, Slice here) { builder_.copy(from.at(rank), here); });
    return memory_;
  }
  void unpack(Slice mine, const Parts& to) {
    builder_.copy(mine, memory_);  // of a lone rank
    if (!in_order_) each_rank([&](int rank, Slice here) { builder_.copy(here, to.at(rank)); });
  }

 private:
  [[nodiscard]] bool leads(int group) const {
    if (top_led_ < 0) return false;
    const int at = hierarchy_.order_begin(group);
    return at >= hierarchy_.order_begin(top_led_) &&
           at + hierarchy_.under(group) <= hierarchy_.order_begin(top_led_) + hierarchy_.under(top_led_);
  }
  [[nodiscard]] std::uint64_t units(int first, int end) const {
    if (!parts_.begins) return parts_.each * static_cast<std::uint64_t>(end - first);
    std::uint64_t units = 0;
    for (int i = first; i < end; ++i) units += parts_.at(hierarchy_.order()[i]).length;
    return units;
  }
  Slice place(int first, int end) {
    const int origin = whole_ ? 0 : hierarchy_.order_begin(top_led_);
    if (!whole_ && memory_.length == 0) memory_ = builder_.scratch(units(origin, origin + hierarchy_.under(top_led_)));
    return memory_.part(units(origin, first), units(first, end));
  }
  template <class Visit>
  void each_rank(Visit visit) {
    std::uint64_t at = 0;
    for (const int rank : hierarchy_.order()) {
      const std::uint64_t length = parts_.at(rank).length;
      visit(rank, memory_.part(at, length));
      at += length;
    }
  }

  Builder& builder_;
  const topo::Hierarchy& hierarchy_;
  const Parts parts_;
  bool whole_;
  int top_led_;
  bool in_order_ = false;
  Slice memory_{Buffer::scratch, 0, 0};
  Array<std::uint64_t> begins_[2 * (topo::kMostLevels + 1)];
  int level_count_ = 0;
};

}  // namespace stretto::coll
