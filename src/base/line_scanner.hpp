// SPDX-License-Identifier: BSD-3-Clause
// What readers of line-based files share: where lines are, # comments, and where and why reading
// stops. It uses no heap.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/ascii.hpp"
#include "base/options_file.hpp"

namespace stretto {

class LineScanner {
 protected:
  LineScanner(const char* text, std::size_t bytes, FileError& error)
      : at_(text), end_(text + bytes), line_begin_(text), error_(error) {}

  // Calls `line` for each line that holds something, at the line's first byte that is not blank.
  // Stops when `line` returns false.
  template <class Line>
  bool each_line(Line line) {
    for (;;) {
      skip_blanks();
      if (!at_line_end() && !line()) return false;
      while (at_ != end_ && *at_ != '\n') ++at_;  // skips a comment
      if (at_ == end_) return true;
      line_begin_ = ++at_;
      ++line_;
    }
  }

  bool fail(const char* what) { return fail(at_, what); }
  bool fail(const char* at, const char* what) {
    error_ = {line_, static_cast<unsigned>(at - line_begin_) + 1, what};
    return false;
  }
  [[nodiscard]] bool at_line_end() const { return at_ == end_ || *at_ == '\n' || *at_ == '#'; }
  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  // The length of the longest run of bytes that `belongs` accepts; the scanner moves past it.
  template <class Belongs>
  std::size_t run_of(Belongs belongs) {
    const char* const begin = at_;
    while (at_ != end_ && belongs(*at_)) ++at_;
    return static_cast<std::size_t>(at_ - begin);
  }
  bool number(std::uint64_t* value, std::uint64_t most) {
    const char* const begin = at_;
    *value = 0;
    for (; at_ != end_ && is_digit(*at_); ++at_) {
      *value = 10 * *value + static_cast<std::uint64_t>(*at_ - '0');
      if (*value > most) return at_ = begin, fail("the number is too large");
    }
    return at_ != begin || fail("a number was expected");
  }

  const char* at_;
  const char* const end_;
  const char* line_begin_;
  unsigned line_ = 1;
  FileError& error_;
};

}  // namespace stretto
