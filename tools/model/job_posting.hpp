// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a replay send and receive: in calls, by requests, and between neighbours.
//
// Other worlds, of spawned or connected processes, have recordings of their own. What is sent to
// them, or comes from them, takes as long as the call that waited for it.
#pragma once
#include <cstdint>
#include <vector>

#include "job_comms.hpp"
#include "job_messages.hpp"
#include "job_ranks.hpp"

namespace stretto::modelling {

class Posting {
 public:
  Posting(std::vector<Rank>& ranks, Operations& operations, Messages& messages, Communicators& comms, Waits& waits,
          Replayed& result)
      : ranks_(ranks), operations_(operations), messages_(messages), comms_(comms), waits_(waits), result_(result) {}

  // These add to what the rank needs until its call ends.
  void message(std::uint32_t r, const Action& action);
  void wait(std::uint32_t r, const Action& action);
  // Begins what a request is about.
  void post(std::uint32_t r, const Action& action, Slot& slot);
  void meet_neighbors(std::uint32_t r, const Action& action, std::vector<std::uint32_t>& operations);

  // Both return an operation. The peer of a `half` is relative to the rank in the communicator.
  std::uint32_t send(std::uint32_t r, std::int64_t comm, const Half& half, bool synchronous, double now);
  std::uint32_t receive(std::uint32_t r, std::int64_t comm, const Half& half, double posted);
  // The same of data that another rank has, and does not send itself.
  std::uint32_t fetch(std::uint32_t r, std::int64_t comm, const Half& half);
  // One that ends when the rank's call has lasted as long as it did.
  std::uint32_t as_recorded(std::uint32_t r) { return operations_.make(ranks_[r].now + ranks_[r].call.duration); }
  Slot& slot_of(std::uint32_t r, std::int64_t slot);
  CommState& comm_of(std::uint32_t r, std::int64_t id) { return comms_.of(r, *ranks_[r].recording, id); }

 private:
  // Whether the other end is in another world.
  [[nodiscard]] bool is_beyond(std::uint32_t r, const Action& action, const Half& half) const {
    return action.away && half.there && world_peer(*ranks_[r].recording, action.comm, half.peer) < 0;
  }

  std::vector<Rank>& ranks_;
  Operations& operations_;
  Messages& messages_;
  Communicators& comms_;
  Waits& waits_;
  Replayed& result_;
};

}  // namespace stretto::modelling
