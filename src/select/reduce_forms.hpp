// SPDX-License-Identifier: BSD-3-Clause
// Closed forms for the time of a short Reduce in LogP, after Kurnosov 2016 (S4), corrected where
// the print errs. All ranks enter at 0. A message has overhead o, latency L and gap g; gamma and
// lambda count per byte. The timer (sched/timer.hpp) finds the same times from the schedules alone.
// The closed forms show why, and how times grow.
//
// Each function says when it is exact, for g <= o + m gamma: then the gap holds up no rank. With a
// longer gap S4's forms do not all mean the same rule.
//
// In those of the binomial tree, a rank that has received waits before it sends. They are exact for
// a gap between any two messages, and upper bounds for a gap per direction.
//
// In those of the chains and of the binary tree, only receives wait for receives. They are exact
// for a gap per direction, and lower bounds for a gap between any two.
//
// S4 first copies every contribution to a buffer of the schedule's own (m lambda). For operations
// that do not commute it also copies every result. Our schedules need neither: for them lambda is
// 0.
#pragma once
#include <cstdint>
#include <vector>

namespace stretto::select {

// For a message of m bytes.
struct LogP {
  double o = 0, L = 0, g = 0;
  double combine = 0;  // m gamma
  double copy = 0;     // m lambda

  // From receiving one message to receiving the next.
  [[nodiscard]] double turn() const { return o + combine > g ? o + combine : g; }
  // One hop of a chain: the message is sent, received and combined.
  [[nodiscard]] double hop() const { return 2 * o + L + combine; }
};

// ---- Binomial tree, rooted at rank 0 ----
// Rank r > 0 is over n = min(2^ctz(r), P - r) ranks. Commutative: exact for every rank. Otherwise
// places are ranks, and every combination copies its result. A root that is not rank 0 then gets
// the result in a message.
double binomial_rank(const LogP& p, int ranks, int rank);
double binomial_root(const LogP& p, int ranks);
double binomial_rank_ordered(const LogP& p, int ranks, int rank);  // rank > 0, not the root
double binomial_root_ordered(const LogP& p, int ranks, bool root_is_0);

// ---- Balanced in-order binary tree, rooted at rank P - 1 ----
// Exact if P = 2^d - 1, otherwise an upper bound. Inner ranks copy their contribution while they
// wait.
double binary_root(const LogP& p, int ranks, bool root_is_last = true);

// ---- k chains, rooted at rank 0 ----
// (P - 1) mod k chains are one rank longer than the others. Exact for 1 <= k <= P - 1.
double kchain_root(const LogP& p, int ranks, int k, bool long_first = false);
// A rank with `below` ranks behind it in its chain.
double kchain_rank(const LogP& p, int below);

// S4's estimate, smooth in k: ((P - 1) / k + 1) a + (k - 1) b, with a = hop(), b = o + m gamma.
double kchain_estimate(double a, double b, int ranks, double k);
// Where it is least, sqrt(a (P - 1) / b), and its value there, 2 sqrt(a b (P - 1)) + a - b.
double kchain_estimate_best_k(double a, double b, int ranks);
double kchain_estimate_least(double a, double b, int ranks);
// The whole k of the least estimate.
int kchain_estimate_best_whole_k(double a, double b, int ranks);
// Without parameters: the least k >= sqrt(P - 1).
int kchain_practical_k(int ranks);
// The k of the least exact time, the lowest of several.
int kchain_best_k(const LogP& p, int ranks);

// ---- Chains of staggered length ----
// The root receives one chain every turn(). A chain that it receives later may be longer. The best
// lengths are in the order in which the root receives the chains. Their time is the (P - 1)-th
// least of all a l + M j, for the l-th rank of a chain. The root receives that chain j before the
// last. The time is about sqrt(2 a M (P - 1)). Chains of equal length take sqrt(2) times as long.
struct Staggered {
  std::vector<int> lengths;
  double time = 0;
};
Staggered staggered_chains(const LogP& p, int ranks);

}  // namespace stretto::select
