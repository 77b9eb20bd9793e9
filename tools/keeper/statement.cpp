// SPDX-License-Identifier: BSD-3-Clause
#include "keeper/statement.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/units.hpp"
#include "keeper/open_calls.hpp"
#include "observe/stats_json.hpp"

namespace stretto::keeper {
namespace {

using observe::RankTotals;
using observe::StatsText;
using observe::ull;
// Kept calls of all ranks together, as in mpi/stats/profile.cpp.
constexpr std::size_t kMostKeptBytes = std::size_t{64} << 20;

// All that the texts are made of.
struct Findings {
  int ranks = 0;
  std::uint64_t after_ns = 0;                // from the job's begin to the first end
  std::vector<std::unique_ptr<Account>> of;  // by rank; null: it could not be read
  std::vector<observe::RankWaits> waits;     // by rank
  std::vector<RankTotals> totals;            // of those that could be read
  std::vector<OpenCalls> open;

  explicit Findings(const Accounts& accounts);
};

Findings::Findings(const Accounts& accounts) : ranks(accounts[0]->page.ranks), of(ranks) {
  for (const auto& account : accounts) {
    if (account->page.ranks == ranks) of[account->page.rank] = std::make_unique<Account>(*account);
  }
  std::uint64_t first_ns = UINT64_MAX;  // by the clock of rank 0
  const auto aborts = [](const auto& its) { return its && its->page.aborts.load_acquire() != 0; };
  if (std::ranges::any_of(of, aborts)) {
    for (const auto& its : of) {
      if (its) its->is_first = aborts(its) ? 1 : 0;
    }
  }
  for (const auto& its : of) {
    if (!its) continue;
    its->page.profile.thin(static_cast<std::uint32_t>(kMostKeptBytes / sizeof(observe::KeptCall) / ranks));
    if (its->first_ns != 0) first_ns = std::min(first_ns, its->first_ns - its->page.clock.more_ns);
  }
  open = open_calls(of, first_ns);
  observe::Arrivals arrivals(ranks);
  std::vector<std::vector<observe::KeptCall>> calls(ranks);
  for (int r = 0; r < ranks; ++r) {
    if (!of[r]) {
      arrivals.add({}, nullptr, nullptr);
      continue;
    }
    const observe::StatsPage& page = of[r]->page;
    calls[r].assign(page.profile.kept().begin(), page.profile.kept().end());
    for (const OpenCalls& each : open) {
      if (each.kept.contains(r)) calls[r].push_back(each.kept.at(r));
    }
    arrivals.add({page.profile.origin_ns(),
                  page.clock,
                  {},
                  static_cast<std::uint32_t>(calls[r].size()),
                  page.profile.communicator_count()},
                 page.profile.communicators(), calls[r].data());
  }
  waits.resize(ranks);
  (void)arrivals.compare(waits.data());
  for (int r = 0; r < ranks; ++r) {
    if (!of[r]) continue;
    RankTotals total = {};
    total.rank = r;
    total.counters = of[r]->page.counters;
    const std::uint64_t until_ns = of[r]->gone_ns != 0 ? of[r]->gone_ns : of[r]->now_ns;
    total.run_ns = until_ns - std::min(until_ns, of[r]->page.began_ns);
    total.others = of[r]->page.others.totals();
    observe::set_times(total, &waits[r]);
    totals.push_back(total);
    const std::uint64_t first = first_ns + of[r]->page.clock.more_ns;
    after_ns = std::max(after_ns, first - std::min(first, of[r]->page.began_ns));
  }
}

std::string end_of(const Account& account) {
  if (account.page.aborts.load_acquire() != 0) return "MPI_Abort";
  if (account.gone_ns == 0) return "running";
  if (account.status < 0) return "";
  if (WIFSIGNALED(account.status)) return "signal " + std::to_string(WTERMSIG(account.status));
  return "status " + std::to_string(WEXITSTATUS(account.status));
}

template <class Numbers>
std::string listed(const Numbers& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

std::vector<int> unread(const Findings& findings) {
  std::vector<int> ranks;
  for (int r = 0; r < findings.ranks; ++r) {
    if (!findings.of[r]) ranks.push_back(r);
  }
  return ranks;
}

void json_cut_short(StatsText& out, const Findings& findings) {
  out.add(",\n \"cut_short\":{\"after_ns\":%llu,\"first\":[", ull{findings.after_ns});
  const char* comma = "";
  for (const auto& its : findings.of) {
    if (!its || its->is_first == 0) continue;
    out.add("%s{\"rank\":%d,\"end\":\"%s\"}", comma, its->page.rank, end_of(*its).c_str());
    comma = ",";
  }
  const std::string lacking = listed(unread(findings));
  out.add("],\"not_read\":[");
  out.add_all(lacking.data(), lacking.size());
  out.add("],\"open\":[");
  comma = "";
  for (const OpenCalls& each : findings.open) {
    out.add("%s{\"op\":\"%s\",\"ns\":%llu,\"waiting\":[", comma, kCollectiveNames[static_cast<int>(each.collective)],
            ull{each.longest_ns});
    const std::string waiting = listed(each.waiting), late = listed(each.late);
    out.add_all(waiting.data(), waiting.size());
    out.add("],\"late\":[");
    out.add_all(late.data(), late.size());
    out.add("]}");
    comma = ",";
  }
  out.add("]}");
}

void json_rank(StatsText& out, const Findings& findings, const RankTotals& totals) {
  const observe::StatsPage& page = findings.of[totals.rank]->page;
  const observe::Waits waits = {findings.waits[totals.rank], page.clock.error_ns};
  out.add("{\"rank\":%d", totals.rank);
  out.add_all(page.place, std::strlen(page.place));
  out.add(",\"run_ns\":%llu,\"in_calls_ns\":%llu,\"waiting_ns\":%llu", ull{totals.run_ns}, ull{totals.in_calls()},
          ull{totals.waiting()});
  observe::json_others(out, totals.others);
  out.add(",\"communicators\":[],\"freed\":[],\n  ");
  observe::json_counters(out, totals.counters, [](StatsText&, Collective) {});
  observe::json_profile(out, page.profile, page.modules, &waits);
  observe::json_compared(out, waits);
  out.add("}");
}

const observe::StatsPage& any(const Findings& findings) { return findings.of[findings.totals[0].rank]->page; }

}  // namespace

std::string as_json(const Accounts& accounts) {
  const Findings findings(accounts);
  const observe::StatsPage& page = any(findings);
  StatsText out;
  observe::json_head(out, page.version, page.abi, findings.ranks);
  out.add_all(page.run, std::strlen(page.run));
  json_cut_short(out, findings);
  observe::json_collectives(out, findings.totals.data(), static_cast<int>(findings.totals.size()));
  out.add(",\n \"per_rank\":[\n ");
  for (const RankTotals& totals : findings.totals) {
    json_rank(out, findings, totals);
    out.add("%s\n ", &totals != &findings.totals.back() ? "," : "");
  }
  out.add("]}\n");
  return {out.data(), out.size()};
}

std::string as_text(const Accounts& accounts) {
  const Findings findings(accounts);
  const int count = static_cast<int>(findings.totals.size());
  StatsText out;
  observe::text_head(out, "cut short: sums over all ranks until then", true);
  observe::text_sums(out, findings.totals.data(), count);
  observe::text_run(out, findings.totals.data(), count);
  for (const OpenCalls& each : findings.open) {
    if (each.late.empty()) continue;
    out.add("  at the end rank %s had waited %s in %s for rank %s\n", listed(each.waiting).c_str(),
            format_time(each.longest_ns).text, kCollectiveNames[static_cast<int>(each.collective)],
            listed(each.late).c_str());
  }
  out.add("stretto: the job was cut short after %s", format_time(findings.after_ns).text);
  const char* between = ": ";
  for (const auto& its : findings.of) {
    if (!its || its->is_first == 0 || count < 2) continue;
    const std::string end = end_of(*its);
    out.add("%srank %d ended first%s%s", between, its->page.rank, end.empty() ? "" : " by ", end.c_str());
    between = ", ";
  }
  if (const std::vector<int> lacking = unread(findings); !lacking.empty())
    out.add("; no statistics of rank %s: they are on nodes that could not be reached", listed(lacking).c_str());
  out.add("\n");
  return {out.data(), out.size()};
}

}  // namespace stretto::keeper
