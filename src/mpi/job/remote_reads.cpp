// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/remote_reads.hpp"

#include <algorithm>
#include <atomic>
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

void say_why_not(const char* why) {
  if (world().rank == 0 && options().explain()) log_explain("connections: no libfabric: %s", why);
  demand_refused(Option::fabric, 0, why);
}

// Loading a libfabric and asking its providers takes some 0.3 s. So without a card nobody is asked.
const char* find(Libfabric& network, const Libfabric::Settings& settings) {
  if (settings.provider == nullptr) return "STRETTO_FABRIC=off";
  if (*settings.provider == 0 && !sys::rdma_card_is_here()) return "no card for it is here";
  return network.find(settings) ? nullptr : network.why();
}

}  // namespace

transport::Fabric* remote_reads_find(const sys::HostAddress* addresses, int address_count) {
  static constinit sys::HostAddress own[sys::kMostAddresses] = {};
  std::copy_n(addresses, address_count, own);
  auto* const made = new (g_memory) Libfabric;
  if (const char* const why_not = find(*made, {options().fabric_provider(), own, address_count, say_why_not})) {
    say_why_not(why_not);
    made->~Libfabric();
    return nullptr;
  }
  if (world().rank == 0 && options().explain())
    log_explain("connections: long messages go by libfabric, provider %s, domain %s", made->provider(), made->domain());
  g_network.store(made, std::memory_order_release);
  return made;
}

const char* remote_reads_provider() {
  const Libfabric* const network = g_network.load(std::memory_order_acquire);
  return network != nullptr ? network->provider() : "";
}

void remote_reads_close() {
  if (Libfabric* const network = g_network.exchange(nullptr, std::memory_order_acq_rel)) network->~Libfabric();
}

}  // namespace stretto::mpi
