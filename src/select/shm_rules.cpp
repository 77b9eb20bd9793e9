// SPDX-License-Identifier: BSD-3-Clause
#include "select/shm_rules.hpp"

namespace stretto::select {
namespace {

// What the last of the rules that fit says of calls of `first` bytes, and up to which length.
ShmRules::Step step_from(std::uint64_t first, const Rules& rules, Collective collective, int ranks, int nodes) {
  ShmRules::Step step{collective, {first, Range{}.most}, nullptr, 0};
  for (const Rule& rule : rules) {
    if (rule.selection.collective != collective || !rule.fits(ranks, nodes)) continue;
    const Range& bytes = rule.bytes;
    const std::uint64_t last = bytes.has(first) ? bytes.most : bytes.least > first ? bytes.least - 1 : Range{}.most;
    if (last < step.bytes.most) step.bytes.most = last;
    if (!bytes.has(first)) continue;
    step.algorithm = rule.selection.memory;
    step.line = step.algorithm != nullptr ? rule.selection.line : 0;
  }
  return step;
}

}  // namespace

bool ShmRules::start(const Rules& rules, int ranks, int nodes) {
  named_ = 0;
  steps_.clear();
  for (const Rule& rule : rules) {
    if (rule.selection.memory != nullptr && rule.fits(ranks, nodes))
      named_ |= std::uint32_t{1} << static_cast<int>(rule.selection.collective);
  }
  for (int c = 0; c < kCollectives; ++c) {
    std::uint64_t first = 0;
    for (bool more = (named_ >> c & 1) != 0; more; ++first) {
      const Step step = step_from(first, rules, static_cast<Collective>(c), ranks, nodes);
      steps_.push(step);
      first = step.bytes.most;
      more = first != Range{}.most;
    }
  }
  return !steps_.failed();
}

const ShmRules::Step* ShmRules::step(Collective collective, std::uint64_t bytes) const {
  for (const Step& step : steps_) {
    if (step.collective == collective && step.bytes.has(bytes)) return &step;
  }
  return nullptr;
}

unsigned ShmRules::line() const {
  unsigned first = 0;
  for (const Step& step : steps_) {
    if (step.line != 0 && (first == 0 || step.line < first)) first = step.line;
  }
  return first;
}

}  // namespace stretto::select
