// SPDX-License-Identifier: BSD-3-Clause
// Writes JSON to stdout at once, with commas where they belong.
#pragma once
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

namespace stretto::modelling {

class Json {
 public:
  Json& key(const char* name) {
    comma();
    std::printf("\"%s\": ", name);
    fresh_ = true;
    return *this;
  }
  void number(double value) { comma(), std::printf("%.17g", value); }
  void integer(std::int64_t value) { comma(), std::printf("%" PRId64, value); }
  void boolean(bool value) { comma(), std::fputs(value ? "true" : "false", stdout); }
  void null() { comma(), std::fputs("null", stdout); }
  void text(const std::string& value) {
    comma();
    std::putchar('"');
    for (const char c : value) {
      if (static_cast<unsigned char>(c) < ' ') {
        std::printf("\\u%04x", static_cast<unsigned>(c));
        continue;
      }
      if (c == '"' || c == '\\') std::putchar('\\');
      std::putchar(c);
    }
    std::putchar('"');
  }
  void open(char bracket) {
    comma();
    std::putchar(bracket);
    fresh_ = true;
  }
  void close(char bracket) {
    std::putchar(bracket);
    fresh_ = false;
  }
  void end() { std::putchar('\n'); }

 private:
  void comma() {
    if (!fresh_) std::fputs(", ", stdout);
    fresh_ = false;
  }
  bool fresh_ = true;
};

}  // namespace stretto::modelling
