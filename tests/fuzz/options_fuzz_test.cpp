// SPDX-License-Identifier: BSD-3-Clause
// Hostile settings: random bytes, random texts that are almost TOML, and random environments.
// STRETTO_TEST_SEED repeats a failure.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/options.hpp"
#include "base/options_file.hpp"
#include "fuzz/soup.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

std::size_t below(Random& random, std::size_t limit) { return random() % limit; }

// Pieces of which a settings file is made, and some of which it must not be made.
const std::vector<std::string> kPieces = {"slots",
                                          "slot_bytes",
                                          "wait",
                                          "stats",
                                          "a",
                                          "b-",
                                          "_c",
                                          "1",
                                          "-",
                                          "true",
                                          "false",
                                          "truex",
                                          " ",
                                          "\t",
                                          "=",
                                          " = ",
                                          "\n",
                                          "\r\n",
                                          "\r",
                                          "#",
                                          "# c",
                                          "\"",
                                          "'",
                                          "\"\"\"",
                                          "'''",
                                          "\\",
                                          "\\n",
                                          "\\\"",
                                          "\\u0041",
                                          "\\u00e4",
                                          "\\uD800",
                                          "\\U0001F600",
                                          "\\u12",
                                          "\\x41",
                                          "\\U00110000",
                                          "0",
                                          "00",
                                          "12",
                                          "-7",
                                          "+3",
                                          "1_000",
                                          "1__0",
                                          "0x1f",
                                          "1.5",
                                          "1e3",
                                          "inf",
                                          "1979-05-27",
                                          "64K",
                                          "[",
                                          "]",
                                          "[a]",
                                          "[[a]]",
                                          "{",
                                          "}",
                                          "[1, 2]",
                                          ".",
                                          ",",
                                          "\xc3\xa4",
                                          "\xe2\x82\xac",
                                          "\xf0\x9f\x98\x80",
                                          "\xff",
                                          "\xc0\x80",
                                          "\xed\xa0\x80",
                                          "\xe2\x82",
                                          "\x01",
                                          "\x7f",
                                          "nap",
                                          "x"};

std::string value(Random& random) {
  static const std::vector<std::string> kValues = {"1",
                                                   "-12",
                                                   "+0",
                                                   "-0",
                                                   "1_2_3",
                                                   "true",
                                                   "false",
                                                   "\"\"",
                                                   "''",
                                                   "'a\\b'",
                                                   "\"x\\ty\"",
                                                   "\"\\\\ \\u00e4\"",
                                                   "\"\xc3\xa4 # no comment\"",
                                                   "64K",
                                                   "0x1",
                                                   "1.0",
                                                   "[]"};
  return kValues[below(random, kValues.size())];
}

// Lines that are mostly right. One change spoils some of them.
std::string almost(Random& random) {
  static const std::vector<std::string> kBlanks = {"", " ", "\t", "  "};
  static const std::vector<std::string> kEnds = {"\n", "\r\n", " # end\n", "\n\n", "\n# line \xe2\x82\xac\n"};
  const auto blank = [&] { return kBlanks[below(random, kBlanks.size())]; };
  std::string text;
  for (std::size_t lines = below(random, 5); lines > 0; --lines) {
    text += blank() + static_cast<char>('a' + below(random, 20)) + blank() + "=" + blank() + value(random) + blank();
    text += lines == 1 && below(random, 3) == 0 ? "" : kEnds[below(random, kEnds.size())];
  }
  if (!text.empty() && below(random, 2) == 0) {
    const std::size_t at = below(random, text.size());
    if (below(random, 2) == 0)
      text.erase(at, 1);
    else
      text.insert(at, kPieces[below(random, kPieces.size())]);
  }
  return text;
}

std::string noise(Random& random) {
  std::string text(below(random, 64), 0);
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

struct Entries {
  std::map<std::string, std::string> found;
  static const char* add(void* context, const FileEntry& entry) {
    auto& found = static_cast<Entries*>(context)->found;
    EXPECT_EQ(std::strspn(entry.key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"),
              std::strlen(entry.key));
    EXPECT_LT(std::strlen(entry.value), 1024u);
    return found.emplace(entry.key, entry.value).second ? nullptr : "twice";
  }
};

// Parses from memory that ends with the text, so that a sanitizer sees a read past the end.
bool parse(const std::string& text, Entries& entries) {
  const auto exact = std::make_unique<char[]>(text.size());
  std::memcpy(exact.get(), text.data(), text.size());
  FileError error;
  const bool good = parse_settings(exact.get(), text.size(), Entries::add, &entries, &error);
  if (good)
    EXPECT_EQ(error.what, nullptr);
  else
    expect_place(error, text);
  return good;
}

TEST(OptionsFuzz, ParserSurvivesAnything) {
  Random random(seed());
  int accepted = 0;
  constexpr int kTexts = 60000;
  for (int i = 0; i < kTexts && !testing::Test::HasFailure(); ++i) {
    const std::string text = i % 3 == 0 ? noise(random) : i % 3 == 1 ? soup(random, kPieces, 24) : almost(random);
    SCOPED_TRACE("seed " + std::to_string(seed()) + ", text " + std::to_string(i) + ": " +
                 testing::PrintToString(text));
    Entries entries;
    accepted += parse(text, entries);
  }
  EXPECT_GT(accepted, kTexts / 20);  // the generator does not make noise only
  EXPECT_LT(accepted, kTexts * 19 / 20);
}

std::string hexadecimal(const std::string& text) {
  std::string out;
  for (const char c : text) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(c));
    out += digits;
  }
  return out;
}

