// SPDX-License-Identifier: BSD-3-Clause
#include "overlap/pending.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/private_heap.hpp"

namespace stretto::overlap {

using transport::bulk::Elsewhere;
using transport::bulk::Handle;
using transport::bulk::Listener;
using transport::bulk::Message;
using transport::bulk::Range;

namespace {
constexpr std::uint64_t kMostCopyKept = 64 << 20;  // bytes of a copy that stay for the next call
// A fault asks for the rest of its block. Another one in the same block asks again only if it is
// so far ahead of what has come.
constexpr std::uint64_t kAheadBytes = 128 << 10;
}  // namespace

Pending::~Pending() { PrivateHeap::release(copy_, copy_bytes_); }

// ---- the thread that makes the call ----

void Pending::prefer(const Array<std::uint32_t>* order) {
  positions_.clear();
  if (order == nullptr || !positions_.resize(order->size(), 0)) return;
  for (std::size_t i = 0; i < order->size(); ++i) positions_[(*order)[i]] = static_cast<std::uint32_t>(i);
}

bool Pending::prepare(const Exchange& call) {
  comm_ = call.comm;
  call_ = call.call;
  name_ = call.name;
  on_failure_ = call.on_failure;
  buffer_ = call.buffer;
  buffer_bytes_ = call.buffer_bytes;
  own_ = call.own;
  fold_ = call.fold;
  receives_.clear();
  for (std::size_t i = 0; i < call.receive_count; ++i) receives_.push({call.receives[i]});
  wanted_.clear();
  waits_since_ns_ = waited_ns_ = home_ns_ = returned_ns_ = 0;
  returned_ = posted_ = false;
  home_ = call.fills_nothing();
  edges_here_ = call.fills_nothing();
  status_.store(Status::ok);
  return !receives_.failed() && wanted_.reserve(call.receive_count);
}

Refusal Pending::cover(const Exchange& call, std::uint64_t unit) {
  do_not_cover();
  if (!prepare(call)) return Refusal::no_memory;
  if (layout_.make(buffer_, buffer_bytes_, call.blocks, call.block_count, unit) != LayoutError::none ||
      layout_.units() == 0)
    return Refusal::too_small;
  if (!arrival_.begin(layout_) || !copy_what_goes(call)) return Refusal::no_memory;
  return guard_.cover({buffer_ + layout_.offset(), layout_.bytes()}, &cover_);
}

bool Pending::copy_all(const Exchange& call) {
  do_not_cover();
  fills_nothing_ = prepare(call) && copy_what_goes(call);
  return fills_nothing_;
}

// The program may change what it sends as soon as the call has returned. It may also send from the
// buffer that is guarded. What is sent on has to stay until it is sent, and a contribution until it
// is combined.
bool Pending::copy_what_goes(const Exchange& call) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < call.send_count; ++i) bytes += call.sends[i].bytes;
  for (const Receive& receive : receives_) {
    const Incoming& what = receive.what;
    bytes += (what.forward_to >= 0 || what.own != nullptr ? what.range.bytes : 0) +
             (what.own != nullptr ? what.range.bytes : 0);
  }
  if (bytes > copy_bytes_) {
    PrivateHeap::release(copy_, copy_bytes_);
    copy_ = static_cast<char*>(PrivateHeap::take(bytes));
    copy_bytes_ = copy_ != nullptr ? bytes : 0;
  }
  if (copy_ == nullptr) return bytes == 0;
  char* to = copy_;
  for (std::size_t i = 0; i < call.send_count; to += call.sends[i++].bytes)
    std::memcpy(to, call.sends[i].data, call.sends[i].bytes);
  for (Receive& receive : receives_) {
    const Incoming& what = receive.what;
    if (what.forward_to < 0 && what.own == nullptr) continue;
    receive.staged = to;
    to += what.range.bytes;
    if (what.own == nullptr) continue;
    receive.own = static_cast<char*>(std::memcpy(to, what.own, what.range.bytes));
    to += what.range.bytes;
  }
  return true;
}

