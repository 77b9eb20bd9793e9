// SPDX-License-Identifier: BSD-3-Clause
// What went wrong between ranks, in words: who called what. Private to src/engine.
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

// After a call that failed, or whose messages are in doubt: says why, if it was no rank's own arguments. Returns what
// the call came to, more exactly than shm can tell.
[[gnu::cold]] Status explain(Comm& comm, const shm::Call& call);

// Before a communicator goes: says whether there are data that nobody took.
void explain_end(const Comm& comm);

}  // namespace stretto::engine
