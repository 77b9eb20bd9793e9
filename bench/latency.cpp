// SPDX-License-Identifier: BSD-3-Clause
#include "latency.hpp"

#include <algorithm>

namespace bench {
namespace {

// Short ones: a round during which a rank loses its processor is an outlier, not the rule.
constexpr int kRounds = 101;
constexpr int kMostSteps = 1000;
constexpr double kRound_s = 0.002;

void call_chain(Bench& b, const Op& op, int contender, const Shape& shape, char* buffer, int steps) {
  for (int i = 0; i < steps; ++i) {
    const Call call{&shape, buffer, buffer + kLine, i % b.team.size(), b.team.rank()};
    if (contender == kBound) {
      op.bound(b.bound, call);
    } else {
      op.mpi(b.functions[contender], call);
    }
  }
}

template <class Chain>
int steps_for(Team& team, Chain chain) {
  chain(2 * team.size());  // the first calls on a communicator set it up
  const double one_ns = team.agree(team.per_step_ns(2 * team.size(), chain));
  const int steps =
      static_cast<int>(std::clamp(kRound_s * 1e9 / std::max(one_ns, 1.0), 4.0, static_cast<double>(kMostSteps)));
  return steps / team.size() * team.size() + team.size();
}

}  // namespace

Latency measure_latency(Bench& b) {
  alignas(kLine) char buffer[2 * kLine] = {};
  const Shape eight = make_shape(8, b.team.size(), 0);
  const auto chain = [&](int which, int contender) {
    const Op& op = *find_op(kChains[which]);
    return [&b, &op, &eight, &buffer, contender](int steps) { call_chain(b, op, contender, eight, buffer, steps); };
  };
  std::vector<double> flag_ns, call_ns[kChainCount][kPlain];
  int steps[kChainCount][kPlain];
  for (int i = 0; i < kChainCount; ++i) {
    for (int c = 0; c < kPlain; ++c) steps[i][c] = steps_for(b.team, chain(i, c));
  }
  for (int round = 0; round < kRounds; ++round) {
    flag_ns.push_back(b.team.flag_ns());
    for (int i = 0; i < kChainCount; ++i) {
      for (int c = 0; c < kPlain; ++c) call_ns[i][c].push_back(b.team.per_step_ns(steps[i][c], chain(i, c)));
    }
  }
  Latency result;
  result.flag_ns = median(flag_ns);
  for (int i = 0; i < kChainCount; ++i) {
    for (int c = 0; c < kPlain; ++c) result.call_ns[i][c] = median(call_ns[i][c]);
  }
  return result;
}

}  // namespace bench
