// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/communicator.hpp"

#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "base/log.hpp"
#include "base/tuning.hpp"
#include "engine/settings.hpp"
#include "mpi/datatype.hpp"
#include "mpi/errors.hpp"
#include "mpi/job.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/progress.hpp"
#include "mpi/schedules.hpp"
#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi {

constinit std::atomic<std::uint64_t> g_epoch{1};  // 0 marks the empty slots of t_recent
constinit shm::Tally g_no_tally[kCollectives] = {};
constinit std::atomic<shm::Tally*> g_tally{g_no_tally};
constinit std::atomic<bool> g_concurrent{true};
thread_local constinit Recent t_recent[kRecent] STRETTO_TLS = {};

namespace {

constexpr unsigned kBuckets = 256;

// Guards everything here. Never held across a call that waits for other ranks.
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit State* g_buckets[kBuckets] = {};
constinit engine::Process* g_process = nullptr;
constinit std::uint64_t g_serial = 0;

// Held while the first state brings up what all need, and while the last one takes it down.
constinit pthread_mutex_t g_life = PTHREAD_MUTEX_INITIALIZER;
constinit unsigned g_users = 0;    // states alive or in the making
constinit bool g_started = false;  // datatypes are set up
constinit std::atomic<const Recent*> g_caller{
    nullptr};  // t_recent of the only thread that has called, while g_concurrent is false

class Locked {
 public:
  explicit Locked(pthread_mutex_t& mutex = g_lock) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Locked() { pthread_mutex_unlock(&mutex_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

unsigned bucket_of(MPI_Comm comm) {
  const auto bits = (std::uintptr_t)comm;
  return static_cast<unsigned>((bits ^ bits >> 5 ^ bits >> 13) % kBuckets);
}

// ---- the process ----

engine::Settings settings() {
  engine::Settings s = engine::settings_from(options());
  s.ranks_on_node = vendor::launcher_ranks_on_node();
  s.version = STRETTO_VERSION;
  const int rank = world().agreed ? world().rank : vendor::launcher_rank();
  s.job = static_cast<std::uint64_t>(world().job);
  s.job_rank = static_cast<std::uint64_t>(rank > 0 ? rank : 0);
  s.job_ranks = static_cast<std::uint64_t>(world().size);
  return s;
}

// With sessions alone there is no level to ask for: then the answer is yes.
bool threads_are_concurrent() {
  int initialized = 0, level = MPI_THREAD_MULTIPLE;
  host().Initialized(&initialized);
  if (initialized) host().Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

void set_concurrent(bool concurrent) {
  g_concurrent.store(concurrent, std::memory_order_relaxed);
  datatypes_start(concurrent);
  engine::process_set_concurrent(*g_process, concurrent);
}

// One more state: brings up what all states need. Returns false for want of memory.
bool enter() {
  const Locked alive(g_life);
  const Locked locked;
  if (g_process == nullptr) {
    g_process = engine::process_create(settings(), {nullptr, progress_poke, vendor::poke_every(), &g_windows});
    if (g_process == nullptr) return false;
  }
  if (!g_started) {
    set_concurrent(threads_are_concurrent());
    g_caller.store(t_recent, std::memory_order_relaxed);
    g_tally.store(engine::process_tally(*g_process), std::memory_order_relaxed);
    g_started = true;
  }
  g_users++;
  return true;
}

// A thread has looked for a communicator for the first time. A session may allow what the level of MPI_Init does not:
// so threads are concurrent as soon as a second one calls.
void notice_thread() {
  const Recent* const caller = g_caller.load(std::memory_order_relaxed);
  if (g_concurrent.load(std::memory_order_relaxed) || caller == nullptr || caller == t_recent) return;
  const Locked alive(g_life);
  const Locked locked;
  if (g_process != nullptr && g_started) set_concurrent(true);
}

// One state less. Between sessions nothing of ours may stay in the host; with MPI_Init the finalize hook sees to it. A
// thread that enters meanwhile waits until all is down.
void leave() {
  const Locked alive(g_life);
  if (--g_users != 0 || !g_started) return;
  int initialized = 0;
  host().Initialized(&initialized);
  if (initialized) return;
  g_started = false;
  progress_release();
  errors_stop();
  datatypes_stop();
}

State* find(MPI_Comm comm) {
  const Locked locked;
  State* state = g_buckets[bucket_of(comm)];
  while (state != nullptr && state->handle != comm) state = state->next;
  return state;
}

// ---- the attribute ----

int never_copy(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

void unlink(State* state) {
  State** link = &g_buckets[bucket_of(state->handle)];
  while (*link != nullptr && *link != state) link = &(*link)->next;
  if (*link == state) *link = state->next;
}

int on_delete(MPI_Comm, int, void* value, void*) {
  auto* const state = static_cast<State*>(value);
  {
    const Locked locked;
    unlink(state);
    stats_fold(*state);
    g_epoch.fetch_add(1, std::memory_order_relaxed);
  }
  if (state->engine != nullptr) engine::comm_free(state->engine);
  schedules_free(state->schedules);
  std::free(state);
  if (g_mode.load(std::memory_order_relaxed) == Mode::serving) leave();
  return MPI_SUCCESS;
}

// A keyval of its own for every communicator, marked for deletion at once: it lives as long as the attribute. So
// nothing has to be kept over the end of a session, after which an old keyval would be an error.
bool attach_attribute(MPI_Comm comm, State* state) {
  int keyval = MPI_KEYVAL_INVALID;
  if (host().Comm_create_keyval(never_copy, on_delete, &keyval, nullptr) != MPI_SUCCESS) return false;
  const int code = host().Comm_set_attr(comm, keyval, state);
  host().Comm_free_keyval(&keyval);
  return code == MPI_SUCCESS;
}

// A communicator that this thread is freeing: its calls come from callbacks, and are the host's. On all ranks alike,
// whether or not our attribute is still there.
class Freeing {
 public:
  explicit Freeing(MPI_Comm comm) : comm_(comm), outer_(t_freeing) {
    t_freeing = this;
    if (find(comm) != nullptr)
      g_epoch.fetch_add(1, std::memory_order_relaxed);  // no thread finds it without looking here
  }
  ~Freeing() { t_freeing = outer_; }
  Freeing(const Freeing&) = delete;
  Freeing& operator=(const Freeing&) = delete;

  static bool has(MPI_Comm comm) {
    const Freeing* at = t_freeing;
    while (at != nullptr && at->comm_ != comm) at = at->outer_;
    return at != nullptr;
  }

 private:
  static thread_local constinit const Freeing* t_freeing STRETTO_TLS;
  MPI_Comm comm_;
  const Freeing* outer_;
};
thread_local constinit const Freeing* Freeing::t_freeing STRETTO_TLS = nullptr;

int freed(Entry entry, void* comm) {
  const auto host_function = reinterpret_cast<int (*)(void*)>(host_entry(entry));
  if (comm == nullptr) return host_function(comm);
  const Freeing freeing(*static_cast<const MPI_Comm*>(comm));
  return host_function(comm);
}

// ---- first use ----

// Some hosts search the second group for each rank of the first: a translation takes time by the
// product of their sizes. So of large communicators parts are looked up among as many ranks of the
// world, those that go on as the last two do, and in all of it only if they are not there.
constexpr int kPart = 32;

// Whether the ranks `own` of `ours` are `begin`, `begin` + `step`, ... of the world, in whatever
// order. Then `ranks` says in which.
bool translate_as_expected(MPI_Group ours, MPI_Group all, const int* own, int count, int begin, int step, int* ranks) {
  int expected[kPart];
  for (int i = 0; i < count; i++) {
    expected[i] = begin + i * step;
    if (expected[i] < 0 || expected[i] >= world().size) return false;
  }
  MPI_Group part;
  if (host().Group_incl(all, count, expected, &part) != MPI_SUCCESS) return false;
  bool found = host().Group_translate_ranks(ours, count, own, part, ranks) == MPI_SUCCESS;
  for (int i = 0; found && i < count; i++) {
    found = ranks[i] != MPI_UNDEFINED;
    if (found) ranks[i] = expected[ranks[i]];
  }
  host().Group_free(&part);
  return found;
}

void translate(MPI_Group ours, int size, const int* own, MPI_Group all, int* ranks) {
  if (size <= kPart) {
    host().Group_translate_ranks(ours, size, own, all, ranks);
    return;
  }
  host().Group_translate_ranks(ours, 2, own, all, ranks);
  for (int at = 2; at < size; at += kPart) {
    const int count = size - at < kPart ? size - at : kPart;
    const int last = ranks[at - 1], before = ranks[at - 2];
    const bool known = last != MPI_UNDEFINED && before != MPI_UNDEFINED;
    const int step = last - before;
    if (known && translate_as_expected(ours, all, own + at, count, last + step, step, ranks + at)) continue;
    host().Group_translate_ranks(ours, count, own + at, all, ranks + at);
  }
}

// The members' ranks in COMM_WORLD, MPI_UNDEFINED for those of another one (spawned, connected), whom every member
// sees.
int* world_ranks(MPI_Comm comm, int size) {
  auto* const ranks = static_cast<int*>(std::malloc(2 * static_cast<std::size_t>(size) * sizeof(int)));
  if (ranks == nullptr) std::abort();  // a few bytes a rank: the others would wait for a word that we cannot give
  for (int r = 0; r < size; r++) ranks[r] = ranks[size + r] = r;
  if (comm == host().constants.comm_world) return ranks;
  for (int r = 0; r < size; r++) ranks[r] = MPI_UNDEFINED;
  MPI_Group ours, all;
  if (host().Comm_group(comm, &ours) != MPI_SUCCESS) return ranks;
  host().Comm_group(host().constants.comm_world, &all);
  translate(ours, size, ranks + size, all, ranks);
  host().Group_free(&ours);
  host().Group_free(&all);
  return ranks;
}

bool has_foreign(const int* ranks, int size) {
  bool foreign = false;
  for (int r = 0; r < size; r++) foreign = foreign || ranks[r] == MPI_UNDEFINED;
  return foreign;
}

// What members tell each other first where no MPI_Init has agreed on it for all.
struct Word {
  std::uint32_t version;
  std::int32_t off;
  std::int32_t error;
  std::int32_t check;
  std::int32_t reproducible;
};

void decline(State& state, const char* reason, int rank = -1) {
  state.reason = reason;
  state.reason_rank = rank;
}

// Agrees on the options within `comm`; false if they keep us away.
bool agree_on_options(State& state) {
  state.check = world().check;
  state.leaves_rounding = world().reproducible == ReproducibleChoice::mpi;
  if (world().agreed) return !world().off;
  if (!session_has_library()) {
    decline(state, "ranks without the library");
    return false;
  }
  const Word mine = {lifecycle_version(), !options().enabled(), options_have_error(), options().check(),
                     static_cast<std::int32_t>(options().reproducible())};
  auto* const all = static_cast<Word*>(std::malloc(static_cast<std::size_t>(state.size) * sizeof(Word)));
  if (all == nullptr || !allgather_bytes(&state.handle, &mine, all, sizeof mine)) std::abort();  // as above
  auto reproducible = static_cast<int>(ReproducibleChoice::off);
  for (int r = state.size - 1; r >= 0; r--) {
    if (all[r].reproducible > reproducible) reproducible = all[r].reproducible;
    if (all[r].check > state.check) state.check = all[r].check;
    if (all[r].version != all[0].version) decline(state, "members run different versions of Stretto", r);
    if (all[r].off) decline(state, "STRETTO=off", r);
    if (all[r].error) options_abort(state.handle, r == state.rank);
  }
  std::free(all);
  state.leaves_rounding = static_cast<ReproducibleChoice>(reproducible) == ReproducibleChoice::mpi;
  return state.reason == nullptr;
}

// The first member that does not run where the first does, by the job's table, which all have
// alike; -1: none, or there is no table.
int first_elsewhere(const int* ranks, int size) {
  if (ranks == nullptr || job() == nullptr) return -1;
  const auto machine = [&](int r) { return job()->machines[static_cast<std::size_t>(ranks[r])]; };
  for (int r = 1; r < size; r++) {
    if (machine(r) != machine(0)) return r;
  }
  return -1;
}

// `ranks`: those of the members in the job; null: they have no MPI_Init in common.
void serve_by_engine(State& state, const int* ranks) {
  const int elsewhere = first_elsewhere(ranks, state.size);
  if (elsewhere >= 0) return decline(state, engine::kOnSeveralNodes, elsewhere);
  const std::uint32_t wanted = options().wanted() & kNativeCollectives;
  const engine::Bootstrap bootstrap = {state.rank, state.size, &state.handle, allgather_bytes,
                                       ranks == nullptr || (world().several_nodes && job() == nullptr)};
  engine::Decline why;
  state.engine = engine::comm_create(*g_process, bootstrap, wanted, why);
  if (state.engine == nullptr) return decline(state, why.reason, why.rank);
  state.served = engine::comm_collectives(*state.engine);
}

// What each member knows without a word, and all know alike. False: they have to agree.
bool decide_alone(State& state, bool inter) {
  host().Comm_rank(state.handle, &state.rank);
  host().Comm_size(state.handle, &state.size);
  if (inter)
    decline(state, "intercommunicator");
  else if (vendor::reports_failures())
    decline(state, "the MPI reports failures of processes (ULFM)");
  else if (state.size == 1)
    decline(state, "one rank");
  else if (world().off)
    decline(state, "STRETTO=off");
  return state.reason != nullptr;
}

void decide_together(State& state) {
  int* const ranks = world().agreed ? world_ranks(state.handle, state.size) : nullptr;
  if (ranks != nullptr && has_foreign(ranks, state.size)) {
    decline(state, "members of several MPI_COMM_WORLDs");
  } else if (agree_on_options(state)) {
    serve_by_engine(state, ranks);
    if (ranks != nullptr && job() != nullptr) state.schedules = schedules_create(state, ranks, *g_process);
    g_tally.store(engine::process_tally(*g_process), std::memory_order_relaxed);
  }
  std::free(ranks);
}

// The names of a set of collectives.
struct Names {
  char text[400] = "";
  explicit Names(std::uint32_t set) {
    int at = 0;
    for (int op = 0; op < kCollectives; ++op) {
      if ((set >> op & 1) == 0) continue;
      at += std::snprintf(text + at, sizeof text - static_cast<std::size_t>(at), "%s%s", at == 0 ? "" : ", ",
                          kCollectiveNames[op]);
    }
  }
};

void explain(const State& state) {
  if (state.rank != 0 || state.size == 1) return;
  const auto say = [&](const char* how, std::uint32_t set, const char* why) {
    if (set == 0) return;
    const auto serial = static_cast<unsigned long long>(state.serial);
    log_explain("communicator %llu of %d ranks, %s: %s%s%s", serial, state.size, how, Names(set).text,
                *why != 0 ? "; " : "", why);
  };
  say("over shared memory", state.served, "");
  const std::uint32_t ruled = state.schedules != nullptr ? schedules_scheduler(*state.schedules).selector().ruled() : 0;
  say("by schedule, or at some lengths by the MPI", state.scheduled & ~ruled, "");
  say("as rules say", state.scheduled & ruled, "");
  say("by the MPI", kNativeCollectives & ~(state.served | state.scheduled),
      state.reason != nullptr ? state.reason : "as options say");
}

void report(const State& state) {
  if (options().explain()) explain(state);
  if (!log_enabled(LogLevel::info) || state.rank != 0) return;
  if (state.engine != nullptr || state.scheduled != 0) {
    log_line(LogLevel::info, "communicator %llu of %d ranks is served", static_cast<unsigned long long>(state.serial),
             state.size);
  } else {
    log_line(LogLevel::info, "communicator %llu of %d ranks is left to the MPI: %s (rank %d)",
             static_cast<unsigned long long>(state.serial), state.size, state.reason, state.reason_rank);
  }
}

// Collective over the communicator, in a call of `collective`.
void agree(State& state, Collective collective) {
  const Inside inside;
  const std::uint64_t note = engine::process_note_agreement(*g_process, collective, state.serial, state.size);
  state.reason = nullptr;
  decide_together(state);
  state.agreed = true;
  engine::process_note_end(*g_process, note);
  report(state);
}

// The number of calls in which every rank waits for all others after which the members agree; 0:
// before the first call of any kind. Members of communicators that no MPI_Init has agreed on have
// agreed on no option either. Checks of every call begin with the first, and so does an order of
// combining that is not the host's.
std::uint32_t calls_until_agreement(const State& state) {
  const int wanted = world().agreed ? world().agree : kAgreeAuto;
  if (wanted == kAgreeFirst ||
      (world().agreed && (world().check >= 2 || world().reproducible == ReproducibleChoice::rank)))
    return 0;
  if (wanted != kAgreeAuto) return static_cast<std::uint32_t>(wanted);
  return state.handle == host().constants.comm_world ? kTuning.agree_calls_world : kTuning.agree_calls;
}

// Whether a call with this outcome was none: the host looks at the arguments first, on this rank
// alone. Whatever else went wrong, the other members have had this rank's part in the call.
bool is_refusal(int code) {
  if (code == MPI_SUCCESS) return false;
  int error_class = MPI_SUCCESS;
  host().Error_class(code, &error_class);
  for (const int refusal :
       {MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_COMM, MPI_ERR_ROOT, MPI_ERR_OP, MPI_ERR_ARG}) {
    if (error_class == refusal) return true;
  }
  return false;
}

// Null for a handle that names no communicator.
State* create(MPI_Comm comm, Collective collective) {
  if (!host_is_proven()) return nullptr;
  const Inside inside;
  int inter = 0;
  if (host().Comm_test_inter(comm, &inter) != MPI_SUCCESS) return nullptr;
  auto* const memory = std::malloc(sizeof(State));
  if (memory == nullptr || !enter()) std::abort();  // under a kilobyte: nothing could be agreed without it
  auto* const state = new (memory) State;
  state->handle = comm;
  ensure_finalize_hook();
  if (!attach_attribute(comm, state))
    std::abort();  // we would not hear of the communicator's end, nor can we say so to all
  state->agreed = decide_alone(*state, inter != 0);
  if (!state->agreed) decline(*state, "left to the MPI until it is used more");
  {
    const Locked locked;
    state->serial = g_serial++;
    state->next = g_buckets[bucket_of(comm)];
    g_buckets[bucket_of(comm)] = state;
  }
  if (state->agreed)
    report(*state);
  else if (calls_until_agreement(*state) == 0)
    agree(*state, collective);
  return state;
}

}  // namespace

void call_before_agreement(State& state, Collective collective, int code) {
  if (is_refusal(code)) return;
  ++state.calls;
  if (waits_for_all(collective)) ++state.calls_of_all;
  const bool now = waits_for_all(collective) && state.calls_of_all >= calls_until_agreement(state);
  if (now || state.calls >= kTuning.agree_calls_of_any_kind) agree(state, collective);
}

State* state_find_or_create(MPI_Comm comm, Collective collective) {
  if (comm == host().constants.comm_null) return nullptr;
  // Read before the look-up: a deletion in between leaves an entry that is out of date, never one that seems valid.
  const std::uint64_t epoch = g_epoch.load(std::memory_order_relaxed);
  if (Freeing::has(comm)) return nullptr;
  notice_thread();
  State* state = find(comm);
  if (state == nullptr) state = create(comm, collective);
  if (state == nullptr) return nullptr;
  t_recent[recent_slot(comm)] = {comm, state, epoch};
  return state;
}

bool allgather_bytes(void* communicator, const void* mine, void* all, std::size_t bytes) {
  const Inside inside;
  const MPI_Datatype byte = host().constants.byte;
  const int count = static_cast<int>(bytes);
  return host().Allgather(mine, count, byte, all, count, byte, *static_cast<MPI_Comm*>(communicator)) == MPI_SUCCESS;
}

std::uint64_t call_noted(Collective collective, bool by_schedule) {
  return engine::process_note(*g_process, collective, by_schedule);
}
void call_left(std::uint64_t note) { engine::process_note_left(*g_process, note); }
void call_ended(std::uint64_t note) {
  if (g_process != nullptr) engine::process_note_end(*g_process, note);
}

void communicators_each(void (*each)(void* context, const State& state), void* context) {
  const Locked locked;
  for (State* state : g_buckets) {
    for (; state != nullptr; state = state->next) each(context, *state);
  }
}

int comm_free(void* comm) { return freed(Entry::comm_free, comm); }
int comm_disconnect(void* comm) { return freed(Entry::comm_disconnect, comm); }

bool communicator_lives(MPI_Comm comm, std::uint64_t serial) {
  const State* const state = find(comm);
  return state != nullptr && state->serial == serial;
}

bool communicators_alive() {
  const Locked alive(g_life);
  return g_users != 0;
}

void communicators_stop() {
  const Locked alive(g_life);
  {
    const Locked locked;
    for (State* state : g_buckets) {
      for (; state != nullptr; state = state->next) {
        engine::comm_free(state->engine);
        schedules_free(state->schedules);
        state->engine = nullptr;
        state->schedules = nullptr;
        state->served = state->scheduled = 0;
        state->agreed = true;
      }
    }
    g_tally.store(g_no_tally, std::memory_order_relaxed);
    engine::process_destroy(g_process);
    g_process = nullptr;
  }
  progress_release();
  errors_stop();
  datatypes_stop();
}

}  // namespace stretto::mpi