// What cannot be guarded is asked for first.
std::uint32_t Pending::ask_order(const Incoming& what, Range* order) const {
  if (!is_covered() || what.block == Incoming::kNoBlock) return 0;
  const BlockPlace& place = layout_.places()[what.block];
  std::uint32_t count = 0;
  if (place.edge_before != 0) order[count++] = {0, place.edge_before};
  if (place.edge_behind != 0) order[count++] = {what.range.bytes - place.edge_behind, place.edge_behind};
  return count;
}

Status Pending::post_receive(Receive& receive, std::size_t place) {
  const Listener listener{
      this, place,
      [](void* self, Handle handle, std::uint64_t offset, std::uint64_t bytes) {
        static_cast<Pending*>(self)->has_arrived(*handle, offset, bytes);
      },
      [](void* self, Handle handle, Status why) { static_cast<Pending*>(self)->has_finished(*handle, why); }};
  const Incoming& what = receive.what;
  char* to = buffer_ + what.range.offset;
  Elsewhere elsewhere;
  if (receive.staged != nullptr) {
    to = receive.staged;
  } else if (is_covered()) {
    const Range guarded{layout_.offset(), layout_.bytes()};
    const Range inside = guarded.common({what.range.offset, what.range.bytes});
    if (inside.bytes != 0)
      elsewhere = {{inside.offset - what.range.offset, inside.bytes},
                   guard_.landing(cover_) + (inside.offset - guarded.offset)};
  }
  Range order[2];
  transport::bulk::Wish wish;
  wish.order = order;
  wish.order_count = ask_order(what, order);
  wish.position = place < positions_.size() ? positions_[place] : static_cast<std::uint32_t>(place);
  wish.elsewhere = elsewhere;
  return messages_.post_recv(what.peer, {comm_, call_, what.index}, to, what.range.bytes, &receive.handle, listener,
                             wish);
}

Status Pending::post_send(int peer, std::uint32_t index, const char* data, std::uint64_t bytes, Handle* handle) {
  const Listener listener{this, 0, nullptr, [](void* self, Handle sent, Status why) {
                            static_cast<Pending*>(self)->has_finished(*sent, why);
                          }};
  return messages_.post_send(peer, {comm_, call_, index}, data, bytes, handle, listener);
}

Status Pending::begin(const Exchange& call) {
  bool copied = is_covered() || fills_nothing_;
  if (!copied) {
    copied = call.fold.combine != nullptr;
    if (!prepare(call) || (copied && !copy_what_goes(call))) return Status::no_memory;
  }
  peers_.clear();
  sends_.clear();
  const auto receives = static_cast<std::uint32_t>(call.receive_count);
  std::uint32_t forwards = 0, present = 0;
  for (const Receive& receive : receives_) {
    forwards += receive.what.forward_to >= 0 ? 1 : 0;
    present += receive.what.shows_presence ? 1 : 0;
  }
  unseen_ = present;
  receives_left_ = receives;
  // One is this function's own, which ends when all is posted.
  open_ = receives + forwards + static_cast<std::uint32_t>(call.send_count) + (is_covered() ? 1 : 0) + 1;
  std::size_t posted_sends = 0, posted_receives = 0;
  Status status = Status::ok;
  if (!sends_.resize(call.send_count, nullptr) || !peers_.reserve(call.send_count + receives + forwards))
    status = Status::no_memory;
  for (const Receive& receive : receives_) {
    if (receive.what.forward_to >= 0) peers_.push(receive.what.forward_to);
  }
  if (is_covered()) {
    const Status begun = messages_.on_thread([](void* self) { static_cast<Pending*>(self)->begin_pages(); }, this);
    if (status == Status::ok) status = begun;
  }
  for (; posted_receives < receives && status == Status::ok; ++posted_receives) {
    Receive& receive = receives_[posted_receives];
    status = post_receive(receive, posted_receives);
    if (status != Status::ok) break;
    peers_.push(receive.what.peer);
  }
  const char* from = copy_;
  for (; posted_sends < call.send_count && status == Status::ok; ++posted_sends) {
    const Outgoing& send = call.sends[posted_sends];
    status = post_send(send.peer, send.index, copied ? from : send.data, send.bytes, &sends_[posted_sends]);
    if (status != Status::ok) break;
    from += send.bytes;
    peers_.push(send.peer);
  }
  if (status == Status::ok) {
    posted_.store(true, std::memory_order_release);
  } else {
    status_.store(status);
    abandon();
    open_ -= static_cast<std::uint32_t>(call.send_count - posted_sends);
    for (std::size_t i = posted_receives; i < receives; ++i) open_ -= receives_[i].what.forward_to >= 0 ? 1 : 0;
    unposted_ = static_cast<std::uint32_t>(receives - posted_receives);
    end_unposted();
  }
  one_less();
  return status;
}

