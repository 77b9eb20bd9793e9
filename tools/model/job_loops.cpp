// SPDX-License-Identifier: BSD-3-Clause
#include "job_loops.hpp"

#include <utility>

namespace stretto::modelling {
namespace {

constexpr std::size_t kLongestBlock = 64;

std::vector<std::uint32_t> block_numbers(const LoopBody& body, std::size_t begin, std::size_t length) {
  std::vector<std::uint32_t> numbers(length);
  for (std::size_t i = 0; i < length; ++i) numbers[i] = body[begin + i].number;
  return numbers;
}

}  // namespace

std::uint32_t Folder::number_of(const std::vector<std::uint32_t>& block) {
  const auto [place, is_new] = loops_.try_emplace(block, next_);
  if (is_new) ++next_;
  return place->second;
}

// Blocks of this length that come at least twice in a row become a loop.
bool Folder::fold_blocks(LoopBody& body, std::size_t length) {
  LoopBody folded;
  bool any = false;
  for (std::size_t at = 0; at < body.size();) {
    std::size_t alike = 0;  // from here on each is as the one a block later
    while (at + alike + length < body.size() && body[at + alike].number == body[at + alike + length].number) ++alike;
    const std::size_t turns = alike / length + 1;
    if (turns < 2) {
      folded.push_back(std::move(body[at++]));
      continue;
    }
    LoopNode loop;
    loop.number = number_of(block_numbers(body, at, length));
    for (std::size_t turn = 0; turn < turns; ++turn, at += length) {
      const auto begin = body.begin() + static_cast<std::ptrdiff_t>(at);
      loop.turns.emplace_back(std::make_move_iterator(begin),
                              std::make_move_iterator(begin + static_cast<std::ptrdiff_t>(length)));
    }
    folded.push_back(std::move(loop));
    any = true;
  }
  body = std::move(folded);
  return any;
}

// Short blocks first: the loops within others.
LoopBody Folder::fold(const std::vector<std::uint32_t>& steps) {
  LoopBody body(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    body[i].number = steps[i];
    body[i].step = static_cast<std::uint32_t>(i);
  }
  for (std::size_t length = 1; length <= kLongestBlock && 2 * length <= body.size();)
    length = fold_blocks(body, length) && length > 1 ? 1 : length + 1;
  return body;
}

}  // namespace stretto::modelling
