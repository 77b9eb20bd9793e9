// SPDX-License-Identifier: BSD-3-Clause
// Payload slots. A lane is a ring of bytes in this process's segment. One thread uses a lane at a
// time, for the length of a call. A slot is a piece of the ring, as long as its fragment. It is
// leased to the queue whose record points at it, until the readers of that record have acked it.
//
// Slots are given back in the order in which they were taken. A lane goes round its whole ring even
// where it could begin again at once. Lines that have just been read lie in the reader's own cache
// (Tuning::lane_least). The reader's processor also fetches lines behind the last slot of a
// message. So the next message begins a gap further on.
//
// Why lanes. A call may return while its data still wait in slots for slow readers. The same thread
// may wait for those readers in its next call. A collective may synchronise, so a correct program
// cannot depend on the readers' absence.
//
// Another thread's call must not wait for them. "R: Bcast Y, then X" against "thread 1: Bcast X,
// thread 2: Bcast Y" is correct. It would deadlock if Y's data waited for X's slots. So a call
// takes the lane that its thread used last, or one with no slot on lease. If there is none, the
// call goes without a lane, and its data travel in records. Schedules may take a second lane beside
// it (Call::lane_ahead).
//
// Calls that the program does not wait for have lanes of their own, the last ones. Many of them may
// be under way.
//
// Messages to readers that have said that they have a place for them all go through one lane. Such
// a reader reads, whatever else it does: its process drives all these calls. So its slots are given
// back, and a call may wait for another call's.
//
// A message to a reader that is not there yet takes slots of a lane ahead, which one call has at a
// time. That reader may wait for what this rank does after its next blocking call. So no call waits
// for these slots. A call without a lane ahead waits for its reader's word (transport/shm.hpp).
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "shm/message_states.hpp"
#include "shm/team.hpp"

namespace stretto::shm {

class Segment;

struct Lease {
  Team* team = nullptr;
  OutQueue* queue = nullptr;  // of that team
  // the lease is over once the readers have acked more records than this
  std::uint64_t position = 0;
  std::uint64_t call = 0;  // or once they have left this call
  std::uint64_t end = 0;   // of the slot, in the ring's history
};

struct Slot {
  char* data = nullptr;
  std::uint64_t offset = 0;  // in the segment
  std::uint64_t next = 0;    // where in the ring the next slot may begin
  std::uint64_t end = 0;     // in the ring's history
  bool asked = false;        // readers have been asked for it: some may have left the call
};

class Lane {
 public:
  static constexpr unsigned kMaxLeases = 256;

  void open(unsigned index, char* base, std::uint64_t offset, std::size_t bytes, std::size_t gap);
  [[nodiscard]] bool is_open() const { return base_ != nullptr; }

  // Takes a slot of `bytes` bytes. False: older slots must be read first. `user` is the team of the
  // call that holds this lane. `apart`: with a gap behind it (Tuning::slot_gap), unless the lane is
  // short.
  bool take(const Team& user, std::size_t bytes, bool apart, Slot* slot);
  // The slot now holds what the next record of `queue` points at.
  void lease(const Slot& slot, Team* team, OutQueue& queue, std::uint64_t call);
  // The same for a record of another queue that will point at the slot, too. Call it before lease()
  // for that slot. At most kMostSharers records point at one slot.
  void share(Team* team, OutQueue& queue, std::uint64_t call);
  static constexpr unsigned kMostSharers = 8;
  // Whether no slot is on lease.
  bool idle(const Team& user);

  std::atomic<bool> busy{false};
  std::atomic<std::uint64_t> last_user{0};

 private:
  [[nodiscard]] Lease& oldest() { return leases_[first_ % kMaxLeases]; }
  void add(const Lease& lease);
  [[nodiscard]] bool is_over(const Lease& lease, const Team& user, bool ask) const;
  bool expire(const Team& user, bool ask);

  unsigned index_ = 0;
  char* base_ = nullptr;
  std::uint64_t offset_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t gap_ = 0;
  std::uint64_t next_ = 0;  // the next slot's place in the ring
  // Bytes handed out in the ring's history; what was skipped at its end counts.
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;   // bytes given back
  std::uint64_t first_ = 0;  // leases [first_, last_) are on
  std::uint64_t last_ = 0;
  Lease leases_[kMaxLeases];
};

class Lanes {
 public:
  static constexpr unsigned kLanes = Team::kLanes - Team::kLanesApart;
  // Where calls come one after the other, a call has one lane, and one ahead.
  static constexpr unsigned kSerialLanes = 2;
  // The lanes behind these are short: few programs have so many threads in calls at once.
  static constexpr unsigned kLongLanes = 16;

