// SPDX-License-Identifier: BSD-3-Clause
// The hash FNV-1a. It is good for tables and for comparing, and not against those who choose the
// bytes.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::sys {

inline constexpr std::uint64_t kHashSeed = 0xcbf29ce484222325u;
// `seed`: the hash of the bytes before these.
inline std::uint64_t hash(const void* data, std::size_t bytes, std::uint64_t seed = kHashSeed) {
  const auto* byte = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) seed = (seed ^ byte[i]) * 0x100000001b3u;
  return seed;
}

}  // namespace stretto::sys
