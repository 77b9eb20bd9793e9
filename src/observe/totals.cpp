// SPDX-License-Identifier: BSD-3-Clause
#include "observe/totals.hpp"

#include "base/units.hpp"

namespace stretto::observe {
namespace {

// The ranks that took least and most time for a collective.
struct Balance {
  const RankTotals *least, *most;
};
Balance balance_of(const RankTotals* all, int count, int collective) {
  Balance balance = {all, all};
  for (const RankTotals* r = all; r != all + count; ++r) {
    if (r->in_calls_ns[collective] < balance.least->in_calls_ns[collective]) balance.least = r;
    if (r->in_calls_ns[collective] > balance.most->in_calls_ns[collective]) balance.most = r;
  }
  return balance;
}

// By path. JSON has the names of kPathNames.
constexpr const char* kPathHeadings[kPaths] = {"short", "two copies", "one copy", "scheduled", "early", "by the MPI"};

}  // namespace

std::uint64_t calls_of(const Counter& counter) {
  std::uint64_t calls = 0;
  for (const std::uint64_t n : counter.calls) calls += n;
  return calls;
}

void add(Counters& sum, const Counters& more) {
  for (int c = 0; c < kCollectives; ++c) {
    for (int p = 0; p < kPaths; ++p) sum.of[c].calls[p] += more.of[c].calls[p];
    sum.of[c].bytes += more.of[c].bytes;
    sum.of[c].ns += more.of[c].ns;
  }
}

void set_times(RankTotals& totals, const RankWaits* waits) {
  for (int c = 0; c < kCollectives; ++c) {
    const std::uint64_t ns = totals.in_calls_ns[c] = totals.counters.of[c].ns;
    const Compared compared = waits != nullptr ? waits->of[c] : Compared{};
    if (compared.ns == 0) continue;
    const double part = static_cast<double>(compared.waiting_ns) / static_cast<double>(compared.ns);
    totals.waiting_ns[c] = static_cast<std::uint64_t>(part * static_cast<double>(ns));
  }
}

RankTotals sum_of(const RankTotals* all, int count) {
  RankTotals sum = {};
  for (int r = 0; r < count; ++r) {
    add(sum.counters, all[r].counters);
    sum.run_ns += all[r].run_ns;
    sum.without_slots += all[r].without_slots;
    sum.others.add(all[r].others);
    for (int c = 0; c < kCollectives; ++c) {
      sum.in_calls_ns[c] += all[r].in_calls_ns[c];
      sum.waiting_ns[c] += all[r].waiting_ns[c];
    }
  }
  return sum;
}

void json_collectives(StatsText& out, const RankTotals* all, int count) {
  const RankTotals sum = sum_of(all, count);
  out.add(",\n \"collectives\":{");
  const char* comma = "";
  for (int c = 0; c < kCollectives; ++c) {
    const Counter& counter = sum.counters.of[c];
    if (calls_of(counter) == 0) continue;
    const Balance balance = balance_of(all, count, c);
    out.add("%s\"%s\":{\"calls\":%llu,\"bytes\":%llu,\"ns\":%llu,\"waiting_ns\":%llu,", comma, kCollectiveNames[c],
            ull{calls_of(counter)}, ull{counter.bytes}, ull{counter.ns}, ull{sum.waiting_ns[c]});
    out.add("\"least\":{\"rank\":%d,\"ns\":%llu},\"most\":{\"rank\":%d,\"ns\":%llu}}", balance.least->rank,
            ull{balance.least->in_calls_ns[c]}, balance.most->rank, ull{balance.most->in_calls_ns[c]});
    comma = ",";
  }
  out.add("}");
}

void text_head(StatsText& out, const char* whose, bool of_all) {
  out.add("stretto statistics, %s\n    %-12s", whose, "collective");
  for (const char* path : kPathHeadings) out.add(" %10s", path);
  out.add(" %10s %10s%s\n", "bytes", "time", of_all ? "  least and most" : "");
}

void text_counter(StatsText& out, int collective, const Counter& counter) {
  out.add("    %-12s", kCollectiveNames[collective]);
  for (const std::uint64_t calls : counter.calls) out.add(" %10llu", ull{calls});
  out.add(" %10s %10s", format_amount(counter.bytes).text, format_time(counter.ns).text);
}

void text_sums(StatsText& out, const RankTotals* all, int count) {
  const RankTotals sum = sum_of(all, count);
  for (int c = 0; c < kCollectives; ++c) {
    if (calls_of(sum.counters.of[c]) == 0) continue;
    text_counter(out, c, sum.counters.of[c]);
    const Balance balance = balance_of(all, count, c);
    out.add("  %s on rank %d to %s on rank %d\n", format_time(balance.least->in_calls_ns[c]).text, balance.least->rank,
            format_time(balance.most->in_calls_ns[c]).text, balance.most->rank);
  }
}

// Means of the ranks.
void text_run(StatsText& out, const RankTotals* all, int count) {
  const RankTotals sum = sum_of(all, count);
  const auto ranks = static_cast<std::uint64_t>(count);
  const double part = sum.run_ns != 0 ? static_cast<double>(sum.in_calls()) / static_cast<double>(sum.run_ns) : 0;
  out.add("run %s; collectives %s (%.0f%%), of which waiting %s\n", format_time(sum.run_ns / ranks).text,
          format_time(sum.in_calls() / ranks).text, 100 * part, format_time(sum.waiting() / ranks).text);
  text_others(out, sum.others, sum.run_ns, ranks);
}

}  // namespace stretto::observe
