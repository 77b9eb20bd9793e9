// SPDX-License-Identifier: BSD-3-Clause
// The network of remote reads by which connections move long messages (transport/fabric), as
// STRETTO_FABRIC says: if a card for it is here or the option names a provider.
#pragma once
#include "sys/sys.hpp"
#include "transport/fabric/fabric.hpp"

namespace stretto::mpi {

// Once. Null: there is none. STRETTO_EXPLAIN or a warning says so.
transport::Fabric* remote_reads_find(const sys::HostAddress* addresses, int address_count);
// The provider's name. "": there is none. It may still fail when the thread begins.
const char* remote_reads_provider();
// When the connections are closed.
void remote_reads_close();

}  // namespace stretto::mpi
