// SPDX-License-Identifier: BSD-3-Clause
// The parts of the statistics' JSON (docs/statistics.md) that need no MPI.
#pragma once
#include "observe/totals.hpp"
#include "shm/call_sites.hpp"

namespace stretto::observe {

// From the brace on: the keys up to `ranks`, and the time.
void json_head(StatsText& out, const char* version, const char* abi, int ranks);

// "collectives":{...}. `more` adds a key to a collective's object.
template <class More>
void json_counters(StatsText& out, const Counters& counters, More more) {
  out.add("\"collectives\":{");
  const char* comma = "";
  for (int c = 0; c < kCollectives; ++c) {
    const Counter& counter = counters.of[c];
    if (calls_of(counter) == 0) continue;
    out.add("%s\"%s\":{\"calls\":{", comma, kCollectiveNames[c]);
    comma = ",";
    for (int p = 0; p < kPaths; ++p) out.add("%s\"%s\":%llu", p != 0 ? "," : "", kPathNames[p], ull{counter.calls[p]});
    out.add("},\"bytes\":%llu,\"ns\":%llu", ull{counter.bytes}, ull{counter.ns});
    more(out, static_cast<Collective>(c));
    out.add("}");
  }
  out.add("}");
}

template <class Bin, std::size_t n>
void json_bins(StatsText& out, const BinnedTime<Bin, n>& timeline, const char* name, std::uint64_t Bin::* what) {
  out.add(",\"%s\":[", name);
  for (std::size_t i = 0; i < timeline.used(); ++i) out.add("%s%llu", i != 0 ? "," : "", ull{timeline.bin(i).*what});
  out.add("]");
}

// What the profile has learnt: `sizes`, `sites`, `timeline` and `compared_timeline`. `modules` has
// the files in which the sites' addresses lie. `waits`: null if calls have not been compared.
void json_profile(StatsText& out, const CallProfile& profile, const shm::Modules& modules, const Waits* waits);
// `compared`, and for whom the rank has waited.
void json_compared(StatsText& out, const Waits& waits);

}  // namespace stretto::observe
