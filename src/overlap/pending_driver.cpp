// SPDX-License-Identifier: BSD-3-Clause
// What the driver's thread does for a call.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "overlap/pending.hpp"

namespace stretto::overlap {

using transport::bulk::Handle;
using transport::bulk::Message;
using transport::bulk::Range;

namespace {
// A fault asks for the rest of its block. Another one in the same block asks again only if it is
// so far ahead of what has come.
constexpr std::uint64_t kAheadBytes = 128 << 10;

}  // namespace

// What the driver's thread has used so far.
DriverWork Pending::work_so_far() const {
  const sys::ThreadUse use = sys::thread_use();
  DriverWork work;
  work.faults = guard_.touches();
  work.moves = guard_.moves();
  work.driver_ns = sys::thread_processor_ns();
  work.sleeps = use.switches - use.preemptions;
  work.preemptions = use.preemptions;
  return work;
}

// What this rank has put there itself is there.
void Pending::begin_pages() {
  began_ = work_so_far();
  if (own_.bytes != 0 && !is_gapped_) bring_home(arrival_.arrived(own_.offset, own_.bytes));
  if (arrival_.edges_are_here()) edges_here_.store(true, std::memory_order_release);
}

void Pending::bring_home(const UnitRun& run) {
  if (run.count == 0) return;
  const std::uint64_t begin = run.first * layout_.unit_bytes(), bytes = run.count * layout_.unit_bytes();
  ++work_.publishes;
  if (touches_.oldest() == nullptr) return guard_.publish_soon(cover_, begin, bytes);
  (void)guard_.publish(cover_, begin, bytes);  // what it cannot bring now, release() brings in the end
  const auto is_home = [this](std::uint64_t at) { return guard_.is_home(cover_, at); };  // or it waits for others
  if (touches_.end(is_home, sys::now_ns())) show_touch();
}

// Whether some of it belongs to the unit at this offset of the buffer.
bool Pending::fills_unit(const MessageIn& what, std::uint64_t at) const {
  const Block& range = what.range;
  if (is_gapped_) return what.to_buffer;  // its pieces may lie anywhere
  return what.to_buffer && range.offset < at + layout_.unit_bytes() && at < range.offset + range.bytes;
}

// The oldest wait of a thread for a page.
void Pending::show_touch() {
  touched_ns_.store(touches_.ns(), std::memory_order_relaxed);
  const Touches::Touch* const touch = touches_.oldest();
  if (touch == nullptr) return note_.touched(0, -1);
  const std::uint64_t at = layout_.offset() + touch->at;
  int peer = -1;
  for (const Receive& receive : receives_) {
    const std::uint64_t bytes = receive.what.range.bytes;
    if (fills_unit(receive.what, at) && receive.handle->arrived_bytes.load(std::memory_order_acquire) < bytes)
      peer = receive.what.peer;
  }
  note_.touched(touch->since_ns, peer);
}

// To where the program wants it: the landing, or beside the guarded pages.
void Pending::take_to_buffer(std::uint64_t begin, const char* from, std::uint64_t bytes) {
  const std::uint64_t end = begin + bytes;
  Block inside = is_covered() ? layout_.guarded_part({begin, bytes}) : Block{};
  if (inside.bytes == 0) inside.offset = end;
  const std::uint64_t behind = inside.offset + inside.bytes;
  std::memcpy(memory_ + begin, from, inside.offset - begin);
  if (inside.bytes != 0)
    std::memcpy(guard_.landing(cover_) + (inside.offset - layout_.offset()), from + (inside.offset - begin),
                inside.bytes);
  std::memcpy(memory_ + behind, from + (behind - begin), end - behind);
}

void Pending::has_arrived(const Message& message, std::uint64_t offset, std::uint64_t bytes) {
  Receive& receive = receives_[message.listener.word];
  receive.reached = std::max(receive.reached, offset + bytes);
  note_.came(receive.part, bytes);
  if (receive.own == nullptr) reaches_buffer(receive, offset, bytes);
  if (receive.seen) return;
  receive.seen = true;
  if (receive.what.shows_presence) unseen_.fetch_sub(1, std::memory_order_acq_rel);
}

void Pending::reaches_buffer(const Receive& receive, std::uint64_t offset, std::uint64_t bytes) {
  if (!receive.what.to_buffer) return;
  const std::uint64_t at = receive.what.range.offset + offset;
  if (is_gapped_) {
    if (receive.staged != nullptr) std::memcpy(buffer_ + at, receive.staged + offset, bytes);
    if (is_placing_) place(at, bytes);
    if (is_placing_ && arrival_.edges_are_here()) edges_here_.store(true, std::memory_order_release);
    return;
  }
  if (receive.staged != nullptr) take_to_buffer(at, receive.staged + offset, bytes);
  if (!is_covered()) return;
  bring_home(arrival_.arrived(at, bytes));
  if (arrival_.edges_are_here()) edges_here_.store(true, std::memory_order_release);
}

void Pending::combine(const Receive& receive) const {
  const bool left = receive.what.arriving == sched::Side::left;
  fold_.combine(receive.staged, left ? receive.staged : receive.own, left ? receive.own : receive.staged,
                receive.what.range.bytes / fold_.element_bytes);
}

void Pending::note_failure(Status status, const transport::Lost& lost) {
  Status none = Status::ok;
  if (status_.load() == Status::ok) lost_ = lost;  // first: a thread that sees peer_lost reads it
  const bool first = status_.compare_exchange_strong(none, status);
  if (first && returned_.load() && on_failure_.failed != nullptr)
    on_failure_.failed(on_failure_.context, name_, status, lost);
}

void Pending::has_finished(const Message& message, Status status) {
  if (status != Status::ok) note_failure(status, message.lost);
  if (message.sends) {
    note_.came(static_cast<std::uint32_t>(message.listener.word), message.bytes);
    return one_less();
  }
  Receive& receive = receives_[message.listener.word];
  note_wanted(receive);
  if (receive.own != nullptr && status == Status::ok) {
    if (!fold_.result_to_buffer) reaches_buffer(receive, 0, receive.what.range.bytes);
    combine(receive);
    if (fold_.result_to_buffer) reaches_buffer(receive, 0, receive.what.range.bytes);
  }
  if (receive.what.forward_to >= 0) {
    if (status == Status::ok)
      pass_on(receive);
    else
      one_less();
  }
  one_receive_less();
}

void Pending::pass_on(Receive& receive) {
  const MessageIn& what = receive.what;
  const char* const from = receive.staged != nullptr ? receive.staged : buffer_ + what.range.offset;
  const MessageOut send{what.forward_to, from, what.range.bytes, what.forward_index, what.forward_position};
  const Status status = post_send(send, receive.forwarded_part, &receive.forwarded);
  if (status == Status::ok) return;
  note_failure(status, {});
  one_less();
}

// After the last receive, all that comes has come.
void Pending::one_receive_less() {
  if (--receives_left_ == 0 && is_covered()) {
    end_cover();
    one_less();
  }
  one_less();
}

// The driver's thread may be late with its events. It has then read them by the next try.
void Pending::end_cover() {
  constexpr int kTries = 1000;
  int error = EAGAIN;
  for (int i = 0; i < kTries && error == EAGAIN; ++i) error = guard_.release(cover_);
  if (error != 0) note_failure(Status::not_moved, {});
  posted_.store(false, std::memory_order_relaxed);  // late faults ask for nothing
  home_ns_ = sys::now_ns();
  DriverWork used = work_so_far();
  used -= began_;
  work_ += used;
  touches_.end_all(home_ns_);
  show_touch();
  home_.store(true, std::memory_order_release);
}

void Pending::note_wanted(Receive& receive) {
  if (receive.noted) return;
  receive.noted = true;
  wanted_.push(static_cast<std::uint32_t>(&receive - receives_.data()));
}

void Pending::wanted(std::uint64_t offset) {
  if (!posted_.load(std::memory_order_acquire)) return;
  if (touches_.begin(offset, sys::now_ns())) show_touch();
  const std::uint64_t at = layout_.offset() + offset;
  for (Receive& receive : receives_) {
    if (is_gapped_ || !fills_unit(receive.what, at)) continue;
    const std::uint64_t from = at > receive.what.range.offset ? at - receive.what.range.offset : 0;
    const bool is_coming = receive.hurried && from >= receive.asked && from < receive.reached + kAheadBytes;
    if (is_coming) continue;
    receive.hurried = true;
    note_wanted(receive);
    receive.asked = receive.reached = from;
    ++work_.hurries;
    messages_.hurry(receive.handle, from, receive.what.range.bytes - from);
  }
}

void Pending::one_less() { open_.fetch_sub(1, std::memory_order_acq_rel); }

}  // namespace stretto::overlap
