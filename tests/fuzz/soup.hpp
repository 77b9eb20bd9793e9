// SPDX-License-Identifier: BSD-3-Clause
// Texts made in no order of pieces that readers know, and what must hold of every mistake found in
// them. STRETTO_TEST_SEED repeats a failure.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/options_file.hpp"

namespace stretto::test {

using Random = std::mt19937_64;

inline std::uint64_t seed() {
  const char* text = std::getenv("STRETTO_TEST_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 20240611;
}

inline std::string soup(Random& random, const std::vector<std::string>& pieces, std::size_t most) {
  std::string text;
  for (std::size_t n = random() % most; n > 0; --n) {
    text += random() % 30 == 0 ? std::string(1, static_cast<char>(random())) : pieces[random() % pieces.size()];
  }
  return text;
}

// A mistake's place is in the text or right behind it. For what is missing at the end, it may be in
// the line after the last.
inline void expect_place(const FileError& error, const std::string& text, unsigned lines_behind = 0) {
  ASSERT_NE(error.what, nullptr);
  EXPECT_GE(error.line, 1u);
  EXPECT_LE(error.line, 1 + lines_behind + static_cast<unsigned>(std::count(text.begin(), text.end(), '\n')));
  EXPECT_GE(error.column, 1u);
  EXPECT_LE(error.column, text.size() + 1);
}

}  // namespace stretto::test
