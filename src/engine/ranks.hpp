// SPDX-License-Identifier: BSD-3-Clause
// A list of ranks in words: "0, 2 and 5 more", "4 on node7, 5 on node7", "4 on node7 (8 bytes)".
// Private to src/engine.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace stretto::engine {

class Ranks {
 public:
  // `host` is where the rank is, or null if the text does not say it. 0 bytes: it does not say how
  // many.
  void add(int rank, const char* host = nullptr, std::uint64_t bytes = 0) {
    char amount[32] = "";
    if (bytes != 0) std::snprintf(amount, sizeof amount, " (%llu bytes)", static_cast<unsigned long long>(bytes));
    ++count_;
    if (left_out_ > 0 || room() < kEntryBytes + std::strlen(amount) + (host ? std::strlen(host) : 0)) {
      ++left_out_;
      return;
    }
    length_ += std::snprintf(text_ + length_, room(), "%s%d%s%s%s", count_ == 1 ? "" : ", ", rank, host ? " on " : "",
                             host ? host : "", amount);
  }
  // Of ranks that have no entry.
  void add_others(std::uint64_t bytes) {
    ++count_;
    if (left_out_ > 0 || room() < kEntryBytes + kMoreBytes) return;
    length_ += std::snprintf(text_ + length_, room(), "%sothers (%llu bytes)", count_ == 1 ? "" : ", ",
                             static_cast<unsigned long long>(bytes));
  }
  [[nodiscard]] const char* text() {
    if (left_out_ > 0)
      std::snprintf(text_ + length_, sizeof text_ - static_cast<std::size_t>(length_), " and %d more", left_out_);
    return count_ == 0 ? "none" : text_;
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }

 private:
  static constexpr std::size_t kEntryBytes = 20, kMoreBytes = 24;
  [[nodiscard]] std::size_t room() const { return sizeof text_ - kMoreBytes - static_cast<std::size_t>(length_); }

  char text_[280] = {};
  int length_ = 0;
  int count_ = 0;
  int left_out_ = 0;
};

}  // namespace stretto::engine
