// SPDX-License-Identifier: BSD-3-Clause
// Texts made of pieces that readers know, in no order. STRETTO_TEST_SEED repeats a failure.
#pragma once
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

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

}  // namespace stretto::test
