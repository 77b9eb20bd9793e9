// SPDX-License-Identifier: BSD-3-Clause
#include "engine/whereabouts.hpp"

#include <cstdio>

#include "engine/explain.hpp"
#include "observe/host_call_words.hpp"
#include "shm/segment.hpp"
#include "sys/sys.hpp"

namespace stretto::engine {
namespace {

using ull = unsigned long long;
using shm::NoteCopy;

void keep_latest(Trace& trace, const NoteCopy& note) {
  NoteCopy carried = note;
  for (NoteCopy& place : trace.last) {
    if (carried.number <= place.number) continue;
    const NoteCopy older = place;
    place = carried;
    carried = older;
  }
}

// Which call it is, in words behind its name.
struct WhichCall {
  char text[80];
  WhichCall(const NoteCopy& note, std::uint64_t here) {
    const char* const elsewhere = here == 0 ? "on a communicator" : "on another communicator";
    if (note.generation == shm::kInAgreement)
      std::snprintf(text, sizeof text, ", in which members agree on what serves a communicator");
    else if (note.generation == shm::kByHost)
      std::snprintf(text, sizeof text, ", which the MPI serves");
    else if (note.generation == shm::kBySchedule)
      std::snprintf(text, sizeof text, ", which goes by schedule");
    else
      std::snprintf(text, sizeof text, ", call %llu %s", ull{note.call >> 8},
                    note.generation == here ? "here" : elsewhere);
  }
};

// The same, shorter.
struct ShortCall {
  char text[64];
  ShortCall(const NoteCopy& note, std::uint64_t here) {
    if (note.generation == shm::kInAgreement)
      std::snprintf(text, sizeof text, " in an agreement");
    else if (shm::is_elsewhere(note))
      std::snprintf(text, sizeof text, " by %s", note.generation == shm::kByHost ? "the MPI" : "schedule");
    else
      std::snprintf(text, sizeof text, " %llu%s", ull{note.call >> 8},
                    note.generation == here ? "" : " on another communicator");
  }
};

}  // namespace

// An agreement lies within a call of the program. Once it is over, it says nothing to the user.
Trace::Trace(const shm::Note* notes, std::uint64_t generation) {
  for (unsigned i = 0; notes != nullptr && i < shm::kNotes; ++i) {
    NoteCopy note;
    if (!note_read(notes[i], &note) || (note.generation == shm::kInAgreement && !note.open())) continue;
    if (note.generation == generation && note.call > here.call) here = note;
    if (note.open() && note.number > now.number) now = note;
    keep_latest(*this, note);
  }
  if (now.number == 0) now = last[0];
}

shm::CallSite site_of(const shm::Note* notes, const NoteCopy& note) {
  static constexpr shm::CallSites kNone{};
  return {notes != nullptr ? shm::Segment::call_sites_beside(notes) : kNone, note.number, note.caller};
}

Life life_of(int pid, std::uint64_t started) {
  if (started == 0) return Life::out_of_sight;
  return sys::process_gone(pid, started) ? Life::gone : Life::alive;
}

StateWords::StateWords(const shm::Note* notes, const NoteCopy& now, std::uint64_t here, int pid, Life life) {
  constexpr const char* kLives[] = {"out of sight", "gone", "alive"};  // by Life
  const char* const alive = kLives[static_cast<int>(life)];
  const bool knows_all = notes != nullptr && shm::Segment::host_calls_beside(notes).kept.load_acquire() != 0;
  const shm::HostCall host = knows_all ? host_call_now(shm::Segment::host_calls_beside(notes)) : shm::HostCall{};
  const bool in_host = host.open && !now.open(),
             latest_is_host = !now.open() && host.number != 0 && host.after >= now.number;
  if (in_host || latest_is_host) {
    const shm::Modules& modules = shm::Segment::call_sites_beside(notes).modules;
    const observe::HostCallSite place(host, modules);
    const char* const where = life == Life::gone       ? (in_host ? "has ended in" : "has ended after")
                              : in_host && !host.tests ? "has not come back from"
                                                       : "is in the program since it came back from";
    std::snprintf(text, sizeof text, "(process %d, %s) %s %s%s%s", pid, alive, where,
                  observe::HostCallWords(host, modules).text, place.text[0] != 0 ? ", at " : "", place.text);
    return;
  }
  if (now.number == 0) {
    std::snprintf(text, sizeof text, "(process %d, %s) has %s", pid, alive,
                  life == Life::gone ? "ended"
                  : knows_all        ? "made no call of MPI yet that waits"
                                     : "called no collective yet");
    return;
  }
  const char* const state = life == Life::gone ? (now.open() ? "has ended in" : "has ended after")
                            : now.open()       ? "has not come back from"
                            : knows_all        ? "is in the program since it came back from"
                                               : "is in no collective since it came back from";
  const shm::CallSite site = site_of(notes, now);
  std::snprintf(text, sizeof text, "(process %d, %s) %s %s%s%s%s", pid, alive, state, CallName(now.call).text,
                WhichCall(now, here).text, site.text[0] != 0 ? ", at " : "", site.text);
}

HistoryWords::HistoryWords(const shm::Note* notes, const Trace& trace, std::uint64_t here) {
  constexpr int kFull = 400;
  if (trace.last[1].number == 0) return;
  int length = 0;
  for (const NoteCopy& note : trace.last) {
    if (note.number == 0 || length > kFull) break;
    const shm::CallSite site = site_of(notes, note);
    const bool tells_site = note.open() && note.number != trace.now.number && site.text[0] != 0;
    length += std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), "%s%s%s%s%s%s%s",
                            length == 0 ? "" : "; ", CallName(note.call).text, ShortCall(note, here).text,
                            note.open() ? " (open" : "", tells_site ? ", at " : "", tells_site ? site.text : "",
                            note.open() ? ")" : "");
  }
}

}  // namespace stretto::engine
