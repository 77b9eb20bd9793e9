// SPDX-License-Identifier: BSD-3-Clause
#include "topo/hostlist.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/ascii.hpp"

namespace stretto::topo {
namespace {

constexpr std::size_t kNameBytes = 256;
constexpr std::size_t kMostNames = 1'000'000;

bool is_host_byte(char c) { return is_digit(c) || is_letter(c) || c == '-' || c == '_' || c == '.'; }

class Expander {
 public:
  Expander(const char* text, std::size_t bytes, const char* (*each)(void*, const char*, std::size_t), void* context,
           HostlistError& error)
      : text_(text), bytes_(bytes), each_(each), context_(context), error_(error) {}

  bool run() {
    for (std::size_t at = 0;;) {
      begin_ = at;
      if (!element(at, 0)) return false;
      at = end_;
      if (at == bytes_) return true;
      if (text_[at] != ',') return fail(at, "',' was expected");
      ++at;
    }
  }

 private:
  bool fail(std::size_t at, const char* what) {
    error_ = {at, what};
    return false;
  }
  [[nodiscard]] bool is(std::size_t at, char c) const { return at < bytes_ && text_[at] == c; }
  bool put(std::size_t at, std::size_t* length, char c) {
    if (*length + 1 >= kNameBytes) return fail(at, "the name is too long");
    name_[(*length)++] = c;
    return true;
  }

  // Reads the rest of one element from `at` on, and calls each_ for all names that it stands for.
  // `length` bytes of the name are known already. Sets end_.
  bool element(std::size_t at, std::size_t length) {
    for (; at < bytes_ && is_host_byte(text_[at]); ++at) {
      if (!put(at, &length, text_[at])) return false;
    }
    if (is(at, '[')) return ranges(at + 1, length);
    end_ = at;
    if (length == 0) return fail(at, "a name was expected");
    if (++names_ > kMostNames) return fail(begin_, "more than a million names");
    name_[length] = 0;
    if (const char* what = each_(context_, name_, length)) return fail(begin_, what);
    return true;
  }

  bool ranges(std::size_t at, std::size_t length) {
    std::size_t close = at;
    while (close < bytes_ && text_[close] != ']') ++close;
    if (close == bytes_) return fail(at - 1, "'[' without ']'");
    for (;;) {
      std::uint64_t first, last;
      std::size_t width;
      const std::size_t begin = at;
      if (!number(&at, &first)) return false;
      width = at - begin;
      last = first;
      if (is(at, '-') && !number(&++at, &last)) return false;
      if (last < first) return fail(begin, "the range runs backwards");
      for (std::uint64_t i = first; i <= last; ++i) {
        char digits[24];
        const int count =
            std::snprintf(digits, sizeof digits, "%0*llu", static_cast<int>(width), static_cast<unsigned long long>(i));
        std::size_t grown = length;
        for (int d = 0; d < count; ++d) {
          if (!put(begin, &grown, digits[d])) return false;
        }
        if (!element(close + 1, grown)) return false;
      }
      if (at == close) return true;
      if (!is(at, ',')) return fail(at, "',' or ']' was expected");
      ++at;
    }
  }

  bool number(std::size_t* at, std::uint64_t* value) {
    const std::size_t begin = *at;
    *value = 0;
    for (; *at < bytes_ && is_digit(text_[*at]); ++*at) {
      *value = 10 * *value + static_cast<std::uint64_t>(text_[*at] - '0');
      if (*at - begin >= 12) return fail(begin, "the number is too long");
    }
    return *at != begin || fail(begin, "a number was expected");
  }

  const char* text_;
  std::size_t bytes_;
  const char* (*each_)(void*, const char*, std::size_t);
  void* context_;
  HostlistError& error_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t names_ = 0;
  char name_[kNameBytes];
};

}  // namespace

bool expand_hostlist(const char* text, std::size_t bytes, const char* (*each)(void*, const char*, std::size_t),
                     void* context, HostlistError* error) {
  return Expander(text, bytes, each, context, *error).run();
}

}  // namespace stretto::topo
