// SPDX-License-Identifier: BSD-3-Clause
// Hostile files of rules. The reader never crashes, and every mistake has a place. What it
// understood can be asked about any call.
#include <gtest/gtest.h>

#include "fuzz/soup.hpp"
#include "select/selector.hpp"
#include "select/shm_rules.hpp"

namespace {

using namespace stretto;
using namespace stretto::test;

// A line that is mostly right. One change spoils some of them.
std::string almost(Random& random) {
  static const std::vector<std::string> where = {"",           " ranks=8",     " nodes=1-4",
                                                 " bytes=4K-", " bytes=0-64K", " ranks=2- nodes=1"};
  static const std::vector<std::string> what = {"mpi",      "builtin",    "hierarchy",   "hierarchy segment=4K",
                                                "shm:flat", "shm:slices", "shm:channels"};
  std::string text = std::string(kCollectiveNames[random() % kCollectives]) + where[random() % where.size()] + ": " +
                     what[random() % what.size()] + "\n";
  if (random() % 3 == 0) {
    const std::size_t at = random() % text.size();
    if (random() % 2 == 0)
      text.erase(at, 1 + random() % 3);
    else
      text.insert(at, 1, static_cast<char>(random()));
  }
  return text;
}

void ask(const select::Rules& rules, Random& random) {
  select::Selector selector;
  const int ranks = 1 + static_cast<int>(random() % 70), nodes = 1 + static_cast<int>(random() % 4);
  ASSERT_TRUE(selector.start({.ranks = ranks, .nodes = nodes, .across_nodes = nodes > 1}, rules));
  select::ShmRules memory;
  ASSERT_TRUE(memory.start(rules, ranks, nodes));
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    const std::uint64_t bytes = random() >> (random() % 64);
    const select::Choice choice = selector.of(collective, bytes);
    ASSERT_NE(choice.selection, nullptr);
    if ((selector.open() >> c & 1) == 0) {
      ASSERT_EQ(choice.backend, select::Backend::host);
    }
    // The steps say what the last rule that fits says.
    const coll_shm::Algorithm* named = nullptr;
    for (const select::Rule& rule : rules) {
      const bool fits = rule.selection.collective == collective && rule.fits(ranks, nodes) && rule.bytes.has(bytes);
      if (fits) named = rule.selection.memory;
    }
    ASSERT_EQ(memory.of(collective, bytes), named);
    coll::Problem problem;
    problem.collective = collective;
    const select::Selection& selection = *selector.able(choice, problem).selection;
    ASSERT_GE(select::segments_of(selection, selector.traits(), bytes), 1);
    ASSERT_GT(std::strlen(selector.words(choice).text), 10u);
  }
}

TEST(RulesFuzz, Files) {
  const std::vector<std::string> pieces = {"bcast",
                                           "allreduce",
                                           "alltoallw",
                                           " ",
                                           " ",
                                           "ranks=",
                                           "nodes=",
                                           "bytes=",
                                           "8",
                                           "0",
                                           "64K",
                                           "1G",
                                           "-",
                                           ":",
                                           ": ",
                                           "mpi",
                                           "builtin",
                                           "ring",
                                           "kchain",
                                           "chain",
                                           "hierarchy",
                                           "shm:",
                                           "flat",
                                           "slices",
                                           ":rails",
                                           ":stripes",
                                           "by=",
                                           "k=",
                                           "segment=",
                                           "\n",
                                           "\n",
                                           "\r\n",
                                           "#",
                                           "\t",
                                           "18446744073709551616",
                                           "allreduce: ring segment=4K\n",
                                           "bcast: kchain k=3\n"};
  Random random(seed());
  int accepted = 0;
  constexpr int kTexts = 60'000;
  select::Rules rules;
  for (int i = 0; i < kTexts && !testing::Test::HasFailure(); ++i) {
    std::string text = i % 2 == 0 ? soup(random, pieces, 14) : "";
    for (std::size_t lines = i % 2 == 0 ? 0 : 1 + random() % 4; lines > 0; --lines) text += almost(random);
    SCOPED_TRACE("seed " + std::to_string(seed()) + ", text " + std::to_string(i) + ": " +
                 testing::PrintToString(text));
    const std::vector<char> exact(text.begin(), text.end());  // so that AddressSanitizer sees a read past the end
    FileError error;
    if (rules.parse(exact.data(), exact.size(), &error)) {
      ++accepted;
      if (i % 16 < 2) ask(rules, random);
      continue;
    }
    EXPECT_TRUE(rules.empty());
    expect_place(error, text);
  }
  EXPECT_GT(accepted, kTexts / 10);
  EXPECT_LT(accepted, kTexts * 9 / 10);
}

}  // namespace
