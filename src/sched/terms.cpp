// SPDX-License-Identifier: BSD-3-Clause
#include "sched/terms.hpp"

#include <algorithm>

namespace stretto::sched {
namespace {

std::size_t scatter(std::uint64_t key) {
  key ^= key >> 32;
  key *= 0x9e3779b97f4a7c15u;
  return static_cast<std::size_t>(key ^ key >> 29);
}

}  // namespace

void PairMap::clear() {
  ++round_;
  used_ = 0;
  if (round_ != 0) return;
  places_.assign(places_.size(), {0, 0, 0});
  round_ = 1;
}

std::uint32_t& PairMap::at(std::uint64_t key, bool* fresh) {
  if (2 * (used_ + 1) > places_.size()) grow();
  const std::size_t mask = places_.size() - 1;
  std::size_t i = scatter(key) & mask;
  while (places_[i].round == round_ && places_[i].key != key) i = (i + 1) & mask;
  *fresh = places_[i].round != round_;
  if (*fresh) {
    places_[i] = {key, 0, round_};
    ++used_;
  }
  return places_[i].value;
}

void PairMap::grow() {
  std::vector<Place> old(places_.empty() ? 1024 : 2 * places_.size(), Place{0, 0, 0});
  old.swap(places_);
  const std::size_t mask = places_.size() - 1;
  for (const Place& place : old) {
    if (place.round != round_) continue;
    std::size_t i = scatter(place.key) & mask;
    while (places_[i].round == round_) i = (i + 1) & mask;
    places_[i] = place;
  }
}

void Terms::start(int ranks, bool commutative) {
  commutative_ = commutative;
  terms_.assign(1, {0, 0});
  intervals_.clear();
  for (int r = 0; r < ranks; ++r) {
    terms_.push_back({static_cast<std::uint32_t>(r), 1});
    intervals_.push_back({r, r + 1});
  }
  combined_.clear();
  united_.clear();
}

Terms::Id Terms::combine(Id left, Id right) {
  if (commutative_ && right < left) std::swap(left, right);
  bool fresh;
  std::uint32_t& known = combined_.at(static_cast<std::uint64_t>(left) << 32 | right, &fresh);
  if (fresh) {
    const bool in_order = commutative_ || bounds(left).second == bounds(right).first;
    known = in_order ? make(left, right, false) : kBad;
  }
  return known;
}

Terms::Id Terms::unite(Id left, Id right) {
  if (left == right || right == kUndefined) return left;
  if (left == kUndefined) return right;
  if (right < left) std::swap(left, right);
  bool fresh;
  std::uint32_t& known = united_.at(static_cast<std::uint64_t>(left) << 32 | right, &fresh);
  if (fresh) known = make(left, right, true);
  return known;
}

Terms::Id Terms::make(Id left, Id right, bool may_share) {
  const Term a = terms_[left];
  const Term b = terms_[right];
  const auto first = static_cast<std::uint32_t>(intervals_.size());
  std::uint32_t i = 0;
  std::uint32_t j = 0;
  while (i < a.count || j < b.count) {
    const bool from_a =
        j == b.count || (i < a.count && intervals_[a.intervals + i].first <= intervals_[b.intervals + j].first);
    const Interval next = from_a ? intervals_[a.intervals + i++] : intervals_[b.intervals + j++];
    if (intervals_.size() == first || intervals_.back().last < next.first) {
      intervals_.push_back(next);
      continue;
    }
    if (intervals_.back().last > next.first && !may_share) {
      intervals_.resize(first);
      return kBad;
    }
    intervals_.back().last = std::max(intervals_.back().last, next.last);
  }
  terms_.push_back({first, static_cast<std::uint32_t>(intervals_.size()) - first});
  return static_cast<Id>(terms_.size()) - 1;
}

bool Terms::is_exactly(Id term, int first, int last) const {
  const Term& t = terms_[term];
  return t.count == 1 && intervals_[t.intervals].first == first && intervals_[t.intervals].last == last;
}

std::pair<int, int> Terms::bounds(Id term) const {
  const Term& t = terms_[term];
  return {intervals_[t.intervals].first, intervals_[t.intervals + t.count - 1].last};
}

}  // namespace stretto::sched
