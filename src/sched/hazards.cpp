// SPDX-License-Identifier: BSD-3-Clause
#include "sched/hazards.hpp"

namespace stretto::sched {

// Splays from the top down: the cells passed on the way go to a tree of smaller ones and one of
// larger ones.
std::uint32_t Hazards::splay(std::uint32_t root, std::uint64_t at) {
  if (root == kNone) return kNone;
  Cell ends{};  // its right: the smaller ones; its left: the larger ones
  ends.left = ends.right = kNone;
  std::uint32_t* smaller = &ends.right;
  std::uint32_t* larger = &ends.left;
  for (;;) {
    ++work_;
    Cell* top = &cells_[root];
    if (at < top->begin) {
      if (top->left == kNone) break;
      if (at < cells_[top->left].begin) {
        const std::uint32_t child = top->left;
        top->left = cells_[child].right;
        cells_[child].right = root;
        root = child;
        top = &cells_[root];
        if (top->left == kNone) break;
      }
      *larger = root;
      larger = &top->left;
      root = top->left;
    } else if (at >= top->end) {
      if (top->right == kNone) break;
      if (at >= cells_[top->right].end) {
        const std::uint32_t child = top->right;
        top->right = cells_[child].left;
        cells_[child].left = root;
        root = child;
        top = &cells_[root];
        if (top->right == kNone) break;
      }
      *smaller = root;
      smaller = &top->right;
      root = top->right;
    } else {
      break;
    }
  }
  *smaller = cells_[root].left;
  *larger = cells_[root].right;
  cells_[root].left = ends.right;
  cells_[root].right = ends.left;
  return root;
}

std::uint32_t Hazards::insert(const Cell& cell, bool behind_root) {
  std::uint32_t made = free_;
  if (made != kNone) {
    free_ = cells_[made].next;
  } else {
    made = static_cast<std::uint32_t>(cells_.size());
    if (!cells_.push(cell)) return kNone;
  }
  Cell& now = cells_[made] = cell;
  now.before = now.next = now.left = now.right = kNone;
  if (root_ != kNone) {
    Cell& root = cells_[root_];
    now.before = behind_root ? root_ : root.before;
    now.next = behind_root ? root.next : root_;
    now.left = behind_root ? root_ : root.left;
    now.right = behind_root ? root.right : root_;
    (behind_root ? root.right : root.left) = kNone;
  }
  if (now.before != kNone) cells_[now.before].next = made;
  if (now.next != kNone) cells_[now.next].before = made;
  return root_ = made;
}

std::uint32_t Hazards::cut(std::uint32_t cell, std::uint64_t at) {
  root_ = splay(root_, cells_[cell].begin);
  Cell upper = cells_[cell];
  upper.begin = at;
  const std::uint32_t made = insert(upper, true);
  if (made != kNone) cells_[cell].end = at;
  return made;
}

std::uint32_t Hazards::first_after(std::uint64_t begin) {
  root_ = splay(root_, begin);
  if (root_ == kNone) return kNone;
  const Cell& root = cells_[root_];
  if (root.end <= begin) return root.next;
  return root.begin < begin ? cut(root_, begin) : root_;
}

Hazards::Span Hazards::isolate(std::uint64_t begin, std::uint64_t end) {
  std::uint32_t i = first_after(begin), first = kNone;
  for (std::uint64_t at = begin; at < end;) {
    if (i == kNone || cells_[i].begin > at) {
      const std::uint64_t gap_end = i == kNone || cells_[i].begin > end ? end : cells_[i].begin;
      root_ = splay(root_, at);
      const bool behind = root_ != kNone && cells_[root_].begin < at;
      i = insert({at, gap_end, kNone, kNone, kNone, kNone, kNone, kNone}, behind);
    } else if (cells_[i].end > end) {
      (void)cut(i, end);
    }
    if (failed()) return {kNone, kNone};
    if (first == kNone) first = i;
    at = cells_[i].end;
    i = cells_[i].next;
  }
  return {first, i};
}

void Hazards::merge(const Span& span) {
  const std::uint32_t second = cells_[span.first].next;
  if (second == span.stop) return;
  root_ = splay(root_, cells_[span.first].begin);
  Cell& first = cells_[span.first];
  if (span.stop == kNone) {
    first.right = kNone;
  } else {
    first.right = splay(first.right, cells_[span.stop].begin);
    cells_[first.right].left = kNone;  // the cells between the two
    cells_[span.stop].before = span.first;
  }
  first.next = span.stop;
  std::uint32_t last = second;
  for (; cells_[last].next != span.stop; last = cells_[last].next) ++work_;
  cells_[last].next = free_;
  free_ = second;
}

}  // namespace stretto::sched
