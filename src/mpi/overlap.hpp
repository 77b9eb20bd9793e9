// SPDX-License-Identifier: BSD-3-Clause
// Collectives that may return before their data are there (STRETTO_OVERLAP): a third way beside
// shared memory and schedules, on communicators that span nodes.
//
// The members agree in their first Alltoall or Alltoallv whether calls go this way: if all have
// connections, at least one can guard memory, and the connections are no slower than the MPI. From
// then on, which way a call goes follows from what all ranks know: the collective, and its length
// where all know it. Whether a rank returns early is its own decision.
//
// A process has one driver (overlap/driver.hpp). It opens with the first communicator that asks.
#pragma once
#include <atomic>

#include "mpi/communicator.hpp"
#include "mpi/schedules.hpp"

namespace stretto::mpi {

// A communicator's part.
class Overlap {
 public:
  Overlap() = default;
  ~Overlap();
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  // What all is for: `job_ranks` are the members' ranks in the job, and must stay.
  void start(State& state, const int* job_ranks, const transport::Transport& next, const shm::WaitPolicy& policy);
  // The collectives that may go this way, as a bit set; 0: start() was not called.
  [[nodiscard]] std::uint32_t wanted() const;
  // Whether this call goes this way. Collective over the communicator. `bytes` is the least that
  // every rank receives; 0 where ranks do not know it of each other.
  bool takes(Collective as, std::uint64_t bytes);
  // `may_defer`: the call may return early as far as the mpi layer knows.
  engine::Outcome alltoall(const Blocks& send, const Blocks& receive, bool in_place, bool may_defer);

 private:
  enum class Stage : std::uint8_t { off, unasked, open, declined };
  bool open();

  Stage stage_ = Stage::off;
  State* state_ = nullptr;
  const int* job_ranks_ = nullptr;
  transport::Transport next_;
  shm::WaitPolicy policy_;
  std::uint64_t id_ = 0, calls_ = 0;
};

Overlap& schedules_overlap(Schedules& schedules);

// Some call of this process has returned early, and its data may not be there yet.
extern constinit std::atomic<bool> g_deferring;
// Wait until all data of this memory are there; the second: all data of calls that returned early.
// They drive the host meanwhile. The memory may be any, also none of a call.
void overlap_complete(const void* memory, std::uint64_t bytes);
void overlap_complete_all();

// Completes all calls and ends the thread. The host still runs.
void overlap_stop();

}  // namespace stretto::mpi