  explicit Lanes(const MessageStates::Kind& states) : states_(states) {}

  // What the teams of this process use. After init().
  [[nodiscard]] TeamMemory team_memory();
  // From the next reserve_apart() on there are lanes for calls that the program does not wait for.
  void want_apart() { wants_apart_ = true; }
  // Before the agreement of a team that uses such lanes: peers must map them. Without room for them
  // these calls have none.
  void reserve_apart();

  void init(Segment* segment, unsigned slots, std::size_t slot_bytes, std::size_t gap, unsigned count = kLanes);
  // Backs the first lane. That is part of making the first communicator, so want of memory is
  // agreed there.
  bool open_first();
  // Whether threads may call at the same time. If not, a lane is claimed without a locked
  // instruction. That would wait until all earlier stores reach the cache: 50 to 100 ns when a
  // barrier's flag is among them.
  //
  // It may become true while a thread is in a call. That thread may have claimed the first lane
  // unseen, so the lane is then left to it.
  void set_concurrent(bool concurrent) {
    left_alone_.store(concurrent && !concurrent_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    concurrent_.store(concurrent, std::memory_order_relaxed);
    states_.set_concurrent(concurrent);
  }
  // So many lanes are of use, as far as is known.
  [[nodiscard]] unsigned wanted() const { return concurrent_.load(std::memory_order_relaxed) ? kLanes : kSerialLanes; }
  // A lane for a call of this thread. Null: there is none, and the call goes without. Give it back
  // when the call ends.
  Lane* acquire(const Team& user) {
    // Calls that come one after the other may wait for each other's slots: the first lane will do.
    if (concurrent_.load(std::memory_order_relaxed) || !lanes_[0].is_open() ||
        lanes_[0].busy.load(std::memory_order_relaxed))
      return search(user);
    lanes_[0].busy.store(true, std::memory_order_relaxed);
    return lanes_;
  }
  // For calls that the program does not wait for. The caller holds the lock under which this
  // process makes all such calls. The first lane serves all of them, for readers that are there.
  // Null: there is no memory.
  Lane* apart();
  // One for a call alone, for readers that are not. Null: the call waits for them. Give it back.
  Lane* acquire_apart_ahead(const Team& user);
  // How many calls have had to do without a lane.
  [[nodiscard]] std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  static void release(Lane* lane) { lane->busy.store(false, std::memory_order_release); }

  // The address space of `count` lanes of so many slots.
  [[nodiscard]] static std::size_t area_bytes(unsigned slots, std::size_t slot_bytes, unsigned count = kLanes) {
    return Lengths{slots, slot_bytes}.offset(count);
  }

 private:
  static std::size_t slot_stride(std::size_t slot_bytes) {
    return (slot_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  // Bytes of a long lane, and of a short one.
  struct Lengths {
    std::size_t most = 0, least = 0;

    Lengths() = default;
    Lengths(unsigned slots, std::size_t slot_bytes)
        : most(slots * slot_stride(slot_bytes)), least(std::max(slots / 4, 1u) * slot_stride(slot_bytes)) {}
    [[nodiscard]] std::size_t of(unsigned index) const { return index < kLongLanes ? most : least; }
    // Where a lane begins, behind those before it.
    [[nodiscard]] std::size_t offset(unsigned index) const {
      const unsigned long_ones = std::min(index, kLongLanes);
      return long_ones * most + (index - long_ones) * least;
    }
  };
  Lane* search(const Team& user);
  bool open(Lane& lane, unsigned index, std::uint64_t offset, std::size_t bytes);
  bool open_apart(unsigned which);
  bool claim(Lane& lane, std::uint64_t thread, const Team& user);
  [[nodiscard]] bool mark_busy(Lane& lane) const;

  Segment* segment_ = nullptr;
  Lengths lengths_;
  std::size_t gap_ = 0;
  unsigned count_ = 0;
  bool wants_apart_ = false;
  std::uint64_t apart_offset_ = 0;  // in the segment; 0: none
  std::atomic<bool> concurrent_{true};
  std::atomic<bool> left_alone_{false};
  std::atomic<std::uint64_t> refused_{0};
  MessageStates states_;
  Lane lanes_[kLanes];
  Lane apart_[Team::kLanesApart];
};

}  // namespace stretto::shm
