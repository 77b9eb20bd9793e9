// SPDX-License-Identifier: BSD-3-Clause
// Which flat algorithm each level of a hierarchy goes by, and in how many segments.
#include "base/profile.hpp"
#include "engine/scheduler.hpp"

namespace stretto::engine {
namespace {

void choose(coll::HierarchyPlan& plan, Collective collective, const char* name) {
  const coll::Algorithm* const algorithm = coll::find_algorithm(collective, name);
  for (auto& choice : plan.choices[static_cast<int>(collective)]) choice.algorithm = algorithm;
}

}  // namespace

std::uint32_t scheduled_across_nodes() { return 0; }

coll::HierarchyPlan plan_for(const topo::Hierarchy& hierarchy, Collective collective, std::uint64_t bytes) {
  coll::HierarchyPlan plan;
  const Collective regular = coll::regular_form(collective);
  for (int level = 0; level < hierarchy.levels(); ++level) {
    if (hierarchy.name(level).is("node")) plan.node_level = level;
  }
  const std::uint64_t segments = (bytes + kProfile.schedule_segment_bytes - 1) / kProfile.schedule_segment_bytes;
  if (segments < 2) return plan;  // short: trees, the defaults
  plan.segments = segments < kProfile.schedule_most_segments ? static_cast<int>(segments) : kProfile.schedule_most_segments;
  // Long: every rank passes each segment on once, so that segments follow each other at the pace of one message.
  choose(plan, Collective::bcast, "chain");
  choose(plan, Collective::reduce, "chain");
  if (regular == Collective::allreduce) plan.form = coll::AllreduceForm::reduce_bcast;
  return plan;
}

}  // namespace stretto::engine
