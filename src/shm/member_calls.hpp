// SPDX-License-Identifier: BSD-3-Clause
// The calls of a team: how many this rank has made, where it and the other members stand in them,
// and which ones they have given up or had refused. Members tell that in their progress lines and
// member lines (protocol: lines.hpp).
#pragma once
#include <cstdint>

#include "base/collective.hpp"
#include "base/status.hpp"
#include "shm/members.hpp"

namespace stretto::shm {

// STRETTO_CHECK, the highest of all members.
enum class CheckLevel : std::uint8_t { none, usual, strict, twice };

// How far a member has come with the calls of its team.
struct CallPlace {
  std::uint64_t begun, ended;
  unsigned note;  // of the call that it has begun
  bool freed;     // it has left the team
  bool known;     // false: it has left, and many others since
};

class MemberCalls {
 public:
  explicit MemberCalls(Members& members) : members_(members) {}
  // When the members' lines are in order.
  void open() { progress_line_ = &members_.progress_line(); }
  // All members name the communicator by one generation.
  void settle(std::uint64_t generation) {
    generation_ = generation;
    progress_line_->generation.store_release(generation);
  }
  // As those of the communicator whose tier this is.
  void settle_as(const MemberCalls& whole) {
    generation_ = whole.generation_;
    check_ = whole.check_;
  }

  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  std::uint64_t next() { return ++made_; }
  [[nodiscard]] std::uint64_t made() const { return made_; }
  [[nodiscard]] CheckLevel check() const { return check_; }
  void set_check(CheckLevel level) { check_ = level; }

  // Tells peers where this rank stands.
  void begin(std::uint64_t number, std::uint64_t note) {
    progress_line_->call.store_release(number << 8 | note % kNotes);
  }
  void end(std::uint64_t number, std::uint64_t note) {
    progress_line_->call.store_release(number << 8 | ProgressLine::kEnded | note % kNotes);
  }
  [[nodiscard]] CallPlace place_of(int member) const;

  // A call of this rank was refused before it began. Tells peers that wait for its next one.
  void refuse(Collective collective, Mistake mistake) {
    progress_line_->refused.store_release(Refused{made_ + 1, collective, mistake}.packed());
  }
  // That rank's last refused call.
  [[nodiscard]] Refused refused(int rank) const;

  // This rank returns from call `number` in the midst of it (see GivenUp).
  void give_up(std::uint64_t number, GivenUp::Why why);
  // The same in a tier: the communicator's members hear of it from there.
  void gave_up(std::uint64_t number) { left_ = number; }
  // The last call that this rank gave up. 0: none.
  [[nodiscard]] std::uint64_t given_up() const { return left_; }
  // Why that member gave that call up; ok if it has not.
  [[nodiscard]] Status given_up(int member, std::uint64_t number) const;
  // This rank has freed the communicator.
  void retire() { leave(kEvery, given_up_); }
  [[nodiscard]] bool has_left(int member, std::uint64_t number) const {
    const Peer& p = members_.peer(member);
    const bool left = p.line().left.load_acquire() >= number;  // pairs with leave
    return left || !p.is_here();
  }
  [[nodiscard]] bool has_retired(int member) const { return has_left(member, kEvery); }
  static constexpr std::uint64_t kEvery = ~std::uint64_t{0};

  // A call failed here: from then on queues may hold records that no rank reads.
  [[nodiscard]] bool troubled() const { return troubled_; }
  void set_troubled() { troubled_ = true; }
  // Whether a record left over from an earlier call is a sign of a mistake: its writer had another
  // root, say. Ranks that count otherwise leave records of reductions, and learn of the mistake in
  // other ways. A short Reduce is the exception: no rank may miss its records.
  [[nodiscard]] bool is_odd(int writer, const Record& record) const;

  // The list of this process's communicators, for observers. Used under the process's lock.
  [[nodiscard]] std::uint64_t listed_next() const { return progress_line_->next.load_relaxed(); }
  void list_next(std::uint64_t progress_line) { progress_line_->next.store_release(progress_line); }
  // Call it before our block goes to another communicator: no reader must take that one's progress
  // line for ours.
  void unlist() { progress_line_->generation.store_release(~generation_); }

 private:
  [[nodiscard]] bool may_have_given_up(int member, std::uint64_t number) const;
  void leave(std::uint64_t number, std::uint64_t gave_up);

  Members& members_;
  ProgressLine* progress_line_ = nullptr;  // our own
  std::uint64_t generation_ = 0;
  std::uint64_t made_ = 0;
  std::uint64_t given_up_ = 0;  // see GivenUp
  std::uint64_t left_ = 0;
  CheckLevel check_ = CheckLevel::none;
  bool troubled_ = false;
};

}  // namespace stretto::shm
