// SPDX-License-Identifier: BSD-3-Clause
// What the store needs from a runtime that reaches other nodes. pmix/remote_exchange.hpp implements
// it.
//
// It carries batches (commit_batch.hpp), which a rank numbers from 0 on. A number is sent once and
// never changed, so any cache on the way is right.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/status.hpp"

namespace stretto::kv {

// The outcome of a wait.
enum class Outcome : std::uint8_t { found, not_found, timed_out, peer_gone, no_memory, failed };

// Bytes from malloc. The receiver frees them.
struct Fetched {
  char* data = nullptr;
  std::size_t bytes = 0;
};

struct RemoteExchange {
  void* context = nullptr;
  // When it returns, batch `number` of this rank is ready for any rank that asks.
  Status (*send)(void* context, std::uint64_t number, const void* data, std::size_t bytes) = nullptr;
  // Asks the other node for batch `number` of `rank`. Not found: at some time after the call began
  // there was none. Timed out: there is no answer; this may come before the time is up. Peer gone:
  // the way there is cut.
  Outcome (*ask)(void* context, std::uint32_t rank, std::uint64_t number, std::uint64_t timeout_ns,
                 Fetched* fetched) = nullptr;
  // Asks for what is in this process already. The answer to a query may bring all that its rank has
  // sent, and then brings it all at once.
  Outcome (*look)(void* context, std::uint32_t rank, std::uint64_t number, Fetched* fetched) = nullptr;
  // A fence of all ranks of the job. Timed out: this rank has done its part in the fence
  // nevertheless.
  Outcome (*fence)(void* context, std::uint64_t timeout_ns) = nullptr;
};

}  // namespace stretto::kv
