// SPDX-License-Identifier: BSD-3-Clause
// The critical path of a replay: the chain of computation, calls and messages that ends last.
// Whatever on it becomes shorter makes the job shorter.
//
// A replay notes for each wait what another rank did to end it. From the rank that ends last the
// path goes back to what it waited for, and so on. A second replay then says what is on it.
#pragma once
#include <cstdint>
#include <vector>

namespace stretto::modelling {

// What a rank did, so that another one's wait ends: when, and how many waits it had behind it.
struct Cause {
  int rank = -1;
  double time = 0;
  std::size_t waits = 0;
};

// A part of a rank's time.
struct Stretch {
  double begin, end;
};
using Path = std::vector<std::vector<Stretch>>;  // by rank, in order

class Waits {
 public:
  explicit Waits(std::size_t ranks) : of_(ranks) {}
  [[nodiscard]] Cause cause(std::size_t rank, double time) const {
    return {static_cast<int>(rank), time, of_[rank].size()};
  }
  // A wait of this rank has ended.
  void ended(std::size_t rank, const Cause& cause) {
    if (cause.rank >= 0 && cause.rank != static_cast<int>(rank)) of_[rank].push_back(cause);
  }
  // The path to what this rank has done by then.
  [[nodiscard]] Path path_to(std::size_t rank, double end) const;

 private:
  std::vector<std::vector<Cause>> of_;
};

// What a place in the program, on one rank, has on the path.
struct Critical {
  int rank = 0;
  std::uint32_t term = 0;
  double compute = 0, in_call = 0;  // seconds; the first is before the call
};

// The calls of one rank beside the path, in order.
class OnPath {
 public:
  OnPath() = default;
  OnPath(int rank, std::vector<Stretch> path, std::uint32_t terms);
  void add(std::uint32_t term, double computes_from, double called, double end);
  // Adds what is on the path.
  void tell(std::vector<Critical>& all) const;

 private:
  double part(double begin, double end);

  std::vector<Stretch> path_;
  std::size_t next_ = 0;
  std::vector<Critical> by_term_;
};

}  // namespace stretto::modelling
