// SPDX-License-Identifier: BSD-3-Clause
#include "select/selector.hpp"

namespace stretto::select {
namespace {

bool has(std::uint32_t set, Collective collective) { return (set >> static_cast<int>(collective) & 1) != 0; }

}  // namespace

bool Selector::start(const Circumstances& at, const Rules& rules) {
  at_ = at;
  traits_ = {.ranks = at.ranks, .nodes = at.nodes};
  automatic_ = at.across_nodes ? automatic_across_nodes(at.ranks, at.nodes) : 0;
  for (const Rule& rule : rules) {
    if (!rule.fits(at.ranks, at.nodes)) continue;
    if (rule.backend == Rule::Backend::host || rule.backend == Rule::Backend::schedule)
      ruled_ |= std::uint32_t{1} << static_cast<int>(rule.selection.collective);
    rules_.push(&rule);
  }
  return !rules_.failed();
}

const Rule* Selector::rule(Collective collective, std::uint64_t bytes) const {
  const Rule* found = nullptr;
  for (const Rule* rule : rules_) {
    if (rule->selection.collective == collective && rule->bytes.has(bytes)) found = rule;
  }
  return found;
}

Choice Selector::of(Collective collective, std::uint64_t bytes, bool in_order, bool commutative) const {
  if (in_order) {
    const bool in_memory = has(at_.in_memory, collective) && !has(at_.forced, collective);
    return {&selection_in_order(collective), in_memory ? Backend::shared_memory : Backend::schedule, bytes};
  }
  const Rule* const said = has(at_.wanted, collective) ? rule(collective, bytes) : nullptr;
  const Selection& built_in = selection_across_nodes(collective, traits_, bytes, commutative);
  if (said && said->backend == Rule::Backend::schedule) return {&said->selection, Backend::schedule, bytes};
  if (has(at_.forced, collective)) return {&built_in, Backend::schedule, bytes};
  if (said && said->backend == Rule::Backend::host) return {&said->selection, Backend::host, bytes};
  if (has(at_.in_memory, collective)) {
    const bool named = said && said->backend == Rule::Backend::shared_memory;
    return {named ? &said->selection : &built_in, Backend::shared_memory, bytes};
  }
  return {&built_in, has(automatic_, collective) && built_in.automatic ? Backend::schedule : Backend::host, bytes};
}

Choice Selector::able(const Choice& choice, const coll::Problem& problem) const {
  if (problem.in_order) return {&selection_in_order(problem.collective), Backend::schedule, choice.bytes};
  const coll::Algorithm* const flat = flat_of(*choice.selection);
  const bool able = !flat || flat->serves(problem.commutative, problem.begins == nullptr);
  if (choice.backend == Backend::schedule && able) return choice;
  const bool commutative = problem.commutative || !is_reduction(problem.collective);
  return {&selection_across_nodes(problem.collective, traits_, choice.bytes, commutative), Backend::schedule,
          choice.bytes};
}

SelectionWords Selector::words(const Choice& choice) const {
  SelectionWords words(*choice.selection, traits_, choice.bytes, choice.backend == Backend::schedule);
  if (choice.backend == Backend::shared_memory) words.set_memory(*choice.selection);
  return words;
}

}  // namespace stretto::select
