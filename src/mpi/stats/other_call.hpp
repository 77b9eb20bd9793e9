// SPDX-License-Identifier: BSD-3-Clause
// How long the program is in calls that are no collectives, with STRETTO_STATS. As with a watchdog
// (noted.hpp), their wrappers take the slow path then, and cost nothing otherwise.
#pragma once
#include "mpi/host/entry.hpp"

namespace stretto::mpi {

// One call of the program, in the block of its wrapper. What the host or Stretto calls meanwhile is
// part of it.
class OtherCall {
 public:
  OtherCall(Entry entry, const void* caller);
  ~OtherCall();
  OtherCall(const OtherCall&) = delete;
  OtherCall& operator=(const OtherCall&) = delete;

 private:
  observe::OtherKind kind_;
  std::uint64_t began_ns_ = 0;  // 0: not timed
};

}  // namespace stretto::mpi
