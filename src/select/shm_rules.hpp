// SPDX-License-Identifier: BSD-3-Clause
// Which algorithms over shared memory the rules name for one communicator. This is found once for a
// communicator. A call of a collective for which no rule names one then costs the test of a bit.
#pragma once
#include "coll/shm/manifest.hpp"
#include "select/rules.hpp"

namespace stretto::select {

class ShmRules {
 public:
  // What the rules say of a collective's calls of some lengths.
  struct Step {
    Collective collective;
    Range bytes;
    const coll_shm::Algorithm* algorithm;  // null: thresholds decide
    unsigned line;                         // of the rule; 0: there is none
  };

  // For a communicator of so many ranks on so many nodes. False: no memory.
  bool start(const Rules& rules, int ranks, int nodes);
  // The algorithm for a call of so many bytes, as rules count them. Null: thresholds decide.
  [[nodiscard]] const coll_shm::Algorithm* of(Collective collective, std::uint64_t bytes) const {
    if ((named_ >> static_cast<int>(collective) & 1) == 0) [[likely]]
      return nullptr;
    return step(collective, bytes)->algorithm;
  }
  // The steps of a collective have all lengths. Null: no rule names an algorithm of it.
  [[nodiscard]] const Step* step(Collective collective, std::uint64_t bytes) const;
  // The first line that names an algorithm. 0: none does.
  [[nodiscard]] unsigned line() const;

 private:
  std::uint32_t named_ = 0;  // a bit for each Collective
  Array<Step> steps_;
};

}  // namespace stretto::select
