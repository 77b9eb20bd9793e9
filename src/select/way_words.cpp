// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include "select/across_nodes.hpp"

namespace stretto::select {
namespace {

const char* over_words(Way::Over over) {
  switch (over) {
    case Way::Over::nodes: return "the leaders of nodes, and within nodes";
    case Way::Over::line: return "a line of all ranks";
    default: return "all levels";
  }
}

const char* form_words(const Way& way) {
  if (way.collective != Collective::allreduce) return "";
  return way.form == coll::AllreduceForm::reduce_bcast ? ", reduced to one rank and back" : ", exchanged on top";
}

// Where a row begins, and for what.
struct Reach {
  char text[64];
  explicit Reach(const Way& way) {
    const char* const each = way.per_rank ? " a rank" : "";
    std::snprintf(text, sizeof text, "from %llu bytes%s on", static_cast<unsigned long long>(way.from_bytes), each);
  }
};

}  // namespace

WayWords::WayWords(const Way& way, std::uint64_t bytes, bool ours) {
  const bool known = way.collective != Collective::count_;
  if (!ours) {
    std::snprintf(text, sizeof text, "the MPI's own, %s %s", known ? "measured to be faster" : "ours not measured", known ? Reach(way).text : "");
    return;
  }
  const int segments = segments_of(way, bytes);
  const char* const algorithm = way.across ? way.across : way.down ? way.down : way.up ? way.up : "the default algorithms";
  std::snprintf(text, sizeof text, "ours, over %s by %s%s, in %d segment%s; %s %s", over_words(way.over), algorithm, form_words(way), segments,
                segments == 1 ? "" : "s", !known ? "not measured, asked for" : way.automatic ? "measured to be faster" : "asked for, though the MPI's was faster",
                Reach(way).text);
}

}  // namespace stretto::select