// What was not posted does not finish by itself. Where there is no driver, this thread ends it.
void Pending::end_unposted() {
  constexpr std::uint64_t kNapNs = 100'000;
  const auto end = [](void* context) {
    auto* const self = static_cast<Pending*>(context);
    for (; self->unposted_ != 0; --self->unposted_) self->one_receive_less();
    self->one_less();
  };
  ++open_;
  for (;;) {
    const Status status = messages_.on_thread(end, this);
    if (status == Status::unavailable) end(this);
    if (status != Status::no_memory) return;
    sys::nap_ns(kNapNs);
  }
}

bool Pending::return_now() {
  returned_ns_ = sys::now_ns();
  returned_.store(true);
  if (status_.load() == Status::ok) return true;
  returned_.store(false);
  return false;
}

void Pending::abandon() {
  for (const int peer : peers_) messages_.abandon(peer, comm_, {Status::peer_failed, -1});
}

// ---- any thread ----

bool Pending::touches(std::uint64_t address, std::uint64_t bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer_);
  return address < begin + buffer_bytes_ && begin < address + bytes;
}

void Pending::teach(Sites::Site* site) const {
  ++site->counts.early;
  if (home_ns_ > returned_ns_) site->counts.late_ns += home_ns_ - returned_ns_;
  site->counts.waited_ns += waited_ns_;
  if (wanted_.size() != receives_.size()) return;
  site->order.clear();
  for (const std::uint32_t index : wanted_) site->order.push(index);
  if (site->order.failed()) site->order.clear();
}

void Pending::reap() {
  for (const Receive& receive : receives_) {
    for (const Handle handle : {receive.handle, receive.forwarded}) {
      if (handle != nullptr) messages_.complete(handle);
    }
  }
  for (const Handle handle : sends_) {
    if (handle != nullptr) messages_.complete(handle);
  }
  receives_.clear();
  sends_.clear();
  returned_.store(false);  // who looks for calls to reap passes it over
  if (copy_bytes_ > kMostCopyKept) {
    PrivateHeap::release(copy_, copy_bytes_);
    copy_ = nullptr;
    copy_bytes_ = 0;
  }
}

// ---- the driver ----

// What this rank has put there itself is there, and so is what no block fills.
void Pending::begin_pages() {
  for (const UnitRun& run : layout_.idle()) bring_home(run);
  if (own_.bytes != 0) bring_home(arrival_.arrived(own_.offset, own_.bytes));
  if (arrival_.edges_are_here()) edges_here_.store(true, std::memory_order_release);
}

void Pending::bring_home(const UnitRun& run) {
  if (run.count == 0) return;
  const std::uint64_t begin = run.first * layout_.unit_bytes(), bytes = run.count * layout_.unit_bytes();
  (void)guard_.publish(cover_, begin, bytes);  // what it cannot bring now, release() brings in the end
  if (waits_since_ns_ == 0 || waits_at_ < begin || waits_at_ >= begin + bytes) return;
  waited_ns_ += sys::now_ns() - waits_since_ns_;
  waits_since_ns_ = 0;
}

