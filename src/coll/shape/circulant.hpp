// SPDX-License-Identifier: BSD-3-Clause
// A pipeline on a circulant graph. From every place edges lead ahead by jump(0), jump(1), ...: the
// size halved again and again, rounded up, from 1 on. In round i all places send over their edge
// i % rounds(), and place 0 has everything at first. After blocks - 1 + rounds() rounds, which is
// the least, all places have all blocks. In each round a place sends one block and receives one.
//
// What a place receives when repeats after rounds() rounds, with blocks of numbers higher by as
// many. A first round in which it receives a block that is not old news gives its base block. In
// the others it gets, counted from the same phase, every other block of the phase before.
//
// Traeff 2024 (arXiv 2407.18004): the schedules, and that they can be found in O(log P) steps.
#pragma once
#include <cstdint>

namespace stretto::coll {

class Circulant {
 public:
  explicit Circulant(int size);

  [[nodiscard]] int rounds() const { return rounds_; }
  [[nodiscard]] int jump(int edge) const { return jumps_[edge]; }
  [[nodiscard]] int all_rounds(int blocks) const { return blocks - 1 + rounds_; }

  struct Arrival {
    int round;
    int edge;  // over which the block comes
  };
  // When a place other than 0 first receives a block of so many.
  [[nodiscard]] Arrival arrival(int place, int block, int blocks) const;

 private:
  static constexpr int kMostRounds = 31;
  struct Search;

  int size_;
  int rounds_ = 0;
  int jumps_[kMostRounds + 2];  // [rounds()]: the size
};

}  // namespace stretto::coll
