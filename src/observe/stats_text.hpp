// SPDX-License-Identifier: BSD-3-Clause
// Texts of the statistics under construction.
#pragma once
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stretto::observe {

using ull = unsigned long long;  // for %llu

// It grows as needed. If there is no memory, further text is lost.
class StatsText {
 public:
  StatsText() = default;
  ~StatsText() { std::free(data_); }
  StatsText(const StatsText&) = delete;
  StatsText& operator=(const StatsText&) = delete;

  [[nodiscard]] const char* data() const { return data_ != nullptr ? data_ : ""; }
  [[nodiscard]] std::size_t size() const { return size_; }

  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    constexpr std::size_t kLongest = 768;
    if (!reserve(size_ + kLongest)) return;
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(data_ + size_, kLongest, format, arguments);
    va_end(arguments);
    if (length > 0)
      size_ += static_cast<std::size_t>(length) < kLongest ? static_cast<std::size_t>(length) : kLongest - 1;
  }
  // A text of any length.
  void add_all(const char* text, std::size_t bytes) {
    if (!reserve(size_ + bytes)) return;
    std::memcpy(data_ + size_, text, bytes);
    size_ += bytes;
  }
  void add_all(const StatsText& text) { add_all(text.data(), text.size()); }

 private:
  bool reserve(std::size_t bytes) {
    if (bytes <= capacity_) return true;
    const std::size_t wanted = bytes < 4096 ? 4096 : 2 * bytes;
    auto* const grown = static_cast<char*>(std::realloc(data_, wanted));
    if (grown == nullptr) return false;
    data_ = grown;
    capacity_ = wanted;
    return true;
  }

  char* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

// A text between quotes.
template <std::size_t n>
struct Quoted {
  char text[2 * n];
  explicit Quoted(const char (&plain)[n]) {
    std::size_t length = 0;
    for (const char* c = plain; *c != 0; ++c) {
      if (*c == '"' || *c == '\\') text[length++] = '\\';
      text[length++] = static_cast<unsigned char>(*c) < 0x20 ? '?' : *c;
    }
    text[length] = 0;
  }
};

}  // namespace stretto::observe
