// SPDX-License-Identifier: BSD-3-Clause
// How numbers of a job change with the number of its ranks, from what they are at two or three.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace stretto::modelling {

struct Measured {
  int ranks;
  double value;
};

// A law a + b * shape(P).
class Law {
 public:
  // The shape that fits best: one term if it is right within 1%, else two that are not negative.
  static Law fitted(const std::vector<Measured>& measured);

  [[nodiscard]] double at(int ranks) const;
  // "1/P", "constant + 1/P"
  [[nodiscard]] std::string name() const;
  // By how much it misses what was measured, at most, as a part of it.
  [[nodiscard]] double error() const { return error_; }

 private:
  double constant_ = 0, factor_ = 0;
  std::size_t shape_ = 0;
  double error_ = 0;
};

// Whole numbers that follow exactly from the number of ranks: turns of loops, lengths of lists.
class Count {
 public:
  // False: none of the known ones does.
  bool find(const std::vector<std::pair<int, std::int64_t>>& counts);  // by ranks
  [[nodiscard]] std::int64_t at(int ranks) const;
  [[nodiscard]] std::string name() const;

 private:
  std::size_t form_ = 0;
  std::int64_t beside_ = 0;  // added to the form
};

}  // namespace stretto::modelling
