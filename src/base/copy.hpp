// SPDX-License-Identifier: BSD-3-Clause
// Copies of what another processor has just written, or reads next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stretto {

// memcpy. From kCopyLeast to kCopyMost bytes by whole cache lines, front to back: glibc's (2.36) stores the first line last and reads
// the last ones first there, and takes up to twice as long where the lines change hands. Longer ones it moves by `rep movsb`, which
// is the fastest way to fill lines that others have read.
inline constexpr std::size_t kCopyLeast = 384;
inline constexpr std::size_t kCopyMost = 1536;

inline void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes < kCopyLeast || bytes > kCopyMost) {
    std::memcpy(to, from, bytes);
    return;
  }
  constexpr std::size_t kLine = 64;
  auto* const target = static_cast<char*>(to);
  const auto* const source = static_cast<const char*>(from);
  std::memcpy(target, source, kLine);
  const std::size_t last = bytes - kLine;
  std::size_t at = kLine - reinterpret_cast<std::uintptr_t>(target) % kLine;
  for (; at < last; at += kLine) std::memcpy(target + at, source + at, kLine);
  std::memcpy(target + last, source + last, kLine);
}

}  // namespace stretto
