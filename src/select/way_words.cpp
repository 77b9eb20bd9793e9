// SPDX-License-Identifier: BSD-3-Clause
#include <cstdarg>
#include <cstdio>

#include "select/across_nodes.hpp"

namespace stretto::select {
namespace {

const char* over_words(Way::Over over) {
  switch (over) {
    case Way::Over::nodes: return "the leaders of nodes, and within nodes";
    case Way::Over::line: return "a line of all ranks";
    case Way::Over::ranks: return "all ranks, without levels";
    default: return "all levels";
  }
}

const char* form_words(const Way& way) {
  if (way.is_flat()) return "";
  switch (way.form) {
    case coll::Form::reduce_bcast:
      return way.collective == Collective::allreduce ? ", reduced to one rank and back" : "";
    case coll::Form::rails: return ", by all ranks of a node at once";
    case coll::Form::stripes: return ", by one rank for each network card at once";
    default: return way.collective == Collective::allreduce ? ", exchanged on top" : "";
  }
}

// Of ways that are ours: by what, and k where a rule has one.
struct By {
  char text[64];
  explicit By(const Way& way) {
    const char* const name = way.across ? way.across : way.down ? way.down : way.up ? way.up : "the default algorithms";
    std::snprintf(text, sizeof text, way.k == 0 || way.k == Way::kAll ? "%s" : "%s with k = %d", name, way.k);
  }
};

constexpr const char* kPer[] = {"", " a rank", " a node"};

// Where a row begins, and for what; or the line of a rule.
struct Why {
  char text[96];
  Why(const Way& way, bool ours) {
    if (way.k == Way::kAll) {
      std::snprintf(text, sizeof text, "in rank order, as STRETTO_REPRODUCIBLE says");
    } else if (way.line != 0) {
      std::snprintf(text, sizeof text, "line %u of the rules says so", way.line);
    } else if (way.collective == Collective::count_) {
      std::snprintf(text, sizeof text, ours ? "not measured, asked for" : "ours not measured");
    } else if (way.automatic && !ours) {
      std::snprintf(text, sizeof text, "ours not measured here");
    } else {
      const char* const found =
          way.automatic == ours ? "measured to be faster" : "asked for, though the MPI's was faster";
      std::snprintf(text, sizeof text, "%s from %llu bytes%s on", found,
                    static_cast<unsigned long long>(way.from.bytes), kPer[static_cast<int>(way.from.per)]);
    }
  }
};

}  // namespace

void WayWords::set(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
}

WayWords::WayWords(const Way& way, const Among& among, std::uint64_t bytes, bool ours) {
  const Why why(way, ours);
  const int segments = segments_of(way, among, bytes);
  if (ours) {
    set("ours, over %s by %s%s, in %d segment%s; %s", over_words(way.over), By(way).text, form_words(way), segments,
        segments == 1 ? "" : "s", why.text);
  } else {
    set("the MPI's own, %s", why.text);
  }
}

}  // namespace stretto::select
