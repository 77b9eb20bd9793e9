// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/requests/persistent.hpp"

#include <pthread.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "base/locked.hpp"
#include "mpi/data/held_handles.hpp"
#include "mpi/job/process.hpp"
#include "mpi/requests/posted.hpp"
#include "mpi/requests/requests.hpp"
#include "mpi/state/errors.hpp"

namespace stretto::mpi {
namespace {

struct Persistent {
  MPI_Request handle;
  MPI_Request current;  // of the start that no wait has ended yet
  Entry entry;
  KeptCall call;
  State state;      // what the communicator was, which may be gone
  Nonblocking* on;  // for this request alone
  Posted* tried;    // holds datatypes
  Persistent* next = nullptr;
};

constexpr unsigned kBuckets = 64;

// Guards the table and the current requests. Nobody calls the host while holding it.
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Persistent* g_buckets[kBuckets] = {};
constinit std::atomic<std::uint32_t> g_count{0};

Persistent** link_of(MPI_Request handle) {
  const auto bits = (std::uintptr_t)handle;  // NOLINT: an int or a pointer
  Persistent** link = &g_buckets[(bits ^ bits >> 6 ^ bits >> 12) % kBuckets];
  while (*link != nullptr && (*link)->handle != handle) link = &(*link)->next;
  return link;
}

Persistent* find(MPI_Request handle) {
  if (g_count.load(std::memory_order_relaxed) == 0) return nullptr;
  const Locked locked(g_lock);
  return *link_of(handle);
}

void add(Persistent& persistent) {
  const Locked locked(g_lock);
  persistent.next = std::exchange(*link_of(persistent.handle), &persistent);
  g_count.fetch_add(1, std::memory_order_relaxed);
}

Persistent* take(MPI_Request handle) {
  if (g_count.load(std::memory_order_relaxed) == 0) return nullptr;
  const Locked locked(g_lock);
  Persistent** const link = link_of(handle);
  Persistent* const found = *link;
  if (found == nullptr) return nullptr;
  *link = found->next;
  g_count.fetch_sub(1, std::memory_order_relaxed);
  return found;
}

void end(Persistent* persistent) {
  posted_free(persistent->tried);
  nonblocking_free(persistent->on);
  for (const Handle handle : persistent->call.held) held_release(handle);
  std::free(persistent->call.closure);
  std::free(persistent);
}

// The handle for the program. The host refers to the communicator as long as the request exists. It
// names a real rank: Intel MPI takes an inactive receive from MPI_PROC_NULL for a complete one.
int make_handle(MPI_Comm comm, MPI_Request* handle) {
  const Inside inside;
  return host().Recv_init(nullptr, 0, host().constants.byte, 0, 0, comm, handle);
}

// Of the communicator, or what it was.
State& state_for(Persistent& persistent) {
  State& kept = persistent.state;
  State* const living = communicator_lives(kept.handle, kept.serial) ? state_if_any(kept.handle) : nullptr;
  return living != nullptr ? *living : kept;
}

int start(Persistent& persistent) {
  State& state = state_for(persistent);
  Requested requested{&persistent.current, persistent.on, &state};
  Call call{persistent.entry, call_begins()};
  call.requested = &requested;
  call.state = &state;
  if (persistent.current != host().constants.request_null)
    (void)raise(call, MPI_ERR_REQUEST, "the persistent request is active");
  else if (!persistent.call.make(persistent.call.closure, call))
    (void)raise(call, MPI_ERR_INTERN, "Stretto cannot start the request");
  return call.code;
}

}  // namespace

bool persistent_init(int* code, Entry entry, Handle comm, void* request, const KeptCall& kept) {
  Requested requested{request};
  requested.tries = true;
  Call call{entry, call_begins()};
  call.requested = &requested;
  const bool served = kept.make(kept.closure, call);
  *code = call.code;
  Nonblocking* on = nullptr;
  if (served && *code == MPI_SUCCESS) on = nonblocking_create_like(*call.state, process());
  if (on == nullptr) {
    posted_free(requested.tried);
    std::free(kept.closure);
    return served && *code != MPI_SUCCESS;
  }
  void* const memory = std::malloc(sizeof(Persistent));
  if (memory == nullptr) std::abort();  // a kilobyte, and peers have decided alike
  auto* const made = new (memory) Persistent{
      host().constants.request_null, host().constants.request_null, entry, kept, *call.state, on, requested.tried};
  if (made->state.neighborhood != nullptr) made->state.neighborhood = &on->neighborhood;
  for (const Handle handle : kept.held) held_add(handle);
  *code = make_handle(as<MPI_Comm>(comm), &made->handle);
  if (*code != MPI_SUCCESS) {
    end(made);
    return true;
  }
  *static_cast<MPI_Request*>(request) = made->handle;
  add(*made);
  return true;
}

MPI_Request persistent_current(MPI_Request handle) {
  const Persistent* const persistent = find(handle);
  return persistent != nullptr ? persistent->current : handle;
}

bool persistent_ended(MPI_Request handle, MPI_Request current) {
  Persistent* const persistent = find(handle);
  if (persistent == nullptr || persistent->current != current) return false;
  persistent->current = host().constants.request_null;
  return true;
}

void persistent_stop() {
  for (Persistent*& bucket : g_buckets) {
    while (bucket != nullptr) end(std::exchange(bucket, bucket->next));
  }
  g_count.store(0, std::memory_order_relaxed);
}

// ---- What the wrappers call ----

bool start_served(int* code, void* request) {
  Persistent* const persistent = request != nullptr ? find(*static_cast<MPI_Request*>(request)) : nullptr;
  if (persistent == nullptr) return false;
  *code = start(*persistent);
  return true;
}

bool startall_served(int* code, int count, void* array) {
  if (array == nullptr || g_count.load(std::memory_order_relaxed) == 0) return false;
  auto* const requests = static_cast<MPI_Request*>(array);
  bool some = false;
  for (int i = 0; i < count && !some; ++i) some = find(requests[i]) != nullptr;
  if (!some) return false;
  *code = MPI_SUCCESS;
  for (int i = 0; i < count && *code == MPI_SUCCESS; ++i) {
    if (!start_served(code, &requests[i])) *code = host().Start(&requests[i]);
  }
  return true;
}

// MPI forbids it for collectives. The host would cancel a receive that never starts.
bool cancel_served(int* code, void* request) {
  Persistent* const persistent = request != nullptr ? find(*static_cast<MPI_Request*>(request)) : nullptr;
  if (persistent == nullptr) return false;
  Call call{persistent->entry};
  call.state = &state_for(*persistent);
  (void)raise(call, MPI_ERR_REQUEST, "a collective cannot be cancelled");
  *code = call.code;
  return true;
}

// If a start has not ended, the host frees its request when it does.
bool request_free_served(int* code, void* request) {
  auto* const handle = static_cast<MPI_Request*>(request);
  Persistent* const persistent = handle != nullptr ? take(*handle) : nullptr;
  if (persistent == nullptr) return false;
  if (persistent->current != host().constants.request_null) host().Request_free(&persistent->current);
  end(persistent);
  *code = host().Request_free(handle);
  return true;
}

}  // namespace stretto::mpi
