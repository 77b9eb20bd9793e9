// SPDX-License-Identifier: BSD-3-Clause
// How much time a call with a time limit has left.
#pragma once
#include <cstdint>

#include "sys/sys.hpp"

namespace stretto::kv {

inline constexpr std::uint64_t kForEver = ~std::uint64_t{0};

class Deadline {
 public:
  explicit Deadline(std::uint64_t timeout_ns) : begin_(sys::now_ns()), timeout_ns_(timeout_ns) {}
  [[nodiscard]] std::uint64_t waited_ns() const { return sys::now_ns() - begin_; }
  [[nodiscard]] std::uint64_t left_ns() const {
    if (timeout_ns_ == kForEver) return kForEver;
    const std::uint64_t waited = waited_ns();
    return waited < timeout_ns_ ? timeout_ns_ - waited : 0;
  }

 private:
  std::uint64_t begin_, timeout_ns_;
};

}  // namespace stretto::kv
