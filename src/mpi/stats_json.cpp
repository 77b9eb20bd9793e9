// SPDX-License-Identifier: BSD-3-Clause
// The statistics as JSON (docs/statistics.md).
#include <ctime>

#include "mpi/call_sites.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/overlap.hpp"
#include "mpi/stats_output.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {
namespace {

using ull = unsigned long long;

// ---- JSON: every rank its own object ----

void json_counters(StatsText& out, const Counters& counters, const State* state) {
  out.add("\"collectives\":{");
  const char* comma = "";
  for (int c = 0; c < kCollectives; c++) {
    const Counter& counter = counters.of[c];
    if (calls_of(counter) == 0) continue;
    out.add("%s\"%s\":{\"calls\":{", comma, kCollectiveNames[c]);
    comma = ",";
    for (int p = 0; p < kPaths; p++) out.add("%s\"%s\":%llu", p != 0 ? "," : "", kPathNames[p], ull{counter.calls[p]});
    out.add("},\"bytes\":%llu,\"ns\":%llu", ull{counter.bytes}, ull{counter.ns});
    const char* const reason = state != nullptr ? decline_reason(*state, static_cast<Collective>(c)) : nullptr;
    if (reason != nullptr) out.add(",\"declined\":\"%s\"", reason);
    out.add("}");
  }
  out.add("}");
}

struct Listing {
  StatsText* out;
  const char* comma;
};

void json_refused(StatsText& out, const engine::Refused& refused) {
  if (refused.rank < 0) return;
  out.add("\"single_copy_refused\":{\"rank\":%d,\"error\":\"%s\",\"call\":%llu},", refused.rank, refused.error,
          ull{refused.call});
}

void json_communicator(void* context, const State& state) {
  auto* const listing = static_cast<Listing*>(context);
  listing->out->add("%s\n   {\"id\":%llu,\"size\":%d,\"rank\":%d,\"served\":%s,", listing->comma, ull{state.serial},
                    state.size, state.rank, state.engine != nullptr ? "true" : "false");
  listing->comma = ",";
  json_refused(*listing->out, refused_on(state));
  json_counters(*listing->out, state.counters, &state);
  listing->out->add("}");
}

template <class Bin, std::size_t n>
void json_bins(StatsText& out, const BinnedTime<Bin, n>& timeline, const char* name, std::uint64_t Bin::* what) {
  out.add(",\"%s\":[", name);
  for (std::size_t i = 0; i < timeline.used(); ++i) out.add("%s%llu", i != 0 ? "," : "", ull{timeline.bin(i).*what});
  out.add("]");
}

void json_site(void* context, const overlap::Sites::Site& site) {
  auto* const listing = static_cast<Listing*>(context);
  listing->out->add("%s\n   {\"op\":\"%s\",\"at\":\"%s\"", listing->comma, site.key.name, Quoted(site.place).text);
  listing->out->add(
      ",\"bytes\":%llu,\"calls\":%llu,\"early\":%llu,\"in_call_ns\":%llu,\"late_ns\":%llu,"
      "\"waited_ns\":%llu,\"waits\":%llu,\"first_ns\":%llu,\n    \"timeline\":{\"bin_ns\":%llu",
      ull{site.key.bytes}, ull{site.counts.calls}, ull{site.counts.early}, ull{site.counts.in_call_ns},
      ull{site.counts.late_ns}, ull{site.counts.waited_ns}, ull{site.counts.waits}, ull{site.counts.first_ns},
      ull{site.timeline.bin_ns()});
  json_bins(*listing->out, site.timeline, "in_call_ns", &overlap::Timeline::Bin::in_call_ns);
  json_bins(*listing->out, site.timeline, "late_ns", &overlap::Timeline::Bin::late_ns);
  json_bins(*listing->out, site.timeline, "waited_ns", &overlap::Timeline::Bin::waited_ns);
  listing->out->add("}}");
  listing->comma = ",";
}

// Calls that may return early, if there were any.
void json_overlap(StatsText& out) {
  StatsText sites;
  Listing listing = {&sites, ""};
  overlap_each_site(json_site, &listing);
  if (sites.size() == 0) return;
  out.add(",\n  \"overlap\":[");
  out.add_all(sites);
  out.add("]");
}

// ---- What the profile has learnt ----

void json_sizes(StatsText& out, const observe::CallProfile& profile) {
  out.add(",\n  \"sizes\":{");
  const char* comma = "";
  for (unsigned c = 0; c < kCollectives; c++) {
    const observe::SizeCounts& sizes = profile.sizes(c);
    const char* between = "";
    for (unsigned s = 0; s < observe::SizeCounts::kSizes; s++) {
      if (sizes.of[s].calls == 0) continue;
      if (*between == 0) out.add("%s\"%s\":[", comma, kCollectiveNames[c]);
      comma = ",";
      out.add("%s[%llu,%llu,%llu]", between, s == 0 ? 0 : 1ULL << (s - 1), ull{sizes.of[s].calls}, ull{sizes.of[s].ns});
      between = ",";
    }
    if (*between != 0) out.add("]");
  }
  out.add("}");
}

void json_place(StatsText& out, const observe::ProfileSite& site) {
  if (site.text[0] != 0) return out.add("%s", Quoted(site.text).text);
  const shm::Module* const module = site.caller != 0 ? g_call_modules.find(site.caller - 1) : nullptr;
  if (module != nullptr) out.add("%s+0x%llx", Quoted(module->path).text, ull{site.caller - 1 - module->base});
}

// `at` is the number that `behind` of another site names.
void json_sites(StatsText& out, const observe::CallProfile& profile, const observe::RankWaits* waits) {
  out.add(",\n  \"sites\":[");
  const char* comma = "";
  for (unsigned s = 0; s < observe::CallProfile::kSites; s++) {
    if (!profile.is_used(s)) continue;
    const observe::ProfileSite& site = profile.at(s);
    out.add("%s\n   {\"site\":%u,\"op\":\"%s\",\"at\":\"", comma, s,
            kCollectiveNames[static_cast<int>(site.collective)]);
    comma = ",";
    json_place(out, site);
    out.add("\",\"calls\":%llu,\"host\":%llu,\"bytes\":%llu,\"ns\":%llu,\"longest_ns\":%llu", ull{site.calls},
            ull{site.by_host}, ull{site.bytes}, ull{site.ns}, ull{site.longest_ns});
    if (site.behind != 0) out.add(",\"behind\":%d", site.behind - 1);
    if (waits != nullptr && waits->site[s].calls != 0) {
      out.add(",\"compared_calls\":%llu,\"compared_ns\":%llu,\"waiting_ns\":%llu,\"caused_ns\":%llu",
              ull{waits->site[s].calls}, ull{waits->site[s].ns}, ull{waits->site[s].waiting_ns},
              ull{waits->site_caused_ns[s]});
    }
    out.add("}");
  }
  out.add("],\"calls_without_site\":%llu", ull{profile.calls_without_site()});
}

void json_compared(StatsText& out, const Waits& waits) {
  out.add(",\n  \"compared\":{");
  const char* comma = "";
  for (int c = 0; c < kCollectives; c++) {
    const observe::Compared& compared = waits.mine.of[c];
    if (compared.calls == 0) continue;
    out.add("%s\"%s\":{\"calls\":%llu,\"ns\":%llu,\"waiting_ns\":%llu}", comma, kCollectiveNames[c],
            ull{compared.calls}, ull{compared.ns}, ull{compared.waiting_ns});
    comma = ",";
  }
  out.add("},\"late_calls\":%llu,\"caused_ns\":%llu,\"clock_error_ns\":%llu,\n  \"waited_for\":[",
          ull{waits.mine.late_calls}, ull{waits.mine.caused_ns}, ull{waits.clock_error_ns});
  comma = "";
  for (const observe::WaitedFor& other : waits.mine.waited_for) {
    if (other.rank < 0) continue;
    out.add("%s{\"rank\":%d,\"calls\":%u,\"ns\":%llu}", comma, other.rank, other.calls, ull{other.ns});
    comma = ",";
  }
  out.add("]");
}

void json_time(StatsText& out, const observe::CallProfile& profile, const Waits* waits) {
  out.add(",\n  \"timeline\":{\"bin_ns\":%llu", ull{profile.time().bin_ns()});
  json_bins(out, profile.time(), "in_call_ns", &observe::ProfileBin::in_call_ns);
  out.add("}");
  if (waits == nullptr) return;
  out.add(",\n  \"compared_timeline\":{\"bin_ns\":%llu", ull{waits->mine.time.bin_ns()});
  json_bins(out, waits->mine.time, "compared_ns", &observe::ProfileBin::compared_ns);
  json_bins(out, waits->mine.time, "waiting_ns", &observe::ProfileBin::waiting_ns);
  out.add("}");
}

void json_place_of_rank(StatsText& out) {
  char host[sys::kHostNameBytes], cpus[256];
  sys::host_name(host, sizeof host);
  sys::processors_text(cpus, sizeof cpus);
  sys::CpuPlace place = sys::cpu_place();
  out.add(",\"host\":\"%s\",\"pid\":%d,\"cpus\":\"%s\"", Quoted(host).text, sys::process_id(), cpus);
  constexpr struct {
    const char* name;
    sys::CpuDomain kind;
  } kDomains[] = {{"core", sys::CpuDomain::core},
                  {"l3", sys::CpuDomain::l3},
                  {"numa", sys::CpuDomain::numa},
                  {"package", sys::CpuDomain::package}};
  for (const auto& domain : kDomains) {
    if (place.in(domain.kind) >= 0) out.add(",\"%s\":%d", domain.name, place.in(domain.kind));
  }
}

void json_option(void* context, const OptionDescription& option) {
  auto* const listing = static_cast<Listing*>(context);
  if (std::strcmp(option.origin, "default") == 0) return;
  char value[kOptionPathBytes] = "", origin[kOptionPathBytes] = "";
  std::strncpy(value, option.value, sizeof value / 4);
  std::strncpy(origin, option.origin, sizeof origin / 4);
  listing->out->add("%s{\"name\":\"%s\",", listing->comma, option.name);
  listing->out->add("\"value\":\"%s\",", Quoted(value).text);
  listing->out->add("\"origin\":\"%s\"}", Quoted(origin).text);
  listing->comma = ",";
}

}  // namespace

