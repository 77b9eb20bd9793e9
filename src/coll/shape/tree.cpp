// SPDX-License-Identifier: BSD-3-Clause
#include "coll/shape/tree.hpp"

namespace stretto::coll {

Tree Tree::kchain(int size, int k, bool long_first) {
  const int most = size > 1 ? size - 1 : 1;
  if (k < 1) {
    for (k = 1; static_cast<std::int64_t>(k) * k < most;) ++k;
  }
  return {Kind::kchain, size, k > most ? most : k, long_first};
}

std::int64_t Tree::weight(int place) const {
  std::int64_t w = 1;
  if (place == 0) {
    while (w < size) w *= k;
  } else {
    while (place / w % k == 0) w *= k;
  }
  return w;
}

int Tree::subtree_end(int place) const {
  const std::int64_t end = place + weight(place);
  return end < size ? static_cast<int>(end) : size;
}

int Tree::chain_begin(int chain) const {
  const int length = (size - 1) / k;
  const int longer = (size - 1) % k;
  const int longer_before =
      long_first ? (chain < longer ? chain : longer) : (chain > k - longer ? chain - (k - longer) : 0);
  return 1 + chain * length + longer_before;
}

int Tree::chain_of(int place) const {
  const int length = (size - 1) / k;
  const int longer = (size - 1) % k;
  const int at = place - 1;
  if (long_first) {
    const int border = longer * (length + 1);
    return at < border ? at / (length + 1) : longer + (at - border) / length;
  }
  const int border = (k - longer) * length;
  return at < border ? at / length : k - longer + (at - border) / (length + 1);
}

Tree::Binary Tree::binary_node(int place) const {
  int begin = 0;
  int end = size;
  int parent = -1;
  while (place != end - 1) {
    const int border = begin + (end - begin) / 2;
    parent = end - 1;
    if (place < border) {
      end = border;
    } else {
      begin = border;
      --end;
    }
  }
  const int border = begin + (end - begin) / 2;
  const int near = border < end - 1 ? end - 2 : -1;
  const int far = border > begin ? border - 1 : -1;
  return {near, far, parent};
}

int Tree::parent(int place) const {
  if (kind == Kind::binary) return binary_node(place).parent;
  if (place == 0) return -1;
  if (kind == Kind::kchain) return place == chain_begin(chain_of(place)) ? 0 : place - 1;
  const std::int64_t w = weight(place);
  return static_cast<int>(place - place / w % k * w);
}

}  // namespace stretto::coll
