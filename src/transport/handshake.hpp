// SPDX-License-Identifier: BSD-3-Clause
// What members of a communicator tell each other to get connected. Each listens at the addresses
// that it announces, and all tell each other by the MPI where, and a share of a secret. The lower
// rank of a pair calls the higher one, and both prove that they know the pair's secret, which is
// made of both shares:
//
//   caller -> listener   Hello: a fresh random number, and who calls whom
//   listener -> caller   Answer: another fresh random number, and a hash of all this under the secret
//   caller -> listener   another hash of it (Role::proof)
//   listener -> caller   another one (Role::acceptance); from here on the connection is the pair's
//
// The secret itself goes over no connection. A hash is good for one handshake and one role: who
// relays or records the words learns nothing that would be good for another one. Private to
// src/engine and its tests.
#pragma once
#include "base/siphash.hpp"
#include "sys/sys.hpp"

namespace stretto::transport {

// What a member tells the others, by the MPI.
struct Endpoint {
  SipKey share;  // of the secrets of the pairs that it belongs to
  sys::HostAddress addresses[sys::kMostAddresses];
  std::uint16_t ports[sys::kMostAddresses];
  std::int32_t address_count;
  bool able;
};

struct Nonce {
  std::uint64_t words[2] = {};
};
struct Hello {
  Nonce nonce;
  std::uint32_t caller, listener;
};
struct Answer {
  Nonce nonce;
  std::uint64_t hash;
};
enum class Role : std::uint64_t { answer = 1, proof, acceptance };

// What is hashed.
struct Transcript {
  Role role;
  Hello hello;
  Nonce answer;
};
static_assert(sizeof(Transcript) == 48);  // no padding

inline std::uint64_t handshake_hash(Role role, const SipKey& caller, const SipKey& listener, const Hello& hello,
                                    const Nonce& answer) {
  const Transcript transcript{role, hello, answer};
  return siphash({caller.low ^ listener.low, caller.high ^ listener.high}, &transcript, sizeof transcript);
}

}  // namespace stretto::transport
