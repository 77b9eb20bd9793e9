// SPDX-License-Identifier: BSD-3-Clause
// Windows of a replay whose ranks name those that they wait for: MPI_Win_start waits for the
// MPI_Win_post of each target, MPI_Win_wait for the MPI_Win_complete of each origin. A complete
// sends each target what its calls have put there, and waits for what they get.
//
// MPI_Win_start may return at once. Then the MPI waits in a later call, where nothing is computed
// before it as a rule.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "job_posting.hpp"

namespace stretto::modelling {

class Windows {
 public:
  Windows(std::vector<Rank>& ranks, Posting& posting) : ranks_(ranks), posting_(posting), of_(ranks.size()) {}

  void transfer(std::uint32_t r, const Action& action);
  void expose(std::uint32_t r, const Action& action);
  void access(std::uint32_t r, const Action& action);
  void complete(std::uint32_t r, const Action& action);
  void unexpose(std::uint32_t r, const Action& action);

 private:
  struct Moved {
    std::uint64_t put = 0, got = 0;  // bytes
  };
  // By targets and origins, which are relative to the rank in MPI_COMM_WORLD.
  struct Epochs {
    std::map<std::int32_t, Moved> targets;
    std::vector<std::uint32_t> completed;  // operations, one for each origin
  };
  // A message of such an epoch.
  enum class Word : std::int64_t { exposed, completed, data };
  Half half(std::uint32_t r, const Action& action, Word word, std::int32_t peer, std::uint64_t bytes = 0);
  Epochs& epochs(std::uint32_t r, const Action& action) { return of_[r][action.window]; }

  std::vector<Rank>& ranks_;
  Posting& posting_;
  std::vector<std::map<std::int64_t, Epochs>> of_;  // by rank and window
};

}  // namespace stretto::modelling
