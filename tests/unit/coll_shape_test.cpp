// SPDX-License-Identifier: BSD-3-Clause
// The index arithmetic of the algorithms, and the cost of making a schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "coll/algorithm.hpp"
#include "coll/shape/bine.hpp"
#include "coll/shape/circulant.hpp"
#include "coll/shape/fold.hpp"
#include "coll/shape/parts.hpp"
#include "coll/shape/radices.hpp"
#include "coll/shape/tree.hpp"

namespace stretto::test {
namespace {

using coll::BineButterfly;
using coll::Circulant;
using coll::Fold;
using coll::Group;
using coll::Parts;
using coll::Tree;
using sched::Buffer;
using sched::Slice;

std::vector<int> children(const Tree& tree, int place) {
  std::vector<int> all;
  tree.each_child(place, [&](int child) { all.push_back(child); });
  return all;
}
// The places of a subtree. Fails where they are no neighbours, or where children and parents
// disagree.
std::vector<int> subtree(const Tree& tree, int place) {
  std::vector<int> all = {place};
  std::vector<int> backwards;
  tree.each_child_backwards(place, [&](int child) { backwards.push_back(child); });
  std::vector<int> forwards = children(tree, place);
  for (const int child : forwards) {
    EXPECT_EQ(tree.parent(child), place);
    const std::vector<int> below = subtree(tree, child);
    all.insert(all.end(), below.begin(), below.end());
  }
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(forwards, backwards);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.back() - all.front() + 1, std::ssize(all));
  return all;
}

TEST(Tree, EveryPlaceOnceAndSubtreesOfNeighbours) {
  for (int size = 1; size <= 70; ++size) {
    std::vector<Tree> trees = {Tree::flat(size), Tree::binary(size)};
    for (const int k : {2, 3, 4, 7, 64}) {
      trees.push_back(Tree::knomial(size, k));
      trees.push_back(Tree::kchain(size, k));
      trees.push_back(Tree::kchain(size, k, true));
    }
    for (const Tree& tree : trees) {
      EXPECT_EQ(tree.parent(tree.root()), -1);
      EXPECT_EQ(std::ssize(subtree(tree, tree.root())), size);
      if (tree.kind != Tree::Kind::knomial) continue;
      for (int place = 0; place < size; ++place) {
        const std::vector<int> below = subtree(tree, place);
        EXPECT_EQ(below.front(), place);
        EXPECT_EQ(below.back() + 1, tree.subtree_end(place));
      }
    }
  }
}

TEST(Tree, KnownShapes) {
  EXPECT_EQ(children(Tree::knomial(13, 2), 0), (std::vector<int>{1, 2, 4, 8}));
  EXPECT_EQ(children(Tree::knomial(13, 2), 8), (std::vector<int>{9, 10, 12}));
  EXPECT_EQ(children(Tree::knomial(13, 3), 0), (std::vector<int>{1, 2, 3, 6, 9}));
  EXPECT_EQ(children(Tree::flat(4), 0), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(children(Tree::kchain(9, 3), 0), (std::vector<int>{1, 3, 6}));        // 2, 3, 3 places
  EXPECT_EQ(children(Tree::kchain(9, 3, true), 0), (std::vector<int>{1, 4, 7}));  // 3, 3, 2 places
  EXPECT_EQ(children(Tree::kchain(5, 1), 2), (std::vector<int>{3}));
  // The practical rule is ceil(sqrt(P - 1)).
  EXPECT_EQ(Tree::kchain(100, 0).k, 10);
  EXPECT_EQ(Tree::kchain(300, 0).k, 18);
  EXPECT_EQ(Tree::kchain(2, 0).k, 1);
  // The root is P - 1. Of the others, the lower floor(P / 2) are one subtree and the rest are the
  // other.
  EXPECT_EQ(children(Tree::binary(8), 7), (std::vector<int>{6, 3}));
  EXPECT_EQ(children(Tree::binary(8), 6), (std::vector<int>{5, 4}));
  EXPECT_EQ(children(Tree::binary(8), 3), (std::vector<int>{2, 1}));
  EXPECT_EQ(children(Tree::binary(8), 1), (std::vector<int>{0}));
}

TEST(Fold, CoreNumbersStandForNeighbours) {
  for (int size = 1; size <= 130; ++size) {
    const Fold fold(size);
    EXPECT_LE(fold.core, size);
    EXPECT_GT(2 * fold.core, size);
    int at = 0;
    for (int number = 0; number < fold.core; ++number) {
      EXPECT_EQ(fold.first(number), at);
      const int member = fold.member(number);
      EXPECT_FALSE(fold.outside(member));
      EXPECT_EQ(fold.number(member), number);
      at = fold.first(number + 1);
      EXPECT_EQ(member, at - 1);
      EXPECT_EQ(at - fold.first(number), fold.paired(member) ? 2 : 1);
    }
    EXPECT_EQ(at, size);
  }
}

TEST(Radices, TakeTheFewestMessagesInARow) {
  const auto radices = [](int members, int k) {
    const coll::Radices found(members, k);
    std::vector<int> all;
    for (int i = 0; i < found.rounds(); ++i) all.push_back(found[i]);
    return all;
  };
  EXPECT_EQ(radices(1, 4), (std::vector<int>{}));
  EXPECT_EQ(radices(5, 8), (std::vector<int>{5}));
  EXPECT_EQ(radices(16, 2), (std::vector<int>{2, 2, 2, 2}));
  EXPECT_EQ(radices(2304, 16), (std::vector<int>{16, 16, 9}));
  EXPECT_EQ(radices(8, 3), (std::vector<int>{2, 2, 2}));  // not 3 * 2, which adds two messages for the fold
  EXPECT_EQ(radices(17, 16), (std::vector<int>{16}));     // a prime: the greatest core below it
  for (int members = 1; members <= 600; ++members) {
    for (const int k : {2, 3, 4, 7, 16}) {
      const coll::Radices found(members, k);
      int product = 1;
      for (int i = 0; i < found.rounds(); ++i) {
        EXPECT_TRUE(found[i] >= 2 && found[i] <= k);
        product *= found[i];
      }
      EXPECT_EQ(product, found.fold().core);
      EXPECT_TRUE(product <= members && 2 * product >= members) << members << " by " << k;
      if (k == 2) EXPECT_EQ(product, Fold(members).core);
    }
  }
}

// The least number of rounds, one arrival a round, and nothing is sent on before it is there.
TEST(Circulant, EveryPlaceGetsEveryBlockInTheLeastRounds) {
  for (int size = 2; size <= 70; ++size) {
    const Circulant graph(size);
    EXPECT_EQ(1 << graph.rounds() >= size && 1 << graph.rounds() < 2 * size, true) << size;
    for (const int blocks : {1, 2, 5, graph.rounds(), 2 * graph.rounds() + 1}) {
      for (int place = 1; place < size; ++place) {
        std::set<int> rounds;
        for (int block = 0; block < blocks; ++block) {
          const Circulant::Arrival mine = graph.arrival(place, block, blocks);
          EXPECT_TRUE(rounds.insert(mine.round).second) << size << " " << place;
          EXPECT_TRUE(mine.round >= block && mine.round < graph.all_rounds(blocks)) << size << " " << place;
          const int source = (place - graph.jump(mine.edge) + size) % size;
          if (source != 0) {
            EXPECT_LT(graph.arrival(source, block, blocks).round, mine.round) << size << " " << place;
          }
        }
      }
    }
  }
}

TEST(Bine, PartnersJoinNeighboursAndSplitVectors) {
  for (int size = 1; size <= 64; size *= 2) {
    std::set<int> labels;
    for (int number = 0; number < size; ++number) {
      const BineButterfly mine(size, number);
      labels.insert(mine.label());
      for (int round = 0; 1 << round < size; ++round) {
        const BineButterfly other(size, mine.partner(round));
        EXPECT_EQ(other.partner(round), number);
        const int bits = (2 << round) - 1;
        EXPECT_EQ((mine.label() ^ other.label()) & bits, 1 << round);
        // Both ranges together are the next one.
        EXPECT_EQ(mine.first(round + 1), other.first(round + 1));
        EXPECT_TRUE(mine.first(round + 1) == mine.first(round) || mine.first(round + 1) == other.first(round));
        EXPECT_EQ((std::max(mine.first(round), other.first(round)) - std::min(mine.first(round), other.first(round))) %
                      (1 << round),
                  0);
      }
    }
    EXPECT_EQ(std::ssize(labels), size);
  }
}

TEST(Parts, CoverTheWholeHoweverTheyAreCut) {
  const std::uint64_t begins[] = {0, 3, 3, 10, 11};
  const Parts all[] = {Parts::equal(Buffer::send, 4, 5), Parts::given(Buffer::send, 4, begins),
                       Parts::deal({Buffer::send, 7, 11}, 4), Parts::deal({Buffer::send, 0, 2}, 4),
                       Parts::deal({Buffer::send, 0, 0}, 4)};
  for (Parts parts : all) {
    std::uint64_t at = parts.offset;
    for (int i = 0; i < parts.count; ++i) {
      EXPECT_EQ(parts.at(i).offset, at);
      at = parts.at(i).end();
      std::uint64_t inside = parts.at(i).offset;
      Parts cut = parts;
      for (cut.segments = 3, cut.segment = 0; cut.segment < 3; ++cut.segment) {
        EXPECT_EQ(cut.at(i).offset, inside);
        inside = cut.at(i).end();
      }
      EXPECT_EQ(inside, at);
    }
    EXPECT_EQ(at, parts.offset + parts.total());
  }
}

TEST(Group, CountedFromAnotherMember) {
  const int ranks[] = {40, 30, 20, 10};
  const Group group{4, 1, ranks};
  const Group turned = group.counted_from(3);
  EXPECT_EQ(turned.rank(0), 10);
  EXPECT_EQ(turned.rank(1), 40);
  EXPECT_EQ(turned.me, 2);
  EXPECT_EQ(turned.rank(turned.me), group.rank(group.me));
  EXPECT_EQ(turned.counted_from(2).rank(0), 30);
}

// For a million ranks, schedules must be made lazily: a schedule costs only its own steps, in time
// and memory.
TEST(Schedules, CostTheirOwnSteps) {
  coll::Builder builder;
  coll::Problem problem;
  problem.collective = Collective::reduce;
  problem.size = 1 << 20;
  problem.count = 1;
  problem.commutative = true;
  const coll::Algorithm& binomial = *coll::find_algorithm(Collective::reduce, "binomial");
  std::size_t steps = 0;
  std::size_t most_bytes = 0;
  for (problem.rank = 0; problem.rank < 50'000; ++problem.rank) {
    const auto schedule = coll::build(builder, binomial, problem, {});
    steps += schedule.steps.size();
    most_bytes = std::max(most_bytes, schedule.memory_bytes());
  }
  EXPECT_LT(steps, 3u * 50'000);
  EXPECT_LT(most_bytes, 4096u);
}

}  // namespace
}  // namespace stretto::test
