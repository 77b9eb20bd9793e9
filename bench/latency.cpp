// SPDX-License-Identifier: BSD-3-Clause
#include "latency.hpp"

#include <algorithm>

namespace bench {
namespace {

constexpr int kRounds = 101;      // short ones: a round during which a rank loses its processor is an outlier, not the rule
constexpr int kMostSteps = 1000;
constexpr double kRound_s = 0.002;

// Lines lie in one or another slice of the last-level cache, near or far: one line alone would measure its own luck.
constexpr int kFlags = 64;

// Ranks 0 and 1 hand a number to and fro; a step is one way.
void flag_chain(Team& team, Flag* flags, std::uint64_t& number, int steps) {
  if (team.rank() > 1) return;
  for (int i = 0; i < steps; ++i) {
    Sequence& flag = flags[++number % kFlags].value;
    if (team.rank() == i % 2) {
      flag.store(number, std::memory_order_release);
    } else {
      team.wait_at_least(flag, number);
    }
  }
}

void call_chain(Bench& b, const Op& op, int contender, const Shape& shape, char* buffer, int steps) {
  for (int i = 0; i < steps; ++i) {
    const Call call{&shape, buffer, buffer, i % b.team.size(), b.team.rank()};
    if (contender == kBound) {
      op.bound(b.bound, call);
    } else {
      op.mpi(b.functions[contender], call);
    }
  }
}

template <class Chain>
double per_step_ns(Team& team, int steps, Chain chain) {
  team.barrier();
  const std::uint64_t start = now_ns();
  chain(steps);
  team.barrier();
  return static_cast<double>(now_ns() - start) / steps;
}

template <class Chain>
int steps_for(Team& team, Chain chain) {
  chain(2 * team.size());  // the first calls on a communicator set it up
  const double one_ns = team.agree(per_step_ns(team, 2 * team.size(), chain));
  const int steps = static_cast<int>(std::clamp(kRound_s * 1e9 / std::max(one_ns, 1.0), 4.0, static_cast<double>(kMostSteps)));
  return steps / team.size() * team.size() + team.size();
}

}  // namespace

Latency measure_latency(Bench& b) {
  auto* flags = static_cast<Flag*>(b.team.allocate(kFlags * sizeof(Flag)));
  std::uint64_t number = 0;
  alignas(kLine) char buffer[kLine] = {};
  const Shape eight = make_shape(8, b.team.size(), 0);
  const Op& bcast = *find_op("bcast");
  const Op& barrier = *find_op("barrier");
  const auto flag = [&](int steps) { flag_chain(b.team, flags, number, steps); };
  const auto chain = [&](const Op& op, int contender) {
    return [&b, &op, &eight, &buffer, contender](int steps) { call_chain(b, op, contender, eight, buffer, steps); };
  };
  const int flag_steps = steps_for(b.team, flag);
  int bcast_steps[3], barrier_steps[3];
  for (int c = 0; c < 3; ++c) {
    bcast_steps[c] = steps_for(b.team, chain(bcast, c));
    barrier_steps[c] = steps_for(b.team, chain(barrier, c));
  }
  std::vector<double> flag_ns, bcast_ns[3], barrier_ns[3];
  for (int round = 0; round < kRounds; ++round) {
    flag_ns.push_back(per_step_ns(b.team, flag_steps, flag));
    for (int c = 0; c < 3; ++c) {
      bcast_ns[c].push_back(per_step_ns(b.team, bcast_steps[c], chain(bcast, c)));
      barrier_ns[c].push_back(per_step_ns(b.team, barrier_steps[c], chain(barrier, c)));
    }
  }
  Latency result;
  result.flag_ns = median(flag_ns);
  for (int c = 0; c < 3; ++c) {
    result.bcast_ns[c] = median(bcast_ns[c]);
    result.barrier_ns[c] = median(barrier_ns[c]);
  }
  return result;
}

}  // namespace bench
