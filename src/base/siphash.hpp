// SPDX-License-Identifier: BSD-3-Clause
// SipHash-2-4: a keyed hash of 64 bits for short input. Without the key nobody can tell the hash of
// anything. The code follows the definition in
//
// Aumasson, Bernstein: SipHash: a fast short-input PRF, Indocrypt 2012
// (https://www.aumasson.jp/siphash/siphash.pdf).
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

namespace stretto {

struct SipKey {
  std::uint64_t low = 0, high = 0;  // the key's bytes 0 to 7 and 8 to 15, little-endian
};

namespace detail {

inline std::uint64_t sip_word(const unsigned char* bytes, std::size_t count) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < count; ++i) word |= std::uint64_t{bytes[i]} << (8 * i);
  return word;
}

struct SipState {
  std::uint64_t a, b, c, d;

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
      c += d, d = std::rotl(d, 16) ^ c;
      a += d, d = std::rotl(d, 21) ^ a;
      c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
    }
  }
  void take(std::uint64_t word) {
    d ^= word;
    rounds(2);
    a ^= word;
  }
};

}  // namespace detail

inline std::uint64_t siphash(const SipKey& key, const void* data, std::size_t bytes) {
  const auto* const from = static_cast<const unsigned char*>(data);
  detail::SipState state{key.low ^ 0x736f6d6570736575, key.high ^ 0x646f72616e646f6d, key.low ^ 0x6c7967656e657261,
                         key.high ^ 0x7465646279746573};
  const std::size_t whole = bytes / 8 * 8;
  for (std::size_t at = 0; at < whole; at += 8) state.take(detail::sip_word(from + at, 8));
  state.take(detail::sip_word(from + whole, bytes - whole) | std::uint64_t{bytes & 0xff} << 56);
  state.c ^= 0xff;
  state.rounds(4);
  return state.a ^ state.b ^ state.c ^ state.d;
}

}  // namespace stretto
