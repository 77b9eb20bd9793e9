// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/requests/request_queue.hpp"

#include <pthread.h>

#include <utility>

#include "base/locked.hpp"
#include "base/log.hpp"
#include "base/tuning.hpp"
#include "mpi/host/entry.hpp"
#include "sys/sys.hpp"
#include "sys/thread.hpp"

namespace stretto::mpi {

constinit std::atomic<bool> g_nonblocking{false};
constinit std::atomic<std::uint32_t> g_own_requests{0};

namespace {

// Guards the communicators' queues and what follows. Nobody waits for another rank, or calls the
// host, while holding it.
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit pthread_cond_t g_wake = PTHREAD_COND_INITIALIZER;
constinit RequestQueue* g_all = nullptr;
constinit engine::Prepared* g_ended = nullptr;  // to be completed by a thread of the program
constinit engine::Prepared* g_last_ended = nullptr;
constinit RequestCompletion g_complete = nullptr;
constinit std::uint64_t g_drives = 0;   // by threads of the program
constinit std::uint32_t g_running = 0;  // calls that have not ended
constinit bool g_started = false, g_stopping = false, g_parked = false;
pthread_t g_thread;

// The lock is held.
bool advance(RequestQueue& on) {
  const bool moved = on.queue.advance();
  while (engine::Prepared* const call = on.queue.take_ended()) {
    call->next = nullptr;
    (g_ended == nullptr ? g_ended : g_last_ended->next) = call;
    g_last_ended = call;
    --g_running;
  }
  return moved;
}

bool advance_all() {
  bool moved = false;
  for (RequestQueue* on = g_all; on != nullptr && g_running != 0; on = on->next)
    moved = (!on->queue.empty() && advance(*on)) || moved;
  return moved;
}

engine::Prepared* next_ended() {
  const Locked locked(g_lock);
  engine::Prepared* const call = g_ended;
  if (call != nullptr) g_ended = call->next;
  return call;
}

// Does what only a thread of the program may do.
void complete_ended() {
  const Inside inside;
  while (engine::Prepared* const call = next_ended()) g_complete(*call);
}

// ---- The thread ----

void* drive(void*) {
  pthread_mutex_lock(&g_lock);
  unsigned idle = 0;
  std::uint64_t seen = g_drives;
  while (!g_stopping) {
    if (g_running == 0 && ++idle > kTuning.requests_idle_naps) {
      g_parked = true;
      pthread_cond_wait(&g_wake, &g_lock);
      g_parked = false;
      idle = 0;
      continue;
    }
    const bool alone = g_running != 0 && g_drives == seen;
    const bool moved = alone && advance_all();
    seen = g_drives;
    pthread_mutex_unlock(&g_lock);
    sys::nap_ns(moved ? kTuning.requests_short_nap_ns : kTuning.requests_nap_ns);
    pthread_mutex_lock(&g_lock);
    if (g_running != 0) idle = 0;
  }
  pthread_mutex_unlock(&g_lock);
  return nullptr;
}

// The lock is held.
void start_thread() {
  if (g_started) {
    if (g_parked) pthread_cond_signal(&g_wake);
    return;
  }
  g_started = sys::thread_start(&g_thread, nullptr, drive, nullptr) == 0;
  if (!g_started) log_line(LogLevel::warn, "nonblocking collectives: no thread; they go on in waits and tests alone");
}

}  // namespace

void requests_add(RequestQueue& queue) {
  const Locked locked(g_lock);
  queue.next = g_all;
  g_all = &queue;
}

bool requests_release(RequestQueue& queue) {
  const Locked locked(g_lock);
  if (--queue.users != 0) return false;
  RequestQueue** link = &g_all;
  while (*link != &queue) link = &(*link)->next;
  *link = queue.next;
  return true;
}

// Whether no call is under way.
bool all_have_ended() {
  const Locked locked(g_lock);
  return g_running == 0 && g_ended == nullptr;
}

void requests_post(RequestQueue& queue, engine::Prepared& call, RequestCompletion complete) {
  {
    const Locked locked(g_lock);
    g_complete = complete;
    g_own_requests.fetch_add(1, std::memory_order_relaxed);
    ++g_running;
    ++queue.users;
    queue.queue.post(call);
    ++g_drives;
    (void)advance(queue);
    if (g_running != 0) start_thread();
  }
  complete_ended();
}

void drive_outstanding_requests() {
  if (pthread_mutex_trylock(&g_lock) != 0) return;
  ++g_drives;
  (void)advance_all();
  const bool ended = g_ended != nullptr;
  pthread_mutex_unlock(&g_lock);
  if (ended) complete_ended();
}

// A program must have completed all. Calls whose requests it has freed may still be under way.
void requests_finish() {
  const std::uint64_t until = sys::now_ns() + kTuning.requests_finish_ns;
  while (!all_have_ended() && sys::now_ns() < until) {
    drive_outstanding_requests();
    sys::thread_yield();
  }
  pthread_mutex_lock(&g_lock);
  const bool started = std::exchange(g_started, false);
  g_stopping = true;
  pthread_cond_signal(&g_wake);
  pthread_mutex_unlock(&g_lock);
  if (started) {
    pthread_join(g_thread, nullptr);
    --sys::g_own_threads;
  }
  g_stopping = false;
  g_nonblocking.store(false, std::memory_order_relaxed);
}

}  // namespace stretto::mpi
