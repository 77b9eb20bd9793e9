// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/progress.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

#include "mpi/entry.hpp"
#include "mpi/host.hpp"
#include "mpi/requests.hpp"

namespace stretto::mpi {
namespace {

// A thread has one from its first long wait until the thread ends. Then another thread gets it.
struct Request {
  MPI_Request handle;
  Request* next;
  Request* next_idle;
};

constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Request* g_requests = nullptr;          // all; the lock guards it and the next
constinit Request* g_idle = nullptr;              // those of threads that have ended
constinit std::atomic<unsigned> g_generation{1};  // every release advances it, which makes threads' requests invalid
constinit pthread_once_t g_once = PTHREAD_ONCE_INIT;
pthread_key_t g_key;  // for its destructor
constinit bool g_has_key = false;

struct Mine {
  Request* request;
  unsigned generation;
};
thread_local constinit Mine t_mine STRETTO_TLS = {nullptr, 0};

int query(void*, MPI_Status*) { return MPI_SUCCESS; }
int release(void*) { return MPI_SUCCESS; }
int cancel(void*, int) { return MPI_SUCCESS; }

// Called when a thread ends.
void give_back(void*) {
  pthread_mutex_lock(&g_lock);
  if (t_mine.request != nullptr && t_mine.generation == g_generation.load(std::memory_order_relaxed)) {
    t_mine.request->next_idle = g_idle;
    g_idle = t_mine.request;
  }
  t_mine = {nullptr, 0};
  pthread_mutex_unlock(&g_lock);
}

Request* take_idle() {
  pthread_mutex_lock(&g_lock);
  Request* const request = g_idle;
  if (request != nullptr) g_idle = request->next_idle;
  pthread_mutex_unlock(&g_lock);
  return request;
}

Request* make() {
  auto* const request = static_cast<Request*>(std::malloc(sizeof(Request)));
  if (request == nullptr) return nullptr;
  if (host().Grequest_start(query, release, cancel, nullptr, &request->handle) != MPI_SUCCESS) {
    std::free(request);
    return nullptr;
  }
  pthread_mutex_lock(&g_lock);
  request->next = g_requests;
  g_requests = request;
  pthread_mutex_unlock(&g_lock);
  return request;
}

// Gives this thread a request. A thread that gets none for want of memory does not drive the host.
[[gnu::cold]] void start() {
  t_mine = {nullptr, g_generation.load(std::memory_order_relaxed)};
  Request* request = take_idle();
  if (request == nullptr) request = make();
  t_mine.request = request;
  pthread_once(&g_once, [] { g_has_key = pthread_key_create(&g_key, give_back) == 0; });
  if (request != nullptr && g_has_key) pthread_setspecific(g_key, request);
}

}  // namespace

void progress_poke(void*) {
  drive_own_requests();
  if (t_mine.generation != g_generation.load(std::memory_order_relaxed)) [[unlikely]]
    start();
  if (t_mine.request == nullptr) return;
  int flag = 0;
  host().Test(&t_mine.request->handle, &flag, MPI_STATUS_IGNORE);
}

void progress_release() {
  pthread_mutex_lock(&g_lock);
  Request* request = g_requests;
  g_requests = g_idle = nullptr;
  g_generation.fetch_add(1, std::memory_order_relaxed);
  pthread_mutex_unlock(&g_lock);
  while (request != nullptr) {
    Request* const next = request->next;
    host().Grequest_complete(request->handle);
    host().Wait(&request->handle, MPI_STATUS_IGNORE);
    std::free(request);
    request = next;
  }
}

}  // namespace stretto::mpi
