// SPDX-License-Identifier: BSD-3-Clause
// Whether the members of a team are in the same call: what STRETTO_CHECK adds to the protocol.
//
// Every call leaves a note in its process' journal, and its number in the progress line of the team (one writer, seldom
// read). Two ways of comparing:
//
//   check_peers   by default, and only by a rank that has waited long (Tuning::look_first_ns): it reads what its peers
//                 stand at. Costs a call nothing but its own note
//   match_calls   where calls are checked before they begin: every member describes what it is about to do and reads
//                 everybody's description; all come to the same verdict before any data move. Costs a barrier
//
// No false alarm. Members number their calls alike, so two notes of one communicator instance and one call number
// describe the same call: a difference is a proof. A peer that is gone (its process has ended, or it has finalized) is
// missing only if it has not begun this call, or not ended it; that is read again after it was found gone, so nothing
// it did meanwhile is overlooked. A peer that has gone on, leaving no difference, is not to blame.
#pragma once
#include <cstdint>

#include "base/status.hpp"
#include "shm/journal.hpp"

namespace stretto::shm {

class Call;
class Team;
struct InQueue;
struct Record;

// STRETTO_CHECK, the highest of all members.
enum class CheckLevel : std::uint8_t { none, usual, strict, twice };

// In what two ranks' accounts of one call differ, the most telling first.
enum class Difference : std::uint8_t { none, collective, root, op, element, length };
// Elements of one byte go with everything, and what is unknown is not compared.
[[nodiscard]] bool elements_differ(ElementCode a, ElementCode b);
[[nodiscard]] Difference difference(const NoteCopy& mine, const NoteCopy& theirs, CheckLevel level);

// The next record of a queue that nobody waits for. The writer may have left, and its block may serve another
// communicator: the generation, loaded second, tells. Where it is still ours, an unread record keeps the block. It may
// lie where the queue has moved.
[[nodiscard]] const Record* head_of(Team& team, InQueue& queue);

// Where a peer stands in this team.
struct Place {
  std::uint64_t begun, ended;
  unsigned note;  // of the call it has begun
  bool freed;     // it has left the team
  bool known;     // false: long ago
};
[[nodiscard]] Place where(const Team& team, int peer);

// The call and rank of data from before call `number` that lie unread although nothing failed here; 0: there are none.
[[nodiscard]] std::uint64_t left_over(Team& team, std::uint64_t number, int* rank);

// Whether that member's process has ended, or has finalized, and the launcher has had time to end the job.
bool has_ended(Call& call, int peer, std::uint64_t waited_ns);

// False, and the call has failed: it cannot end.
bool check_peers(Call& call, std::uint64_t waited_ns);

// True, and the call has failed: some rank contradicts this one, this peer before others.
bool finds_mismatch(Call& call, int peer);

// Fails a call that this peer has left without what this rank needs of it.
void fail_because_of(Call& call, int peer);

// This rank leaves a call that has failed on it. Peers in it hear of that, as do those that come to it later.
void give_up(Call& call);

// False, and the call has failed on every member.
bool match_calls(Call& call);

}  // namespace stretto::shm
