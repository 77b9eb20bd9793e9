// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/connections.hpp"

#include <pthread.h>

#include <new>

#include "base/locked.hpp"
#include "base/log.hpp"
#include "mpi/job/remote_reads.hpp"
#include "mpi/job/world.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {
namespace {

using transport::bulk::Driver;

alignas(Driver) constinit unsigned char g_memory[sizeof(Driver)] = {};
constinit std::atomic<Driver*> g_connections = nullptr;
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
// Under the lock.
constinit bool g_tried = false;
constinit transport::Endpoint g_endpoint = {};
constinit std::uint32_t g_words = 0;

// With the lock held.
void listen() {
  Driver::Settings settings;
  settings.rank = world().rank;
  settings.address_count = sys::host_addresses(settings.addresses);
  settings.fabric = remote_reads_find(settings.addresses, settings.address_count);
  auto* const made = new (g_memory) Driver;
  if (made->open(settings, &g_endpoint) == Status::ok) return g_connections.store(made, std::memory_order_release);
  g_endpoint = {};
  made->~Driver();
}

}  // namespace

ConnectionWord connection_word() {
  const Locked locked(g_lock);
  if (!g_tried) listen();
  g_tried = true;
  return {g_endpoint, static_cast<std::uint64_t>(world().rank) << 32 | ++g_words};
}

bool connections_introduce(int job_rank, const transport::Endpoint& endpoint) {
  return job_rank == world().rank || connections()->introduce(job_rank, endpoint) == Status::ok;
}

Driver* connections() { return g_connections.load(std::memory_order_acquire); }

void connections_stop() {
  Driver* const own = g_connections.exchange(nullptr, std::memory_order_acq_rel);
  if (own == nullptr) return;
  own->stop();
  if (options().explain() && world().rank == 0 && *remote_reads_provider() != 0)
    log_explain("connections: %llu bytes have come to rank 0 by libfabric",
                static_cast<unsigned long long>(own->read_bytes()));
  own->~Driver();
  remote_reads_close();
}

}  // namespace stretto::mpi
