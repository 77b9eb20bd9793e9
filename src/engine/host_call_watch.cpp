// SPDX-License-Identifier: BSD-3-Clause
#include "engine/host_call_watch.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "engine/process.hpp"
#include "engine/ranks.hpp"
#include "engine/whereabouts.hpp"
#include "observe/host_call_words.hpp"

namespace stretto::engine {
namespace {

using observe::Stand;
using observe::Standing;
using shm::HostCall;
using ull = unsigned long long;

constexpr int kMostOthers = 4;  // the log takes ten lines a second

void tell_state(const Stand& stand) {
  const Life life = stand.gone ? Life::gone : Life::alive;
  const StateWords state(stand.notes(), stand.collective, 0, stand.pid, life);
  log_line(LogLevel::warn, "watchdog: rank %d %s", stand.rank, stand.left ? "has called MPI_Finalize" : state.text);
}

// False: the two calls do not contradict each other.
bool tell_contradiction(const Stand& one, const Stand& other) {
  const observe::ContradictionWords receives(one, other), sends(other, one);
  const char* const text = receives.text[0] != 0 ? receives.text : sends.text;
  if (text[0] != 0) log_line(LogLevel::warn, "watchdog: a message does not fit: %s", text);
  return text[0] != 0;
}

// The ranks that wait in the same line of the same call. False: a lower one speaks for them.
bool wait_together(const Standing& standing, const Stand& own, const HostCall& call, const char* site, Ranks* ranks) {
  for (const Stand& other : standing) {
    const bool alike =
        other.rank == own.rank || (other.waits() && std::strcmp(other.call.name, call.name) == 0 &&
                                   std::strcmp(observe::HostCallSite(other.call, other.modules()).text, site) == 0);
    if (!alike) continue;
    if (other.rank < own.rank) return false;
    ranks->add(other.rank);
  }
  return true;
}

// Which lock the other rank has that this call may wait for.
void tell_locks(const Stand& other, const HostCall& call) {
  for (unsigned i = 0; i < call.known(); ++i) {
    const shm::Awaited& part = call.parts[i];
    const shm::HeldLock* const lock = part.what == shm::Awaited::What::target ? Standing::holds(other, part) : nullptr;
    if (lock == nullptr) continue;
    const shm::CallSite site(other.modules(), lock->caller.load_acquire());
    log_line(LogLevel::warn, "watchdog: rank %d has a lock of rank %d of %s%s%s", other.rank, part.rank, part.where,
             site.text[0] != 0 ? ", taken at " : "", site.text);
  }
}

// Those that this rank waits for. Of a message from any rank that is everybody.
void tell_awaited(const Standing& standing, const Stand& own, const HostCall& call, const CycleTold& cycle) {
  int told = 0;
  bool from_any = false;
  for (unsigned i = 0; i < call.known(); ++i) {
    from_any = from_any || (call.parts[i].what == shm::Awaited::What::receive && call.parts[i].rank < 0);
  }
  const auto tell_of = [&](int rank) {
    if (told >= kMostOthers || rank == own.rank) return;
    ++told;
    const Stand* const other = standing.of(rank);
    if (other == nullptr)
      log_line(LogLevel::warn, "watchdog: rank %d, for which it waits, is on another node or out of sight", rank);
    else if (!tell_contradiction(own, *other) && !cycle.has(rank))
      tell_state(*other);
    if (other != nullptr) tell_locks(*other, call);
  };
  if (!from_any) return standing.each_awaited(own, tell_of);
  for (const Stand& other : standing) {
    if (observe::ContradictionWords(own, other).text[0] != 0) tell_of(other.rank);
  }
  for (const Stand& other : standing) {
    if (told == 0 || observe::ContradictionWords(own, other).text[0] == 0) tell_of(other.rank);
  }
}

void tell(Process& process, const HostCall& call, std::uint64_t seconds) {
  const Standing standing = standing_of(process);
  const Stand* const found = standing.of(static_cast<int>(process.settings.job_rank));
  if (found == nullptr) return;
  Stand own = *found;
  own.call = call;  // another thread may wait, too
  const CycleTold cycle(process, standing);
  const observe::HostCallSite site(call, own.modules());
  Ranks ranks;
  if (!wait_together(standing, own, call, site.text, &ranks)) return;
  log_line(LogLevel::warn, "watchdog: %s has not ended for %llu s; waiting%s%s: %s",
           observe::HostCallWords(call, own.modules()).text, ull{seconds}, site.text[0] != 0 ? " at " : "", site.text,
           ranks.text());
  tell_awaited(standing, own, call, cycle);
}

}  // namespace

Standing standing_of(Process& process) {
  Standing standing;
  (void)standing.add(process.segment.base(), process.segment.bytes(), false);
  each_peer(process, [&](const shm::Attachment& peer) {
    const std::size_t bytes = peer.bytes != 0 ? peer.bytes : process.segment.bytes();
    const int pid = static_cast<int>(reinterpret_cast<const shm::SegmentHeader*>(peer.base)->pid);
    (void)standing.add(peer.base, bytes, life_of(pid, peer.started) == Life::gone);
  });
  return standing;
}

CycleTold::CycleTold(const Process& process, const Standing& standing) {
  constexpr unsigned kLongest = 64;
  int ranks[kLongest];
  const auto own = static_cast<int>(process.settings.job_rank);
  const unsigned count = standing.cycle(own, ranks, kLongest);
  if (count == 0 || ranks[0] != own) return;
  char text[kLongest * 12] = "";
  int length = 0;
  for (unsigned i = 0; i <= count; ++i) {
    length += std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), "%s%d", i == 0 ? "" : " -> ",
                            ranks[i % count]);
  }
  log_line(LogLevel::warn, "watchdog: a cycle, in which each rank waits for the next: %s", text);
  for (unsigned i = 0; i < count && i < kMost; ++i) {
    ranks_[count_++] = ranks[i];
    tell_state(*standing.of(ranks[i]));
  }
}

bool CycleTold::has(int rank) const { return std::find(ranks_, ranks_ + count_, rank) != ranks_ + count_; }

bool HostCallWatch::look(Process& process, std::uint64_t limit_ns, std::uint64_t now_ns) {
  const shm::HostCalls& calls = process.segment.host_calls();
  bool stuck = false;
  for (unsigned i = 0; i < shm::HostCalls::kNotes; ++i) {
    HostCall call;
    Watched& watched = watched_[i];
    if (calls.of[i].open.load_relaxed() == 0 || !host_call_read(calls.of[i], &call) || !call.open || call.tests) {
      watched = {};
      continue;
    }
    if (watched.number != call.number) watched = {call.number, now_ns, false};
    if (now_ns - watched.since_ns < limit_ns) continue;
    stuck = true;
    if (watched.told) continue;
    watched.told = true;
    tell(process, call, (now_ns - watched.since_ns) / 1'000'000'000);
  }
  return stuck;
}

}  // namespace stretto::engine
