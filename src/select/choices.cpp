// SPDX-License-Identifier: BSD-3-Clause
#include "select/choices.hpp"

namespace stretto::select {
namespace {

bool has(std::uint32_t set, Collective collective) { return (set >> static_cast<int>(collective) & 1) != 0; }

}  // namespace

bool Choices::start(const Circumstances& at, const Rules& rules) {
  at_ = at;
  among_ = {.ranks = at.ranks, .nodes = at.nodes};
  automatic_ = at.across_nodes ? automatic_across_nodes(at.ranks) : 0;
  for (const Rule& rule : rules) {
    if (!rule.ranks.has(static_cast<std::uint64_t>(at.ranks)) || !rule.nodes.has(static_cast<std::uint64_t>(at.nodes)))
      continue;
    ruled_ |= std::uint32_t{1} << static_cast<int>(rule.way.collective);
    rules_.push(&rule);
  }
  return !rules_.failed();
}

void Choices::place(const topo::Hierarchies& hierarchies) {
  among_.one_switch = hierarchies.one_switch();
  among_.nodes_in_halves = hierarchies.nodes_split_in_halves();
  among_.ranks_in_halves = hierarchies.all.splits_in_halves();
}

const Rule* Choices::rule(Collective collective, std::uint64_t bytes) const {
  const Rule* found = nullptr;
  for (const Rule* rule : rules_) {
    if (rule->way.collective == collective && rule->bytes.has(bytes)) found = rule;
  }
  return found;
}

Choice Choices::of(Collective collective, std::uint64_t bytes, bool in_order) const {
  if (in_order) {
    const bool in_memory = has(at_.in_memory, collective) && !has(at_.forced, collective);
    return {&way_in_order(collective), in_memory ? Server::memory : Server::schedule, bytes};
  }
  const Rule* const said = has(at_.wanted, collective) ? rule(collective, bytes) : nullptr;
  const Way& built_in = way_across_nodes(collective, among_, bytes);
  if (said && said->server == Rule::Server::schedule) return {&said->way, Server::schedule, bytes};
  if (has(at_.forced, collective)) return {&built_in, Server::schedule, bytes};
  if (said && said->server == Rule::Server::host) return {&said->way, Server::host, bytes};
  if (has(at_.in_memory, collective)) return {&built_in, Server::memory, bytes};
  return {&built_in, has(automatic_, collective) && built_in.automatic ? Server::schedule : Server::host, bytes};
}

Choice Choices::able(const Choice& choice, const coll::Problem& problem) const {
  if (problem.in_order) return {&way_in_order(problem.collective), Server::schedule, choice.bytes};
  const coll::Algorithm* const flat = flat_of(*choice.way);
  const bool able = !flat || flat->serves(problem.commutative, problem.begins == nullptr);
  if (choice.server == Server::schedule && able) return choice;
  return {&way_across_nodes(problem.collective, among_, choice.bytes), Server::schedule, choice.bytes};
}

WayWords Choices::words(const Choice& choice) const {
  WayWords words(*choice.way, among_, choice.bytes, choice.server == Server::schedule);
  if (choice.server == Server::memory) words.set("ours, over shared memory");
  return words;
}

}  // namespace stretto::select
