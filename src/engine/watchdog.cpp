// SPDX-License-Identifier: BSD-3-Clause
#include "engine/watchdog.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include "base/collective.hpp"
#include "base/log.hpp"
#include "engine/explain.hpp"
#include "engine/process.hpp"
#include "engine/ranks.hpp"
#include "engine/whereabouts.hpp"
#include "observe/observer.hpp"
#include "shm/call_check.hpp"
#include "sys/sys.hpp"
#include "sys/thread.hpp"

namespace stretto::engine {

namespace {

using ull = unsigned long long;
using Site = shm::CallSite;

// After many calls on other communicators, only a member's progress line still says the
// number of its latest call here. It does not say which collective this was, unless it is
// the stalled call itself.
void keep_standing(Trace& trace, const shm::CallPlace& place, std::uint64_t call) {
  if (!place.known || place.begun <= trace.here.call >> 8) return;
  trace.here = {};
  trace.here.call = place.begun == call >> 8 ? call : place.begun << 8;
  trace.here.progress = place.ended < place.begun ? shm::Progress::open : shm::Progress::ended;
}

const shm::Note* notes_of(const Process& process, const Comm& comm, int rank) {
  return rank == comm.team->rank() ? process.journal.notes() : comm.team->peer(rank).notes();
}

Trace trace_of(const Process& process, const Comm& comm, int rank, const shm::NoteCopy& stalled) {
  Trace trace(notes_of(process, comm, rank), stalled.generation);
  if (rank != comm.team->rank()) keep_standing(trace, comm.team->calls().place_of(rank), stalled.call);
  return trace;
}

// Says how far this rank is ahead of the other one. A rank that runs ahead waits only when there is
// no more room for its data.
void tell_distance(const Comm& comm, int rank, const Trace& trace, const shm::NoteCopy& stalled) {
  const std::uint64_t ahead = (stalled.call >> 8) - (trace.here.call >> 8);
  if (ahead < 2 || !runs_ahead(static_cast<Collective>(stalled.call & 0xff))) return;
  log_line(LogLevel::warn, "watchdog: rank %d is %llu calls ahead of rank %d", comm.team->rank(), ull{ahead}, rank);
}

// Where the rank is, in one sentence. Its latest call on this communicator follows, if it has made
// others since.
void tell_state(int rank, const shm::Peer& member, const Trace& trace, std::uint64_t generation) {
  char here[96] = "";
  if (trace.here.call >> 8 != 0 && (trace.here.number == 0 || trace.here.number != trace.now.number)) {
    const bool noted = trace.here.number != 0;
    std::snprintf(here, sizeof here, "; its last call here is number %llu%s%s", ull{trace.here.call >> 8},
                  noted ? ", " : "", noted ? CallName(trace.here.call).text : "");
  }
  const int pid = member.pid();
  const StateWords state(member.notes(), trace.now, generation, pid, life_of(pid, member.started));
  log_line(LogLevel::warn, "watchdog: rank %d %s%s", rank, state.text, here);
}

void tell_missing(const Comm& comm, int rank, const Trace& trace, std::uint64_t generation) {
  const shm::Peer& member = comm.team->peer(rank);
  tell_state(rank, member, trace, generation);
  if (member.segment != nullptr) {
    const DeferredWords waits(shm::Segment::deferred_beside(member.notes()));
    if (waits.text[0] != 0) log_line(LogLevel::warn, "watchdog: rank %d %s", rank, waits.text);
  }
  const shm::Refused refused = comm.team->calls().refused(rank);
  if (refused.number == (trace.here.call >> 8) + 1) {
    log_line(LogLevel::warn, "watchdog: rank %d: its call after that, %s, was refused there: %s", rank,
             MpiName(refused.collective).text, kMistakeWords[static_cast<int>(refused.mistake)]);
  }
  const HistoryWords history(member.notes(), trace, generation);
  if (history.text[0] != 0) log_line(LogLevel::warn, "watchdog: rank %d, latest first: %s", rank, history.text);
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

// The lowest rank of those that wait in the same call speaks for all of them, the lowest one of a
// cycle for the cycle.
void tell(Process& process, const Comm& comm, const shm::NoteCopy& stalled, std::uint64_t seconds) {
  shm::Team& team = *comm.team;
  const std::uint64_t number = stalled.call >> 8;
  const CycleTold cycle(process, standing_of(process));
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
           CallWords(stalled.call, stalled.descriptor).text, ull{seconds}, ull{number}, team.size(), waiting.text(),
           missing.text(), through.text());
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

// Where the other ranks are that this process knows, other than in a call like `own`. It does not
// know which of them are members of this communicator.
void tell_others(Process& process, const shm::NoteCopy& own) {
  constexpr int kMostTold = 4;  // the log takes ten lines a second
  int told = 0;
  for (const observe::Stand& other : standing_of(process)) {
    if (told == kMostTold || other.left || other.rank == static_cast<int>(process.settings.job_rank)) continue;
    const shm::NoteCopy& now = other.collective;
    const bool waits_too = now.open() && now.generation == own.generation && (now.call & 0xff) == (own.call & 0xff);
    if (waits_too && !other.gone) continue;
    const StateWords state(other.notes(), now, 0, other.pid, other.gone ? Life::gone : Life::alive);
    log_line(LogLevel::warn, "watchdog: rank %d of the job %s", other.rank, state.text);
    ++told;
  }
}

// This rank cannot say for certain which members have not come to the agreement.
void tell_agreement(Process& process, const shm::NoteCopy& note, std::uint64_t seconds) {
  const Site site = site_of(process.journal.notes(), note);
  log_line(LogLevel::warn,
           "watchdog: on communicator %llu, of %llu ranks, this rank waits in %s for the other members to agree on "
           "what serves it, for %llu s%s%s; "
           "a rank that says nothing of it has not come",
           ull{note.call >> 8}, ull{note.descriptor.bytes}, CallName(note.call).text, ull{seconds},
           site.text[0] != 0 ? ", at " : "", site.text);
  tell_others(process, note);
}

void tell_host(Process& process, const shm::NoteCopy& note, std::uint64_t seconds) {
  const Site site = site_of(process.journal.notes(), note);
  log_line(LogLevel::warn, "watchdog: %s, which is left to the MPI, has not ended for %llu s%s%s",
           CallName(note.call).text, ull{seconds}, site.text[0] != 0 ? ", at " : "", site.text);
  tell_others(process, note);
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
           CallName(note.call).text, ull{seconds});
  log_end_process();
}

}  // namespace

void Watchdog::explain(const shm::NoteCopy& note, std::uint64_t seconds) {
  if (const Comm* const comm = find_comm(process_, note.generation)) return tell(process_, *comm, note, seconds);
  if (note.generation == shm::kInAgreement) return tell_agreement(process_, note, seconds);
  if (note.generation == shm::kByHost) tell_host(process_, note, seconds);
}

void Watchdog::look(std::uint64_t now_ns) {
  const Locked locked(process_.lock);
  const shm::Note* const notes = process_.journal.notes();
  bool stuck = false;
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
    stuck = stuck || age_ns >= limit_ns_;
    if (!watched.told && age_ns >= limit_ns_) {
      watched.told = true;
      explain(note, seconds);
    }
    if (timeout_ns_ != 0 && age_ns >= timeout_ns_) end_process(note, seconds);
  }
  if (notes) stuck = host_calls_.look(process_, limit_ns_, now_ns) || stuck;
  if (notes) stacks_.look(process_, stuck);
  if (notes) deferred_.look(process_.segment.deferred(), {limit_ns_, timeout_ns_}, process_.hosts, now_ns);
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

Watchdog::Watchdog(Process& process)
    : process_(process),
      limit_ns_(std::uint64_t{process.settings.watchdog_seconds} * 1'000'000'000),
      timeout_ns_(std::uint64_t{process.settings.timeout_seconds} * 1'000'000'000) {
  stacks_.start();
  pthread_condattr_t attributes;  // for a clock that nobody can set
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&wake_, &attributes);
  pthread_condattr_destroy(&attributes);
}

Watchdog::~Watchdog() { pthread_cond_destroy(&wake_); }

bool Watchdog::run() { return sys::thread_start(&thread_, nullptr, main, this) == 0; }

Watchdog* Watchdog::start(Process& process) {
  if (process.settings.watchdog_seconds == 0) return nullptr;
  void* const memory = std::malloc(sizeof(Watchdog));
  auto* const watchdog = memory == nullptr ? nullptr : new (memory) Watchdog(process);
  if (watchdog != nullptr && watchdog->run()) return watchdog;
  log_line(LogLevel::warn, "watchdog: no thread could be started; STRETTO_WATCHDOG has no effect");
  if (watchdog != nullptr) watchdog->~Watchdog();
  std::free(memory);
  return nullptr;
}

void Watchdog::stop(Watchdog* watchdog) {
  if (watchdog == nullptr) return;
  pthread_mutex_lock(&watchdog->lock_);
  watchdog->stopping_ = true;
  pthread_cond_signal(&watchdog->wake_);
  pthread_mutex_unlock(&watchdog->lock_);
  pthread_join(watchdog->thread_, nullptr);
  watchdog->~Watchdog();
  std::free(watchdog);
}

}  // namespace stretto::engine
