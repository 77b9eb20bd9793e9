// SPDX-License-Identifier: BSD-3-Clause
// Copies of what another processor has just written, or reads next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/profile.hpp"

namespace stretto {

inline constexpr std::size_t kCopiedLine = 64;

// A multiple of 16 bytes. Spelled out: -mtune-ctrl (StrettoFlags.cmake) makes words of a memcpy.
template <std::size_t kBytes>
[[gnu::always_inline]] inline void copy_vectors(char* to, const char* from) {
  using Vector [[gnu::vector_size(16), gnu::aligned(1), gnu::may_alias]] = char;
  static_assert(kBytes % sizeof(Vector) == 0);
#pragma GCC unroll 8
  for (std::size_t at = 0; at < kBytes; at += sizeof(Vector)) {
    *reinterpret_cast<Vector*>(to + at) = *reinterpret_cast<const Vector*>(from + at);
  }
}

// memcpy; from Profile::lines_least to lines_most bytes by cache lines, from the first to the last. (glibc's memcpy stores the first line last and
// reads the last ones first there.)
inline void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes < kProfile.lines_least || bytes > kProfile.lines_most) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* const target = static_cast<char*>(to);
  const auto* const source = static_cast<const char*>(from);
  copy_vectors<kCopiedLine>(target, source);
  const std::size_t last = bytes - kCopiedLine;
  std::size_t at = kCopiedLine - reinterpret_cast<std::uintptr_t>(target) % kCopiedLine;
  for (; at < last; at += kCopiedLine) copy_vectors<kCopiedLine>(target + at, source + at);
  copy_vectors<kCopiedLine>(target + last, source + last);
}

// The same past the caches (non-temporal stores), to a target that begins with a cache line and has all of its last one to itself. Such stores
// overtake others: none comes after the return that is seen before them.
inline void copy_past(void* to, const void* from, std::size_t bytes) {
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
  const auto line = [](char* target, const char* source) {
    for (std::size_t at = 0; at < kCopiedLine; at += sizeof(__m128i)) {
      const __m128i piece = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + at));
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + at), piece);
    }
  };
  auto* const target = static_cast<char*>(to);
  const auto* const source = static_cast<const char*>(from);
  const std::size_t whole = bytes / kCopiedLine * kCopiedLine;
  for (std::size_t at = 0; at < whole; at += kCopiedLine) line(target + at, source + at);
  if (whole < bytes) {
    char rest[kCopiedLine] = {};
    std::memcpy(rest, source + whole, bytes - whole);
    line(target + whole, rest);
  }
  _mm_sfence();
#else
  copy(to, from, bytes);
#endif
}

}  // namespace stretto
