// SPDX-License-Identifier: BSD-3-Clause
// How members of a communicator open connections. Each member listens at some addresses. By the
// MPI, it tells all others these addresses and its share of the pairs' secrets. The secret of a
// pair is made of both shares. The lower rank of a pair calls the higher one. Both prove that they
// know the secret:
//
//   caller -> listener   Hello: a fresh random number, the ranks of caller and listener, and which
//                        of the pair's streams this is
//   listener -> caller   Answer: a second fresh random number, and a hash of both numbers, the
//                        ranks and its role under the secret
//   caller -> listener   the hash for Role::proof
//   listener -> caller   the hash for Role::acceptance; now the connection belongs to the pair
//
// The secret itself goes over no connection. A hash is valid for one handshake and one role. A
// process that relays or records the messages can use none of them in another handshake. Private
// to src/transport and its tests.
#pragma once
#include "base/siphash.hpp"
#include "sys/sys.hpp"

namespace stretto::transport {

// What a member tells the others by the MPI.
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
  std::uint64_t which = 0;  // of the pair's streams
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
static_assert(sizeof(Transcript) == 56);  // no padding

inline std::uint64_t handshake_hash(Role role, const SipKey& caller, const SipKey& listener, const Hello& hello,
                                    const Nonce& answer) {
  const Transcript transcript{role, hello, answer};
  return siphash({caller.low ^ listener.low, caller.high ^ listener.high}, &transcript, sizeof transcript);
}

}  // namespace stretto::transport
