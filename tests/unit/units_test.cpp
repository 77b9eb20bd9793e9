// SPDX-License-Identifier: BSD-3-Clause
#include "base/units.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

using namespace stretto;

namespace {

// -1: refused
std::int64_t size(const std::string& text) {
  std::uint64_t bytes = 12345;
  return parse_size(text.data(), text.size(), &bytes) ? static_cast<std::int64_t>(bytes) : -1;
}

TEST(Units, SizesAreRead) {
  EXPECT_EQ(size("0"), 0);
  EXPECT_EQ(size("1000"), 1000);
  EXPECT_EQ(size("512b"), 512);
  EXPECT_EQ(size("64K"), 65536);
  EXPECT_EQ(size("64k"), 65536);
  EXPECT_EQ(size("64KiB"), 65536);
  EXPECT_EQ(size("4m"), 4 << 20);
  EXPECT_EQ(size("3GiB"), 3ll << 30);
  EXPECT_EQ(size("9223372036854775807"), 9223372036854775807ll);
}

TEST(Units, OtherSizesAreRefused) {
  for (const char* text : {"", "K", "-1", "+1", " 1", "1 ", "1 K", "1KB", "1Ki", "1KiBs", "1T", "0x10", "1.5K", "1e3",
                           "9223372036854775808", "99999999999999999999", "9007199254740992K", "8589934592G"}) {
    EXPECT_EQ(size(text), -1) << text;
  }
}

TEST(Units, RefusedSizesLeaveTheResult) {
  std::uint64_t bytes = 7;
  EXPECT_FALSE(parse_size("12x", 3, &bytes));
  EXPECT_EQ(bytes, 7u);
}

TEST(Units, LengthBoundsTheText) {
  std::uint64_t bytes = 0;
  ASSERT_TRUE(parse_size("64K", 2, &bytes));
  EXPECT_EQ(bytes, 64u);
}

TEST(Units, Integers) {
  std::int64_t value = 0;
  EXPECT_TRUE(parse_integer("-12", 3, &value));
  EXPECT_EQ(value, -12);
  EXPECT_TRUE(parse_integer("+12", 3, &value));
  EXPECT_EQ(value, 12);
  for (const char* text : {"", "-", "1-", "--1", "1K", " 1", "9223372036854775808"}) {
    EXPECT_FALSE(parse_integer(text, std::strlen(text), &value)) << text;
  }
}

TEST(Units, FormattedSizesReadBack) {
  EXPECT_STREQ(format_size(0).text, "0");
  EXPECT_STREQ(format_size(1023).text, "1023");
  EXPECT_STREQ(format_size(1024).text, "1K");
  EXPECT_STREQ(format_size(1536).text, "1536");
  EXPECT_STREQ(format_size(256 << 20).text, "256M");
  EXPECT_STREQ(format_size(1ull << 40).text, "1024G");
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t bytes = random() >> (1 + random() % 60) << random() % 20 & 0x7fffffffffffffff;
    EXPECT_EQ(size(format_size(bytes).text), static_cast<std::int64_t>(bytes));
  }
}

TEST(Units, Amounts) {
  EXPECT_STREQ(format_amount(0).text, "0 B");
  EXPECT_STREQ(format_amount(1023).text, "1023 B");
  EXPECT_STREQ(format_amount(1024).text, "1.00 KiB");
  EXPECT_STREQ(format_amount(10'600).text, "10.4 KiB");
  EXPECT_STREQ(format_amount(1'048'500).text, "1.00 MiB");
  EXPECT_STREQ(format_amount(std::uint64_t{5000} << 40).text, "5000 TiB");
}

TEST(Units, Times) {
  EXPECT_STREQ(format_time(0).text, "0 ns");
  EXPECT_STREQ(format_time(999).text, "999 ns");
  EXPECT_STREQ(format_time(1000).text, "1.00 us");
  EXPECT_STREQ(format_time(1249).text, "1.25 us");
  EXPECT_STREQ(format_time(40'300).text, "40.3 us");
  EXPECT_STREQ(format_time(99'960).text, "100 us");
  EXPECT_STREQ(format_time(999'700).text, "1.00 ms");
  EXPECT_STREQ(format_time(12'000'000'000).text, "12.0 s");
  EXPECT_STREQ(format_time(5'000'000'000'000).text, "5000 s");
}

}  // namespace
