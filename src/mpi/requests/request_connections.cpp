// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/requests/request_connections.hpp"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/bootstrap.hpp"
#include "base/locked.hpp"
#include "base/log.hpp"
#include "mpi/job/world.hpp"
#include "sys/sys.hpp"
#include "transport/bulk/driver.hpp"

namespace stretto::mpi {
namespace {

using transport::bulk::Driver;

alignas(Driver) constinit unsigned char g_memory[sizeof(Driver)] = {};
// Under the lock.
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Driver* g_driver = nullptr;
constinit bool g_tried = false;
constinit transport::Endpoint g_endpoint = {};
constinit std::uint32_t g_opened = 0;

// What a member tells the others.
struct Word {
  transport::Endpoint endpoint;  // not able: nobody can reach this process
  std::uint64_t id;
};

Driver* driver() {
  const Locked locked(g_lock);
  return g_driver;
}

// Listens once.
Word own_word(int rank) {
  const Locked locked(g_lock);
  if (!g_tried) {
    g_tried = true;
    Driver::Settings settings;
    settings.rank = rank;
    settings.address_count = sys::host_addresses(settings.addresses);
    auto* const made = new (g_memory) Driver;
    if (made->open(settings, &g_endpoint) == Status::ok) {
      g_driver = made;
    } else {
      g_endpoint = {};
      made->~Driver();
    }
  }
  return {g_endpoint, static_cast<std::uint64_t>(rank) << 32 | ++g_opened};
}

}  // namespace

bool RequestConnections::open(State& state, const int* job_ranks, const NearMembers* shares) {
  const Bootstrap members = {state.rank, state.size, &state.handle, allgather_bytes};
  const Array<Word> all = of_all(members, own_word(job_ranks[state.rank]));
  id_ = all[0].id;
  const bool able = std::all_of(all.begin(), all.end(), [](const Word& word) { return word.endpoint.able; });
  Driver* const own = driver();
  const auto needs_none = [&](int r) {
    return r == state.rank ||
           (shares != nullptr && std::find(shares->ranks.begin(), shares->ranks.end(), r) != shares->ranks.end());
  };
  bool met = able;
  for (int r = 0; r < state.size && met; ++r)
    met = needs_none(r) || own->introduce(job_ranks[r], all[static_cast<std::size_t>(r)].endpoint) == Status::ok;
  open_ = everybody(members, met);
  if (open_) messages_.start(*own, id_, job_ranks, state.size);
  report_requests(state, open_  ? "ours, by connections of our own between nodes"
                         : able ? "the MPI; a member would have too many connections"
                                : "the MPI; members cannot connect");
  return open_;
}

// Later ones are for persistent requests.
void report_requests(const State& state, const char* how) {
  if (state.rank != 0 || state.nonblocking != nullptr || !options().explain()) return;
  log_explain("calls with requests on communicator %llu of %d ranks: %s", static_cast<unsigned long long>(state.serial),
              state.size, how);
}

RequestConnections::~RequestConnections() {
  Driver* const own = open_ ? driver() : nullptr;
  if (own != nullptr) own->forget(id_);
}

void request_connections_stop() {
  Driver* own = nullptr;
  {
    const Locked locked(g_lock);
    own = std::exchange(g_driver, nullptr);
  }
  if (own == nullptr) return;
  own->stop();
  own->~Driver();
}

}  // namespace stretto::mpi
