// SPDX-License-Identifier: BSD-3-Clause
// The reader of the settings file: each error with its place, each kind of value.
#include "base/options_file.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

using namespace stretto;

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs read(const std::string& text, FileError* error = nullptr) {
  Pairs pairs;
  FileError own;
  const bool good = parse_settings(
      text.data(), text.size(),
      [](void* context, const FileEntry& entry) -> const char* {
        static_cast<Pairs*>(context)->emplace_back(entry.key, entry.value);
        return nullptr;
      },
      &pairs, error ? error : &own);
  EXPECT_EQ(good, error == nullptr) << text << (own.what ? own.what : "");
  return pairs;
}

TEST(OptionsFile, ValuesOfEveryKind) {
  EXPECT_EQ(read(""), Pairs{});
  EXPECT_EQ(read("# only a comment"), Pairs{});
  EXPECT_EQ(read("a=1"), (Pairs{{"a", "1"}}));
  EXPECT_EQ(read("  a\t= -1_000 # x\r\n\n b-c_9 = true\n1 = false"),
            (Pairs{{"a", "-1000"}, {"b-c_9", "true"}, {"1", "false"}}));
  EXPECT_EQ(read("a = \"x # \\\"y\\\" \\\\ \\t\\u00e4\\U0001F600\""),
            (Pairs{{"a", "x # \"y\" \\ \t\xc3\xa4\xf0\x9f\x98\x80"}}));
  EXPECT_EQ(read("a = 'C:\\dir \"q\"'"), (Pairs{{"a", "C:\\dir \"q\""}}));
  EXPECT_EQ(read("a = \"\"\nb = ''"), (Pairs{{"a", ""}, {"b", ""}}));
}

struct Wrong {
  const char* text;
  unsigned line;
  unsigned column;
  const char* what;
};

class OptionsFileErrors : public testing::TestWithParam<Wrong> {};

TEST_P(OptionsFileErrors, HavePlaceAndReason) {
  const Wrong& wrong = GetParam();
  FileError error;
  read(wrong.text, &error);
  ASSERT_NE(error.what, nullptr);
  EXPECT_EQ(error.line, wrong.line) << error.what;
  EXPECT_EQ(error.column, wrong.column) << error.what;
  EXPECT_NE(std::string(error.what).find(wrong.what), std::string::npos) << error.what;
}

INSTANTIATE_TEST_SUITE_P(
    Each, OptionsFileErrors,
    testing::Values(Wrong{"[mpi]\n", 1, 1, "tables are not used"}, Wrong{"a = 1\n\"b\" = 2", 2, 1, "quoted keys"},
                    Wrong{"a.b = 1", 1, 2, "dotted keys"}, Wrong{"a 1", 1, 3, "'=' was expected"},
                    Wrong{"= 1", 1, 1, "a key was expected"}, Wrong{"a =", 1, 4, "a value was expected"},
                    Wrong{"a =\n1", 1, 4, "a value was expected"}, Wrong{"a = yes", 1, 5, "a value was expected"},
                    Wrong{"a = truex", 1, 5, "a value was expected"}, Wrong{"a = 64K", 1, 7, "in quotes"},
                    Wrong{"a = 0x10", 1, 6, "in quotes"}, Wrong{"a = 1.5", 1, 6, "in quotes"},
                    Wrong{"a = 1__0", 1, 7, "after '_'"}, Wrong{"a = 1_", 1, 7, "after '_'"},
                    Wrong{"a = 012", 1, 5, "cannot begin with 0"}, Wrong{"a = -", 1, 6, "a digit"},
                    Wrong{"a = [1]", 1, 5, "arrays"}, Wrong{"a = {}", 1, 5, "arrays"},
                    Wrong{"a = \"\"\"x\"\"\"", 1, 5, "multi-line"}, Wrong{"a = '''x'''", 1, 5, "multi-line"},
                    Wrong{"a = \"x", 1, 7, "no end"}, Wrong{"a = \"x\nb\"", 1, 7, "no end"},
                    Wrong{"a = 'x", 1, 7, "no end"}, Wrong{"a = \"\\q\"", 1, 6, "escape"},
                    Wrong{"a = \"\\u12\"", 1, 6, "hexadecimal"}, Wrong{"a = \"\\ud800\"", 1, 6, "no such character"},
                    Wrong{"a = \"\\u0000\"", 1, 6, "u0000"}, Wrong{"a = \"\x01\"", 1, 6, "control"},
                    Wrong{"# \x01", 1, 3, "control"}, Wrong{"# x\ry", 1, 4, "control"},
                    Wrong{"a = \"\xc0\x80\"", 1, 6, "UTF-8"}, Wrong{"a = '\xed\xa0\x80'", 1, 6, "UTF-8"},
                    Wrong{"a = '\xe2\x82'", 1, 6, "UTF-8"}, Wrong{"# \xff", 1, 3, "UTF-8"},
                    Wrong{"a = 1 2", 1, 7, "after the value"}, Wrong{"\n\na = 'x' y", 3, 9, "after the value"}));

TEST(OptionsFile, LimitsOfLength) {
  EXPECT_EQ(read(std::string(63, 'k') + " = 1").front().first.size(), 63u);
  FileError error;
  read(std::string(64, 'k') + " = 1", &error);
  EXPECT_STREQ(error.what, "a key of more than 63 bytes");
  EXPECT_EQ(read("a = \"" + std::string(1023, 'v') + "\"").front().second.size(), 1023u);
  read("a = '" + std::string(1024, 'v') + "'", &error);
  EXPECT_STREQ(error.what, "a value of more than 1023 bytes");
}

TEST(OptionsFile, AnEntrysOwnErrorHasItsPlace) {
  FileError error;
  int calls = 0;
  EXPECT_FALSE(parse_settings(
      "a = 1\n  b = 2\nc = 3", 20,
      [](void* context, const FileEntry& entry) -> const char* {
        ++*static_cast<int*>(context);
        return entry.key[0] == 'b' ? "not b" : nullptr;
      },
      &calls, &error));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(error.line, 2u);
  EXPECT_EQ(error.column, 3u);
  EXPECT_STREQ(error.what, "not b");
}

}  // namespace
