// SPDX-License-Identifier: BSD-3-Clause
// The calls of a recorded job as what other tools know: computation, messages between ranks of
// MPI_COMM_WORLD, waits for them, and collectives. Receives with wildcards name what they took.
#pragma once
#include <string>
#include <vector>

#include "job_actions.hpp"
#include "job_file.hpp"

namespace stretto::modelling {

struct WalkedMessage {
  int peer = 0;  // in MPI_COMM_WORLD
  std::int64_t comm = 0;
  std::int64_t tag = 0;
  std::uint64_t bytes = 0;
  std::size_t number = 0;  // of the rank's messages
};

// What is told of one rank, in the order of its calls.
class Visitor {
 public:
  virtual ~Visitor() = default;
  // A call begins and ends, in seconds. What it does is told between the two.
  virtual void enters(const Action& /*action*/, std::uint32_t /*term*/, double /*time*/, double /*end*/) {}
  virtual void leaves(double /*time*/) {}
  virtual void computes(double seconds) = 0;
  virtual void sends(const WalkedMessage& message) = 0;     // begins to
  virtual void receives(const WalkedMessage& message) = 0;  // begins to
  virtual void waits(std::size_t message) = 0;
  // `members`: ranks in MPI_COMM_WORLD; `me`: which of them this rank is.
  virtual void meets(const Action& action, const std::vector<int>& members, int me) = 0;
};

// Walks along the calls of a rank. Calls that no tool knows are computation for as long as they
// took; their number is returned.
// `begin`: when the first gap begins, in seconds.
std::uint64_t walk(const JobFile& job, int rank, Visitor& visitor, double begin = 0);

}  // namespace stretto::modelling
