// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/stats/stats.hpp"

#include <cstdlib>
#include <cstring>

#include "base/log.hpp"
#include "base/units.hpp"
#include "mpi/job/process.hpp"
#include "mpi/job/world.hpp"
#include "mpi/overlap/overlap.hpp"
#include "mpi/state/neighborhood.hpp"
#include "mpi/stats/keeper.hpp"
#include "mpi/stats/stats_output.hpp"
#include "mpi/vendor/vendor.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {
namespace {

// ---- Freed communicators ----

constinit FreedCommunicators* g_freed = nullptr;  // one for each size and reason; the communicators' lock guards it

// ---- What this rank counts ----

void sum_communicator(void* context, const State& state) {
  observe::add(*static_cast<Counters*>(context), state.counters);
}

RankTotals own_totals(const Waits* waits) {
  RankTotals totals = {};
  communicators_each(sum_communicator, &totals.counters);
  for (const FreedCommunicators* s = g_freed; s != nullptr; s = s->next) observe::add(totals.counters, s->counters);
  totals.rank = world().rank;
  totals.run_ns = profile_ns();
  totals.without_slots = process_calls_without_slots();
  if (const observe::StatsPage* const page = profile_page()) totals.others = page->others.totals();
  observe::set_times(totals, waits != nullptr ? &waits->mine : nullptr);
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

// ---- The whole report ----

void write_out(const StatsText& text) {
  const char* const path = keeper_path();
  if (*path == 0) return sys::error_write(text.data(), text.size());
  int error = sys::folders_make(path);
  if (error == 0) error = sys::output_write(path, text.data(), text.size());
  if (error != 0) log_line(LogLevel::error, "STRETTO_STATS: cannot write %s: %s", path, std::strerror(error));
}

using ull = unsigned long long;

// ---- JSON ----

void json_head(StatsText& out, int ranks) {
  observe::json_head(out, STRETTO_VERSION, vendor::kAbi, ranks);
  json_run(out);
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
    observe::json_collectives(out, all, size);
    out.add(",\n \"per_rank\":[\n ");
    for (int r = 0; r < size; ++r) {
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

void text_counters(StatsText& out, const Counters& counters, const State* state) {
  for (int c = 0; c < kCollectives; ++c) {
    if (observe::calls_of(counters.of[c]) == 0) continue;
    observe::text_counter(out, c, counters.of[c]);
    const char* const reason = state != nullptr ? decline_reason(*state, static_cast<Collective>(c)) : nullptr;
    if (reason != nullptr) out.add("  %s", reason);
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
  for (const Counter& counter : state.counters.of) calls += observe::calls_of(counter);
  if (calls == 0) return;
  StatsText& out = *static_cast<StatsText*>(context);
  out.add("  communicator %llu, %d ranks\n", ull{state.serial}, state.size);
  text_refused(out, refused_on(state));
  text_counters(out, state.counters, &state);
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

void text_without_slots(StatsText& out, std::uint64_t calls) {
  if (calls != 0) out.add("  %llu calls found no payload slots free: their data went in small pieces\n", ull{calls});
}

// Rank 0 shows the sums over all ranks, and its own communicators.
void text_gathered(const RankTotals* all) {
  if (world().rank != 0) return;
  const int size = world().size;
  StatsText out;
  observe::text_head(out, "sums over all ranks, then rank 0 by communicator", true);
  observe::text_sums(out, all, size);
  text_without_slots(out, observe::sum_of(all, size).without_slots);
  text_communicators(out);
  observe::text_run(out, all, size);
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
    observe::text_head(out, "this process", false);
    text_without_slots(out, totals.without_slots);
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
  ++s->communicators;
  if (s->refused.rank < 0) s->refused = refused_on(state);
  observe::add(s->counters, state.counters);
}

void stats_report(bool gather) {
  const std::uint64_t without_slots = options().explain() ? process_calls_without_slots() : 0;
  if (without_slots != 0)
    log_explain("%llu calls of rank %d found no payload slots free: their data went in small pieces",
                ull{without_slots}, world().rank);
  if (options().stats() == StatsFormat::off) return;
  gather ? gathered_report() : alone();
  keeper_end();
}

}  // namespace stretto::mpi
