// SPDX-License-Identifier: BSD-3-Clause
// The members of a job's communicators, as a rule of the number of ranks.
#pragma once
#include <string>
#include <vector>

#include "job_file.hpp"

namespace stretto::modelling {

// Ranks at equal distances: all, a part of so many, a row or a column of a grid.
class CommRule {
 public:
  // Of the communicator with this number on all ranks that have it. False: there is none, and why.
  bool find(const std::vector<const JobFile*>& jobs, std::int64_t id, std::string* why);
  [[nodiscard]] int size(int ranks) const;
  [[nodiscard]] int place(int ranks, int rank) const { return (rank - first(ranks, rank)) / step(ranks); }
  [[nodiscard]] int first(int ranks, int rank) const {
    return rank / (step(ranks) * size(ranks)) * step(ranks) * size(ranks) + rank % step(ranks);
  }
  [[nodiscard]] int step(int ranks) const;

 private:
  std::size_t step_form_ = 0, size_form_ = 0;
  int step_parameter_ = 1, size_parameter_ = 1;
};

}  // namespace stretto::modelling
