// SPDX-License-Identifier: BSD-3-Clause
// Says in words what went wrong between ranks: which rank called what. Private to src/engine.
#pragma once
#include "base/collective.hpp"
#include "base/status.hpp"
#include "shm/journal.hpp"

namespace stretto::shm {
class Call;
}

namespace stretto::engine {

struct Comm;

// "MPI_Reduce_scatter" of a call's number and collective.
struct CallName : MpiName {
  explicit CallName(std::uint64_t call) : MpiName(static_cast<Collective>(call & 0xff)) {}
};

// "MPI_Reduce (root 1, MPI_SUM, 2 integers of 4 bytes)".
struct CallWords {
  char text[128];
  CallWords(std::uint64_t call, const shm::CallDescriptor& descriptor);
};

// Called after a call that failed or had a type mismatch. Says why, unless the reason is a rank's
// own arguments. Returns the call's status, more exactly than shm can tell it.
[[gnu::cold]] Status explain(Comm& comm, const shm::Call& call);

// Called before a communicator is freed. Says whether peers sent data that this rank did not take.
void explain_end(const Comm& comm);

}  // namespace stretto::engine
