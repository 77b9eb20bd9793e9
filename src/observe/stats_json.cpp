// SPDX-License-Identifier: BSD-3-Clause
#include "observe/stats_json.hpp"

#include <ctime>

namespace stretto::observe {
namespace {

void json_sizes(StatsText& out, const CallProfile& profile) {
  out.add(",\n  \"sizes\":{");
  const char* comma = "";
  for (unsigned c = 0; c < kCollectives; ++c) {
    const SizeCounts& sizes = profile.sizes(c);
    const char* between = "";
    for (unsigned s = 0; s < SizeCounts::kSizes; ++s) {
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

void json_place(StatsText& out, const ProfileSite& site, const shm::Modules& modules) {
  if (site.text[0] != 0) return out.add("%s", Quoted(site.text).text);
  const shm::Module* const module = site.caller != 0 ? modules.find(site.caller - 1) : nullptr;
  if (module != nullptr) out.add("%s+0x%llx", Quoted(module->path).text, ull{site.caller - 1 - module->base});
}

// `at` is the number that `behind` of another site names.
void json_sites(StatsText& out, const CallProfile& profile, const shm::Modules& modules, const RankWaits* waits) {
  out.add(",\n  \"sites\":[");
  const char* comma = "";
  for (unsigned s = 0; s < CallProfile::kSites; ++s) {
    if (!profile.is_used(s)) continue;
    const ProfileSite& site = profile.at(s);
    out.add("%s\n   {\"site\":%u,\"op\":\"%s\",\"at\":\"", comma, s,
            kCollectiveNames[static_cast<int>(site.collective)]);
    comma = ",";
    json_place(out, site, modules);
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

void json_time(StatsText& out, const CallProfile& profile, const Waits* waits) {
  out.add(",\n  \"timeline\":{\"bin_ns\":%llu", ull{profile.time().bin_ns()});
  json_bins(out, profile.time(), "in_call_ns", &ProfileBin::in_call_ns);
  out.add("}");
  if (waits == nullptr) return;
  out.add(",\n  \"compared_timeline\":{\"bin_ns\":%llu", ull{waits->mine.time.bin_ns()});
  json_bins(out, waits->mine.time, "compared_ns", &ProfileBin::compared_ns);
  json_bins(out, waits->mine.time, "waiting_ns", &ProfileBin::waiting_ns);
  out.add("}");
}

}  // namespace

void json_head(StatsText& out, const char* version, const char* abi, int ranks) {
  out.add("{\"schema\":\"stretto.stats/1\",\"stretto\":\"%s\",\"abi\":\"%s\",\"ranks\":%d", version, abi, ranks);
  out.add(",\"ended_s\":%lld", static_cast<long long>(std::time(nullptr)));
}

void json_profile(StatsText& out, const CallProfile& profile, const shm::Modules& modules, const Waits* waits) {
  json_sizes(out, profile);
  json_sites(out, profile, modules, waits != nullptr ? &waits->mine : nullptr);
  json_time(out, profile, waits);
}

void json_compared(StatsText& out, const Waits& waits) {
  out.add(",\n  \"compared\":{");
  const char* comma = "";
  for (int c = 0; c < kCollectives; ++c) {
    const Compared& compared = waits.mine.of[c];
    if (compared.calls == 0) continue;
    out.add("%s\"%s\":{\"calls\":%llu,\"ns\":%llu,\"waiting_ns\":%llu}", comma, kCollectiveNames[c],
            ull{compared.calls}, ull{compared.ns}, ull{compared.waiting_ns});
    comma = ",";
  }
  out.add("},\"late_calls\":%llu,\"caused_ns\":%llu,\"clock_error_ns\":%llu,\n  \"waited_for\":[",
          ull{waits.mine.late_calls}, ull{waits.mine.caused_ns}, ull{waits.clock_error_ns});
  comma = "";
  for (const WaitedFor& other : waits.mine.waited_for) {
    if (other.rank < 0) continue;
    out.add("%s{\"rank\":%d,\"calls\":%u,\"ns\":%llu}", comma, other.rank, other.calls, ull{other.ns});
    comma = ",";
  }
  out.add("]");
}

}  // namespace stretto::observe
