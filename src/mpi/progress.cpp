// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/progress.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

#include "mpi/edge.hpp"
#include "mpi/host.hpp"

namespace stretto::mpi {
namespace {

struct Request {
  MPI_Request handle;
  Request* next;
};

constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Request* g_requests = nullptr;            // under the lock
constinit std::atomic<unsigned> g_generation{1};    // advances with every release: what threads hold is then gone

struct Mine {
  Request* request;
  unsigned generation;
};
thread_local constinit Mine t_mine STRETTO_TLS = {nullptr, 0};

int query(void*, MPI_Status*) { return MPI_SUCCESS; }
int release(void*) { return MPI_SUCCESS; }
int cancel(void*, int) { return MPI_SUCCESS; }

[[gnu::cold]] void start() {
  t_mine = {nullptr, g_generation.load(std::memory_order_relaxed)};
  auto* const request = static_cast<Request*>(std::malloc(sizeof(Request)));
  if (request == nullptr) return;  // this thread waits without poking
  if (host().Grequest_start(query, release, cancel, nullptr, &request->handle) != MPI_SUCCESS) {
    std::free(request);
    return;
  }
  pthread_mutex_lock(&g_lock);
  request->next = g_requests;
  g_requests = request;
  pthread_mutex_unlock(&g_lock);
  t_mine.request = request;
}

}  // namespace

void progress_poke(void*) {
  if (t_mine.generation != g_generation.load(std::memory_order_relaxed)) [[unlikely]] start();
  if (t_mine.request == nullptr) return;
  int flag = 0;
  host().Test(&t_mine.request->handle, &flag, MPI_STATUS_IGNORE);
}

void progress_release() {
  pthread_mutex_lock(&g_lock);
  Request* request = g_requests;
  g_requests = nullptr;
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
