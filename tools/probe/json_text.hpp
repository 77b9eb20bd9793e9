// SPDX-License-Identifier: BSD-3-Clause
// Text as a string of JSON.
#pragma once
#include <cstdio>
#include <string>

namespace stretto {

inline std::string quoted(const char* text) {
  std::string result = "\"";
  for (const char* c = text; *c; c++) {
    char escaped[8];
    if (*c == '"' || *c == '\\') {
      result += '\\';
      result += *c;
    } else if (static_cast<unsigned char>(*c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(*c));
      result += escaped;
    } else {
      result += *c;
    }
  }
  return result + '"';
}

}  // namespace stretto
