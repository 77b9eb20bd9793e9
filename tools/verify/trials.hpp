// SPDX-License-Identifier: BSD-3-Clause
// What stretto-verify tries, in units that threads take one after the other.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "coll/postcondition.hpp"

namespace stretto::verifying {

struct Arguments {
  int least_ranks = 1;
  int most_ranks = 64;
  unsigned threads = 1;
  int hierarchies = -1;                 // -1: what suits most_ranks
  std::vector<std::string> algorithms;  // "bcast", "bcast:chain"; empty: all, and hierarchies
};

inline constexpr std::size_t kListedFailures = 100;

// One thread's tools and findings.
struct Findings {
  coll::Builder builder;
  sched::Verifier verifier;
  std::uint64_t checked = 0;
  std::uint64_t steps = 0;
  std::uint64_t failed = 0;
  std::vector<std::pair<std::string, std::string>> failures;

  void judge(const coll::Job& job, const coll::BuildRank& build_rank, const std::function<std::string()>& name) {
    const bool good = coll::keeps_promise(verifier, job, build_rank);
    ++checked;
    steps += verifier.steps();
    if (good) return;
    ++failed;
    if (failures.size() < kListedFailures) failures.emplace_back(name(), verifier.failure());
  }
};

struct Unit {
  double weight;  // about proportional to its time
  std::function<void(Findings&)> run;
};

// Every algorithm, number of ranks, root, segment count and in-place form.
std::vector<Unit> flat_units(const Arguments& arguments);
// Random hierarchies, plans and roots.
std::vector<Unit> hierarchy_units(int count);

std::uint64_t mixed(std::uint64_t x);
// Gives the job parts of different lengths, some empty, if its collective can have them.
void uneven_parts(coll::Job& job, std::uint64_t seed);
std::string describe(const coll::Job& job);

}  // namespace stretto::verifying
