// SPDX-License-Identifier: BSD-3-Clause
// How a collective goes where its ranks are on several nodes: which of our schedules serves it, and
// whether STRETTO_<OP>=auto uses it at all. The choices are measured, and written as data
// (across_nodes.cpp says where). They depend only on what all ranks know, so all ranks find the
// same.
#pragma once
#include "base/tuning.hpp"
#include "coll/hierarchy/compose.hpp"
#include "coll/shm/manifest.hpp"

namespace stretto::select {

// What a built-in selection may need: where the ranks are, and how they are connected.
enum class Requirement : std::uint8_t {
  anywhere,
  one_switch,
  nodes_in_halves,
  ranks_in_halves,
  connected,
  many,
  many_nodes,
  wide,         // more nodes than the other rows hold for
  in_blocks,    // the ranks of each node follow one another
  short_chain,  // and a chain of few ranks leaves few nodes
  one_node
};

// What a built-in selection depends on, apart from collective and length. It is the same on all
// ranks.
struct CommTraits {
  int ranks = 1, nodes = 1;
  bool one_switch = false;       // topo::Hierarchies::one_switch
  bool nodes_in_halves = false;  // topo::Hierarchies::nodes_split_in_halves
  bool ranks_in_halves = false;  // topo::Hierarchy::splits_in_halves
  bool in_blocks = false;        // topo::Hierarchy::keeps_rank_order, of nodes
  // Short messages go by connections of our own (transport/tcp.hpp), or will, if they can.
  bool connected = false;
  [[nodiscard]] constexpr bool is_wide() const { return nodes > kTuning.schedule_few_nodes; }
  // What follows from where the ranks are.
  void place(const topo::Hierarchies& hierarchies);
  [[nodiscard]] constexpr bool is(Requirement requirement) const {
    switch (requirement) {
      case Requirement::one_switch: return one_switch;
      case Requirement::nodes_in_halves: return nodes_in_halves;
      case Requirement::ranks_in_halves: return ranks_in_halves;
      case Requirement::connected: return connected;
      case Requirement::many: return ranks > kTuning.schedule_few_ranks;
      case Requirement::many_nodes: return ranks > kTuning.schedule_few_ranks && nodes >= 4;
      case Requirement::wide: return is_wide();
      case Requirement::in_blocks: return in_blocks;
      case Requirement::short_chain: return in_blocks && nodes <= 4 && ranks <= 8;
      case Requirement::one_node: return nodes == 1;
      default: return true;
    }
  }
};

// So many bytes in all, or for each rank or node.
struct Length {
  enum class Per : std::uint8_t { call, rank, node };
  std::uint64_t bytes = 0;
  Per per = Per::call;
  [[nodiscard]] constexpr std::uint64_t of(const CommTraits& a) const {
    return per == Per::call ? bytes : bytes * static_cast<std::uint64_t>(per == Per::rank ? a.ranks : a.nodes);
  }
};

struct Selection {
  // Which groups: on every level there is, of nodes alone, one chain of all ranks
  // (coll/hierarchy/chain.cpp), or no groups at all.
  enum class Over : std::uint8_t { levels, nodes, chain, ranks };

  Collective collective = Collective::count_;
  // Of a vector, or of all parts together. The last row that a call reaches, and does not exceed,
  // serves the call. Bytes that no rank knows count as 0.
  Length from;
  bool automatic = false;  // measured to be faster than the host's own
  Over over = Over::levels;
  coll::Form form = coll::Form::allreduce_on_top;
  // Flat algorithms by their names; null: the composition's own choice. `down` serves bcasts, `up`
  // reduces, `across` what is done on top. Without groups, `across` serves all ranks.
  const char* down = nullptr;
  const char* up = nullptr;
  const char* across = nullptr;
  Length segment;  // 0: in one piece
  Requirement requirement = Requirement::anywhere;
  unsigned line = 0;                            // of the file of rules (rules.hpp); 0: built in
  int k = 0;                                    // of `down`, `up` or `across`; 0: its default
  const coll_shm::Algorithm* memory = nullptr;  // over shared memory, in place of a schedule
  Length below = {~std::uint64_t{0}};           // of built-in rows
  // A tree without levels: for selections that keep the rank order.
  static constexpr int kAll = 0x7fffffff;

