// SPDX-License-Identifier: BSD-3-Clause
#include "select/across_nodes.hpp"

#include <cstring>

#include "base/profile.hpp"

namespace stretto::select {
namespace {

using enum Way::Over;
using enum coll::Form;

constexpr std::uint64_t kKi = 1024;
constexpr bool kOurs = true, kHosts = false;

// Measured by `stretto cluster bench` on 4 hosts x 2 ranks below 2 leaf switches (hosts 1 Gbit/s, uplinks 0.5), Open MPI 5.0.11 over
// TCP, ranks dealt in blocks and in turn, against the better of its tuned and han; docs/figures.md has the figures.
//   short vectors   few hops count: nodes alone, without the switches' level, in trees so wide that four nodes are one hop, an Allreduce
//                   by doubling distances; over all levels where what the busiest rank sends counts more, a broadcast's from 512 bytes on
//   middle ones     levels overlap, and no port sends a vector twice: a port sends 20 KiB at once, then at its rate
//   long ones       the line: 16 KiB go without a handshake (Open MPI's TCP: below 64 KiB)
//   parts           nodes alone: gathered by wide trees, or passed round a ring of nodes, in which every link carries them once
// `per_rank` keeps a line from being longer than its vector has segments.
// clang-format off
constexpr Way kWays[] = {
    // collective            from      per rank whose   over    form              down        up          across                segment
    {Collective::bcast,      0,        false,   kOurs,  nodes,  allreduce_on_top, "knomial",  nullptr,    nullptr,              0},
    {Collective::bcast,      512,      false,   kOurs,  levels, allreduce_on_top, "binomial", nullptr,    nullptr,              0},
    {Collective::bcast,      16 * kKi, false,   kOurs,  levels, allreduce_on_top, "chain",    nullptr,    nullptr,              16 * kKi},
    {Collective::bcast,      16 * kKi, true,    kOurs,  line,   allreduce_on_top, "chain",    nullptr,    nullptr,              16 * kKi},

    {Collective::reduce,     0,        false,   kOurs,  nodes,  allreduce_on_top, nullptr,    "knomial",  nullptr,              0},
    {Collective::reduce,     4 * kKi,  false,   kOurs,  levels, allreduce_on_top, nullptr,    "binomial", nullptr,              0},
    {Collective::reduce,     16 * kKi, false,   kOurs,  levels, allreduce_on_top, nullptr,    "chain",    nullptr,              16 * kKi},
    {Collective::reduce,     16 * kKi, true,    kOurs,  line,   allreduce_on_top, nullptr,    "chain",    nullptr,              16 * kKi},

    {Collective::allreduce,  0,        false,   kOurs,  nodes,  allreduce_on_top, "knomial",  "knomial",  "recursive_doubling", 0},
    {Collective::allreduce,  8 * kKi,  false,   kOurs,  levels, reduce_bcast,     "binomial", "binomial", nullptr,              0},
    {Collective::allreduce,  32 * kKi, false,   kOurs,  line,   allreduce_on_top, nullptr,    nullptr,    "halving_doubling",   0},
    {Collective::allreduce,  32 * kKi, true,    kOurs,  line,   reduce_bcast,     "chain",    "chain",    nullptr,              16 * kKi},

    {Collective::gather,     0,        false,   kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "knomial",            0},
    {Collective::scatter,    0,        false,   kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "knomial",            0},
    {Collective::scatter,    8 * kKi,  true,    kHosts, nodes,  allreduce_on_top, nullptr,    nullptr,    "knomial",            0},
    {Collective::allgather,  0,        false,   kHosts, nodes,  allreduce_on_top, nullptr,    nullptr,    nullptr,              0},
    {Collective::allgather,  4 * kKi,  true,    kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "ring",               0},
    {Collective::allgatherv, 0,        false,   kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    nullptr,              0},
    {Collective::allgatherv, 4 * kKi,  true,    kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "ring",               0},
    {Collective::alltoall,   0,        false,   kOurs,  levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              0},
    {Collective::alltoall,   4 * kKi,  true,    kHosts, levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              0},
};
// clang-format on

// Of all others, and where nothing was measured.
constexpr Way kShort = {Collective::count_, 0, false, kHosts, levels, allreduce_on_top, nullptr, nullptr, nullptr, 0};
constexpr Way kLong = {Collective::count_, 64 * kKi, false, kHosts, levels, reduce_bcast, "chain", "chain", nullptr, 64 * kKi};

}  // namespace

int segments_of(const Way& way, std::uint64_t bytes) {
  if (way.segment_bytes == 0 || bytes <= way.segment_bytes) return 1;
  const std::uint64_t segments = (bytes + way.segment_bytes - 1) / way.segment_bytes;
  const auto most = static_cast<std::uint64_t>(kProfile.schedule_most_segments);
  return static_cast<int>(segments < most ? segments : most);
}

const CompositionName* find_composition(Collective collective, const char* name) {
  for (const CompositionName& composition : kCompositions) {
    if (std::strcmp(composition.text, name) == 0) return coll::has_form(collective, composition.form) ? &composition : nullptr;
  }
  return nullptr;
}

const Way& way_across_nodes(Collective collective, int ranks, std::uint64_t bytes) {
  const Way* found = bytes < kLong.from_bytes ? &kShort : &kLong;
  const std::uint64_t each = bytes / static_cast<std::uint64_t>(ranks);
  for (const Way& way : kWays) {
    if (way.collective == collective && (way.per_rank ? each : bytes) >= way.from_bytes) found = &way;
  }
  return *found;
}

std::uint32_t automatic_across_nodes(int ranks) {
  std::uint32_t set = 0;
  for (const Way& way : kWays) {
    if (way.automatic && ranks <= kProfile.schedule_automatic_ranks) set |= 1u << static_cast<int>(way.collective);
  }
  return set;
}

coll::HierarchyPlan plan_of(const Way& way, const topo::Hierarchy& hierarchy, std::uint64_t bytes) {
  coll::HierarchyPlan plan;
  for (int level = 0; level < hierarchy.levels(); ++level) {
    if (hierarchy.name(level).is("node")) plan.node_level = level;
  }
  plan.segments = segments_of(way, bytes);
  plan.in_line = way.over == Way::Over::line;
  plan.form = way.form;
  if (way.down) plan.choose(Collective::bcast, way.down);
  if (way.up) plan.choose(Collective::reduce, way.up);
  if (way.across) plan.choose(way.collective, way.across);
  return plan;
}

}  // namespace stretto::select
