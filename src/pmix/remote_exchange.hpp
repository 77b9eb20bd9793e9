// SPDX-License-Identifier: BSD-3-Clause
// The store's exchange with other nodes (kv/remote_exchange.hpp). It uses the PMIx client library,
// which it finds when a job's store is opened.
//
// A batch is a PMIx value with a key of its own and remote scope. It is fetched with
// PMIX_GET_REFRESH_CACHE: without that a runtime may answer "not found" from what it has. Putting
// one key again would not work: OpenPMIx 5 keeps showing other nodes the first value, whatever they
// ask for.
//
// The runtime's daemon on each node talks to the other nodes' daemons. When it dies, the library
// raises an event, and from then on every call ends with peer_gone.
#pragma once
#include <pmix.h>

#include "kv/remote_exchange.hpp"

namespace stretto::pmix {

// What the runtime knows this process as. The caller frees its memory.
struct RuntimeClient {
  pmix_proc_t self;
  const char* directory;  // of this node's session; the runtime removes it
  std::uint32_t ranks;    // of the job
  std::uint32_t* here;    // ranks on this node, ascending
  unsigned count_here;
  std::uint32_t* first;  // for each rank: the lowest rank on its node
};

// Unavailable: this process is no client of a runtime, or has joined it before. A process may join
// only once, because OpenPMIx 5 writes over its own memory when it is initialized again.
Status remote_join(RuntimeClient* client);
kv::RemoteExchange remote_exchange();
void remote_leave();

}  // namespace stretto::pmix
