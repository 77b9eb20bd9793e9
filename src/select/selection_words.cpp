// SPDX-License-Identifier: BSD-3-Clause
// A selection in the user's words, for STRETTO_EXPLAIN.
#include <cstdarg>
#include <cstdio>

#include "select/across_nodes.hpp"

namespace stretto::select {
namespace {

const char* over_words(Selection::Over over) {
  switch (over) {
    case Selection::Over::nodes: return "the leaders of nodes, and within nodes";
    case Selection::Over::chain: return "a chain of all ranks";
    case Selection::Over::ranks: return "all ranks, without levels";
    default: return "all levels";
  }
}

const char* form_words(const Selection& selection) {
  if (selection.is_flat()) return "";
  switch (selection.form) {
    case coll::Form::reduce_bcast:
      return selection.collective == Collective::allreduce ? ", reduced to one rank and back" : "";
    case coll::Form::rails: return ", by all ranks of a node at once";
    case coll::Form::carriers: return ", short blocks by one rank of a node for each other node";
    case coll::Form::stripes: return ", by one rank for each network card at once";
    default: return selection.collective == Collective::allreduce ? ", exchanged on top" : "";
  }
}

// The algorithm of a selection of ours, and k where a rule has one.
struct By {
  char text[64];
  explicit By(const Selection& selection) {
    const char* const name = selection.across ? selection.across
                             : selection.down ? selection.down
                             : selection.up   ? selection.up
                                              : "the default algorithms";
    const coll::Algorithm* const algorithm = coll::find_algorithm(selection.collective, name);
    if (algorithm != nullptr && algorithm->is != nullptr)
      std::snprintf(text, sizeof text, "%s (%s)", name, algorithm->is);
    else
      std::snprintf(text, sizeof text, selection.k == 0 || selection.k == Selection::kAll ? "%s" : "%s with k = %d",
                    name, selection.k);
  }
};

constexpr const char* kPer[] = {"", " a rank", " a node"};

// Where a row begins, and for what; or the line of a rule.
struct Why {
  char text[96];
  Why(const Selection& selection, bool ours) {
    if (selection.k == Selection::kAll) {
      std::snprintf(text, sizeof text, "in rank order, as STRETTO_REPRODUCIBLE says");
    } else if (selection.line != 0) {
      std::snprintf(text, sizeof text, "line %u of the rules says so", selection.line);
    } else if (selection.collective == Collective::count_) {
      std::snprintf(text, sizeof text, ours ? "not measured, asked for" : "ours not measured");
    } else if (selection.automatic && !ours) {
      std::snprintf(text, sizeof text, "ours not measured here");
    } else {
      const char* const faster =
          selection.requirement == Requirement::many || selection.requirement == Requirement::many_nodes
              ? "faster in simulations"
              : "measured to be faster";
      const char* const found = selection.automatic == ours ? faster : "asked for, though the MPI's was faster";
      std::snprintf(text, sizeof text, "%s from %llu bytes%s on", found,
                    static_cast<unsigned long long>(selection.from.bytes), kPer[static_cast<int>(selection.from.per)]);
    }
  }
};

}  // namespace

void SelectionWords::set(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
}

void SelectionWords::set_memory(const Selection& selection) {
  if (selection.memory == nullptr) return set("ours, over shared memory");
  set("ours, over shared memory by %s; %s", selection.memory->name, Why(selection, true).text);
}

SelectionWords::SelectionWords(const Selection& selection, const CommTraits& traits, std::uint64_t bytes, bool ours) {
  const Why why(selection, ours);
  const int segments = segments_of(selection, traits, bytes);
  if (ours) {
    set("ours, over %s by %s%s, in %d segment%s; %s", over_words(selection.over), By(selection).text,
        form_words(selection), segments, segments == 1 ? "" : "s", why.text);
  } else {
    set("the MPI's own, %s", why.text);
  }
}

}  // namespace stretto::select