// From where it was staged to where the program wants it: the landing, or beside the guarded pages.
void Pending::take_to_buffer(const Receive& receive, std::uint64_t offset, std::uint64_t bytes) {
  const Range guarded = is_covered() ? Range{layout_.offset(), layout_.bytes()} : Range{};
  const char* from = receive.staged + offset;
  std::uint64_t at = receive.what.range.offset + offset;
  for (const std::uint64_t end = at + bytes; at < end;) {
    const bool inside = at >= guarded.offset && at < guarded.end();
    const std::uint64_t until = inside ? guarded.end() : at < guarded.offset ? guarded.offset : end;
    const std::uint64_t now = std::min(end, until) - at;
    std::memcpy(inside ? guard_.landing(cover_) + (at - guarded.offset) : buffer_ + at, from, now);
    at += now;
    from += now;
  }
}

void Pending::has_arrived(const Message& message, std::uint64_t offset, std::uint64_t bytes) {
  Receive& receive = receives_[message.listener.word];
  receive.reached = std::max(receive.reached, offset + bytes);
  if (receive.own == nullptr) reaches_buffer(receive, offset, bytes);
  if (receive.seen) return;
  receive.seen = true;
  if (receive.what.shows_presence) unseen_.fetch_sub(1, std::memory_order_acq_rel);
}

void Pending::reaches_buffer(const Receive& receive, std::uint64_t offset, std::uint64_t bytes) {
  if (!receive.what.to_buffer) return;
  if (receive.staged != nullptr) take_to_buffer(receive, offset, bytes);
  if (!is_covered()) return;
  bring_home(arrival_.arrived(receive.what.range.offset + offset, bytes));
  if (arrival_.edges_are_here()) edges_here_.store(true, std::memory_order_release);
}

// Contributions are combined in the order in which the message passes their ranks.
void Pending::combine(const Receive& receive) const {
  fold_.combine(receive.staged, receive.staged, receive.own, receive.what.range.bytes / fold_.element_bytes);
}

void Pending::note_failure(Status status, const transport::Lost& lost) {
  Status none = Status::ok;
  const bool first = status_.compare_exchange_strong(none, status);
  if (first) lost_ = lost;
  if (first && returned_.load() && on_failure_.failed != nullptr)
    on_failure_.failed(on_failure_.context, name_, status, lost);
}

void Pending::has_finished(const Message& message, Status status) {
  if (status != Status::ok) note_failure(status, message.lost);
  if (message.sends) return one_less();
  Receive& receive = receives_[message.listener.word];
  note_wanted(receive);
  if (receive.own != nullptr && status == Status::ok) {
    combine(receive);
    reaches_buffer(receive, 0, receive.what.range.bytes);
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
  const Incoming& what = receive.what;
  const char* const from = receive.staged != nullptr ? receive.staged : buffer_ + what.range.offset;
  const Status status = post_send(what.forward_to, what.index, from, what.range.bytes, &receive.forwarded);
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
  if (waits_since_ns_ != 0) waited_ns_ += home_ns_ - waits_since_ns_;
  home_.store(true, std::memory_order_release);
}

void Pending::note_wanted(Receive& receive) {
  if (receive.noted) return;
  receive.noted = true;
  wanted_.push(static_cast<std::uint32_t>(&receive - receives_.data()));
}

void Pending::wanted(std::uint64_t offset) {
  if (!posted_.load(std::memory_order_acquire)) return;
  if (waits_since_ns_ == 0) {
    waits_since_ns_ = sys::now_ns();
    waits_at_ = offset;
  }
  const std::uint64_t at = layout_.offset() + offset;
  for (Receive& receive : receives_) {
    if (!receive.what.to_buffer) continue;
    const std::uint64_t unit_end = at + layout_.unit_bytes();
    if (receive.what.range.offset >= unit_end || at >= receive.what.range.offset + receive.what.range.bytes) continue;
    const std::uint64_t from = at > receive.what.range.offset ? at - receive.what.range.offset : 0;
    const bool is_coming = receive.hurried && from >= receive.asked && from < receive.reached + kAheadBytes;
    if (is_coming) continue;
    receive.hurried = true;
    note_wanted(receive);
    receive.asked = receive.reached = from;
    messages_.hurry(receive.handle, from, receive.what.range.bytes - from);
  }
}

void Pending::one_less() { open_.fetch_sub(1, std::memory_order_acq_rel); }

}  // namespace stretto::overlap
