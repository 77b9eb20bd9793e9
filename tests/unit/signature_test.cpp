// SPDX-License-Identifier: BSD-3-Clause
// Signatures compose, and different sequences of elements have different stamps.
#include "base/signature.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace stretto {
namespace {

constexpr ElementCode kInt = element_code(ElementKind::integer, 4);
constexpr ElementCode kLong = element_code(ElementKind::integer, 8);
constexpr ElementCode kDouble = element_code(ElementKind::real, 8);
constexpr ElementCode kByte = element_code(ElementKind::bytes, 1);

Signature of(const std::vector<ElementCode>& elements) {
  Signature s;
  for (const ElementCode e : elements) s.append(e, 1);
  return s;
}

TEST(Signature, TwoPairsOfIntsAreFourInts) {
  EXPECT_EQ(of({kInt, kInt}).stamp(2), of({kInt}).stamp(4));
  EXPECT_EQ(of({kInt, kInt, kInt, kInt}).stamp(1), of({kInt}).stamp(4));
  EXPECT_NE(of({kInt}).stamp(4), of({kInt}).stamp(5));
  EXPECT_NE(of({kInt}).stamp(2), of({kLong}).stamp(1));
  EXPECT_NE(of({kDouble}).stamp(1), of({kLong}).stamp(1));
}

TEST(Signature, OrderCounts) {
  EXPECT_NE(of({kInt, kDouble}).stamp(1), of({kDouble, kInt}).stamp(1));
  EXPECT_EQ(of({kInt, kDouble}).stamp(3), of({kInt, kDouble, kInt, kDouble, kInt, kDouble}).stamp(1));
  EXPECT_NE(of({kInt, kDouble}).stamp(3), of({kInt, kInt, kInt, kDouble, kDouble, kDouble}).stamp(1));
}

TEST(Signature, SaysNothingOfWhatIsUnknownAndNamesBytes) {
  EXPECT_EQ(Signature{}.stamp(7), 0u);
  EXPECT_EQ(of({kInt, element_code(ElementKind::unknown, 4)}).stamp(7), 0u);
  EXPECT_EQ(of({kInt}).stamp(0), 0u);
  EXPECT_FALSE(has_bytes(of({kInt, kDouble}).stamp(9)));
  EXPECT_TRUE(has_bytes(of({kInt, kByte, kDouble}).stamp(9)));
  EXPECT_EQ(of({kInt, kInt}).element(), kInt);
  EXPECT_EQ(of({kInt, kDouble}).element(), 0);
}

// Random sequences, built from random pieces and repetitions. Equal ones have equal stamps.
// Different ones have equal stamps as seldom as 22 bits allow.
TEST(Signature, RandomCompositionsAgreeWithTheSequence) {
  std::mt19937 random(7);
  const ElementCode kinds[] = {kInt, kDouble, kLong};
  std::map<Stamp, std::string> seen;
  int same = 0;
  for (int n = 0; n < 20'000; ++n) {
    Signature whole;
    std::string spelled;
    for (unsigned parts = 1 + random() % 4; parts != 0; --parts) {
      Signature part;
      std::string text;
      for (unsigned i = 1 + random() % 3; i != 0; --i) {
        const unsigned kind = random() % 3;
        const unsigned count = 1 + random() % 3;
        part.append(kinds[kind], count);
        text += std::string(count, static_cast<char>('a' + kind));
      }
      const unsigned times = random() % 4;
      whole.append(part, times);
      for (unsigned t = 0; t < times; ++t) spelled += text;
    }
    const unsigned count = 1 + random() % 3;
    std::string message;
    for (unsigned t = 0; t < count; ++t) message += spelled;
    const Stamp stamp = whole.stamp(count);
    if (message.empty()) {
      EXPECT_EQ(stamp, 0u);
      continue;
    }
    EXPECT_LT(stamp, 1u << kStampBits);
    Signature spelled_out;
    for (const char c : message) spelled_out.append(kinds[c - 'a'], 1);
    ASSERT_EQ(spelled_out.stamp(1), stamp) << message;
    const auto [place, is_new] = seen.emplace(stamp, message);
    same += !is_new && place->second != message;
  }
  EXPECT_LT(same, 2 * 20'000 * 20'000.0 / 2 / (1 << 22));
}

}  // namespace
}  // namespace stretto
