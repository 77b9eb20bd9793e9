// SPDX-License-Identifier: BSD-3-Clause
// The statistics as JSON (docs/statistics.md).
#include "mpi/host/call_sites.hpp"
#include "mpi/job/world.hpp"
#include "mpi/overlap/overlap.hpp"
#include "mpi/stats/stats.hpp"
#include "mpi/stats/stats_output.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {
namespace {

using ull = unsigned long long;

// ---- JSON: every rank its own object ----

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
  observe::json_counters(*listing->out, state.counters, [&](StatsText& out, Collective collective) {
    if (const char* const reason = decline_reason(state, collective)) out.add(",\"declined\":\"%s\"", reason);
  });
  listing->out->add("}");
}

void json_site(void* context, const overlap::Sites::Site& site) {
  auto* const listing = static_cast<Listing*>(context);
  listing->out->add("%s\n   {\"op\":\"%s\",\"at\":\"%s\"", listing->comma, site.key.name, Quoted(site.place).text);
  listing->out->add(
      ",\"bytes\":%llu,\"calls\":%llu,\"early\":%llu,\"in_call_ns\":%llu,\"late_ns\":%llu,"
      "\"waited_ns\":%llu,\"waits\":%llu,\"first_ns\":%llu",
      ull{site.key.bytes}, ull{site.counts.calls}, ull{site.counts.early}, ull{site.counts.in_call_ns},
      ull{site.counts.late_ns}, ull{site.counts.waited_ns}, ull{site.counts.waits}, ull{site.counts.first_ns});
  const overlap::DriverWork& work = site.counts.work;
  listing->out->add(",\"faults\":%llu,\"hurries\":%llu,\"publishes\":%llu,\"driver_ns\":%llu", ull{work.faults},
                    ull{work.hurries}, ull{work.publishes}, ull{work.driver_ns});
  listing->out->add(",\"moves\":%llu,\"driver_sleeps\":%llu,\"driver_preemptions\":%llu", ull{work.moves},
                    ull{work.sleeps}, ull{work.preemptions});
  listing->out->add(",\n    \"timeline\":{\"bin_ns\":%llu", ull{site.timeline.bin_ns()});
  observe::json_bins(*listing->out, site.timeline, "in_call_ns", &overlap::Timeline::Bin::in_call_ns);
  observe::json_bins(*listing->out, site.timeline, "late_ns", &overlap::Timeline::Bin::late_ns);
  observe::json_bins(*listing->out, site.timeline, "waited_ns", &overlap::Timeline::Bin::waited_ns);
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

}  // namespace

void json_place(StatsText& out) {
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

namespace {

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
  out.add(",\"mpi\":\"%s\"", Quoted(version).text);
  out.add(",\n \"command\":\"%s\",\n \"options\":[", Quoted(command).text);
  Listing listing = {&out, ""};
  options_describe(options(), json_option, &listing);
  out.add("]");
}

void json_rank(StatsText& out, const RankTotals& totals, const FreedCommunicators* freed, const Waits* waits) {
  out.add("{\"rank\":%d", world().rank);
  json_place(out);
  out.add(",\"run_ns\":%llu,\"in_calls_ns\":%llu", ull{totals.run_ns}, ull{totals.in_calls()});
  if (waits != nullptr) out.add(",\"waiting_ns\":%llu", ull{totals.waiting()});
  observe::json_others(out, totals.others);
  out.add(",\"caller_lookups\":%llu,\"calls_without_slots\":%llu,\n  \"communicators\":[",
          ull{g_caller_lookups.load(std::memory_order_relaxed)}, ull{totals.without_slots});
  Listing listing = {&out, ""};
  communicators_each(json_communicator, &listing);
  out.add("],\n  \"freed\":[");
  const char* comma = "";
  for (const FreedCommunicators* s = freed; s != nullptr; s = s->next) {
    out.add("%s\n   {\"size\":%d,\"communicators\":%llu,", comma, s->size, ull{s->communicators});
    if (s->reason != nullptr) out.add("\"declined\":\"%s\",", s->reason);
    comma = ",";
    json_refused(out, s->refused);
    observe::json_counters(out, s->counters, [](StatsText&, Collective) {});
    out.add("}");
  }
  out.add("]");
  if (const observe::StatsPage* const page = profile_page())
    observe::json_profile(out, page->profile, g_call_modules, waits);
  if (waits != nullptr) observe::json_compared(out, *waits);
  json_overlap(out);
  out.add("}");
}

}  // namespace stretto::mpi
