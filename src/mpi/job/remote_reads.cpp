// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/remote_reads.hpp"

#include <atomic>
#include <cstring>
#include <new>

#include "base/demands.hpp"
#include "base/log.hpp"
#include "mpi/job/world.hpp"
#include "transport/fabric/libfabric.hpp"

namespace stretto::mpi {
namespace {

using transport::Libfabric;

alignas(Libfabric) constinit unsigned char g_memory[sizeof(Libfabric)] = {};
constinit std::atomic<Libfabric*> g_network = nullptr;

// Loading a libfabric and asking its providers takes some 0.3 s. So without a card nobody is asked.
const char* open(Libfabric& network, const sys::HostAddress* addresses, int address_count) {
  const char* const provider = options().fabric_provider();
  if (provider == nullptr) return "STRETTO_FABRIC=off";
  if (*provider == 0 && !sys::rdma_card_is_here()) return "no card for it is here";
  return network.open({provider, addresses, address_count}) ? nullptr : network.why();
}

}  // namespace

transport::Fabric* remote_reads_open(const sys::HostAddress* addresses, int address_count) {
  auto* const made = new (g_memory) Libfabric;
  const char* const why_not = open(*made, addresses, address_count);
  if (why_not == nullptr) {
    if (world().rank == 0 && options().explain())
      log_explain("connections: long messages go by libfabric, provider %s, domain %s", made->address().provider,
                  made->domain());
    g_network.store(made, std::memory_order_release);
    return made;
  }
  if (world().rank == 0 && options().explain()) log_explain("connections: no libfabric: %s", why_not);
  demand_refused(Option::fabric, 0, why_not);
  made->~Libfabric();
  return nullptr;
}

const char* remote_reads_provider() {
  const Libfabric* const network = g_network.load(std::memory_order_acquire);
  return network != nullptr ? network->address().provider : "";
}

void remote_reads_close() {
  if (Libfabric* const network = g_network.exchange(nullptr, std::memory_order_acq_rel)) network->~Libfabric();
}

}  // namespace stretto::mpi
