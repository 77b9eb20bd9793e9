// SPDX-License-Identifier: BSD-3-Clause
// Copies of data that another processor has just written, or reads next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/tuning.hpp"

namespace stretto {

inline constexpr std::size_t kCopiedLine = 64;

// Copies a multiple of 16 bytes. The loop is spelled out, because -mtune-ctrl (StrettoFlags.cmake)
// turns a memcpy into copies of words.
template <std::size_t kBytes>
[[gnu::always_inline]] inline void copy_vectors(char* to, const char* from) {
  using Vector [[gnu::vector_size(16), gnu::aligned(1), gnu::may_alias]] = char;
  static_assert(kBytes % sizeof(Vector) == 0);
#pragma GCC unroll 8
  for (std::size_t at = 0; at < kBytes; at += sizeof(Vector)) {
    *reinterpret_cast<Vector*>(to + at) = *reinterpret_cast<const Vector*>(from + at);
  }
}

// Copies like memcpy. From Tuning::lines_least to lines_most bytes it copies cache line by cache
// line, from the first to the last. (At these lengths glibc's memcpy stores the first line last and
// reads the last lines first.)
inline void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes < kTuning.lines_least || bytes > kTuning.lines_most) {
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

#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
inline constexpr bool kStoresPast = true;
// Copies whole cache lines by non-temporal stores.
inline void stream_lines(char* to, const char* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(__m128i)) {
    const __m128i piece = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), piece);
  }
}
inline void end_stream() { _mm_sfence(); }
#else
inline constexpr bool kStoresPast = false;
inline void stream_lines(char*, const char*, std::size_t) {}
inline void end_stream() {}
#endif

// copy_past() and copy_past_to_any() copy past the caches. Non-temporal stores overtake other
// stores. Both functions therefore end with a fence: no store after their return becomes visible
// before theirs.

// Copies to cache lines of which nobody else has a part. The target begins with a cache line and
// may be overwritten to the end of its last one.
inline void copy_past(void* to, const void* from, std::size_t bytes) {
  if constexpr (!kStoresPast) return copy(to, from, bytes);
  auto* const target = static_cast<char*>(to);
  const auto* const source = static_cast<const char*>(from);
  const std::size_t whole = bytes / kCopiedLine * kCopiedLine;
  stream_lines(target, source, whole);
  if (whole < bytes) {
    char rest[kCopiedLine] = {};
    std::memcpy(rest, source + whole, bytes - whole);
    stream_lines(target + whole, rest, sizeof rest);
  }
  end_stream();
}

// Copies to any memory. Lines that are not whole go through the caches.
inline void copy_past_to_any(void* to, const void* from, std::size_t bytes) {
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) % kCopiedLine;
  if (!kStoresPast || bytes < head + kCopiedLine) return copy(to, from, bytes);
  auto* const target = static_cast<char*>(to);
  const auto* const source = static_cast<const char*>(from);
  const std::size_t end = head + (bytes - head) / kCopiedLine * kCopiedLine;
  std::memcpy(target, source, head);
  stream_lines(target + head, source + head, end - head);
  std::memcpy(target + end, source + end, bytes - end);
  end_stream();
}

}  // namespace stretto
