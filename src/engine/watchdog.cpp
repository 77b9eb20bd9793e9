// SPDX-License-Identifier: BSD-3-Clause
#include "engine/watchdog.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/collective.hpp"
#include "base/log.hpp"
#include "engine/explain.hpp"
#include "engine/process.hpp"
#include "engine/ranks.hpp"
#include "observe/observer.hpp"
#include "shm/call_check.hpp"
#include "sys/sys.hpp"
#include "sys/thread.hpp"

namespace stretto::engine {

namespace {

using Site = shm::CallSite;

constexpr int kLastCalls = 5;  // how many calls are told of each missing rank

// What a member's journal says of one communicator.
struct Trace {
  shm::NoteCopy here{};              // its latest call there; number 0: none, or its note is overwritten
  shm::NoteCopy last[kLastCalls]{};  // its latest calls anywhere, the latest first
};

void keep_latest(Trace& trace, const shm::NoteCopy& note) {
  shm::NoteCopy carried = note;
  for (shm::NoteCopy& place : trace.last) {
    if (carried.number <= place.number) continue;
    const shm::NoteCopy older = place;
    place = carried;
    carried = older;
  }
}

// After many calls on other communicators, only a member's progress line still says the
// number of its latest call here. It does not say which collective this was, unless it is
// the stalled call itself.
void keep_standing(Trace& trace, const shm::Place& place, std::uint64_t call) {
  if (!place.known || place.begun <= trace.here.call >> 8) return;
  trace.here = {};
  trace.here.call = place.begun == call >> 8 ? call : place.begun << 8;
  trace.here.progress = place.ended < place.begun ? shm::Progress::open : shm::Progress::ended;
}

const shm::Note* notes_of(const Process& process, const Comm& comm, int rank) {
  return rank == comm.team->rank() ? process.journal.notes() : comm.team->peer(rank).notes();
}

Site site_of(const shm::Note* notes, const shm::NoteCopy& note) {
  static constexpr shm::CallSites kNone{};
  return {notes != nullptr ? shm::Segment::call_sites_beside(notes) : kNone, note.number, note.caller};
}

Trace trace_of(const Process& process, const Comm& comm, int rank, const shm::NoteCopy& stalled) {
  const bool own = rank == comm.team->rank();
  const shm::Note* const notes = notes_of(process, comm, rank);
  Trace trace;
  for (unsigned i = 0; i < shm::kNotes; ++i) {
    shm::NoteCopy note;
    if (!note_read(notes[i], &note)) continue;
    if (note.generation == stalled.generation && note.call > trace.here.call) trace.here = note;
    keep_latest(trace, note);
  }
  if (!own) keep_standing(trace, where(*comm.team, rank), stalled.call);
  return trace;
}

// Says how far this rank is ahead of the other one. A rank that runs ahead waits only when there is
// no more room for its data.
void tell_distance(const Comm& comm, int rank, const Trace& trace, const shm::NoteCopy& stalled) {
  const std::uint64_t ahead = (stalled.call >> 8) - (trace.here.call >> 8);
  if (ahead < 2 || !runs_ahead(static_cast<Collective>(stalled.call & 0xff))) return;
  char where[64] = "outside collectives";
  for (const shm::NoteCopy& note : trace.last) {
    if (note.number == 0 || !note.open()) continue;
    std::snprintf(where, sizeof where, "in %s%s", CallName(note.call).text,
                  note.generation == stalled.generation ? "" : " on another communicator");
    break;
  }
  log_line(LogLevel::warn, "watchdog: rank %d is %llu calls ahead of rank %d, which is %s", comm.team->rank(),
           static_cast<unsigned long long>(ahead), rank, where);
}

void tell_missing(const Comm& comm, int rank, const Trace& trace, std::uint64_t generation) {
  const shm::Peer& member = comm.team->peer(rank);
  const int pid = member.pid();
  const char* const alive = member.started == 0                      ? "out of sight"
                            : sys::process_gone(pid, member.started) ? "gone"
                                                                     : "alive";
  const char* const state = trace.here.open() ? "still open" : "ended";
  if (trace.here.call >> 8 == 0) {
    log_line(LogLevel::warn, "watchdog: rank %d (process %d, %s) has made no call on this communicator yet", rank, pid,
             alive);
  } else {
    const CallName name(trace.here.call);
    const bool noted = trace.here.number != 0;
    const Site site = site_of(member.notes(), trace.here);
    log_line(LogLevel::warn, "watchdog: rank %d (process %d, %s): its last call here is number %llu, %s%s%s%s%s", rank,
             pid, alive, static_cast<unsigned long long>(trace.here.call >> 8), noted ? name.text : "",
             noted ? ", " : "", state, site.text[0] != 0 ? ", at " : "", site.text);
  }
  if (member.segment != nullptr) {
    const DeferredWords waits(shm::Segment::deferred_beside(member.notes()));
    if (waits.text[0] != 0) log_line(LogLevel::warn, "watchdog: rank %d %s", rank, waits.text);
  }
  const shm::Refused refused = comm.team->refused(rank);
  if (refused.number == (trace.here.call >> 8) + 1) {
    log_line(LogLevel::warn, "watchdog: rank %d: its call after that, %s, was refused there: %s", rank,
             MpiName(refused.collective).text, kMistakeWords[static_cast<int>(refused.mistake)]);
  }
  char text[900];
  int length = 0;
  for (const shm::NoteCopy& note : trace.last) {
    if (note.number == 0 || length > 400) break;
    const std::size_t room = sizeof text - static_cast<std::size_t>(length);
    const char* const comma = length == 0 ? "" : "; ";
    char open[sizeof Site::text + 16] = "";
    const Site site = site_of(member.notes(), note);
    const bool is_told = trace.here.number == note.number || site.text[0] == 0;
    if (note.open()) std::snprintf(open, sizeof open, " (open%s%s)", is_told ? "" : ", at ", is_told ? "" : site.text);
    if (note.generation == shm::kInAgreement) {
      length += std::snprintf(text + length, room, "%san agreement on a communicator in %s%s", comma,
                              CallName(note.call).text, open);
    } else if (shm::is_elsewhere(note)) {
      length += std::snprintf(text + length, room, "%s%s by %s%s", comma, CallName(note.call).text,
                              note.generation == shm::kByHost ? "the MPI" : "schedule", open);
    } else {
      length += std::snprintf(text + length, room, "%s%s %llu%s%s", comma, CallName(note.call).text,
                              static_cast<unsigned long long>(note.call >> 8),
                              note.generation == generation ? "" : " on another communicator", open);
    }
  }
  if (length != 0) log_line(LogLevel::warn, "watchdog: rank %d, latest first: %s", rank, text);
}

// The places of those that wait, each with its ranks.
void tell_places(const Process& process, const Comm& comm, const shm::NoteCopy& stalled) {
  constexpr int kMostPlaces = 4;  // the log takes ten lines a second
  char told[kMostPlaces][sizeof Site::text];
  int places = 0;
  for (int first = 0; first < comm.team->size() && places < kMostPlaces; ++first) {
    const auto place_of = [&](int rank) {
      const shm::NoteCopy here = trace_of(process, comm, rank, stalled).here;
      const bool waits = here.call == stalled.call && here.open();
      return site_of(waits ? notes_of(process, comm, rank) : nullptr, here);
    };
    const Site place = place_of(first);
    bool is_new = place.text[0] != 0;
    for (int i = 0; i < places; ++i) is_new = is_new && std::strcmp(told[i], place.text) != 0;
    if (!is_new) continue;
    Ranks ranks;
    for (int r = first; r < comm.team->size(); ++r) {
      if (std::strcmp(place_of(r).text, place.text) == 0) ranks.add(r);
    }
    std::memcpy(told[places++], place.text, sizeof place.text);
    log_line(LogLevel::warn, "watchdog: waiting at %s: %s", place.text, ranks.text());
  }
}

// The lowest rank of those that wait in the same call speaks for all of them.
void tell(const Process& process, const Comm& comm, const shm::NoteCopy& stalled, std::uint64_t seconds) {
  shm::Team& team = *comm.team;
  const std::uint64_t number = stalled.call >> 8;
  Ranks waiting, missing, through, elsewhere;
  for (int r = 0; r < team.size(); ++r) {
    const shm::NoteCopy here = trace_of(process, comm, r, stalled).here;
    const bool in_it = here.call == stalled.call && here.open();
    if (in_it && r < team.rank()) return;
    if (here.call >> 8 < number)
      missing.add(r);
    else if (in_it)
      waiting.add(r);
    else if (here.call >> 8 == number && here.call != stalled.call)
      elsewhere.add(r);
    else
      through.add(r);
  }
  log_line(LogLevel::warn,
           "watchdog: %s has not ended for %llu s: call %llu on a communicator of %d ranks; waiting: %s; missing: %s; "
           "through: %s",
           CallWords(stalled.call, stalled.descriptor).text, static_cast<unsigned long long>(seconds),
           static_cast<unsigned long long>(number), team.size(), waiting.text(), missing.text(), through.text());
  tell_places(process, comm, stalled);
  for (int r = 0; r < team.size(); ++r) {
    const Trace trace = trace_of(process, comm, r, stalled);
    if (trace.here.call >> 8 < number) {
      tell_missing(comm, r, trace, stalled.generation);
      tell_distance(comm, r, trace, stalled);
    }
    if (trace.here.call >> 8 == number && trace.here.call != stalled.call) {
      const Site site = site_of(notes_of(process, comm, r), trace.here);
      log_line(LogLevel::warn, "watchdog: rank %d calls %s there instead%s%s", r, CallName(trace.here.call).text,
               site.text[0] != 0 ? ", at " : "", site.text);
    }
  }
}

// Whether a process is in an agreement, on any communicator.
bool is_agreeing(const shm::Note* notes) {
  shm::NoteCopy note;
  for (unsigned i = 0; i < shm::kNotes; ++i) {
    if (note_read(notes[i], &note) && note.open() && note.generation == shm::kInAgreement) return true;
  }
  return false;
}

// This rank cannot say for certain which members have not come to the agreement.
// Before an agreement a process knows only the peers of other communicators, and not
// which of them are members.
void tell_agreement(const Process& process, const shm::NoteCopy& note, std::uint64_t seconds) {
  const Site site = site_of(process.journal.notes(), note);
  log_line(LogLevel::warn,
           "watchdog: on communicator %llu, of %llu ranks, this rank waits in %s for the other members to agree on "
           "what serves it, for %llu s%s%s; "
           "a rank that says nothing of it has not come",
           static_cast<unsigned long long>(note.call >> 8), static_cast<unsigned long long>(note.descriptor.bytes),
           CallName(note.call).text, static_cast<unsigned long long>(seconds), site.text[0] != 0 ? ", at " : "",
           site.text);
  for (std::size_t i = 0; i < process.attachments.count; ++i) {
    const shm::Attachment& peer = process.attachments.entries[i];
    observe::Observer look;
    shm::NoteCopy latest;
    const std::size_t bytes = peer.bytes != 0 ? peer.bytes : process.segment.bytes();
    if (look.view(peer.base, bytes) != observe::Attached::ok || look.left()) continue;
    const auto* const notes = reinterpret_cast<const shm::Note*>(peer.base + shm::Segment::kNotesOffset);
    if (is_agreeing(notes) || !look.latest(&latest)) continue;
    const Site peer_site = site_of(notes, latest);
    log_line(LogLevel::warn, "watchdog: rank %llu of the job is in no agreement: its last call is %s, %s%s%s",
             static_cast<unsigned long long>(look.process_info().rank), CallName(latest.call).text,
             latest.open() ? "still open" : "ended", peer_site.text[0] != 0 ? ", at " : "", peer_site.text);
  }
}

const Comm* find_comm(const Process& process, std::uint64_t generation) {
  for (const Comm* comm = process.active; comm; comm = comm->next) {
    if (comm->team->generation() == generation) return comm;
  }
  return nullptr;
}

// Ends the process itself, because an MPI that waits for a dead machine may not be able to end. It
// uses a signal, because every launcher takes that for a crash.
[[noreturn]] void end_process(const shm::NoteCopy& note, std::uint64_t seconds) {
  log_line(LogLevel::error, "STRETTO_TIMEOUT: %s has not ended for %llu s: this process ends, and with it the job",
           CallName(note.call).text, static_cast<unsigned long long>(seconds));
  log_drain();
  std::abort();
}

}  // namespace

void Watchdog::explain(const shm::NoteCopy& note, std::uint64_t seconds) {
  if (const Comm* const comm = find_comm(*process_, note.generation)) return tell(*process_, *comm, note, seconds);
  if (note.generation == shm::kInAgreement) return tell_agreement(*process_, note, seconds);
  if (note.generation != shm::kByHost) return;
  const Site site = site_of(process_->journal.notes(), note);
  log_line(LogLevel::warn, "watchdog: %s, which is left to the MPI, has not ended for %llu s%s%s",
           CallName(note.call).text, static_cast<unsigned long long>(seconds), site.text[0] != 0 ? ", at " : "",
           site.text);
}

void Watchdog::look(std::uint64_t now_ns) {
  const Locked locked(*process_);
  const shm::Note* const notes = process_->journal.notes();
  for (unsigned i = 0; notes && i < shm::kNotes; ++i) {
    shm::NoteCopy note;
    Watched& watched = watched_[i];
    if (!note_read(notes[i], &note) || !note.open()) {
      watched = {};
      continue;
    }
    if (watched.number != note.number) watched = {note.number, now_ns, false};
    const std::uint64_t age_ns = now_ns - watched.since_ns;
    const std::uint64_t seconds = age_ns / 1'000'000'000;
    if (!watched.told && age_ns >= limit_ns_) {
      watched.told = true;
      explain(note, seconds);
    }
    if (timeout_ns_ != 0 && age_ns >= timeout_ns_) end_process(note, seconds);
  }
  if (notes) deferred_.look(process_->segment.deferred(), {limit_ns_, timeout_ns_}, process_->hosts, now_ns);
}

// Returns false when the thread must stop.
bool Watchdog::pause() {
  constexpr std::uint64_t kMostNs = 1'000'000'000;
  const std::uint64_t step_ns = limit_ns_ / 8 < kMostNs ? limit_ns_ / 8 : kMostNs;
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  const std::uint64_t at_ns = static_cast<std::uint64_t>(until.tv_nsec) + step_ns;
  until.tv_sec += static_cast<std::time_t>(at_ns / 1'000'000'000);
  until.tv_nsec = static_cast<long>(at_ns % 1'000'000'000);
  pthread_mutex_lock(&lock_);
  if (!stopping_) pthread_cond_timedwait(&wake_, &lock_, &until);
  const bool go_on = !stopping_;
  pthread_mutex_unlock(&lock_);
  return go_on;
}

void* Watchdog::main(void* self) {
  auto* const watchdog = static_cast<Watchdog*>(self);
  while (watchdog->pause()) watchdog->look(sys::now_ns());
  return nullptr;
}

void Watchdog::start(Process& process) {
  if (process.settings.watchdog_seconds == 0) return;
  process_ = &process;
  limit_ns_ = std::uint64_t{process.settings.watchdog_seconds} * 1'000'000'000;
  timeout_ns_ = std::uint64_t{process.settings.timeout_seconds} * 1'000'000'000;
  pthread_condattr_t attributes;  // for a clock that nobody can set
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&wake_, &attributes);
  pthread_condattr_destroy(&attributes);
  running_ = sys::thread_start(&thread_, nullptr, main, this) == 0;
  if (!running_) log_line(LogLevel::warn, "watchdog: no thread could be started; STRETTO_WATCHDOG has no effect");
}

void Watchdog::stop() {
  if (!running_) return;
  pthread_mutex_lock(&lock_);
  stopping_ = true;
  pthread_cond_signal(&wake_);
  pthread_mutex_unlock(&lock_);
  pthread_join(thread_, nullptr);
  running_ = false;
}

}  // namespace stretto::engine
