// SPDX-License-Identifier: BSD-3-Clause
// A common clock for the ranks of a communicator, so that they can begin something at one time and
// compare their ends. A barrier would not do. Its ranks leave one after the other, as far apart as
// the short messages that are to be timed.
//
// Every rank finds how far its clock is ahead of rank 0's, from the quickest of a few round trips.
// If the result is too small for such a round trip to tell, the clocks count as one, as they are on
// one machine.
#pragma once
#include <mpi.h>
#include <sched.h>

#include <cmath>
#include <ctime>

namespace stretto::benching {

class Clock {
 public:
  explicit Clock(MPI_Comm comm, bool crowded) : comm_(comm), crowded_(crowded) {
    MPI_Comm_rank(comm, &me_);
    MPI_Comm_size(comm, &size_);
    for (int peer = 1; peer < size_; ++peer) {
      if (me_ == 0) answer(peer);
      if (me_ == peer) ask();
    }
  }

  // Rank 0's time, in ns.
  [[nodiscard]] double now() const { return local() - ahead_; }

  // All ranks return at one time, which is the result. Negative: this rank has come late.
  // `slack_ns`: from rank 0's proposal to that time.
  double begin_together(double slack_ns) const {
    MPI_Barrier(comm_);
    double begin = now() + slack_ns;
    MPI_Bcast(&begin, 1, MPI_DOUBLE, 0, comm_);
    if (now() >= begin) return -1;
    while (now() < begin) {
      if (crowded_) sched_yield();
    }
    return begin;
  }

 private:
  static constexpr int kTrials = 40;

  static double local() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
  }
  void answer(int peer) const {
    for (int i = 0; i < kTrials; ++i) {
      MPI_Recv(nullptr, 0, MPI_BYTE, peer, 0, comm_, MPI_STATUS_IGNORE);
      const double here = local();
      MPI_Send(&here, 1, MPI_DOUBLE, peer, 0, comm_);
    }
  }
  void ask() {
    double quickest = INFINITY;
    for (int i = 0; i < kTrials; ++i) {
      double there = 0;
      const double begin = local();
      MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, comm_);
      MPI_Recv(&there, 1, MPI_DOUBLE, 0, 0, comm_, MPI_STATUS_IGNORE);
      const double took = local() - begin;
      if (took >= quickest) continue;
      quickest = took;
      ahead_ = begin + took / 2 - there;
    }
    if (std::abs(ahead_) <= quickest) ahead_ = 0;
  }

  MPI_Comm comm_;
  bool crowded_;
  int me_ = 0, size_ = 1;
  double ahead_ = 0;
};

}  // namespace stretto::benching
