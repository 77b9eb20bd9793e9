// SPDX-License-Identifier: BSD-3-Clause
#include "base/units.hpp"

#include <cstdio>
#include <limits>

#include "base/ascii.hpp"

namespace stretto {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();

// Reads digits from text[*at] on: at least one, and at most `most` in value.
bool parse_digits(const char* text, std::size_t length, std::size_t* at, std::uint64_t most, std::uint64_t* value) {
  if (*at == length || !is_digit(text[*at])) return false;
  *value = 0;
  for (; *at < length && is_digit(text[*at]); ++*at) {
    const auto digit = static_cast<std::uint64_t>(text[*at] - '0');
    if (*value > (most - digit) / 10) return false;
    *value = *value * 10 + digit;
  }
  return true;
}

// log2 of the suffix's factor, -1 if it is no suffix: "", b, k, kib, m, mib, g, gib.
int suffix_shift(const char* suffix, std::size_t length) {
  if (length == 0) return 0;
  int shift = 0;
  switch (lower(suffix[0])) {
    case 'b': return length == 1 ? 0 : -1;
    case 'k': shift = 10; break;
    case 'm': shift = 20; break;
    case 'g': shift = 30; break;
    default: return -1;
  }
  const bool bare = length == 1;
  const bool spelled = length == 3 && lower(suffix[1]) == 'i' && lower(suffix[2]) == 'b';
  return bare || spelled ? shift : -1;
}

// Writes the value in the largest unit of which it holds at least one. The first unit is
// indivisible.
template <int units>
Text three_digits(double value, double step, const char* const (&names)[units]) {
  int unit = 0;
  // Without the 0.5, 999.5 would be printed as "1000".
  for (; unit < units - 1 && value >= (unit == 0 ? step : step - 0.5); ++unit) value /= step;
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  Text out;
  std::snprintf(out.text, sizeof out.text, "%.*f %s", decimals, value, names[unit]);
  return out;
}

}  // namespace

bool parse_size(const char* text, std::size_t length, std::uint64_t* bytes) {
  std::size_t at = 0;
  std::uint64_t value = 0;
  if (!parse_digits(text, length, &at, kMost, &value)) return false;
  const int shift = suffix_shift(text + at, length - at);
  if (shift < 0 || value > kMost >> shift) return false;
  *bytes = value << shift;
  return true;
}

bool parse_integer(const char* text, std::size_t length, std::int64_t* value) {
  std::size_t at = 0;
  const bool negative = length != 0 && text[0] == '-';
  if (length != 0 && (text[0] == '-' || text[0] == '+')) at = 1;
  std::uint64_t magnitude = 0;
  if (!parse_digits(text, length, &at, kMost, &magnitude) || at != length) return false;
  *value = negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
  return true;
}

Text format_size(std::uint64_t bytes) {
  Text out;
  static constexpr const char* kSuffixes[] = {"K", "M", "G"};
  const char* suffix = "";
  for (int i = 0; i < 3; ++i) {
    if (bytes == 0 || bytes % 1024 != 0) break;
    bytes /= 1024;
    suffix = kSuffixes[i];
  }
  std::snprintf(out.text, sizeof out.text, "%llu%s", static_cast<unsigned long long>(bytes), suffix);
  return out;
}

Text format_amount(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return three_digits(static_cast<double>(bytes), 1024, kUnits);
}

Text format_time(std::uint64_t nanoseconds) {
  static constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  return three_digits(static_cast<double>(nanoseconds), 1000, kUnits);
}

}  // namespace stretto
