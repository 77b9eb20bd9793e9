// SPDX-License-Identifier: BSD-3-Clause
#include "engine/deferred_watch.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/log.hpp"
#include "engine/ranks.hpp"
#include "sys/sys.hpp"

namespace stretto::engine {
namespace {

using ull = unsigned long long;
using shm::DeferredCall;
using shm::DeferredWait;

constexpr std::uint64_t kSecondNs = 1'000'000'000;

const char* host_of(int rank, const topo::Hosts* hosts) { return hosts != nullptr ? hosts->of(rank) : nullptr; }

// The peers with bytes left in one direction.
Ranks peers(const DeferredCall& call, bool sends, const topo::Hosts* hosts) {
  Ranks list;
  for (std::uint32_t i = 0; i < call.part_count; ++i) {
    const DeferredCall::Part& part = call.parts[i];
    if (part.sends != sends || part.bytes == 0) continue;
    if (part.peer == DeferredCall::kOthers)
      list.add_others(part.bytes);
    else
      list.add(part.peer, host_of(part.peer, hosts), part.bytes);
  }
  return list;
}

// What the program does.
const char* doing(const DeferredCall& call, char (&text)[80]) {
  if (call.returned_ns == 0) return "this rank waits in the call";
  const std::uint64_t waited_ns = call.wait == DeferredWait::none ? 0 : sys::now_ns() - call.waits_since_ns;
  const char* const how = call.wait == DeferredWait::function      ? "in a function of MPI"
                          : call.wait == DeferredWait::system_call ? "in a system call"
                                                                   : "where it touches them";
  if (call.wait == DeferredWait::none)
    std::snprintf(text, sizeof text, "no thread waits for its data here");
  else
    std::snprintf(text, sizeof text, "a thread waits for its data %s, for %llu s", how, ull{waited_ns / kSecondNs});
  return text;
}

void tell(const DeferredCall& call, std::uint64_t seconds, const topo::Hosts* hosts) {
  char what[80];
  log_line(LogLevel::warn,
           "watchdog: nothing of MPI_%s has moved for %llu s: call %llu of those that may return early on communicator "
           "%llu of %u ranks, %s; %s; data are missing from: %s; its own are not taken by: %s%s%s",
           call.name, ull{seconds}, ull{call.call}, ull{call.communicator}, call.ranks,
           call.returned_ns != 0 ? "which has returned" : "which has not returned", doing(call, what),
           peers(call, false, hosts).text(), peers(call, true, hosts).text(),
           call.place[0] != 0 ? "; it was called at " : "", call.place);
}

[[noreturn]] void end_process(const DeferredCall& call, std::uint64_t seconds) {
  log_line(LogLevel::error,
           "STRETTO_TIMEOUT: data of MPI_%s, which has returned early, have not come for %llu s, and this rank waits "
           "for them: this process ends, and with it the job",
           call.name, ull{seconds});
  log_end_process();
}

}  // namespace

void DeferredWatch::look(const shm::DeferredNotes& notes, const Limits& limits, const topo::Hosts* hosts,
                         std::uint64_t now_ns) {
  for (unsigned i = 0; i < shm::DeferredNotes::kNotes; ++i) {
    Watched& watched = watched_[i];
    DeferredCall call;
    const std::uint64_t left_bytes = shm::deferred_read(notes.of[i], &call) ? call.left_bytes() : 0;
    if (left_bytes == 0) {
      watched = {};
      continue;
    }
    if (watched.number != call.number) watched = {call.number, left_bytes, now_ns, false};
    if (watched.left_bytes != left_bytes) watched = {call.number, left_bytes, now_ns, watched.told};
    const std::uint64_t still_ns = now_ns - watched.since_ns;
    if (!watched.told && still_ns >= limits.tell_ns) {
      watched.told = true;
      tell(call, still_ns / kSecondNs, hosts);
    }
    const bool waits = call.returned_ns != 0 && call.wait != DeferredWait::none;
    const std::uint64_t stuck_ns =
        waits && now_ns > call.waits_since_ns ? std::min(still_ns, now_ns - call.waits_since_ns) : 0;
    if (limits.end_ns != 0 && stuck_ns >= limits.end_ns) end_process(call, stuck_ns / kSecondNs);
  }
}

DeferredWords::DeferredWords(const shm::DeferredNotes& notes) {
  std::uint64_t oldest_ns = ~std::uint64_t{0};
  shm::each_deferred(notes, [&](const DeferredCall& call) {
    if (call.wait == DeferredWait::none || call.waits_since_ns >= oldest_ns) return;
    oldest_ns = call.waits_since_ns;
    char from[40] = "";
    if (call.waits_for != DeferredCall::kOthers) std::snprintf(from, sizeof from, " from rank %d", call.waits_for);
    std::snprintf(text, sizeof text, "waits for data of call %llu (MPI_%s)%s: that call has returned early",
                  ull{call.call}, call.name, from);
  });
}

}  // namespace stretto::engine
