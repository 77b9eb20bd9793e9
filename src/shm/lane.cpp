// SPDX-License-Identifier: BSD-3-Clause
#include "shm/lane.hpp"

#include <span>

#include "shm/segment.hpp"

namespace stretto::shm {

namespace {

// Names a thread for as long as the process lives. No thread is 0.
std::uint64_t this_thread() {
  static constinit std::atomic<std::uint64_t> last{0};
  // initial-exec: a preloaded library gets its share of the static block, and no __tls_get_addr is
  // needed.
  __attribute__((tls_model("initial-exec"))) static thread_local constinit std::uint64_t id = 0;
  if (id == 0) id = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return id;
}

}  // namespace

void Lane::open(unsigned index, char* base, std::uint64_t offset, std::size_t bytes, std::size_t gap) {
  index_ = index;
  base_ = base;
  offset_ = offset;
  bytes_ = bytes;
  gap_ = gap;
}

static_assert(Segment::kLanesOffset % kLineBytes == 0,
              "slots begin with a line, and none shares its last one: see copy_past()");

// What this thread knows of its own team's readers saves a look at their ack lines, which are in
// their caches (`ask`). Another thread may use another team: of that one this thread may read
// shared lines only.
bool Lane::is_over(const Lease& lease, const Team& user, bool ask) const {
  Team* const team = lease.team;
  if (team == &user) {
    if (lease.queue->acked > lease.position || (ask && team->queues().refresh(*lease.queue) > lease.position))
      return true;
  } else if (team->is_drained.load(std::memory_order_acquire)) {
    return true;
  }
  return ask && team->is_past(lease.queue->reader, lease.position, lease.call);
}

// Ends the oldest lease if its readers are done.
bool Lane::expire(const Team& user, bool ask) {
  if (first_ == last_ || !is_over(oldest(), user, ask)) return false;
  auto& count = oldest().team->leases[index_];
  tail_ = oldest().end;
  ++first_;
  // The last touch: after this store the process may destroy a freed team.
  count.store(count.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  return true;
}

bool Lane::take(const Team& user, std::size_t bytes, bool apart, Slot* slot) {
  while (expire(user, false)) {
  }
  constexpr std::uint64_t kAlign = kLineBytes, kLeastSlots = 4;
  std::uint64_t length = (bytes + kAlign - 1) / kAlign * kAlign;
  if (apart && kLeastSlots * (length + gap_) <= bytes_) length += gap_;
  for (bool asked = false;; asked = true) {
    if (first_ == last_ && next_ + length > bytes_)
      // Nothing is on lease: what is skipped need not count.
      next_ = head_ = tail_ = 0;
    const bool fits = next_ + length <= bytes_;  // no slot wraps around
    const std::uint64_t place = fits ? next_ : 0;
    const std::uint64_t end = head_ + (fits ? 0 : bytes_ - next_) + length;
    if (end - tail_ <= bytes_ && last_ - first_ <= kMaxLeases - kMostSharers) {
      *slot = {base_ + place, offset_ + place, place + length, end, asked};
      return true;
    }
    if (!expire(user, true)) return false;
  }
}

void Lane::add(const Lease& lease) {
  leases_[last_++ % kMaxLeases] = lease;
  auto& count = lease.team->leases[index_];
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Lane::lease(const Slot& slot, Team* team, OutQueue& queue, std::uint64_t call) {
  add({team, &queue, queue.written, call, slot.end});
  head_ = slot.end;
  next_ = slot.next;
}

// Such a lease gives back nothing: the slot's last one does.
void Lane::share(Team* team, OutQueue& queue, std::uint64_t call) { add({team, &queue, queue.written, call, head_}); }

bool Lane::idle(const Team& user) {
  while (expire(user, true)) {
  }
  return first_ == last_;
}

TeamMemory Lanes::team_memory() { return {segment_->base(), &states_, this}; }

void Lanes::init(Segment* segment, unsigned slots, std::size_t slot_bytes, std::size_t gap, unsigned count) {
  count_ = count;
  segment_ = segment;
  lengths_ = {slots, slot_bytes};
  gap_ = gap;
}

bool Lanes::open(Lane& lane, unsigned index, std::uint64_t offset, std::size_t bytes) {
  if (segment_->reserve_lane(offset, bytes) != Status::ok) return false;
  lane.open(index, segment_->base() + offset, offset, bytes, gap_);
  return true;
}

bool Lanes::open_first() { return lanes_[0].is_open() || open(lanes_[0], 0, Segment::kLanesOffset, lengths_.most); }

void Lanes::reserve_apart() {
  if (wants_apart_ && apart_offset_ == 0) apart_offset_ = segment_->lanes_allocate(Team::kLanesApart * lengths_.most);
}

bool Lanes::mark_busy(Lane& lane) const {
  if (concurrent_.load(std::memory_order_relaxed))
    return !lane.busy.exchange(true, std::memory_order_acquire);  // pairs with release()
  if (lane.busy.load(std::memory_order_relaxed)) return false;
  lane.busy.store(true, std::memory_order_relaxed);
  return true;
}

bool Lanes::claim(Lane& lane, std::uint64_t thread, const Team& user) {
  if (&lane == lanes_ && left_alone_.load(std::memory_order_relaxed)) return false;
  if (!mark_busy(lane)) return false;
  const std::uint64_t last = lane.last_user.load(std::memory_order_relaxed);
  const auto index = static_cast<unsigned>(&lane - lanes_);
  const bool usable = lane.is_open()
                          ? last == thread || lane.idle(user)
                          : open(lane, index, Segment::kLanesOffset + lengths_.offset(index), lengths_.of(index));
  if (!usable) {
    release(&lane);
    return false;
  }
  lane.last_user.store(thread, std::memory_order_relaxed);
  return true;
}

Lane* Lanes::search(const Team& user) {
  const std::uint64_t thread = this_thread();
  const std::span<Lane> lanes(lanes_, count_);
  for (Lane& lane : lanes) {
    if (lane.last_user.load(std::memory_order_relaxed) == thread && claim(lane, thread, user)) return &lane;
  }
  for (Lane& lane : lanes) {
    if (claim(lane, thread, user)) return &lane;
  }
  refused_.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

bool Lanes::open_apart(unsigned which) {
  if (apart_[which].is_open()) return true;
  return apart_offset_ != 0 &&
         open(apart_[which], kLanes + which, apart_offset_ + which * lengths_.most, lengths_.most);
}

Lane* Lanes::apart() {
  if (open_apart(0)) return apart_;
  refused_.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

Lane* Lanes::acquire_apart_ahead(const Team& user) {
  for (unsigned i = 1; i < Team::kLanesApart; ++i) {
    Lane& lane = apart_[i];
    if (lane.busy.load(std::memory_order_relaxed) || !open_apart(i)) continue;
    if (lane.last_user.load(std::memory_order_relaxed) != user.generation() && !lane.idle(user)) continue;
    lane.last_user.store(user.generation(), std::memory_order_relaxed);
    lane.busy.store(true, std::memory_order_relaxed);
    return &lane;
  }
  return nullptr;
}

}  // namespace stretto::shm
