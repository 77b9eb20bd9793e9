// SPDX-License-Identifier: BSD-3-Clause
#include "select/across_nodes.hpp"

#include <cstring>

#include "base/tuning.hpp"

namespace stretto::select {
namespace {

using enum Selection::Over;
using enum coll::Form;

constexpr std::uint64_t kKi = 1024;
constexpr std::uint64_t kConnected = kTuning.tcp_bytes;
constexpr bool kOurs = true, kHosts = false;

// Measured by `stretto cluster bench` on 4 hosts x 2 ranks below 2 leaf switches (hosts 1 Gbit/s,
// uplinks 0.5). Open MPI 5.0.11 over TCP, with ranks dealt in blocks and in turn, against the
// better of its tuned and han. docs/figures.md has the figures, also of other shapes.
//
// Short vectors: few hops count. The schedules use nodes alone, without the switches' level. Their
// trees are so wide that four nodes are one hop. An Allreduce goes by doubling distances. All
// levels are used where it counts more what the busiest rank sends. That is so for a Bcast; if all
// nodes are on one switch, only from 512 bytes on.
//
// Middle lengths: levels overlap, and no port sends a vector twice. A port sends 20 KiB at once,
// then at its rate. Segments of 8 KiB go by connections of our own.
//
// Long vectors: the chain. Segments go by connections of our own, or by the MPI without a handshake
// (Open MPI's TCP: below 64 KiB).
//
// Long Allreduces: by halves of segments, along the chain or over nodes, if these can be halved
// between groups. A switch's links then carry each vector once, while hosts' links carry other
// segments. Otherwise the vectors go round a ring of nodes, if these are on one switch, or along
// the chain there and back.
//
// Parts: nodes alone. Parts are gathered by wide trees. Or they are passed round a ring of nodes,
// in which every link carries them once.
//
// Some parts go straight between the root and each rank, as the MPI's do, but quicker by
// connections of our own. These are parts whose lengths only the root knows, and parts of a Scatter
// that these connections just hold.
//
// Lengths for each rank keep a chain from being longer than its vector has segments. They also keep
// halves of segments from being too short.
//
// Rows for many ranks (kTuning.schedule_few_ranks) were simulated: docs/results/simulated.md. There
// a chain of the ranks of a node, or of many nodes, takes longer to fill than a vector of middle
// length takes to pass. Trees whose segments follow each other through the levels do not. Longer
// vectors go through circulant graphs of nodes, and of the ranks of each node. These fill as
// quickly as a tree, and no port sends a vector twice. Two nodes gain nothing by them.
//
// Rows for more than 64 nodes (kTuning.schedule_few_nodes) are the timer's choice, with a rank on
// each of 128, 1,024 and 16,384 nodes (experiment 41). There trees have no level for
// switches, and a vector of middle length is cut in halves. Nodes with tiers make their part over
// shared memory, so these ranks stand for leaders. What was not timed is the MPI's, and where
// simulated clusters say otherwise.
//
// Reduce_scatter: by halves while parts are short, and then around a ring, which crosses each
// node's link once if ranks of a node follow one another. Where Open MPI takes a ring, too, its own
// is as fast. Scans: over the levels, and long ones along a chain. Ranks that are dealt in turn
// make many hops of either, so their middle lengths stay with the MPI.
//
// On one node, nonblocking calls go by schedule. Each copy takes a processor's time there, and a
// rank that waits may have none. So few and long messages are best: trees with segments of 64 KiB,
// and for an Allreduce each rank combines its part (`stretto bench --suite nonblocking`).
constexpr Length each(std::uint64_t bytes) { return {bytes, Length::Per::rank}; }
constexpr Length node(std::uint64_t bytes) { return {bytes, Length::Per::node}; }
// clang-format off
constexpr Selection kSelections[] = {
    // collective, from, whose, over, form, down, up, across, segment, requirement, -, -, -, below
    {Collective::bcast,      {0},             kOurs,  levels, allreduce_on_top, "binomial", nullptr,    nullptr,              {0}},
    {Collective::bcast,      {0},             kOurs,  nodes,  allreduce_on_top, "knomial",  nullptr,    nullptr,              {0},           Requirement::one_switch},
    {Collective::bcast,      {512},           kOurs,  levels, allreduce_on_top, "binomial", nullptr,    nullptr,              {0}},
    {Collective::bcast,      {16 * kKi},      kOurs,  levels, allreduce_on_top, "chain",    nullptr,    nullptr,              {8 * kKi}},
    {Collective::bcast,      {0},             kOurs,  levels, allreduce_on_top, "knomial",  nullptr,    nullptr,              {0},           Requirement::many},
    {Collective::bcast,      {16 * kKi},      kOurs,  levels, allreduce_on_top, "knomial",  nullptr,    nullptr,              {4 * kKi},     Requirement::many},
    {Collective::bcast,      {64 * kKi},      kOurs,  levels, allreduce_on_top, "binomial", nullptr,    nullptr,              {8 * kKi},     Requirement::many},
    {Collective::bcast,      each(2 * kKi),   kOurs,  levels, allreduce_on_top, "chain",    nullptr,    nullptr,              {8 * kKi},     Requirement::many},
    {Collective::bcast,      each(16 * kKi),  kOurs,  chain,  allreduce_on_top, "chain",    nullptr,    nullptr,              {8 * kKi}},
    {Collective::bcast,      {128 * kKi},     kOurs,  nodes,  allreduce_on_top, "circulant", nullptr,   nullptr,              {4 * kKi},     Requirement::many_nodes},
    {Collective::bcast,      {512 * kKi},     kOurs,  nodes,  allreduce_on_top, "circulant", nullptr,   nullptr,              {8 * kKi},     Requirement::many_nodes},
    {Collective::bcast,      {0},             kOurs,  nodes,  allreduce_on_top, "knomial",  nullptr,    nullptr,              {0},           Requirement::wide},
    {Collective::bcast,      {8 * kKi},       kOurs,  nodes,  allreduce_on_top, "knomial",  nullptr,    nullptr,              {0},           Requirement::wide, 0, 3},
    {Collective::bcast,      {32 * kKi},      kOurs,  levels, allreduce_on_top, "circulant", nullptr,   nullptr,              {16 * kKi},    Requirement::wide},
    {Collective::bcast,      {16 * kKi},      kOurs,  levels, allreduce_on_top, "binomial", nullptr,    nullptr,              {64 * kKi},    Requirement::one_node},

    {Collective::reduce,     {0},             kOurs,  nodes,  allreduce_on_top, nullptr,    "knomial",  nullptr,              {0}},
    {Collective::reduce,     {2 * kKi},       kOurs,  levels, allreduce_on_top, nullptr,    "binomial", nullptr,              {0}},
    {Collective::reduce,     {16 * kKi},      kOurs,  levels, allreduce_on_top, nullptr,    "chain",    nullptr,              {8 * kKi}},
    {Collective::reduce,     {0},             kOurs,  levels, allreduce_on_top, nullptr,    "knomial",  nullptr,              {0},           Requirement::many},
    {Collective::reduce,     {16 * kKi},      kOurs,  levels, allreduce_on_top, nullptr,    "knomial",  nullptr,              {4 * kKi},     Requirement::many},
    {Collective::reduce,     {64 * kKi},      kOurs,  levels, allreduce_on_top, nullptr,    "binomial", nullptr,              {8 * kKi},     Requirement::many},
    {Collective::reduce,     each(2 * kKi),   kOurs,  levels, allreduce_on_top, nullptr,    "chain",    nullptr,              {8 * kKi},     Requirement::many},
    {Collective::reduce,     each(16 * kKi),  kOurs,  chain,  allreduce_on_top, nullptr,    "chain",    nullptr,              {8 * kKi}},
    {Collective::reduce,     {128 * kKi},     kOurs,  nodes,  allreduce_on_top, nullptr,    "circulant", nullptr,             {4 * kKi},     Requirement::many_nodes},
    {Collective::reduce,     {512 * kKi},     kOurs,  nodes,  allreduce_on_top, nullptr,    "circulant", nullptr,             {8 * kKi},     Requirement::many_nodes},
    {Collective::reduce,     {0},             kOurs,  nodes,  allreduce_on_top, nullptr,    "knomial",  nullptr,              {0},           Requirement::wide},
    {Collective::reduce,     {8 * kKi},       kOurs,  nodes,  allreduce_on_top, nullptr,    "scatter_gather", nullptr,        {64 * kKi},    Requirement::wide},
    {Collective::reduce,     {512 * kKi},     kOurs,  levels, allreduce_on_top, nullptr,    "circulant", nullptr,             {16 * kKi},    Requirement::wide},
    {Collective::reduce,     {16 * kKi},      kOurs,  levels, allreduce_on_top, nullptr,    "binomial", nullptr,              {64 * kKi},    Requirement::one_node},

    {Collective::allreduce,  {0},             kOurs,  nodes,  allreduce_on_top, "knomial",  "knomial",  "recursive_doubling", {0}},
    {Collective::allreduce,  {8 * kKi},       kOurs,  levels, reduce_bcast,     "binomial", "binomial", nullptr,              {0}},
    {Collective::allreduce,  {16 * kKi},      kOurs,  levels, reduce_bcast,     "chain",    "chain",    nullptr,              {16 * kKi}},
    {Collective::allreduce,  {16 * kKi},      kOurs,  levels, allreduce_on_top, "binomial", "binomial", "recursive_doubling", {0},           Requirement::nodes_in_halves},
    {Collective::allreduce,  {32 * kKi},      kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "halving_doubling",   node(8 * kKi), Requirement::nodes_in_halves},
    {Collective::allreduce,  each(32 * kKi),  kOurs,  chain,  reduce_bcast,     "chain",    "chain",    nullptr,              {16 * kKi}},
    {Collective::allreduce,  node(5 * kKi),   kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "ring",               {64 * kKi},    Requirement::one_switch},
    {Collective::allreduce,  {64 * kKi},      kOurs,  levels, allreduce_on_top, "binomial", "binomial", "recursive_doubling", {16 * kKi},    Requirement::many},
    {Collective::allreduce,  {16 * kKi},      kOurs,  levels, allreduce_on_top, "binomial", "binomial", "recursive_doubling", {0},           Requirement::ranks_in_halves},
    {Collective::allreduce,  {32 * kKi},      kOurs,  chain,  allreduce_on_top, nullptr,    nullptr,    "halving_doubling",   each(4 * kKi), Requirement::ranks_in_halves},
    {Collective::allreduce,  {0},             kOurs,  levels, allreduce_on_top, "knomial",  "knomial",  "recursive_doubling", {0},           Requirement::many, 0, 0, nullptr, {16 * kKi}},
    {Collective::allreduce,  {16 * kKi},      kOurs,  levels, allreduce_on_top, "knomial",  "knomial",  "recursive_doubling", {4 * kKi},     Requirement::many, 0, 0, nullptr, {64 * kKi}},
    {Collective::allreduce,  {64 * kKi},      kOurs,  levels, allreduce_on_top, "binomial", "binomial", "recursive_doubling", {8 * kKi},     Requirement::many, 0, 0, nullptr, {256 * kKi}},
    {Collective::allreduce,  {0},             kOurs,  nodes,  allreduce_on_top, "knomial",  "knomial",  "recursive_doubling", {0},           Requirement::wide},
    {Collective::allreduce,  {512},           kHosts, nodes,  allreduce_on_top, "knomial",  "knomial",  "recursive_doubling", {0},           Requirement::wide},
    {Collective::allreduce,  {8 * kKi},       kOurs,  levels, rails,            nullptr,    nullptr,    nullptr,              {0},           Requirement::wide},
    {Collective::allreduce,  {64 * kKi},      kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "halving_doubling",   {0},           Requirement::wide},
    {Collective::allreduce,  {256 * kKi},     kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "halving_doubling",   {256 * kKi},   Requirement::wide},
    {Collective::allreduce,  {8 * kKi},       kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "recursive_doubling", {0},           Requirement::one_node},
    {Collective::allreduce,  each(8 * kKi),   kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "ring",               {0},           Requirement::one_node},

    {Collective::barrier,    {0},             kOurs,  levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              {0}},
    {Collective::barrier,    {0},             kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "dissemination",      {0},           Requirement::wide, 0, 4},

    {Collective::scan,       {0},             kOurs,  levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              {0}},
    {Collective::scan,       {4 * kKi},       kHosts, levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              {0}},
    {Collective::scan,       {4 * kKi},       kOurs,  levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              {0},           Requirement::in_blocks, 0, 0, nullptr, {16 * kKi}},
    {Collective::scan,       {0},             kOurs,  ranks,  allreduce_on_top, nullptr,    nullptr,    "chain",              {16 * kKi},    Requirement::short_chain},
    {Collective::scan,       each(4 * kKi),   kOurs,  ranks,  allreduce_on_top, nullptr,    nullptr,    "chain",              {16 * kKi}},
    {Collective::scan,       {0},             kHosts, levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              {0},           Requirement::many},
    {Collective::exscan,     {0},             kOurs,  levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              {0}},
    {Collective::exscan,     {2 * kKi},       kHosts, levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              {0}},
    {Collective::exscan,     {4 * kKi},       kOurs,  levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              {0},           Requirement::in_blocks, 0, 0, nullptr, {16 * kKi}},
    {Collective::exscan,     each(4 * kKi),   kOurs,  ranks,  allreduce_on_top, nullptr,    nullptr,    "chain",              {16 * kKi}},
    {Collective::exscan,     {0},             kHosts, levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              {0},           Requirement::many},

    {Collective::reduce_scatter, {0},             kOurs,  ranks,  allreduce_on_top, nullptr, nullptr,   "recursive_halving",  {0},           Requirement::in_blocks},
    {Collective::reduce_scatter, each(3 * kKi),   kOurs,  ranks,  allreduce_on_top, nullptr, nullptr,   "ring",               {0},           Requirement::in_blocks},
    {Collective::reduce_scatter, each(32 * kKi),  kHosts, ranks,  allreduce_on_top, nullptr, nullptr,   "ring",               {0}},
    {Collective::reduce_scatter, {0},             kHosts, levels, allreduce_on_top, nullptr, nullptr,   nullptr,              {0},           Requirement::many},
    {Collective::reduce_scatter_block, {0},           kOurs,  ranks,  allreduce_on_top, nullptr, nullptr, "recursive_halving", {0},         Requirement::in_blocks},
    {Collective::reduce_scatter_block, each(3 * kKi), kOurs,  ranks,  allreduce_on_top, nullptr, nullptr, "ring",             {0},          Requirement::in_blocks},
    {Collective::reduce_scatter_block, {0},           kHosts, levels, allreduce_on_top, nullptr, nullptr, nullptr,            {0},          Requirement::many},

    {Collective::gather,     {0},             kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "knomial",            {0}},
    {Collective::gather,     each(4 * kKi),   kOurs,  ranks,  allreduce_on_top, nullptr,    nullptr,    "flat",               {0},           Requirement::one_node},
    {Collective::scatter,    {0},             kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "knomial",            {0}},
    {Collective::scatter,    each(8 * kKi),   kHosts, nodes,  allreduce_on_top, nullptr,    nullptr,    "knomial",            {0}},
    {Collective::scatter,    each(kKi),       kHosts, nodes,  allreduce_on_top, nullptr,    nullptr,    "knomial",            {0},           Requirement::many},
    {Collective::scatter,    each(4 * kKi),   kOurs,  ranks,  allreduce_on_top, nullptr,    nullptr,    "flat",               {0},           Requirement::connected},
    {Collective::scatter,    each(kConnected + 1), kHosts, ranks, allreduce_on_top, nullptr, nullptr,   "flat",               {0}},
    {Collective::scatter,    each(4 * kKi),   kOurs,  ranks,  allreduce_on_top, nullptr,    nullptr,    "flat",               {0},           Requirement::one_node},
    {Collective::gatherv,    {0},             kHosts, ranks,  allreduce_on_top, nullptr,    nullptr,    "flat",               {0}},
    {Collective::gatherv,    {0},             kOurs,  ranks,  allreduce_on_top, nullptr,    nullptr,    "flat",               {0},           Requirement::connected},
    {Collective::scatterv,   {0},             kHosts, ranks,  allreduce_on_top, nullptr,    nullptr,    "flat",               {0}},
    {Collective::scatterv,   {0},             kOurs,  ranks,  allreduce_on_top, nullptr,    nullptr,    "flat",               {0},           Requirement::connected},
    {Collective::allgather,  {0},             kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    nullptr,              {0}},
    {Collective::allgather,  each(2 * kKi),   kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "ring",               {0}},
    {Collective::allgather,  {0},             kHosts, nodes,  allreduce_on_top, nullptr,    nullptr,    nullptr,              {0},           Requirement::many},
    {Collective::allgather,  each(64),        kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    nullptr,              {0},           Requirement::many},
    {Collective::allgather,  each(4 * kKi),   kHosts, nodes,  allreduce_on_top, nullptr,    nullptr,    "ring",               {0},           Requirement::many},
    {Collective::allgatherv, {0},             kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    nullptr,              {0}},
    {Collective::allgatherv, each(2 * kKi),   kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    "ring",               {0}},
    {Collective::allgatherv, {0},             kHosts, nodes,  allreduce_on_top, nullptr,    nullptr,    nullptr,              {0},           Requirement::many},
    {Collective::allgatherv, each(64),        kOurs,  nodes,  allreduce_on_top, nullptr,    nullptr,    nullptr,              {0},           Requirement::many},
    {Collective::allgatherv, each(4 * kKi),   kHosts, nodes,  allreduce_on_top, nullptr,    nullptr,    "ring",               {0},           Requirement::many},
    {Collective::alltoall,   {0},             kOurs,  levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              {0}},
    {Collective::alltoall,   each(64),        kHosts, levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              {0},           Requirement::many},
    {Collective::alltoall,   each(4 * kKi),   kHosts, levels, allreduce_on_top, nullptr,    nullptr,    nullptr,              {0}},
};
// clang-format on

// For all other collectives, and where nothing was measured.
constexpr Selection kShort = {
    Collective::count_, {0}, kHosts, levels, allreduce_on_top, nullptr, nullptr, nullptr, {0}};
constexpr Selection kLong = {Collective::count_, {64 * kKi}, kHosts, levels, reduce_bcast, "chain", "chain", nullptr,
                             {64 * kKi}};

}  // namespace

void CommTraits::place(const topo::Hierarchies& hierarchies) {
  one_switch = hierarchies.one_switch();
  nodes_in_halves = hierarchies.nodes_split_in_halves();
  ranks_in_halves = hierarchies.all.splits_in_halves();
  in_blocks = hierarchies.nodes.keeps_rank_order();
}

int segments_of(const Selection& selection, const CommTraits& traits, std::uint64_t bytes) {
  const std::uint64_t each = selection.segment.of(traits);
  if (each == 0 || bytes <= each) return 1;
  const std::uint64_t segments = (bytes + each - 1) / each;
  const auto most = static_cast<std::uint64_t>(kTuning.schedule_most_segments);
  return static_cast<int>(segments < most ? segments : most);
}

const coll::Algorithm* flat_of(const Selection& selection) {
  return selection.is_flat() ? coll::find_algorithm(selection.collective, selection.across) : nullptr;
}

bool is_linear(const Selection& selection) { return selection.is_flat() && std::strcmp(selection.across, "flat") == 0; }

bool serves(const CompositionName& composition, Collective collective) {
  return coll::has_form(collective, composition.form) &&
         (composition.over != Selection::Over::chain || coll::has_chain(collective));
}

const CompositionName* find_composition(Collective collective, const char* name) {
  for (const CompositionName& composition : kCompositions) {
    const bool is_it = std::strcmp(composition.text, name) == 0 ||
                       (composition.former != nullptr && std::strcmp(composition.former, name) == 0);
    if (is_it) return serves(composition, collective) ? &composition : nullptr;
  }
  return nullptr;
}

const Selection& selection_across_nodes(Collective collective, const CommTraits& traits, std::uint64_t bytes,
                                        bool commutative) {
  const Selection* found = bytes < kLong.from.bytes ? &kShort : &kLong;
  const auto fits = [&](const Selection& selection) {
    if (!traits.is(selection.requirement)) return false;
    if (bytes < selection.from.of(traits) || bytes >= selection.below.of(traits)) return false;
    const coll::Algorithm* const flat = commutative ? nullptr : flat_of(selection);
    return flat == nullptr || flat->serves(false, true);
  };
  for (const Selection& selection : kSelections) {
    if (selection.collective == collective && fits(selection)) found = &selection;
  }
  return *found;
}

// Trees in which every rank is a child of the first rank, which takes them in rank order. Or
// chains, in which a rank hands on what the ranks before it have.
const Selection& selection_in_order(Collective collective) {
  constexpr int kAll = Selection::kAll;
  constexpr Length kSegment = {64 * kKi};
  // clang-format off
  static constexpr Selection kInOrder[] = {
      {Collective::reduce,         {0}, kOurs, ranks, allreduce_on_top, nullptr, nullptr, "flat",             kSegment, Requirement::anywhere, 0, kAll},
      {Collective::allreduce,      {0}, kOurs, ranks, allreduce_on_top, nullptr, nullptr, "reduce_bcast",     kSegment, Requirement::anywhere, 0, kAll},
      {Collective::reduce_scatter, {0}, kOurs, ranks, allreduce_on_top, nullptr, nullptr, "reduce_scatterv",  {0},      Requirement::anywhere, 0, kAll},
      {Collective::scan,           {0}, kOurs, ranks, allreduce_on_top, nullptr, nullptr, "chain",            kSegment, Requirement::anywhere, 0, kAll},
      {Collective::exscan,         {0}, kOurs, ranks, allreduce_on_top, nullptr, nullptr, "chain",            kSegment, Requirement::anywhere, 0, kAll},
  };
  // clang-format on
  for (const Selection& selection : kInOrder) {
    if (selection.collective == coll::regular_form(collective)) return selection;
  }
  return kShort;
}

std::uint32_t automatic_across_nodes(int ranks, int nodes) {
  const bool wide = CommTraits{.ranks = ranks, .nodes = nodes}.is_wide();
  if (wide && (nodes > kTuning.schedule_automatic_nodes || ranks > kTuning.schedule_automatic_ranks)) return 0;
  std::uint32_t set = 0;
  for (const Selection& selection : kSelections) {
    if (selection.automatic && (!wide || selection.requirement == Requirement::wide))
      set |= 1u << static_cast<int>(selection.collective);
  }
  return set;
}

int node_level(const topo::Hierarchy& hierarchy) {
  for (int level = 0; level < hierarchy.levels(); ++level) {
    if (hierarchy.name(level).is("node")) return level;
  }
  return 0;
}

coll::HierarchyPlan plan_of(const Selection& selection, const topo::Hierarchy& hierarchy, const CommTraits& traits,
                            std::uint64_t bytes) {
  coll::HierarchyPlan plan;
  plan.node_level = node_level(hierarchy);
  plan.segments = segments_of(selection, traits, bytes);
  plan.as_chain = selection.over == Selection::Over::chain;
  plan.form = selection.form;
  if (selection.down) plan.choose(Collective::bcast, selection.down, selection.k);
  if (selection.up) plan.choose(Collective::reduce, selection.up, selection.k);
  if (selection.across) plan.choose(selection.collective, selection.across, selection.k);
  return plan;
}

bool splits_at_nodes(const Selection& selection, const topo::Hierarchy& hierarchy, const CommTraits& traits,
                     Collective collective, std::uint64_t bytes) {
  switch (collective) {
    case Collective::barrier:
    case Collective::bcast:
    case Collective::reduce:
    case Collective::allreduce: break;
    default: return false;
  }
  const bool by_levels = selection.over == Selection::Over::levels || selection.over == Selection::Over::nodes;
  const bool by_trees = selection.form == coll::Form::allreduce_on_top || selection.form == coll::Form::reduce_bcast;
  const int level = node_level(hierarchy);
  return by_levels && by_trees && segments_of(selection, traits, bytes) == 1 && level + 1 < hierarchy.levels() &&
         hierarchy.name(level).is("node");
}

coll::Schedule schedule_of(coll::Builder& builder, const Selection& selection, const topo::Hierarchies& hierarchies,
                           const CommTraits& traits, std::uint64_t bytes, const coll::Problem& problem, bool leaders) {
  if (problem.neighborhood != nullptr) return coll::build_neighbors(builder, problem);
  if (const coll::Algorithm* const flat = flat_of(selection))
    return coll::build(builder, *flat, problem, {segments_of(selection, traits, bytes), selection.k, 0});
  const topo::Hierarchy& hierarchy = levels_of(selection.over, hierarchies);
  coll::HierarchyPlan plan = plan_of(selection, hierarchy, traits, bytes);
  if (leaders) plan.lowest = plan.node_level + 1;
  return coll::build_hierarchical(builder, hierarchy, plan, problem);
}

}  // namespace stretto::select
