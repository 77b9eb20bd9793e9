// SPDX-License-Identifier: BSD-3-Clause
// Copies of what another processor has just written, or reads next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/profile.hpp"

namespace stretto {

// memcpy; from Profile::lines_least to lines_most bytes by cache lines, from the first to the last. (glibc's memcpy stores the first line last and
// reads the last ones first there.)
inline void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes < kProfile.lines_least || bytes > kProfile.lines_most) {
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
