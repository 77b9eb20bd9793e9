// SPDX-License-Identifier: BSD-3-Clause
// One message by a transport while nothing else is under way, to measure it.
#pragma once
#include "shm/waiter.hpp"
#include "transport/transport.hpp"

namespace stretto::transport {

// To the peer, or from it. Waits until it is through. False: the transport is broken.
inline bool pass(const Transport& transport, const shm::WaitPolicy& policy, int peer, bool sends, char* data,
                 std::uint64_t bytes) {
  shm::Waiter waiter(policy);
  bool posted = false;
  for (std::uint32_t ticket = 0;;) {
    if (!posted)
      posted = (sends ? transport.send(transport.context, peer, 0, data, bytes, 0)
                      : transport.recv(transport.context, peer, 0, data, bytes, 0));
    const int count = transport.poll(transport.context, &ticket, 1);
    if (count != 0) return count > 0;
    if (transport.rest != nullptr) transport.rest(transport.context);
    (void)waiter.step();
  }
}

}  // namespace stretto::transport
