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
struct Process;

// "MPI_Reduce_scatter" of a call's number and collective.
struct CallName : MpiName {
  explicit CallName(std::uint64_t call) : MpiName(static_cast<Collective>(call & 0xff)) {}
};

// "MPI_Reduce (root 1, MPI_SUM, 2 integers of 4 bytes)".
struct CallWords {
  char text[128];
  CallWords(std::uint64_t call, const shm::CallDescriptor& descriptor);
};

// " (rank 2 at app.py:7 in main; rank 0 at /path/app+0x1234)": where these calls of members come
// from. Empty: not known of any. A rank twice is said once.
struct SiteWords {
  char text[700] = "";
  void add(const Comm& comm, int rank, const shm::NoteCopy& note);
};

// The place of the call that this thread is in. Empty: not known.
struct OwnSite {
  char text[sizeof shm::CallSite::text] = "";
  explicit OwnSite(Process* process);  // may be null
};

// Called after a call that failed or had a type mismatch. Says why, unless the reason is a rank's
// own arguments. Returns the call's status, more exactly than shm can tell it.
[[gnu::cold]] Status explain(Comm& comm, const shm::Call& call);

// Called before a communicator is freed. Says whether peers sent data that this rank did not take.
void explain_end(const Comm& comm);

}  // namespace stretto::engine
