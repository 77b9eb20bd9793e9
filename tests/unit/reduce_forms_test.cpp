// SPDX-License-Identifier: BSD-3-Clause
// Compares the closed forms of short reductions with the timer, for every number of ranks from 2 to
// 257.
#include "select/reduce_forms.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "coll/shape/tree.hpp"
#include "unit/timer_support.hpp"

namespace stretto::test {
namespace {

using coll::Slice;
using coll::Tree;
using sched::GapRule;
using select::LogP;

#if defined(__SANITIZE_ADDRESS__)
constexpr int kMostRanks = 40;  // the same arithmetic, ten times slower
#else
constexpr int kMostRanks = 257;
#endif
constexpr std::uint64_t kBytes = 8;
constexpr LogP kParameters[] = {
    // g <= o + m gamma
    {.o = 1, .L = 2, .g = 0.5, .combine = 1, .copy = 0.25},
    {.o = 2, .L = 5, .g = 3.5, .combine = 1.5, .copy = 1},
    {.o = 1.5, .L = 0.7, .g = 0, .combine = 0.5, .copy = 4},
    {.o = 0.31, .L = 17.3, .g = 0.9, .combine = 6.1, .copy = 0.07},
};

Costs costs_of(const LogP& p, GapRule rule) {
  Costs costs = Costs::uniform({.latency = p.L, .send_overhead = p.o, .receive_overhead = p.o, .gap = p.g},
                               p.combine / kBytes, p.copy / kBytes);
  costs.gap_rule = rule;
  return costs;
}

// How S4 itself reduces: with copies of contributions, and also of results for operations that do
// not commute.
enum class Copies { none, contributions, results_too };
void emit_reduce(Builder& b, const Tree& tree, int rank, int root, Copies copies) {
  const Slice own{sched::Buffer::send, 0, kBytes};
  const Slice sum = copies == Copies::none ? own : b.scratch(kBytes);
  bool copied = copies == Copies::none;
  const auto take = [&] {
    if (!copied) b.copy(own, sum);
    copied = true;
  };
  if (tree.kind != Tree::Kind::binary) take();
  Slice result = sum;
  tree.each_child(rank, [&](int child) {
    take();
    const Slice to = copies == Copies::contributions ? sum : b.scratch(kBytes);
    b.recv_reduce(child, result, to, tree.children_side());
    if (copies == Copies::results_too) {
      b.copy(to, sum);
    } else {
      result = to;
    }
  });
  if (!copied) result = own;  // a leaf of the binary tree
  const int top = tree.root();
  if (tree.parent(rank) >= 0)
    b.send(tree.parent(rank), result);
  else if (root != top)
    b.send(root, result);
  if (rank == root && root != top) b.recv(top, {sched::Buffer::receive, 0, kBytes});
}

template <class Check>
void each_case(Check check) {
  for (const LogP& p : kParameters) {
    for (const GapRule rule : {GapRule::per_direction, GapRule::any_two}) {
      for (int ranks = 2; ranks <= kMostRanks; ++ranks) check(p, costs_of(p, rule), ranks);
    }
  }
}

class ReduceForms : public testing::Test {
 protected:
  void time(const Costs& costs, const Tree& tree, int root, Copies copies) {
    ASSERT_TRUE(timer.run({.ranks = tree.size}, costs, [&](Builder& b, int rank) {
      emit_reduce(b, tree, rank, root, copies);
      return b.finish();
    })) << timer.failure();
  }
  void expect(double time, double form, int ranks, int rank) {
    EXPECT_NEAR(time, form, 1e-12 * form) << "ranks " << ranks << " rank " << rank;
  }
  void expect_rank(int rank, double form, int ranks) { expect(timer.rank(rank).end, form, ranks, rank); }
  Timer timer;
};

TEST_F(ReduceForms, Binomial) {
  each_case([&](const LogP& p, const Costs& costs, int ranks) {
    time(costs, Tree::knomial(ranks, 2), 0, Copies::contributions);
    for (int rank = 0; rank < ranks; ++rank) expect_rank(rank, select::binomial_rank(p, ranks, rank), ranks);
  });
}

TEST_F(ReduceForms, OurBinomialTreeCopiesNothing) {
  each_case([&](LogP p, const Costs& costs, int ranks) {
    p.copy = 0;
    ASSERT_TRUE(time_algorithm(timer, costs, Collective::reduce, "binomial", ranks, kBytes));
    for (int rank = 0; rank < ranks; ++rank) expect_rank(rank, select::binomial_rank(p, ranks, rank), ranks);
  });
}

TEST_F(ReduceForms, BinomialInRankOrder) {
  each_case([&](const LogP& p, const Costs& costs, int ranks) {
    for (const int root : {0, 1, ranks / 2, ranks - 1}) {
      time(costs, Tree::knomial(ranks, 2), root, Copies::results_too);
      for (int rank = 1; rank < ranks; ++rank) {
        if (rank != root) expect_rank(rank, select::binomial_rank_ordered(p, ranks, rank), ranks);
      }
      expect_rank(root, select::binomial_root_ordered(p, ranks, root == 0), ranks);
    }
  });
}

TEST_F(ReduceForms, BinaryIsExactAtFullTreesAndABoundElsewhere) {
  each_case([&](const LogP& p, const Costs& costs, int ranks) {
    for (const int root : {ranks - 1, 0, ranks / 2}) {
      time(costs, Tree::binary(ranks), root, Copies::contributions);
      const double form = select::binary_root(p, ranks, root == ranks - 1);
      if (((ranks + 1) & ranks) == 0) expect_rank(root, form, ranks);
      EXPECT_LE(timer.rank(root).end, form * (1 + 1e-12)) << ranks;
    }
  });
}

TEST_F(ReduceForms, Chains) {
  each_case([&](const LogP& p, const Costs& costs, int ranks) {
    for (const int k : {1, 2, 3, 4, 7, ranks / 3, ranks / 2, ranks - 2, ranks - 1}) {
      if (k < 1 || k >= ranks) continue;
      for (const bool long_first : {false, true}) {
        ASSERT_TRUE(time_algorithm(timer, costs, Collective::reduce, long_first ? "kchain_long_first" : "kchain", ranks,
                                   kBytes, {.k = k}));
        expect_rank(0, select::kchain_root(p, ranks, k, long_first), ranks);
        const Tree tree = Tree::kchain(ranks, k, long_first);
        for (int rank = ranks - 1, below = 0; rank > 0; --rank) {
          expect_rank(rank, select::kchain_rank(p, below), ranks);
          below = tree.parent(rank) == 0 ? 0 : below + 1;
        }
      }
    }
  });
}

TEST_F(ReduceForms, ABestNumberOfChainsIsBest) {
  for (const LogP& p : kParameters) {
    for (const int ranks : {2, 3, 10, 48, 100, 257}) {
      const double best = select::kchain_root(p, ranks, select::kchain_best_k(p, ranks));
      for (int k = 1; k < ranks; ++k) EXPECT_GE(select::kchain_root(p, ranks, k), best);
    }
  }
}

// ---- gaps that hold ranks back ----

constexpr LogP kLongGaps[] = {
    {.o = 1, .L = 2, .g = 5, .combine = 1, .copy = 0.25},
    {.o = 0.4, .L = 9, .g = 2.5, .combine = 0.7, .copy = 0},
    {.o = 0.2, .L = 0.3, .g = 30, .combine = 0, .copy = 1},
};

TEST_F(ReduceForms, LongGapsInTheBinomialTreeAreBetweenAnyTwo) {
  for (const LogP& p : kLongGaps) {
    for (int ranks = 2; ranks <= kMostRanks; ++ranks) {
      time(costs_of(p, GapRule::any_two), Tree::knomial(ranks, 2), 0, Copies::contributions);
      for (int rank = 0; rank < ranks; ++rank) expect_rank(rank, select::binomial_rank(p, ranks, rank), ranks);
      time(costs_of(p, GapRule::per_direction), Tree::knomial(ranks, 2), 0, Copies::contributions);
      for (int rank = 0; rank < ranks; ++rank)
        EXPECT_LE(timer.rank(rank).end, select::binomial_rank(p, ranks, rank) * (1 + 1e-12));
    }
  }
}

TEST_F(ReduceForms, LongGapsInChainsAndTheBinaryTreeArePerDirection) {
  for (const LogP& p : kLongGaps) {
    for (int ranks = 2; ranks <= kMostRanks; ++ranks) {
      for (const int k : {1, 2, 5, ranks / 2, ranks - 1}) {
        if (k < 1 || k >= ranks) continue;
        ASSERT_TRUE(time_algorithm(timer, costs_of(p, GapRule::per_direction), Collective::reduce, "kchain", ranks,
                                   kBytes, {.k = k}));
        expect_rank(0, select::kchain_root(p, ranks, k), ranks);
        ASSERT_TRUE(time_algorithm(timer, costs_of(p, GapRule::any_two), Collective::reduce, "kchain", ranks, kBytes,
                                   {.k = k}));
        EXPECT_GE(timer.rank(0).end, select::kchain_root(p, ranks, k) * (1 - 1e-12));
      }
      const double form = select::binary_root(p, ranks);
      time(costs_of(p, GapRule::per_direction), Tree::binary(ranks), ranks - 1, Copies::contributions);
      const bool full = ((ranks + 1) & ranks) == 0;
      if (full) expect_rank(ranks - 1, form, ranks);
      EXPECT_LE(timer.rank(ranks - 1).end, form * (1 + 1e-12)) << ranks;
      time(costs_of(p, GapRule::any_two), Tree::binary(ranks), ranks - 1, Copies::contributions);
      if (full) EXPECT_GE(timer.rank(ranks - 1).end, form * (1 - 1e-12)) << ranks;
    }
  }
}

// Chains of given lengths, in the order in which the root receives.
void emit_chains(Builder& b, const std::vector<int>& lengths, int rank) {
  const Slice own{sched::Buffer::send, 0, kBytes};
  const Slice sum = b.scratch(kBytes);
  int first = 1;
  bool fresh = true;
  for (const int length : lengths) {
    if (rank == 0) b.recv_reduce(first, fresh ? own : sum, sum, sched::Side::right), fresh = false;
    if (rank >= first && rank < first + length) {
      if (rank + 1 < first + length) b.recv_reduce(rank + 1, own, sum, sched::Side::right), fresh = false;
      b.send(rank == first ? 0 : rank - 1, fresh ? own : sum);
    }
    first += length;
  }
}

TEST_F(ReduceForms, StaggeredChainsTakeWhatIsSaidAndLessThanEqualOnes) {
  for (const LogP& p : kParameters) {
    for (int ranks = 2; ranks <= kMostRanks; ++ranks) {
      const select::Staggered chains = select::staggered_chains(p, ranks);
      EXPECT_EQ(std::accumulate(chains.lengths.begin(), chains.lengths.end(), 0), ranks - 1);
      ASSERT_TRUE(timer.run({.ranks = ranks}, costs_of(p, GapRule::any_two), [&](Builder& b, int rank) {
        emit_chains(b, chains.lengths, rank);
        return b.finish();
      }));
      expect_rank(0, chains.time, ranks);
      EXPECT_LE(chains.time, select::kchain_root(p, ranks, select::kchain_best_k(p, ranks)) * (1 + 1e-12));
    }
  }
  const LogP& p = kParameters[0];
  const double smooth = std::sqrt(2 * p.hop() * p.turn() * 1e6);
  EXPECT_NEAR(select::staggered_chains(p, 1000001).time / smooth, 1, 0.01);
}

// With three ranks or fewer chains, every way of cutting can be tried. None is faster than the one
// that is called best.
TEST_F(ReduceForms, NoStaggeringIsBetter) {
  const LogP& p = kParameters[1];
  for (int ranks = 2; ranks <= 14; ++ranks) {
    const double best = select::staggered_chains(p, ranks).time;
    for (unsigned cuts = 0; cuts < 1u << (ranks - 2); ++cuts) {  // bit i: a chain ends after rank i + 1
      std::vector<int> lengths{1};
      for (int i = 0; i < ranks - 2; ++i) cuts >> i & 1 ? lengths.push_back(1) : void(++lengths.back());
      ASSERT_TRUE(timer.run({.ranks = ranks}, costs_of(p, GapRule::per_direction), [&](Builder& b, int rank) {
        emit_chains(b, lengths, rank);
        return b.finish();
      }));
      ASSERT_GE(timer.rank(0).end, best - 1e-9);
    }
  }
}

// ---- figure 7 of S4: a = 3, b = 2 ----

TEST(KChainEstimate, LeastAtOtherPlacesThanThePracticalRules) {
  const int ranks[] = {100, 200, 300, 400};
  const int least[] = {12, 17, 21, 24};
  const int practical[] = {10, 15, 18, 20};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(select::kchain_estimate_best_whole_k(3, 2, ranks[i]), least[i]);
    EXPECT_EQ(select::kchain_practical_k(ranks[i]), practical[i]);
    EXPECT_EQ(Tree::kchain(ranks[i], 0).k, practical[i]);  // the library's choice without a profile
    for (int k = 1; k < ranks[i]; ++k) {
      EXPECT_GE(select::kchain_estimate(3, 2, ranks[i], k), select::kchain_estimate(3, 2, ranks[i], least[i]));
    }
    const double best = select::kchain_estimate_best_k(3, 2, ranks[i]);
    EXPECT_NEAR(select::kchain_estimate(3, 2, ranks[i], best), select::kchain_estimate_least(3, 2, ranks[i]), 1e-9);
  }
}

// ---- what S4 prints differently ----

// For operations that do not commute, and P no power of two, S4 prints one L too many.
TEST_F(ReduceForms, PrintedOrderedBinomialIsOneLatencyTooLong) {
  const LogP& p = kParameters[1];
  for (int ranks = 3; ranks <= kMostRanks; ++ranks) {
    if ((ranks & (ranks - 1)) == 0) continue;
    const double turn = std::max(p.o + p.combine + p.copy, p.g);
    const double printed = 2 * p.copy + std::floor(std::log2(ranks)) * (p.o + p.L + turn) + p.o + p.L + p.combine;
    time(costs_of(p, GapRule::any_two), Tree::knomial(ranks, 2), 0, Copies::results_too);
    EXPECT_NEAR(printed - timer.rank(0).end, p.L, 1e-9) << ranks;
  }
}

// For chains of one length, and so for one chain and for a flat tree, S4 prints one hop too many.
TEST_F(ReduceForms, PrintedChainsOfOneLengthAreOneHopTooLong) {
  const LogP& p = kParameters[3];
  for (const int ranks : {2, 5, 13, 101}) {
    for (int k = 1; k < ranks; ++k) {
      const double printed = (ranks - 1) / k * p.hop() + (k - 1) * p.turn() + p.hop();
      const bool one_length = (ranks - 1) % k == 0;
      ASSERT_TRUE(time_algorithm(timer, costs_of(p, GapRule::any_two), Collective::reduce, "kchain_long_first", ranks,
                                 kBytes, {.k = k}));
      EXPECT_NEAR(printed - timer.rank(0).end, one_length ? p.hop() : 0, 1e-9) << ranks << " " << k;
    }
  }
}

// What S4 prints for inner ranks is right only above full subtrees.
TEST_F(ReduceForms, PrintedInnerRanksAreRightAtFullSubtreesOnly) {
  const LogP& p = kParameters[0];
  time(costs_of(p, GapRule::any_two), Tree::knomial(22, 2), 0, Copies::contributions);
  const auto printed = [&](int rank) {
    const int zeros = __builtin_ctz(static_cast<unsigned>(rank));
    return p.copy + (zeros - 1) * (p.o + p.L + p.turn()) + 3 * p.o + p.L + p.combine;
  };
  EXPECT_NEAR(timer.rank(8).end, printed(8), 1e-12);
  EXPECT_LT(timer.rank(16).end, printed(16));
  EXPECT_LT(timer.rank(20).end, printed(20));
}

}  // namespace
}  // namespace stretto::test
