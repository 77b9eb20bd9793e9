// SPDX-License-Identifier: BSD-3-Clause
// What each collective promises, in the verifier's words: which contributions are where before, and which must be where
// afterwards. Written from the MPI standard, not from the algorithms. For the verifier; not in the preload library.
#pragma once
#include <functional>

#include "coll/algorithm.hpp"
#include "sched/verify.hpp"

namespace stretto::coll {

// A collective call of a whole job: `problem` as rank 0 has it, and for the v-forms the lengths of the parts.
struct Job {
  Problem problem;
  std::vector<std::uint64_t> begins;     // of parts; empty: equal parts
  std::vector<std::uint64_t> exchanged;  // alltoallv: units from rank i to rank j at [i * size + j]; empty: equal

  [[nodiscard]] bool is_rooted() const;
  [[nodiscard]] bool is_reduction() const;
};

// As rank `rank` sees it. Valid until the next call.
class View {
 public:
  explicit View(const Job& job) : job_(job) {}
  const Problem& of(int rank);

 private:
  const Job& job_;
  Problem problem_;
  std::vector<std::uint64_t> received_, sent_;
};

using BuildRank = std::function<Schedule(const Problem&)>;
// Builds the schedules of all ranks, executes them and compares. False: the verifier knows why.
bool keeps_promise(sched::Verifier& verifier, const Job& job, const BuildRank& build_rank);

}  // namespace stretto::coll
