// SPDX-License-Identifier: BSD-3-Clause
// The calls of a rank as loops in loops.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace stretto::modelling {

// A step of a program, or a loop of steps. What has the same number is the same step, or a loop of
// the same steps, whatever its turns.
struct LoopNode {
  std::uint32_t number = 0;
  std::uint32_t step = 0;                    // of a step: which of the sequence
  std::vector<std::vector<LoopNode>> turns;  // of a loop
  [[nodiscard]] bool is_loop() const { return !turns.empty(); }
};
using LoopBody = std::vector<LoopNode>;

// Loops get numbers that all sequences folded by one Folder have in common.
class Folder {
 public:
  // `steps`: numbers below `first_loop`, one for each step.
  explicit Folder(std::uint32_t first_loop) : next_(first_loop) {}
  LoopBody fold(const std::vector<std::uint32_t>& steps);

 private:
  bool fold_blocks(LoopBody& body, std::size_t length);
  std::uint32_t number_of(const std::vector<std::uint32_t>& block);

  std::map<std::vector<std::uint32_t>, std::uint32_t> loops_;
  std::uint32_t next_;
};

}  // namespace stretto::modelling