// The values of "key=kind:value ...", as the oracle prints it.
std::map<std::string, std::string> oracle_entries(const std::string& line) {
  std::map<std::string, std::string> entries;
  std::istringstream words(line.substr(4));
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    entries[word.substr(0, equals)] = word.substr(word.find(':') + 1);
  }
  return entries;
}

// Finds 0x1f, 0o17 and 0b1: integers of TOML that stretto.toml does not use.
bool has_based_integer(const std::string& text) {
  for (std::size_t at = text.find('0'); at != std::string::npos; at = text.find('0', at + 1)) {
    if (at + 1 < text.size() && std::strchr("xob", text[at + 1])) return true;
  }
  return false;
}

// Every file that Stretto accepts is TOML, and a TOML library gives it the same meaning. Stretto
// accepts every flat TOML file.
TEST(OptionsFuzz, AgreesWithATomlLibrary) {
  if (std::system("python3 -c 'import tomllib' 2>/dev/null") != 0) GTEST_SKIP() << "no Python with tomllib";
  Random random(seed() + 1);
  std::vector<std::string> texts;
  for (int i = 0; i < 8000; ++i) texts.push_back(i % 4 == 0 ? soup(random, kPieces, 24) : almost(random));
  char name[] = "/tmp/stretto-fuzz-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string directory = name;
  {
    std::ofstream out(directory + "/texts", std::ios::binary);
    for (const std::string& text : texts) out << text.size() << "\n" << text;
  }
  const std::string script = STRETTO_SOURCE_DIR "/tests/fuzz/options_toml_oracle.py";
  ASSERT_EQ(std::system(("python3 '" + script + "' " + directory + "/texts > " + directory + "/verdicts").c_str()), 0);
  std::ifstream in(directory + "/verdicts");
  int flat = 0;
  for (const std::string& text : texts) {
    std::string verdict;
    ASSERT_TRUE(std::getline(in, verdict));
    SCOPED_TRACE("seed " + std::to_string(seed()) + ": " + testing::PrintToString(text) + ", oracle: " + verdict);
    Entries entries;
    const bool taken = parse(text, entries);
    const bool expected = verdict.rfind("flat", 0) == 0;
    if (!taken && expected && has_based_integer(text)) continue;
    ASSERT_EQ(taken, expected);
    if (!taken) continue;
    ++flat;
    const auto theirs = oracle_entries(verdict);
    ASSERT_EQ(entries.found.size(), theirs.size());
    for (const auto& [key, ours] : entries.found) {
      const std::string plain = ours == "-0" ? "0" : ours;
      ASSERT_EQ(hexadecimal(plain), theirs.at(key)) << key;
    }
  }
  EXPECT_GT(flat, 1000);
  std::filesystem::remove_all(directory);
}

std::string variable(Random& random) {
  std::string name = option_row(static_cast<Option>(below(random, kOptions))).name;
  if (below(random, 4) == 0) name[below(random, name.size())] = static_cast<char>('A' + below(random, 26));
  if (below(random, 8) == 0) name = "STRETTO_" + noise(random);
  static const std::vector<std::string> kValues = {"on", "off",   "auto",  "mpi",     "8",       "64K",
                                                   "-1", "text",  "json:", "json:/x", "/x.json", "spin",
                                                   "3",  "debug", "",      ":",       "|",       "99999999999999999999",
                                                   "1G", "4097"};
  std::string text = below(random, 4) == 0 ? noise(random) : kValues[below(random, kValues.size())];
  if (below(random, 50) == 0) text += std::string(below(random, 3000), 'z');
  return name + "=" + text;
}

void expect_sane(const Options& options, const OptionsReport& report) {
  for (int i = 0; i < kOptions; ++i) {
    const OptionRow& row = option_row(static_cast<Option>(i));
    if (row.kind != OptionKind::integer && row.kind != OptionKind::size) continue;
    EXPECT_GE(options.value[i], row.least) << row.name;
    EXPECT_LE(options.value[i], row.most) << row.name;
    EXPECT_EQ(options.value[i] % row.multiple, 0) << row.name;
  }
  EXPECT_LE(static_cast<int>(options.stats()), 2);
  EXPECT_LT(std::strlen(options.stats_path), kOptionPathBytes);
  EXPECT_LT(std::strlen(options.config_path), kOptionPathBytes);
  for (int i = 0; i < report.count; ++i)
    EXPECT_LT(std::strlen(report.messages[i].text), sizeof report.messages[i].text);
  options_describe(options, [](void*, const OptionDescription& row) { EXPECT_NE(row.value, nullptr); }, nullptr);
}

TEST(OptionsFuzz, EveryEnvironmentGivesValuesInRange) {
  Random random(seed() + 2);
  Options options;
  OptionsReport report;
  int good = 0;
  for (int i = 0; i < 5000 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed()) + ", environment " + std::to_string(i));
    std::vector<std::string> variables;
    for (std::size_t n = below(random, 6); n > 0; --n) variables.push_back(variable(random));
    std::vector<const char*> pointers;
    for (const std::string& text : variables) pointers.push_back(text.c_str());
    pointers.push_back(nullptr);
    const Status status = options_load_from(options, report, pointers.data(), "/nonexistent");
    EXPECT_EQ(status == Status::ok, report.errors == 0);
    good += status == Status::ok;
    expect_sane(options, report);
  }
  EXPECT_GT(good, 500);
  EXPECT_LT(good, 4500);
}

}  // namespace
