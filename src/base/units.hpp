// SPDX-License-Identifier: BSD-3-Clause
// Sizes and times as people write and read them. Multiples are binary only: K, M and G mean KiB,
// MiB and GiB.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto {

// Reads "65536", "64K", "64k", "64KiB", "1M", "2GiB" or "512B". Returns false if the text is
// anything else or the size exceeds 63 bits.
bool parse_size(const char* text, std::size_t length, std::uint64_t* bytes);
// Reads a decimal number, with or without a sign, and nothing else around it. Returns false also
// when it does not fit.
bool parse_integer(const char* text, std::size_t length, std::int64_t* value);

// Long enough for every number that the functions below write.
struct Text {
  char text[32];
};
// Exact: "64K" if the size is a whole multiple, otherwise all its digits. parse_size() gives the
// size back.
Text format_size(std::uint64_t bytes);
// Three significant digits: "831 B", "1.25 KiB", "40.3 MiB", "12.0 GiB".
Text format_amount(std::uint64_t bytes);
// Three significant digits: "831 ns", "1.25 us", "40.3 ms", "12.0 s".
Text format_time(std::uint64_t nanoseconds);

}  // namespace stretto
