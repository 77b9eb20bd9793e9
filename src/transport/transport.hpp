// SPDX-License-Identifier: BSD-3-Clause
// The contract of a transport: how messages of a schedule get from rank to rank.
//
// The n-th send to a rank meets that rank's n-th receive from this one, and is posted as the n-th;
// `message_index` is n, counted from 0 in this schedule. No function blocks. A ticket comes back
// once, when the memory is the caller's again.
//
// A new transport is a file here, a place in the chain of stack.hpp, and an option.
#pragma once
#include <cstdint>

#include "base/array.hpp"
#include "base/collective.hpp"
#include "base/status.hpp"

namespace stretto::transport {

// A member that has died, or whose connection is gone, as far as this member knows; -1: none. The
// witness is the member that says so: this one, or a peer.
struct Lost {
  int rank = -1, witness = -1;
};

// Why a communicator has failed, as its members tell each other.
struct Reason {
  Status why = Status::peer_failed;
  int lost = -1;  // the rank that has ended; -1: nobody knows which
  [[nodiscard]] std::uint32_t word() const {
    return static_cast<std::uint32_t>(why) << 24 | (static_cast<std::uint32_t>(lost + 1) & 0xffffff);
  }
  // False: there is no such reason.
  bool read(std::uint64_t word) {
    if (word >> 24 == 0 || word >> 24 > static_cast<std::uint64_t>(Status::invalid)) return false;
    why = static_cast<Status>(word >> 24);
    lost = static_cast<int>(word & 0xffffff) - 1;
    return true;
  }
};

// Functions that are null do nothing.
struct Transport {
  void* context = nullptr;
  // False: not now, ask again.
  bool (*send)(void* context, int peer, std::uint32_t message_index, const char* data, std::uint64_t bytes,
               std::uint32_t ticket) = nullptr;
  bool (*recv)(void* context, int peer, std::uint32_t message_index, char* data, std::uint64_t bytes,
               std::uint32_t ticket) = nullptr;
  // Writes up to `capacity` tickets of finished messages, returns their number; -1: the transport
  // is broken.
  int (*poll)(void* context, std::uint32_t* tickets, int capacity) = nullptr;
  // Why it is broken; ok: it is not. Null: a peer has failed.
  Status (*failure)(void* context) = nullptr;
  // Whether it takes a message of this length to or from this peer. Both members answer alike.
  // Null: it takes all messages.
  bool (*accepts)(void* context, int peer, std::uint64_t bytes) = nullptr;
  // Around each schedule: all members call them, in the same order.
  void (*begin)(void* context, Collective collective) = nullptr;
  void (*end)(void* context) = nullptr;
  // The call has failed here. Peers that wait for this member hear why. `lost` is the member that
  // has ended; -1: nobody knows which.
  void (*abort)(void* context, Status why, int lost) = nullptr;

  // A poll of all transports has found nothing.
  void (*rest)(void* context) = nullptr;

  // Who has ended, once the transport is broken. Null: it does not find out.
  Lost (*lost)(void* context) = nullptr;

  [[nodiscard]] Status why_broken() const { return failure != nullptr ? failure(context) : Status::peer_failed; }
};

// What a poll does with the tickets that are through.
inline int hand_out(Array<std::uint32_t>& through, std::uint32_t* tickets, int capacity) {
  int count = 0;
  for (; count < capacity && !through.empty(); ++count) {
    tickets[count] = through.back();
    through.resize(through.size() - 1, 0);
  }
  return count;
}

}  // namespace stretto::transport
