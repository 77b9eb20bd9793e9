// SPDX-License-Identifier: BSD-3-Clause
// A Bine butterfly on a power of two of core numbers. In round j even numbers have partners that
// far ahead, and odd ones that far behind (mod size): 1, -1, 3, -5, 11, ..., the sums of the powers
// of -2. By turns they reach out to both sides. So what is near on the ring of members stays near:
// the longest distance is a third of the ring, where halving and doubling take a half.
//
// De Sensi, Pasqualoni, Piarulli, Bonato, Ba, Turisini, Domke, Hoefler 2025 (arXiv 2508.17311).
#pragma once
#include <bit>
#include <cstdint>

namespace stretto::coll {

class BineButterfly {
 public:
  BineButterfly(int size, int number) : size_(size), number_(number) {}

  static int distance(int round) {
    const std::int64_t power = std::int64_t{2} << round;
    return static_cast<int>((1 + (round % 2 == 0 ? power : -power)) / 3);
  }
  [[nodiscard]] int partner(int round) const {
    return wrapped(number_ + (number_ % 2 == 0 ? distance(round) : -distance(round)));
  }
  // The first of the 2^rounds neighbours in the ring that are joined after so many rounds.
  [[nodiscard]] int first(int rounds) const {
    const int behind = 2 * (((1 << (rounds & ~1)) - 1) / 3);
    return wrapped(number_ % 2 == 0 ? number_ - behind : number_ + behind - (1 << rounds) + 1);
  }
  // Partners in a round have the same bits of their labels below it, and differ in that bit. So a
  // vector can be halved by these bits, nearest partners first.
  [[nodiscard]] int label() const {
    if (size_ == 1) return 0;
    const int half = size_ / 2;
    const bool even = number_ % 2 == 0;
    const int even_one = even ? number_ : wrapped(number_ - distance(std::bit_width(static_cast<unsigned>(half)) - 1));
    return (even_one / 2) | (even ? 0 : half);
  }

 private:
  [[nodiscard]] int wrapped(int number) const { return number & (size_ - 1); }
  int size_, number_;
};

}  // namespace stretto::coll
