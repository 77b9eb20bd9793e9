// SPDX-License-Identifier: BSD-3-Clause
// Payload slots. A lane is an array of slots in this process's segment; one thread uses a lane at a time, for the length
// of a call. A slot is leased to the queue whose record points at it, until the readers of that record have acked it.
//
// Why lanes. A call may return while its data still wait in slots for slow readers. The same thread may well wait for
// those readers in its next call: a collective is allowed to synchronise, so a correct program cannot depend on the
// readers' absence. Another thread's call must not wait for them: "R: Bcast Y, then X" against "thread 1: Bcast X,
// thread 2: Bcast Y" is correct, and would deadlock if Y's data waited for X's slots. So a call takes the lane that its
// thread used last, or one with no slot on lease; if there is none it goes without, and its data travel in records.
#pragma once
#include <atomic>
#include <cstdint>

#include "shm/team.hpp"

namespace stretto::shm {

class Segment;

struct Lease {
  Team* team = nullptr;
  OutQueue* queue = nullptr;   // of that team
  std::uint64_t position = 0;  // free once the readers have acked more than this many records
};

struct Slot {
  char* data = nullptr;
  std::uint64_t offset = 0;
  unsigned index = 0;
};

class Lane {
 public:
  static constexpr unsigned kMaxSlots = 64;

  void open(unsigned index, char* base, std::uint64_t offset, unsigned slots, std::size_t slot_bytes);
  [[nodiscard]] bool is_open() const { return base_ != nullptr; }

  // A slot whose readers are done, or false. `user` is the team of the call that holds this lane.
  bool take(const Team& user, Slot* slot);
  // The slot now holds what the next record of `queue` points at.
  void lease(const Slot& slot, Team* team, OutQueue& queue);
  // No slot is on lease.
  bool idle(const Team& user);

  std::atomic<bool> busy{false};
  std::atomic<std::uint64_t> last_user{0};

 private:
  bool expire(Lease& lease, const Team& user);

  unsigned index_ = 0;
  char* base_ = nullptr;
  std::uint64_t offset_ = 0;
  unsigned slots_ = 0;
  std::size_t slot_bytes_ = 0;
  unsigned next_ = 0;
  Lease leases_[kMaxSlots];
};

class Lanes {
 public:
  static constexpr unsigned kLanes = Team::kLanes;

  void init(Segment* segment, unsigned slots, std::size_t slot_bytes);
  // Backs the first lane; part of making the first communicator, so that want of memory is agreed there.
  bool open_first();
  // Whether threads may call at the same time. If not, a lane is claimed without a locked instruction, which would wait
  // for all earlier stores to reach the cache: 50 to 100 ns when a barrier's flag is among them.
  void set_concurrent(bool concurrent) { concurrent_ = concurrent; }
  // Lane for a call of this thread; null: none to be had, do without. Give it back when the call ends.
  Lane* acquire(const Team& user);
  static void release(Lane* lane) { lane->busy.store(false, std::memory_order_release); }

  // Address space of all lanes of so many slots.
  [[nodiscard]] static std::size_t area_bytes(unsigned slots, std::size_t slot_bytes) {
    return std::size_t{kLanes} * slots * slot_bytes;
  }

 private:
  bool open(unsigned index);
  bool claim(Lane& lane, std::uint64_t thread, const Team& user);
  [[nodiscard]] bool mark_busy(Lane& lane) const;

  Segment* segment_ = nullptr;
  unsigned slots_ = 0;
  std::size_t slot_bytes_ = 0;
  bool concurrent_ = true;
  Lane lanes_[kLanes];
};

}  // namespace stretto::shm
