// SPDX-License-Identifier: BSD-3-Clause
// What ranks count, summed: over a rank's communicators, then over ranks.
#pragma once
#include <cstdint>
#include <numeric>

#include "observe/arrivals.hpp"
#include "observe/other_calls.hpp"
#include "observe/stats_text.hpp"

namespace stretto::observe {

struct Counter {
  std::uint64_t calls[kPaths];
  std::uint64_t bytes;  // sent and received by this rank through the engine
  std::uint64_t ns;     // time in these calls, with STRETTO_STATS
};
struct Counters {
  Counter of[kCollectives];
};

std::uint64_t calls_of(const Counter& counter);
void add(Counters& sum, const Counters& more);

// What a rank counts on all its communicators, and of this the time in which it waited.
struct RankTotals {
  int rank;
  Counters counters;
  std::uint64_t run_ns;
  std::uint64_t without_slots;  // calls (shm/lane.hpp)
  std::uint64_t in_calls_ns[kCollectives], waiting_ns[kCollectives];
  OtherTotals others;

  // In collectives of all kinds.
  [[nodiscard]] std::uint64_t in_calls() const { return std::reduce(in_calls_ns, in_calls_ns + kCollectives); }
  [[nodiscard]] std::uint64_t waiting() const { return std::reduce(waiting_ns, waiting_ns + kCollectives); }
};

// The calls that were compared stand for all of their collective. `waits`: null if none were.
void set_times(RankTotals& totals, const RankWaits* waits);
// Of all ranks: calls, bytes and times are sums.
RankTotals sum_of(const RankTotals* all, int count);

// ,"collectives":{...}: sums over all ranks, and the ranks with the least and the most time.
void json_collectives(StatsText& out, const RankTotals* all, int count);

// The same as text: a head, a line for each collective, and at the end what the run came to.
void text_head(StatsText& out, const char* whose, bool of_all);
void text_counter(StatsText& out, int collective, const Counter& counter);  // without the line's end
void text_sums(StatsText& out, const RankTotals* all, int count);
void text_run(StatsText& out, const RankTotals* all, int count);

}  // namespace stretto::observe
