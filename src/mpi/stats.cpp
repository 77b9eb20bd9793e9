// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/stats.hpp"

#include <cstdio>
#include <cstdlib>

#include "base/log.hpp"
#include "base/units.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/neighborhood.hpp"
#include "mpi/overlap.hpp"
#include "mpi/stats_output.hpp"
#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi {
namespace {

// ---- Freed communicators ----

constinit FreedCommunicators* g_freed = nullptr;  // one for each size and reason; the communicators' lock guards it

void add(Counters& sum, const Counters& more) {
  for (int c = 0; c < kCollectives; c++) {
    for (int p = 0; p < kPaths; p++) sum.of[c].calls[p] += more.of[c].calls[p];
    sum.of[c].bytes += more.of[c].bytes;
    sum.of[c].ns += more.of[c].ns;
  }
}

// ---- What this rank counts ----

void sum_communicator(void* context, const State& state) { add(*static_cast<Counters*>(context), state.counters); }

RankTotals own_totals(const Waits* waits) {
  RankTotals totals = {};
  communicators_each(sum_communicator, &totals.counters);
  for (const FreedCommunicators* s = g_freed; s != nullptr; s = s->next) add(totals.counters, s->counters);
  totals.run_ns = profile_ns();
  for (int c = 0; c < kCollectives; c++) {
    const std::uint64_t ns = totals.in_calls_ns[c] = totals.counters.of[c].ns;
    const observe::Compared compared = waits != nullptr ? waits->mine.of[c] : observe::Compared{};
    if (compared.ns == 0) continue;
    const double part = static_cast<double>(compared.waiting_ns) / static_cast<double>(compared.ns);
    totals.waiting_ns[c] = static_cast<std::uint64_t>(part * static_cast<double>(ns));
  }
  return totals;
}

// ---- What all ranks count ----

// Rank 0 has those of all ranks. The caller frees the array.
RankTotals* gather_totals(const RankTotals& mine) {
  const Constants& c = host().constants;
  auto* const all = static_cast<RankTotals*>(std::malloc(static_cast<std::size_t>(world().size) * sizeof mine));
  if (all == nullptr) std::abort();  // the other ranks wait already
  host().Gather(&mine, sizeof mine, c.byte, all, sizeof mine, c.byte, 0, c.comm_world);
  return all;
}

// The ranks that took least and most time for a collective.
struct Balance {
  int least = 0, most = 0;
};
Balance balance_of(const RankTotals* all, int ranks, int collective) {
  Balance balance;
  const auto ns = [&](int r) { return all[r].in_calls_ns[collective]; };
  for (int r = 1; r < ranks; r++) {
    if (ns(r) < ns(balance.least)) balance.least = r;
    if (ns(r) > ns(balance.most)) balance.most = r;
  }
  return balance;
}

// Of all ranks: calls and bytes are sums.
RankTotals sum_of(const RankTotals* all, int ranks) {
  RankTotals sum = {};
  for (int r = 0; r < ranks; r++) {
    add(sum.counters, all[r].counters);
    sum.run_ns += all[r].run_ns;
    for (int c = 0; c < kCollectives; c++) {
      sum.in_calls_ns[c] += all[r].in_calls_ns[c];
      sum.waiting_ns[c] += all[r].waiting_ns[c];
    }
  }
  return sum;
}

// ---- The whole report ----

void write_out(const StatsText& text) {
  const char* const path = options().stats_path;
  std::FILE* const file = *path != 0 ? std::fopen(path, "w") : stderr;
  if (file == nullptr) {
    log_line(LogLevel::error, "STRETTO_STATS: cannot write %s", path);
    return;
  }
  const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((file == stderr ? std::fflush(file) : std::fclose(file)) != 0 || !whole) {
    log_line(LogLevel::error, "STRETTO_STATS: writing %s failed", *path != 0 ? path : "to standard error");
  }
}

using ull = unsigned long long;

// ---- JSON ----

void json_head(StatsText& out, int ranks) {
  out.add("{\"schema\":\"stretto.stats/1\",\"stretto\":\"%s\",\"abi\":\"%s\",\"ranks\":%d", STRETTO_VERSION,
          vendor::kAbi, ranks);
  json_run(out);
}

// Sums over all ranks, and the ranks with the least and the most time.
void json_collectives(StatsText& out, const RankTotals* all, int ranks) {
  const RankTotals sum = sum_of(all, ranks);
  out.add(",\n \"collectives\":{");
  const char* comma = "";
  for (int c = 0; c < kCollectives; c++) {
    const Counter& counter = sum.counters.of[c];
    if (calls_of(counter) == 0) continue;
    const Balance balance = balance_of(all, ranks, c);
    out.add("%s\"%s\":{\"calls\":%llu,\"bytes\":%llu,\"ns\":%llu,\"waiting_ns\":%llu,", comma, kCollectiveNames[c],
            ull{calls_of(counter)}, ull{counter.bytes}, ull{counter.ns}, ull{sum.waiting_ns[c]});
    out.add("\"least\":{\"rank\":%d,\"ns\":%llu},\"most\":{\"rank\":%d,\"ns\":%llu}}", balance.least,
            ull{all[balance.least].in_calls_ns[c]}, balance.most, ull{all[balance.most].in_calls_ns[c]});
    comma = ",";
  }
  out.add("}");
}

// Rank 0 writes the objects of all ranks.
void json_gathered(const RankTotals& totals, const RankTotals* all, const Waits& waits) {
  StatsText mine;
  json_rank(mine, totals, g_freed, &waits);
  const int size = world().size;
  const Gathered gathered = gather_bytes(mine.data(), mine.size());
  if (gathered.all != nullptr) {
    StatsText out;
    json_head(out, size);
    json_collectives(out, all, size);
    out.add(",\n \"per_rank\":[\n ");
    for (int r = 0; r < size; r++) {
      out.add_all(gathered.all + gathered.lengths[size + r], static_cast<std::size_t>(gathered.lengths[r]));
      out.add("%s\n ", r + 1 < size ? "," : "");
    }
    out.add("]}\n");
    write_out(out);
  }
  std::free(gathered.all);
  std::free(gathered.lengths);
}

// ---- Text ----

// `all`: of all ranks, if the counters are their sums.
void text_counters(StatsText& out, const Counters& counters, const State* state, const RankTotals* all = nullptr) {
  for (int c = 0; c < kCollectives; c++) {
    const Counter& counter = counters.of[c];
    if (calls_of(counter) == 0) continue;
    out.add("    %-12s", kCollectiveNames[c]);
    for (int p = 0; p < kPaths; p++) out.add(" %10llu", ull{counter.calls[p]});
    out.add(" %10s %10s", format_amount(counter.bytes).text, format_time(counter.ns).text);
    const char* const reason = state != nullptr ? decline_reason(*state, static_cast<Collective>(c)) : nullptr;
    if (reason != nullptr) out.add("  %s", reason);
    if (all != nullptr) {
      const Balance balance = balance_of(all, world().size, c);
      out.add("  %s on rank %d to %s on rank %d", format_time(all[balance.least].in_calls_ns[c]).text, balance.least,
              format_time(all[balance.most].in_calls_ns[c]).text, balance.most);
    }
    out.add("\n");
  }
}

void text_refused(StatsText& out, const engine::Refused& refused) {
  if (refused.rank < 0) return;
  out.add("    single copy was refused to rank %d: %s, ", refused.rank, refused.error);
  if (refused.call == 0) {
    out.add("from the start\n");
  } else {
    out.add("in call %llu\n", ull{refused.call});
  }
}

void text_communicator(void* context, const State& state) {
  std::uint64_t calls = 0;
  for (const Counter& counter : state.counters.of) calls += calls_of(counter);
  if (calls == 0) return;
  StatsText& out = *static_cast<StatsText*>(context);
  out.add("  communicator %llu, %d ranks\n", ull{state.serial}, state.size);
  text_refused(out, refused_on(state));
  text_counters(out, state.counters, &state);
}

void text_head(StatsText& out, const char* whose, bool of_all) {
  out.add("stretto statistics, %s\n    %-12s", whose, "collective");
  for (const char* path : kPathNames) out.add(" %10s", path);
  out.add(" %10s %10s%s\n", "bytes", "time", of_all ? "  least and most" : "");
}

void text_site(void* context, const overlap::Sites::Site& site) {
  const overlap::SiteCounts& counts = site.counts;
  const auto each = [](std::uint64_t ns, std::uint64_t calls) { return format_time(calls != 0 ? ns / calls : 0); };
  static_cast<StatsText*>(context)->add(
      "    %s of %s%s%s: %llu of %llu calls returned early, after %s on average; their data were there %s later, of "
      "which "
      "the program waited %s, from %s on in %llu calls\n",
      site.key.name, format_amount(site.key.bytes).text, site.place[0] != 0 ? " at " : "", site.place,
      ull{counts.early}, ull{counts.calls}, each(counts.in_call_ns, counts.calls).text,
      each(counts.late_ns, counts.early).text, each(counts.waited_ns, counts.early).text,
      each(counts.first_ns, counts.waits).text, ull{counts.waits});
}

void text_communicators(StatsText& out) {
  communicators_each(text_communicator, &out);
  for (const FreedCommunicators* s = g_freed; s != nullptr; s = s->next) {
    out.add("  %llu freed communicators of %d ranks%s%s\n", ull{s->communicators}, s->size,
            s->reason != nullptr ? ": " : "", s->reason != nullptr ? s->reason : "");
    text_refused(out, s->refused);
    text_counters(out, s->counters, nullptr);
  }
  StatsText sites;
  overlap_each_site(text_site, &sites);
  if (sites.size() == 0) return;
  out.add("  calls that may return before their data are there, on this rank\n");
  out.add_all(sites);
}

// Means of the ranks.
void text_run(StatsText& out, const RankTotals& sum, std::uint64_t ranks) {
  std::uint64_t in_calls = 0, waiting = 0;
  for (int c = 0; c < kCollectives; c++) {
    in_calls += sum.in_calls_ns[c];
    waiting += sum.waiting_ns[c];
  }
  const double part = sum.run_ns != 0 ? static_cast<double>(in_calls) / static_cast<double>(sum.run_ns) : 0;
  out.add("run %s; collectives %s (%.0f%%), of which waiting %s\n", format_time(sum.run_ns / ranks).text,
          format_time(in_calls / ranks).text, 100 * part, format_time(waiting / ranks).text);
}

// Rank 0 shows the sums over all ranks, and its own communicators.
void text_gathered(const RankTotals* all) {
  if (world().rank != 0) return;
  const RankTotals sum = sum_of(all, world().size);
  StatsText out;
  text_head(out, "sums over all ranks, then rank 0 by communicator", true);
  text_counters(out, sum.counters, nullptr, all);
  text_communicators(out);
  text_run(out, sum, static_cast<std::uint64_t>(world().size));
  write_out(out);
}

void gathered_report() {
  Waits* const waits = profile_compare();
  const RankTotals totals = own_totals(waits);
  RankTotals* const all = gather_totals(totals);
  options().stats() == StatsFormat::json ? json_gathered(totals, all, *waits) : text_gathered(all);
  std::free(all);
  std::free(waits);
}

void alone() {
  StatsText out;
  const RankTotals totals = own_totals(nullptr);
  if (options().stats() == StatsFormat::json) {
    json_head(out, 1);
    out.add(",\n \"per_rank\":[\n ");
    json_rank(out, totals, g_freed, nullptr);
    out.add("]}\n");
  } else {
    text_head(out, "this process", false);
    text_communicators(out);
  }
  write_out(out);
}

}  // namespace

const char* decline_reason(const State& state, Collective collective) {
  if ((state.scheduled >> static_cast<int>(collective) & 1) != 0) return nullptr;
  if (state.engine == nullptr) return state.reason;
  if ((unable_on(state) >> static_cast<int>(collective) & 1) != 0) return "the communicator has no topology";
  return (state.served >> static_cast<int>(collective) & 1) != 0 ? nullptr : "left to the MPI by an option";
}

void stats_fold(const State& state) {
  FreedCommunicators* s = g_freed;
  while (s != nullptr && (s->size != state.size || s->reason != state.reason)) s = s->next;
  if (s == nullptr) {
    s = static_cast<FreedCommunicators*>(std::calloc(1, sizeof(FreedCommunicators)));
    if (s == nullptr) return;
    s->size = state.size;
    s->refused = {};
    s->reason = state.reason;
    s->next = g_freed;
    g_freed = s;
  }
  s->communicators++;
  if (s->refused.rank < 0) s->refused = refused_on(state);
  add(s->counters, state.counters);
}

void stats_report(bool gather) {
  if (options().stats() == StatsFormat::off) return;
  gather ? gathered_report() : alone();
}

}  // namespace stretto::mpi
