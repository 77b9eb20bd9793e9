// SPDX-License-Identifier: BSD-3-Clause
// The store's exchange with other nodes (kv/remote_exchange.hpp): the PMIx client library, found when a job's store is
// opened.
//
// A batch is a PMIx value of its own key, of remote scope. It is fetched with PMIX_GET_REFRESH_CACHE: without it a
// runtime may answer "not found" from what it has. A key that is put again would not do: OpenPMIx 5 goes on showing
// other nodes the first value, whatever is asked for.
//
// The runtime's daemon on each node is what talks to the other nodes' daemons. When it dies, the library tells us by an
// event, and from then on every call ends with peer_gone.
#pragma once
#include <pmix.h>

#include "kv/remote_exchange.hpp"

namespace stretto::pmix {

// Who this process is to the runtime. Its memory is the caller's to free.
struct RuntimeClient {
  pmix_proc_t self;
  const char* directory;  // of this node's session, the runtime's to remove
  std::uint32_t ranks;    // of the job
  std::uint32_t* here;    // on this node, ascending
  unsigned count_here;
  std::uint32_t* first;  // of each rank: the lowest on its node
};

// Unavailable: this process is no client of a runtime, or has joined it before; OpenPMIx 5 writes over its own memory
// when it is initialized again.
Status remote_join(RuntimeClient* client);
kv::RemoteExchange remote_exchange();
void remote_leave();

}  // namespace stretto::pmix