  [[nodiscard]] bool is_flat() const { return over == Over::ranks; }
};

// Null: the selection uses groups.
const coll::Algorithm* flat_of(const Selection& selection);
// Whether each part goes straight between its rank and the root. Then no other rank needs its
// length.
bool is_linear(const Selection& selection);

// The names of compositions, in rules and elsewhere.
struct CompositionName {
  const char* text;
  Selection::Over over;
  coll::Form form;
  const char* former = nullptr;  // an earlier name, which still works
};
inline constexpr CompositionName kCompositions[] = {
    {"hierarchy", Selection::Over::levels, coll::Form::allreduce_on_top},
    {"hierarchy:nodes", Selection::Over::nodes, coll::Form::allreduce_on_top},
    {"hierarchy:reduce_bcast", Selection::Over::levels, coll::Form::reduce_bcast},
    {"hierarchy:rails", Selection::Over::levels, coll::Form::rails},
    {"hierarchy:carriers", Selection::Over::nodes, coll::Form::carriers},
    {"hierarchy:stripes", Selection::Over::levels, coll::Form::stripes},
    {"hierarchy:chain", Selection::Over::chain, coll::Form::allreduce_on_top, "hierarchy:line"},
    {"hierarchy:chain_and_back", Selection::Over::chain, coll::Form::reduce_bcast, "hierarchy:line_and_back"},
};
bool serves(const CompositionName& composition, Collective collective);
// Null: nothing has this name, or it does not serve this collective.
const CompositionName* find_composition(Collective collective, const char* name);
// The groups that a composition is made of.
inline const topo::Hierarchy& levels_of(Selection::Over over, const topo::Hierarchies& hierarchies) {
  return over == Selection::Over::nodes ? hierarchies.nodes : hierarchies.all;
}

// A collective that was not measured has a selection, too, which is not automatic. `commutative`:
// rows of algorithms that need it count; without, they are passed over.
const Selection& selection_across_nodes(Collective collective, const CommTraits& traits, std::uint64_t bytes,
                                        bool commutative = true);
// Of reductions: combined from left to right in rank order, over all ranks.
const Selection& selection_in_order(Collective collective);
// The collectives that some row uses automatically among so many ranks and nodes: bits set by
// Collective.
std::uint32_t automatic_across_nodes(int ranks, int nodes);

// A selection in words, for a call of so many bytes: "ours, over a chain of all ranks by chain, in
// 64 segments; measured to be faster from ...".
struct SelectionWords {
  char text[240];
  SelectionWords(const Selection& selection, const CommTraits& traits, std::uint64_t bytes, bool ours);
  [[gnu::format(printf, 2, 3)]] void set(const char* format, ...);
  void set_memory(const Selection& selection);  // of a call that goes over shared memory
};

int segments_of(const Selection& selection, const CommTraits& traits, std::uint64_t bytes);
// The level of a hierarchy whose groups are nodes; the lowest one, if none is called so.
int node_level(const topo::Hierarchy& hierarchy);
// The plan that a selection stands for on a hierarchy.
coll::HierarchyPlan plan_of(const Selection& selection, const topo::Hierarchy& hierarchy, const CommTraits& traits,
                            std::uint64_t bytes);
// Whether the leaders of nodes can make a call by a schedule of their own, of the levels above the
// node: it goes level by level and in one piece.
bool splits_at_nodes(const Selection& selection, const topo::Hierarchy& hierarchy, const CommTraits& traits,
                     Collective collective, std::uint64_t bytes);
// The schedule of one rank. `bytes` are those that the selection was made by. `leaders`: of the
// levels above the node alone.
coll::Schedule schedule_of(coll::Builder& builder, const Selection& selection, const topo::Hierarchies& hierarchies,
                           const CommTraits& traits, std::uint64_t bytes, const coll::Problem& problem,
                           bool leaders = false);

}  // namespace stretto::select
