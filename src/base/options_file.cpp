// SPDX-License-Identifier: BSD-3-Clause
#include "base/options_file.hpp"

#include <cstdint>
#include <cstring>

#include "base/ascii.hpp"

namespace stretto {
namespace {

constexpr std::size_t kKeyBytes = 64;
constexpr std::size_t kValueBytes = 1024;

bool is_key_byte(int c) { return is_digit(c) || is_letter(c) || c == '_' || c == '-'; }
int hex_digit(int c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The length of the well-formed UTF-8 sequence at `at`, 0 if it is malformed. Overlong forms,
// surrogates and codes past U+10FFFF are malformed.
std::size_t utf8_length(const unsigned char* at, std::size_t left) {
  if (at[0] < 0x80) return 1;
  const std::size_t length = at[0] >= 0xc2 && at[0] <= 0xdf   ? 2
                             : (at[0] & 0xf0) == 0xe0         ? 3
                             : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
                                                              : 0;
  if (length == 0 || length > left) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  if (at[0] == 0xe0 && at[1] < 0xa0) return 0;
  if (at[0] == 0xed && at[1] > 0x9f) return 0;
  if (at[0] == 0xf0 && at[1] < 0x90) return 0;
  if (at[0] == 0xf4 && at[1] > 0x8f) return 0;
  return length;
}

class Parser {
 public:
  Parser(const char* text, std::size_t bytes) : at_(text), end_(text + bytes), line_begin_(text) {}

  // Reads the next entry. Returns 1 for an entry, 0 at the end, -1 on an error.
  int next(FileEntry* entry) {
    for (;;) {
      skip_blanks();
      const int c = peek();
      if (c < 0) return 0;
      if (c == '#' || at_newline()) {
        if (!finish_line()) return -1;
        continue;
      }
      if (!key() || !equals() || !value()) return -1;
      *entry = {key_, value_, line_, entry_column_};
      skip_blanks();
      return finish_line() ? 1 : -1;
    }
  }

  [[nodiscard]] FileError error() const { return error_; }

 private:
  [[nodiscard]] int peek(std::size_t ahead = 0) const {
    return static_cast<std::size_t>(end_ - at_) > ahead ? static_cast<unsigned char>(at_[ahead]) : -1;
  }
  [[nodiscard]] bool at_newline() const { return peek() == '\n' || (peek() == '\r' && peek(1) == '\n'); }
  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  bool fail(const char* what) {
    error_ = {line_, static_cast<unsigned>(at_ - line_begin_) + 1, what};
    return false;
  }

  // The length of one character of a string or comment. Control characters other than tab, and
  // malformed UTF-8, are errors.
  std::size_t plain_character() {
    const int c = peek();
    if ((c < 0x20 && c != '\t') || c == 0x7f) return fail("a control character"), 0;
    const std::size_t length =
        utf8_length(reinterpret_cast<const unsigned char*>(at_), static_cast<std::size_t>(end_ - at_));
    if (length == 0) return fail("not UTF-8"), 0;
    return length;
  }

  // Reads what may follow an entry: a comment, then the newline or the end.
  bool finish_line() {
    if (peek() == '#') {
      while (peek() >= 0 && !at_newline()) {
        const std::size_t length = plain_character();
        if (length == 0) return false;
        at_ += length;
      }
    }
    if (peek() < 0) return true;
    if (!at_newline()) return fail("text after the value");
    at_ += peek() == '\r' ? 2 : 1;
    ++line_;
    line_begin_ = at_;
    return true;
  }

  bool key() {
    entry_column_ = static_cast<unsigned>(at_ - line_begin_) + 1;
    if (peek() == '[') return fail("tables are not used here: write key = value lines only");
    if (peek() == '"' || peek() == '\'') return fail("quoted keys are not used here");
    std::size_t length = 0;
    for (; is_key_byte(peek()); ++at_) {
      if (length + 1 == kKeyBytes) return fail("a key of more than 63 bytes");
      key_[length++] = *at_;
    }
    if (length == 0) return fail("a key was expected");
    key_[length] = 0;
    return true;
  }

  bool equals() {
    skip_blanks();
    if (peek() == '.') return fail("dotted keys are not used here");
    if (peek() != '=') return fail("'=' was expected after the key");
    ++at_;
    skip_blanks();
    return true;
  }

  bool value() {
    length_ = 0;
    const int c = peek();
    if (c == '"' || c == '\'') {
      if (peek(1) == c && peek(2) == c) return fail("multi-line strings are not used here");
      return c == '"' ? basic_string() : literal_string();
    }
    if (c == '[' || c == '{') return fail("arrays and tables are not used here");
    if (is_digit(c) || c == '+' || c == '-') return integer();
    if (word("true") || word("false")) return true;
    return fail("a value was expected: \"text\", 'text', an integer, true or false");
  }

  bool put(const char* bytes, std::size_t length) {
    if (length_ + length >= kValueBytes) return fail("a value of more than 1023 bytes");
    std::memcpy(value_ + length_, bytes, length);
    length_ += length;
    value_[length_] = 0;
    return true;
  }

  bool literal_string() {
    value_[0] = 0;
    for (++at_; peek() != '\'';) {
      if (peek() < 0 || at_newline()) return fail("the string has no end");
      const std::size_t length = plain_character();
      if (length == 0 || !put(at_, length)) return false;
      at_ += length;
    }
    ++at_;
    return true;
  }

  bool basic_string() {
    value_[0] = 0;
    for (++at_; peek() != '"';) {
      if (peek() < 0 || at_newline()) return fail("the string has no end");
      if (peek() == '\\') {
        if (!escape()) return false;
        continue;
      }
      const std::size_t length = plain_character();
      if (length == 0 || !put(at_, length)) return false;
      at_ += length;
    }
    ++at_;
    return true;
  }

  bool escape() {
    static constexpr char kNames[] = "btnfr\"\\";
    static constexpr char kMeans[] = "\b\t\n\f\r\"\\";
    const int name = peek(1);
    if (name == 'u' || name == 'U') return unicode_escape(name == 'u' ? 4 : 8);
    const char* found = name > 0 ? std::strchr(kNames, name) : nullptr;
    if (!found) return fail("an unknown escape");
    if (!put(&kMeans[found - kNames], 1)) return false;
    at_ += 2;
    return true;
  }

  bool unicode_escape(int digits) {
    std::uint32_t code = 0;
    for (int i = 0; i < digits; ++i) {
      const int digit = hex_digit(peek(2 + static_cast<std::size_t>(i)));
      if (digit < 0) return fail("\\u takes 4 and \\U takes 8 hexadecimal digits");
      code = code << 4 | static_cast<std::uint32_t>(digit);
    }
    if (code == 0) return fail("a text cannot hold \\u0000");
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return fail("no such character");
    if (!put_character(code)) return false;
    at_ += 2 + digits;
    return true;
  }

  bool put_character(std::uint32_t code) {
    char out[4];
    std::size_t length = 0;
    const auto tail = [&](int shift) { out[length++] = static_cast<char>(0x80 | (code >> shift & 0x3f)); };
    if (code < 0x80) {
      out[length++] = static_cast<char>(code);
    } else if (code < 0x800) {
      out[length++] = static_cast<char>(0xc0 | code >> 6);
      tail(0);
    } else if (code < 0x10000) {
      out[length++] = static_cast<char>(0xe0 | code >> 12);
      tail(6), tail(0);
    } else {
      out[length++] = static_cast<char>(0xf0 | code >> 18);
      tail(12), tail(6), tail(0);
    }
    return put(out, length);
  }

  // A sign, then digits with single underscores between them, without a leading zero.
  bool integer() {
    if (peek() == '-' && !put(at_, 1)) return false;
    if (peek() == '-' || peek() == '+') ++at_;
    if (!is_digit(peek())) return fail("a digit was expected");
    if (peek() == '0' && (is_digit(peek(1)) || peek(1) == '_')) return fail("a number cannot begin with 0");
    for (;;) {
      if (!put(at_, 1)) return false;
      ++at_;
      if (peek() == '_') {
        ++at_;
        if (!is_digit(peek())) return fail("a digit was expected after '_'");
      }
      if (!is_digit(peek())) break;
    }
    if (is_key_byte(peek()) || peek() == '.' || peek() == ':') {
      return fail("not a decimal integer: other values stand in quotes, as \"64K\"");
    }
    return true;
  }

  bool word(const char* text) {
    const std::size_t length = std::strlen(text);
    if (static_cast<std::size_t>(end_ - at_) < length || std::memcmp(at_, text, length) != 0) return false;
    if (is_key_byte(peek(length))) return false;
    put(text, length);
    at_ += length;
    return true;
  }

  const char* at_;
  const char* end_;
  const char* line_begin_;
  unsigned line_ = 1;
  unsigned entry_column_ = 1;
  FileError error_;
  std::size_t length_ = 0;
  char key_[kKeyBytes];
  char value_[kValueBytes];
};

}  // namespace

bool parse_settings(const char* text, std::size_t bytes, const char* (*each)(void*, const FileEntry&), void* context,
                    FileError* error) {
  Parser parser(text, bytes);
  FileEntry entry{};
  int found;
  while ((found = parser.next(&entry)) > 0) {
    if (const char* what = each(context, entry)) {
      *error = {entry.line, entry.column, what};
      return false;
    }
  }
  if (found < 0) *error = parser.error();
  return found == 0;
}

}  // namespace stretto
