// SPDX-License-Identifier: BSD-3-Clause
// Whether the members of a team are in the same call: what STRETTO_CHECK adds to the protocol.
//
// Every call leaves a note in its process's journal, and its number in the team's progress line
// (one writer, seldom read). There are two ways of comparing:
//
//   check_peers   the default. Only a rank that has waited long (Tuning::look_first_ns) reads where
//                 its peers stand. Costs a call nothing but its own note.
//   match_calls   calls are checked before they begin. Every member describes what it is about to
//                 do and reads all descriptions. All come to the same verdict before any data move.
//                 Costs a barrier.
//
// The states of a call, and what moves it from one to the other:
//
//   begun --- match_calls: all descriptions agree ------> running   (at once without matching)
//   begun --- match_calls: two descriptions differ -----> failed    Status::mismatch, on all ranks
//   running - all messages have been moved -------------> ended
//   running - the wait is long: check_peers ------------> waiting
//   waiting - something moved --------------------------> running
//   waiting - a peer's note of this call differs -------> failed    Status::mismatch
//   waiting - data of an earlier call lie unread -------> failed    Status::mismatch
//   waiting - a peer has given the call up -------------> failed    what the peer says of it
//   waiting - a peer's process has ended ---------------> failed    Status::peer_gone
//   failed -- give_up: peers in the call learn of it ---> ended
//
// There is no false alarm. Members number their calls alike. So two notes with one communicator
// instance and one call number describe the same call: a difference is a proof.
//
// A peer is gone if its process has ended or has finalized. A peer that is gone is missing only if
// it has not begun this call, or not ended it. That is read again after the peer was found gone, so
// nothing that it did meanwhile is overlooked. A peer that has gone on, leaving no difference, is
// not to blame.
#pragma once
#include <cstdint>

#include "base/status.hpp"
#include "shm/call.hpp"
#include "shm/journal.hpp"

namespace stretto::shm {

// In what two ranks' accounts of one call differ, the most telling first.
enum class Difference : std::uint8_t { none, collective, root, op, element, length };
// Elements of one byte go with all others. Unknown elements are not compared.
[[nodiscard]] bool elements_differ(ElementCode a, ElementCode b);
[[nodiscard]] Difference difference(const NoteCopy& mine, const NoteCopy& theirs, CheckLevel level);

// The next record of a queue, read by a rank that does not wait for it. The writer may have left,
// and its block may serve another communicator. The generation, loaded second, tells. While the
// block is still ours, an unread record keeps it. The record may lie where the queue has moved.
[[nodiscard]] const Record* head_of(Team& team, InQueue& queue);

// The call and rank of unread data from before call `number`, although nothing failed here. 0:
// there are none.
[[nodiscard]] std::uint64_t left_over(Team& whole, std::uint64_t number, int* rank);

// The checks of one call.
class CallCheck {
 public:
  explicit CallCheck(Call& call);

  // False: the call has failed on every member.
  bool match_calls();
  // False: the call has failed, because it cannot end.
  bool check_peers(std::uint64_t waited_ns);
  // True: the call has failed, because some rank contradicts this one. Looks at `peer` first.
  bool finds_mismatch(int peer);
  // Reports the member of the call's team that published this record, which is of this call or a
  // later one.
  void report_record(int member, const Record& record);
  // Fails a call that this peer has left without doing what this rank needs of it.
  void fail_because_of(int peer);
  // Whether that member's process has ended, or has finalized, and the launcher has had time to end
  // the job.
  bool has_ended(int peer, std::uint64_t waited_ns);
  // This rank leaves a call that has failed here. Peers in the call learn of that, as do those that
  // come later.
  void give_up();

 private:
  // The result of a look at one peer.
  enum class Finding : std::uint8_t { nothing, failed, proof };
  struct Trouble {
    bool proven = false;        // the call cannot end, and has failed for that reason
    Status peers = Status::ok;  // what the failures of peers amount to
  };

  [[nodiscard]] NoteCopy own_account() const;
  [[nodiscard]] Status failure_of(int member, Status known) const;
  bool find_theirs(const Peer& peer, const CallPlace& place, NoteCopy* theirs) const;
  Finding compare(int peer, const CallPlace& place, std::uint64_t waited_ns);
  Finding examine(int peer, std::uint64_t waited_ns);
  Trouble look_for_trouble(std::uint64_t waited_ns);
  void clear_away();
  [[nodiscard]] bool is_here(int peer) const;
  void tell_refusals() const;
  [[nodiscard]] bool all_have_described() const;
  [[nodiscard]] NoteCopy described_by(int rank) const;
  bool same_verdict();

  Call& call_;
  Team& team_;
};

}  // namespace stretto::shm
