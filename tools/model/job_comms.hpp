// SPDX-License-Identifier: BSD-3-Clause
// Communicators of a recorded job. Each rank numbers its own; here they get names that all their
// members have in common.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "record/reader.hpp"

namespace stretto::modelling {

// The rank in MPI_COMM_WORLD of a peer, which is relative to the own rank. -1: it is beyond what
// was recorded.
int world_peer(const record::Recording& recording, std::int64_t comm, std::int32_t relative);
// Ranks in MPI_COMM_WORLD of all members, those of the remote group last.
std::vector<int> members_of(const record::Recording& recording, const record::Communicator& comm);

// One rank's view of a communicator.
struct CommState {
  static constexpr std::uint32_t kUnnamed = ~std::uint32_t{0};
  std::uint32_t name = kUnnamed;
  std::uint32_t meetings = 0, children = 0;  // so far
};

class Communicators {
 public:
  explicit Communicators(std::size_t ranks) : of_(ranks) {}
  CommState& of(std::size_t rank, const record::Recording& recording, std::int64_t id);
  // The rank makes one of another. `made` is -1 if it becomes no member.
  void make(std::size_t rank, const record::Recording& recording, std::int64_t parent, std::int64_t made);

 private:
  CommState& place(std::size_t rank, std::int64_t id);
  std::uint32_t named(const std::vector<std::int64_t>& what);

  std::vector<std::vector<CommState>> of_;  // by rank and id
  std::map<std::vector<std::int64_t>, std::uint32_t> names_;
};

}  // namespace stretto::modelling
