// SPDX-License-Identifier: BSD-3-Clause
#include "shm/lane.hpp"

#include "shm/segment.hpp"

namespace stretto::shm {

namespace {

// Names a thread for as long as the process lives; 0 is nobody.
std::uint64_t this_thread() {
  static constinit std::atomic<std::uint64_t> last{0};
  // initial-exec: a preloaded library's share of the static block is granted, and no __tls_get_addr is needed.
  __attribute__((tls_model("initial-exec"))) static thread_local constinit std::uint64_t id = 0;
  if (id == 0) id = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return id;
}

}  // namespace

void Lane::open(unsigned index, char* base, std::uint64_t offset, unsigned slots, std::size_t slot_bytes) {
  index_ = index;
  base_ = base;
  offset_ = offset;
  slots_ = slots;
  slot_bytes_ = slot_bytes;
}

// What this thread knows of its own team's readers saves a look at their ack lines, which are in their caches. Another
// team may be in use by another thread: there only shared lines may be read.
bool Lane::expire(Lease& lease, const Team& user) {
  Team* team = lease.team;
  if (!team) return true;
  if (team == &user) {
    if (lease.queue->acked <= lease.position && team->refresh(*lease.queue) <= lease.position) return false;
  } else if (!team->is_drained.load(std::memory_order_acquire) && team->acked(lease.queue->reader) <= lease.position) {
    return false;
  }
  lease.team = nullptr;
  auto& count = team->leases[index_];
  // Last touch: after this store the process may destroy a freed team.
  count.store(count.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  return true;
}

bool Lane::take(const Team& user, Slot* slot) {
  for (unsigned i = 0; i < slots_; ++i) {
    const unsigned index = next_ + i < slots_ ? next_ + i : next_ + i - slots_;
    if (!expire(leases_[index], user)) continue;
    *slot = {base_ + index * slot_bytes_, offset_ + index * slot_bytes_, index};
    return true;
  }
  return false;
}

void Lane::lease(const Slot& slot, Team* team, OutQueue& queue) {
  leases_[slot.index] = {team, &queue, queue.written};
  auto& count = team->leases[index_];
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  next_ = slot.index + 1 == slots_ ? 0 : slot.index + 1;
}

bool Lane::idle(const Team& user) {
  for (unsigned i = 0; i < slots_; ++i) {
    if (!expire(leases_[i], user)) return false;
  }
  return true;
}

void Lanes::init(Segment* segment, unsigned slots, std::size_t slot_bytes) {
  segment_ = segment;
  slots_ = slots < Lane::kMaxSlots ? slots : Lane::kMaxSlots;
  slot_bytes_ = slot_bytes;
}

bool Lanes::open(unsigned index) {
  const std::size_t bytes = slots_ * slot_bytes_;
  const std::uint64_t offset = segment_->lanes_offset() + index * bytes;
  if (segment_->reserve_lane(offset, bytes) != Status::ok) return false;
  lanes_[index].open(index, segment_->base() + offset, offset, slots_, slot_bytes_);
  return true;
}

bool Lanes::open_first() { return lanes_[0].is_open() || open(0); }

bool Lanes::mark_busy(Lane& lane) const {
  if (concurrent_) return !lane.busy.exchange(true, std::memory_order_acquire);  // pairs with release()
  if (lane.busy.load(std::memory_order_relaxed)) return false;
  lane.busy.store(true, std::memory_order_relaxed);
  return true;
}

bool Lanes::claim(Lane& lane, std::uint64_t thread, const Team& user) {
  if (!mark_busy(lane)) return false;
  const std::uint64_t last = lane.last_user.load(std::memory_order_relaxed);
  const bool usable = lane.is_open() ? last == thread || lane.idle(user) : open(static_cast<unsigned>(&lane - lanes_));
  if (!usable) {
    release(&lane);
    return false;
  }
  lane.last_user.store(thread, std::memory_order_relaxed);
  return true;
}

Lane* Lanes::acquire(const Team& user) {
  const std::uint64_t thread = this_thread();
  for (Lane& lane : lanes_) {
    if (lane.last_user.load(std::memory_order_relaxed) == thread && claim(lane, thread, user)) return &lane;
  }
  for (Lane& lane : lanes_) {
    if (claim(lane, thread, user)) return &lane;
  }
  return nullptr;
}

}  // namespace stretto::shm
