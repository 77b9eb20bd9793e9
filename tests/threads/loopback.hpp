// SPDX-License-Identifier: BSD-3-Clause
// Connections between ranks that are threads. Their nodes are made up, and reach each other over
// the loopback.
#pragma once
#include <arpa/inet.h>

#include "threads/job.hpp"
#include "transport/tcp.hpp"

namespace stretto::test {

// What a member of a group opens, whether or not it is faster. `nodes` are those of all members,
// and must stay.
inline transport::TcpTransport::Opening opening_over_loopback(TestMember& member, const std::int32_t* nodes) {
  transport::TcpTransport::Opening opening;
  opening.members = member.bootstrap();
  opening.nodes = nodes;
  opening.policy.spins = 100;
  opening.policy.yield_after_ns = 0;
  opening.always = true;
  opening.addresses[0] = {htonl(INADDR_LOOPBACK), ~0u};
  opening.address_count = 1;
  return opening;
}

}  // namespace stretto::test
