// SPDX-License-Identifier: BSD-3-Clause
// A rank that the driver may talk to. Private to the driver.
#pragma once
#include "transport/bulk/connection.hpp"
#include "transport/handshake_ends.hpp"

namespace stretto::transport::bulk {

struct Peer {
  Peer(Shared& shared, int rank_of_peer, std::uint32_t host)
      : rank(rank_of_peer), connection(shared, rank_of_peer, host) {}

  const int rank;
  Connection connection;
  Attempt attempt;
  bool calls = false;         // the attempt is under way
  bool is_called = false;     // the first stream is the peer's call, and so are the others
  int calls_left = 0;         // after this one
  std::uint64_t call_ns = 0;  // when to call; 0: not
};

}  // namespace stretto::transport::bulk
