// SPDX-License-Identifier: BSD-3-Clause
// What a recorded call means for a replay: whom it sends to, what it waits for.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/collective.hpp"
#include "record/reader.hpp"

namespace stretto::modelling {

enum class Act : std::uint8_t {
  local,       // it waits for nobody that a replay knows: it takes the time that it took
  test,        // it looked in vain: no time
  message,     // it sends, receives, or both, and waits for them
  post,        // the same with a request
  init,        // a persistent request
  start,       // persistent requests begin
  wait,        // for requests
  collective,  // all members meet
  post_collective,
  init_collective,
  // Of windows, where a rank names those that it waits for (MPI_Win_post, start, complete, wait).
  transfer,  // MPI_Put and its like
  expose,
  access,
  complete,
  unexpose,
};

// A send or receive.
struct Half {
  bool there = false;
  bool any = false;       // a receive with wildcards: who sends is known when it has ended
  std::int32_t peer = 0;  // in the communicator
  std::int64_t tag = 0;
  std::uint64_t bytes = 0;
};

// A receive with wildcards that has ended.
struct Got {
  std::size_t position = 0;  // in `waited`
  std::int32_t peer = -1;    // relative to the rank in the communicator
  std::int64_t tag = 0;
};

inline Half taken(Half half, const Got& got) {
  half.peer = got.peer;
  half.tag = got.tag;
  return half;
}

struct Action {
  std::uint32_t term = 0;  // of the rank's recording
  Act act = Act::local;
  Collective collective = Collective::count_;  // count_: another call of all members
  bool synchronous = false;                    // MPI_Ssend: it ends when it is received
  bool away = false;                           // its communicator has members in another world
  std::int64_t comm = 0;                       // of a window: the one that it was made of
  std::int64_t made_comm = -1;
  std::int64_t window = -1;
  Half send, receive;       // of a transfer: to and from its target
  std::uint64_t bytes = 0;  // of a collective: of its vector, or of one part in the mean
  std::int64_t root = 0;
  bool commutes = true;
  std::vector<std::int64_t> made;  // slots
  std::vector<std::int64_t> waited;
  std::vector<std::int64_t> ended;  // of `waited`, those that have ended: slots
  std::vector<std::int64_t> named;
  std::vector<Got> got;
  std::vector<std::int32_t> group;  // of expose and access: peers, relative to the rank in MPI_COMM_WORLD
  std::string function;             // without MPI_ and _c
};

// Whether one rank sends to all, or all to one, and who only sends does not wait.
inline bool is_rooted(Collective collective) {
  return collective != Collective::count_ && runs_ahead(collective) && !is_neighborhood(collective);
}
// Whether the rank becomes a member of a communicator in it, or others do.
inline bool makes_comm(const Action& action) {
  if (action.act == Act::collective) return action.collective == Collective::count_;
  return action.act == Act::local && action.made_comm >= 0;
}
// A collective that has schedules, and moves about as much.
Collective scheduled_form(Collective collective);

// All terms of a rank.
std::vector<Action> actions_of(const record::Recording& recording);

}  // namespace stretto::modelling
