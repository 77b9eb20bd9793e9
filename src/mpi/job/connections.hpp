// SPDX-License-Identifier: BSD-3-Clause
// The connections of this process to ranks on other nodes: one set of sockets, and one thread that
// serves them (transport/bulk/driver.hpp). Calls that return early and calls with requests share
// them. They open at the first message of each pair.
//
// Members of a communicator agree once for each use whether they connect. Every step is collective:
//
//   1. each tells the others where it can be reached; all see whether everybody can be
//   2. each introduces the others to its thread, for whom it may have too many connections already
//   3. they agree whether everybody could
//
// The use's messages then have an id that no other use or communicator ever has. So they meet no
// others on the connection that they share.
#pragma once
#include <algorithm>

#include "base/array.hpp"
#include "transport/bulk/driver.hpp"

namespace stretto::mpi {

// What a member tells the others. A use may add to it.
struct ConnectionWord {
  transport::Endpoint endpoint;  // not able: nobody can reach this process
  std::uint64_t id;              // that of rank 0 counts
};

// This process listens from the first call on.
ConnectionWord connection_word();

template <class Word>
bool all_can_connect(const Array<Word>& all) {
  return std::all_of(all.begin(), all.end(), [](const Word& word) { return word.endpoint.able; });
}

// False: this process would have too many connections. It needs none to itself.
bool connections_introduce(int job_rank, const transport::Endpoint& endpoint);

// All members but this one and those of `without`.
template <class Word>
bool connections_introduce(const Array<Word>& all, const int* job_ranks, const Array<int>* without = nullptr) {
  bool fine = true;
  for (int rank = 0; rank < static_cast<int>(all.size()) && fine; ++rank)
    fine = (without != nullptr && std::find(without->begin(), without->end(), rank) != without->end()) ||
           connections_introduce(job_ranks[rank], all[static_cast<std::size_t>(rank)].endpoint);
  return fine;
}

// Null: this process does not listen.
transport::bulk::Driver* connections();

// At MPI_Finalize: ends the thread, and closes all connections.
void connections_stop();

}  // namespace stretto::mpi