void json_run(StatsText& out) {
  char version[120] = "", command[300] = "";
  host_version(version, sizeof version);
  sys::command_line(command, sizeof command);
  out.add(",\"mpi\":\"%s\",\"ended_s\":%lld", Quoted(version).text, static_cast<long long>(std::time(nullptr)));
  out.add(",\n \"command\":\"%s\",\n \"options\":[", Quoted(command).text);
  Listing listing = {&out, ""};
  options_describe(options(), json_option, &listing);
  out.add("]");
}

void json_rank(StatsText& out, const RankTotals& totals, const FreedCommunicators* freed, const Waits* waits) {
  std::uint64_t in_calls = 0, waiting = 0;
  for (int c = 0; c < kCollectives; c++) {
    in_calls += totals.in_calls_ns[c];
    waiting += totals.waiting_ns[c];
  }
  out.add("{\"rank\":%d", world().rank);
  json_place_of_rank(out);
  out.add(",\"run_ns\":%llu,\"in_calls_ns\":%llu", ull{totals.run_ns}, ull{in_calls});
  if (waits != nullptr) out.add(",\"waiting_ns\":%llu", ull{waiting});
  out.add(",\"caller_lookups\":%llu,\n  \"communicators\":[", ull{g_caller_lookups.load(std::memory_order_relaxed)});
  Listing listing = {&out, ""};
  communicators_each(json_communicator, &listing);
  out.add("],\n  \"freed\":[");
  const char* comma = "";
  for (const FreedCommunicators* s = freed; s != nullptr; s = s->next) {
    out.add("%s\n   {\"size\":%d,\"communicators\":%llu,", comma, s->size, ull{s->communicators});
    if (s->reason != nullptr) out.add("\"declined\":\"%s\",", s->reason);
    comma = ",";
    json_refused(out, s->refused);
    json_counters(out, s->counters, nullptr);
    out.add("}");
  }
  out.add("]");
  if (const observe::CallProfile* const learnt = profile()) {
    json_sizes(out, *learnt);
    json_sites(out, *learnt, waits != nullptr ? &waits->mine : nullptr);
    json_time(out, *learnt, waits);
  }
  if (waits != nullptr) json_compared(out, *waits);
  json_overlap(out);
  out.add("}");
}

}  // namespace stretto::mpi
