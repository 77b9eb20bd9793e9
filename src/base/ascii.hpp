// SPDX-License-Identifier: BSD-3-Clause
// Tests of ASCII bytes. They do not depend on the locale.
#pragma once

namespace stretto {

constexpr bool is_digit(int c) { return c >= '0' && c <= '9'; }
constexpr bool is_small_letter(int c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_capital_letter(int c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_letter(int c) { return is_small_letter(c) || is_capital_letter(c); }
constexpr char lower(char c) { return is_capital_letter(c) ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace stretto
