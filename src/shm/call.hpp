// SPDX-License-Identifier: BSD-3-Clause
// One collective call of one rank: its number, its lanes of slots, and what has become of it.
#pragma once
#include <cstdint>
#include <utility>

#include "base/collective.hpp"
#include "base/region.hpp"
#include "base/status.hpp"
#include "shm/journal.hpp"
#include "shm/lane.hpp"
#include "shm/team.hpp"

namespace stretto::shm {

class Call {
 public:
  Call(Team& team, Collective collective, const CallDescriptor& descriptor)
      : team_(&team),
        whole_(team),
        tag_(team.calls().next() << 8 | static_cast<std::uint64_t>(collective)),
        mark_(tag_),
        single_copy_from_bytes_(team.single_copy().from_bytes(collective)),
        descriptor_(descriptor) {}
  ~Call() {
    whole_.give_states_back(status_ == Status::ok);
    if (lane_.lane) Lanes::release(lane_.lane);
    if (lane_ahead_.lane) Lanes::release(lane_ahead_.lane);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // The communicator's team, or the tier whose messages this rank moves now.
  [[nodiscard]] Team& team() const { return *team_; }
  void turn_to(Team& team) { team_ = &team; }
  // The program does not wait for this call: it takes its lanes from those apart (lane.hpp).
  void stay_apart() {
    apart_ = true;
    whole_.stay_apart();
  }
  // The communicator's team.
  [[nodiscard]] Team& whole() const { return whole_; }
  [[nodiscard]] std::uint64_t tag() const { return tag_; }
  [[nodiscard]] std::uint64_t number() const { return tag_ >> 8; }
  [[nodiscard]] const CallDescriptor& descriptor() const { return descriptor_; }
  // Whether messages are compared with what their readers expect.
  [[nodiscard]] bool checked() const { return whole_.calls().check() != CheckLevel::none; }
  // What all messages of a reduction say: operation and elements. In other calls it is 0, and each
  // message has its signature's stamp.
  [[nodiscard]] Stamp stamp() const {
    return descriptor_.op == 0 ? 0 : descriptor_.op | Stamp{descriptor_.element} << 8;
  }
  // If a collective's data may go one of several ways, its messages say which. So a rank notices a
  // peer that goes another way.
  void go(unsigned way) { mark_ = tag_ | way << kWayShift; }
  [[nodiscard]] std::uint64_t mark() const { return mark_; }
  // All messages have the length that their readers expect. Any other one fails the call.
  void expect_lengths() { lengths_expected_ = true; }
  [[nodiscard]] bool lengths_expected() const { return lengths_expected_; }
  // Messages of so many bytes and more go by single copy.
  [[nodiscard]] std::uint64_t single_copy_from_bytes() const { return single_copy_from_bytes_; }
  // Of a message of so many bytes.
  [[nodiscard]] std::size_t fragment_bytes(std::uint64_t message_bytes) const {
    return whole_.fragment_bytes(message_bytes, keeps_busy(static_cast<Collective>(tag_ & 0xff)));
  }
  [[nodiscard]] bool runs_ahead() const { return stretto::runs_ahead(static_cast<Collective>(tag_ & 0xff)); }
  void stop_single_copy() {
    single_copy_from_bytes_ = Tuning::kNever;
    whole_.single_copy().stop();
  }
  // Calls that the program does not wait for all have the same one, which is never busy.
  [[nodiscard]] Lane* lane() {
    return hold(lane_, [&] { return apart_ ? whole_.lanes().apart() : whole_.lanes().acquire(whole_); });
  }
  // A second lane, for messages whose readers may not be in this call yet. Their slots may stay for
  // long, and hold up those behind them.
  [[nodiscard]] Lane* lane_ahead() {
    if (lane() == nullptr) return nullptr;
    return hold(lane_ahead_,
                [&] { return apart_ ? whole_.lanes().acquire_apart_ahead(whole_) : whole_.lanes().acquire(whole_); });
  }

  void account(std::uint64_t bytes, Path path) {
    bytes_ += bytes;
    if (path > path_) path_ = path;
  }
  void fail(Status status) {
    if (status_ == Status::ok) status_ = status;
  }
  // A peer turned out to be in another call than this one, or in the same call with other
  // arguments.
  struct Mismatch {
    int rank;  // in the communicator
    std::uint64_t call;
    std::uint64_t bytes;
    std::uint64_t expected_bytes;

    Mismatch() {}  // NOLINT: not read before there is one
    Mismatch(int peer, std::uint64_t its_call, std::uint64_t its_bytes = 0, std::uint64_t our_bytes = 0)
        : rank(peer), call(its_call), bytes(its_bytes), expected_bytes(our_bytes) {}
  };
  void report_mismatch(const Mismatch& mismatch) {
    if (status_ == Status::ok) mismatch_ = mismatch;
    fail(Status::mismatch);
  }
  // Reports the member of team() that sent a message of another length than `expected`.
  void report_length(int member, std::uint64_t bytes, std::uint64_t expected) {
    report_mismatch({team_->rank_of(member), tag(), bytes, expected});
  }
  [[nodiscard]] const Mismatch& mismatch() const { return mismatch_; }
  // A peer is gone.
  void peer_died(int rank) {
    if (status_ == Status::ok) mismatch_.rank = rank;
    fail(Status::peer_gone);
  }
  // For how long this rank has known that some peer's process has ended.
  std::uint64_t missed_for_ns(std::uint64_t now_ns) {
    if (missed_since_ns_ == 0) missed_since_ns_ = now_ns;
    return now_ns - missed_since_ns_;
  }
  // True once.
  bool tells_refusals() { return !std::exchange(refusals_told_, true); }
  // A message whose signature is not the reader's. A mixture: one of the two has single bytes in
  // it.
  struct TypeMismatch {
    int rank = -1;
    bool mixture = false;
  };
  void report_type_mismatch(int member, bool mixture) {
    if (type_mismatch_.rank < 0 || (type_mismatch_.mixture && !mixture))
      type_mismatch_ = {team_->rank_of(member), mixture};
  }
  [[nodiscard]] const TypeMismatch& type_mismatch() const { return type_mismatch_; }
  [[nodiscard]] Status status() const { return status_; }
  [[nodiscard]] Path path() const { return path_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  struct Held {
    Lane* lane = nullptr;
    bool none = false;  // there was none to be had
  };
  template <class Acquire>
  static Lane* hold(Held& held, const Acquire& acquire) {
    if (!held.lane && !held.none) {
      held.lane = acquire();
      held.none = held.lane == nullptr;
    }
    return held.lane;
  }

  Team* team_;
  Team& whole_;
  std::uint64_t tag_;
  std::uint64_t mark_;
  std::uint64_t single_copy_from_bytes_;
  Held lane_;
  Held lane_ahead_;
  Status status_ = Status::ok;
  Path path_ = Path::inlined;
  std::uint64_t bytes_ = 0;
  const CallDescriptor& descriptor_;  // the caller's
  Mismatch mismatch_;                 // set with the status that tells of it
  TypeMismatch type_mismatch_;
  std::uint64_t missed_since_ns_ = 0;
  bool refusals_told_ = false;
  bool apart_ = false;
  bool lengths_expected_ = false;
};

}  // namespace stretto::shm
