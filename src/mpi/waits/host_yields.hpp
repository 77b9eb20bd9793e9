// SPDX-License-Identifier: BSD-3-Clause
// Whether the host gives the processor away while it waits in one function of MPI.
//
// Some hosts do, in some functions: MPICH 5 in MPI_Recv, but not in MPI_Probe. There the host's own
// call costs less than tests of Stretto's. So with more ranks than processors STRETTO_KIND=auto
// first lets the host wait, and looks how much processor time the thread uses until it leaves the
// processor. A host that spins keeps it for time slices, which are milliseconds. While nobody else
// wants the processor, nothing is found out, and nothing is lost.
//
// A program may make many short calls in a function before the long ones: a server does, if one of
// its clients shares its processor. So the first calls after each tick of the system are watched.
// During a call that takes a time slice there is a tick, so the next call is watched.
//
// Threads: several may wait in a function at once.
#pragma once
#include <atomic>
#include <cstdint>

#include "sys/sys.hpp"

namespace stretto::mpi {

class HostYields {
 public:
  [[nodiscard]] bool are_known() const { return verdict_.load(std::memory_order_relaxed) != Verdict::unknown; }
  // False as long as it is not known.
  [[nodiscard]] bool hold_processor() const { return verdict_.load(std::memory_order_relaxed) == Verdict::hold; }

  // The time of one call of the host's function.
  class Watched {
   public:
    explicit Watched(HostYields& yields);
    ~Watched();
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

   private:
    HostYields* yields_;  // null: this call is not watched
    std::uint64_t begin_ns_ = 0;
    sys::ThreadUse begin_;
  };

  // Counts a call that took `wall_ns`, of which the thread used a processor for `used_ns`.
  void add(std::uint64_t wall_ns, std::uint64_t used_ns, std::uint64_t switches);

 private:
  enum class Verdict : std::uint8_t { unknown, yield, hold };

  bool watch_next();

  std::atomic<Verdict> verdict_{Verdict::unknown};
  std::atomic<std::uint32_t> calls_{0}, watched_until_{0};
  std::atomic<std::uint64_t> tick_ns_{0};  // the latest that a call has seen
  // Sums over the calls that were watched and in which the thread left the processor, and in how
  // many of them it had kept it.
  std::atomic<std::uint64_t> used_ns_{0}, lost_ns_{0}, switches_{0};
  std::atomic<std::uint32_t> held_{0};
};

}  // namespace stretto::mpi
