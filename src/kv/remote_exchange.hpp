// SPDX-License-Identifier: BSD-3-Clause
// What the store asks of a runtime that reaches other nodes: the contract of
// pmix/remote_exchange.hpp.
//
// It carries batches (commit_batch.hpp), which a rank numbers from 0 on. A number is sent once and
// never changed, so whatever caches there are on the way are right.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/status.hpp"

namespace stretto::kv {

// What a wait came to.
enum class Outcome : std::uint8_t { found, not_found, timed_out, peer_gone, no_memory, failed };

// Bytes from malloc, the receiver's own.
struct Fetched {
  char* data = nullptr;
  std::size_t bytes = 0;
};

struct RemoteExchange {
  void* context = nullptr;
  // Has batch `number` of this rank ready for whoever asks, when it returns.
  Status (*send)(void* context, std::uint64_t number, const void* data, std::size_t bytes) = nullptr;
  // Asks the other node for batch `number` of `rank`. Not found: there was none at some time after
  // the call began. Timed out: no answer; it may come sooner than asked for. Peer gone: the way
  // there is cut.
  Outcome (*ask)(void* context, std::uint32_t rank, std::uint64_t number, std::uint64_t timeout_ns,
                 Fetched* fetched) = nullptr;
  // The same of what is in this process: the answer to a query may bring all that its rank has
  // sent, and then does so at once.
  Outcome (*look)(void* context, std::uint32_t rank, std::uint64_t number, Fetched* fetched) = nullptr;
  // Of all ranks of the job. Timed out: this rank's part in it is done all the same.
  Outcome (*fence)(void* context, std::uint64_t timeout_ns) = nullptr;
};

}  // namespace stretto::kv
