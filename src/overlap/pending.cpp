// SPDX-License-Identifier: BSD-3-Clause
#include "overlap/pending.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/private_heap.hpp"

namespace stretto::overlap {

using transport::Reason;
using transport::bulk::Handle;
using transport::bulk::Listener;
using transport::bulk::Range;
using transport::bulk::RangeAside;

namespace {
constexpr std::uint64_t kMostCopyKept = 64 << 20;  // bytes of a copy that stay for the next call
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
  memory_ = call.memory();
  memory_bytes_ = call.memory_bytes();
  begins_ = reinterpret_cast<std::uintptr_t>(memory_);
  ends_ = begins_ + memory_bytes_;
  own_ = call.own;
  vector_ends_ = call.ends;
  is_pipeline_ = call.is_pipeline;
  fold_ = call.fold;
  receives_.clear();
  for (const MessageIn& what : call.receives) receives_.push({what});
  wanted_.clear();
  touches_ = {};
  work_ = {};
  touched_ns_ = held_ns_ = caught_ns_ = calls_ns_ = 0;
  home_ns_ = returned_ns_ = 0;
  returned_ = posted_ = false;
  home_ = call.fills_nothing();
  edges_here_ = call.fills_nothing();
  status_.store(Status::ok);
  return !receives_.failed() && wanted_.reserve(call.receives.size());
}

Refusal Pending::cover(const Exchange& call, std::uint64_t unit) {
  do_not_cover();
  if (!prepare(call)) return Refusal::no_memory;
  if (layout_.make(buffer_, buffer_bytes_, call.blocks.data(), call.blocks.size(), unit) != LayoutError::none ||
      layout_.units() == 0)
    return Refusal::too_small;
  if (!arrival_.begin(layout_) || !copy_what_goes(call)) return Refusal::no_memory;
  ranges_.clear();
  for (const UnitRun& run : layout_.guarded()) {
    const std::uint64_t begin = layout_.offset() + run.first * unit;
    ranges_.push({buffer_ + begin, run.count * unit});
  }
  return ranges_.failed() ? Refusal::no_memory : guard_.cover(ranges_.data(), ranges_.size(), &cover_);
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
  for (const MessageOut& send : call.sends) bytes += send.bytes;
  for (const Receive& receive : receives_) {
    const MessageIn& what = receive.what;
    bytes += (what.is_staged() ? what.range.bytes : 0) + (what.own != nullptr ? what.range.bytes : 0);
  }
  if (bytes > copy_bytes_) {
    PrivateHeap::release(copy_, copy_bytes_);
    copy_ = static_cast<char*>(PrivateHeap::take(bytes));
    copy_bytes_ = copy_ != nullptr ? bytes : 0;
  }
  if (copy_ == nullptr) return bytes == 0;
  char* to = copy_;
  for (const MessageOut& send : call.sends) {
    std::memcpy(to, send.data, send.bytes);
    to += send.bytes;
  }
  for (Receive& receive : receives_) {
    const MessageIn& what = receive.what;
    if (!what.is_staged()) continue;
    receive.staged = to;
    to += what.range.bytes;
    if (what.own == nullptr) continue;
    receive.own = static_cast<char*>(std::memcpy(to, what.own, what.range.bytes));
    to += what.range.bytes;
  }
  return true;
}

// What cannot be guarded is asked for first.
std::uint32_t Pending::ask_order(const MessageIn& what, Range* order) const {
  if (!is_covered() || what.block == MessageIn::kNoBlock) return 0;
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
  const MessageIn& what = receive.what;
  char* to = buffer_ + what.range.offset;
  RangeAside aside;
  if (receive.staged != nullptr) {
    to = receive.staged;
  } else if (is_covered()) {
    const Block inside = layout_.guarded_part(what.range);
    if (inside.bytes != 0)
      aside = {{inside.offset - what.range.offset, inside.bytes},
               guard_.landing(cover_) + (inside.offset - layout_.offset())};
  }
  Range order[2];
  transport::bulk::Wish wish;
  wish.order = order;
  wish.order_count = ask_order(what, order);
  wish.position = place < positions_.size() ? positions_[place] : static_cast<std::uint32_t>(place);
  wish.all_at_once = is_pipeline_;
  wish.aside = aside;
  return messages_.post_recv(what.peer, {comm_, call_, what.index}, to, what.range.bytes, &receive.handle, listener,
                             wish);
}

Status Pending::post_send(const MessageOut& send, std::uint32_t part, Handle* handle) {
  const Listener listener{this, part, nullptr, [](void* self, Handle sent, Status why) {
                            static_cast<Pending*>(self)->has_finished(*sent, why);
                          }};
  return messages_.post_send(send.peer, {comm_, call_, send.index}, send.data, send.bytes, handle, listener,
                             send.position);
}

// Before anything is posted: from then on the driver counts.
bool Pending::write_note(const Exchange& call) {
  shm::DeferredCall about;
  std::strncpy(about.name, call.name, sizeof about.name - 1);
  std::strncpy(about.place, call.place, sizeof about.place - 1);
  about.communicator = call.communicator;
  about.ranks = call.ranks;
  about.call = call.call + 1;
  about.began_ns = sys::now_ns();
  note_.take(call.is_measuring ? nullptr : notes_, about);
  for (Receive& receive : receives_) receive.part = note_.part(receive.what.peer, false, receive.what.range.bytes);
  send_parts_.clear();
  for (const MessageOut& send : call.sends) send_parts_.push(note_.part(send.peer, true, send.bytes));
  for (Receive& receive : receives_) {
    if (receive.what.forward_to >= 0)
      receive.forwarded_part = note_.part(receive.what.forward_to, true, receive.what.range.bytes);
  }
  note_.put();
  return !send_parts_.failed();
}

Status Pending::begin(const Exchange& call) {
  bool copied = is_covered() || fills_nothing_ || is_gapped_;
  if (!copied) {
    copied = call.fold.combine != nullptr;
    if (!prepare(call) || (copied && !copy_what_goes(call))) return Status::no_memory;
  }
  peers_.clear();
  sends_.clear();
  const auto receives = static_cast<std::uint32_t>(call.receives.size());
  std::uint32_t forwards = 0, present = 0;
  for (const Receive& receive : receives_) {
    forwards += receive.what.forward_to >= 0 ? 1 : 0;
    present += receive.what.shows_presence ? 1 : 0;
  }
  unseen_ = present;
  // What receives are complete with: the ends, and the cover of pages with gaps.
  const std::uint32_t others = (vector_ends_.bring != nullptr ? 1 : 0) + (is_gapped_ ? 1 : 0);
  receives_left_ = receives + others;
  // One is this function's own, which ends when all is posted.
  open_ = receives + others + forwards + static_cast<std::uint32_t>(call.sends.size()) + (is_covered() ? 1 : 0) + 1;
  std::size_t posted_sends = 0, posted_receives = 0;
  Status status = Status::ok;
  if (!write_note(call) || !sends_.resize(call.sends.size(), nullptr) ||
      !peers_.reserve(call.sends.size() + receives + forwards))
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
  for (; posted_sends < call.sends.size() && status == Status::ok; ++posted_sends) {
    MessageOut send = call.sends[posted_sends];
    if (copied) send.data = from;
    status = post_send(send, send_parts_[posted_sends], &sends_[posted_sends]);
    if (status != Status::ok) break;
    from += send.bytes;
    peers_.push(send.peer);
  }
  if (status == Status::ok) {
    posted_.store(true, std::memory_order_release);
  } else {
    status_.store(status);
    abandon();
    open_ -= static_cast<std::uint32_t>(call.sends.size() - posted_sends);
    for (std::size_t i = posted_receives; i < receives; ++i) open_ -= receives_[i].what.forward_to >= 0 ? 1 : 0;
    unposted_ = static_cast<std::uint32_t>(receives - posted_receives);
    end_unposted();
  }
  one_less();
  return status;
}

// What was not posted does not finish by itself.
void Pending::end_unposted() {
  ++open_;
  do_on_thread([](void* context) {
    auto* const self = static_cast<Pending*>(context);
    for (; self->unposted_ != 0; --self->unposted_) self->one_receive_less();
    self->one_less();
  });
}

// Where there is no driver, this thread does it.
void Pending::do_on_thread(void (*task)(void* self)) {
  constexpr std::uint64_t kNapNs = 100'000;
  for (;;) {
    const Status status = messages_.on_thread(task, this);
    if (status == Status::unavailable) task(this);
    if (status != Status::no_memory) return;
    sys::nap_ns(kNapNs);
  }
}

bool Pending::return_now() {
  returned_ns_ = sys::now_ns();
  returned_.store(true);
  if (status_.load() == Status::ok) {
    note_.returns(returned_ns_);
    return true;
  }
  returned_.store(false);
  return false;
}

void Pending::abandon() {
  const bool knows = status_.load() == Status::peer_lost;
  const Reason reason{knows ? Status::peer_lost : Status::peer_failed, knows ? lost_.rank : -1};
  for (const int peer : peers_) messages_.abandon(peer, comm_, reason);
}

// ---- any thread ----

bool Pending::touches(std::uint64_t address, std::uint64_t bytes) const {
  return address < ends_ && begins_ < address + bytes;
}

void Pending::hold() {
  if (held_ns_.load(std::memory_order_relaxed) != 0) return;
  const std::uint64_t now_ns = sys::now_ns();
  std::uint64_t none = 0;
  if (!held_ns_.compare_exchange_strong(none, now_ns)) return;
  note_.waits(shm::DeferredWait::function, now_ns);
}

void Pending::let_go(std::uint64_t since_ns, std::uint64_t now_ns) {
  std::uint64_t none = 0;
  (void)caught_ns_.compare_exchange_strong(none, since_ns);
  calls_ns_ += now_ns - since_ns;
  note_.waits_no_more();
}

// Threads may have waited at the same time, in more than one way.
void Pending::teach_waits(Sites::Site* site, std::uint64_t origin_ns) const {
  const std::uint64_t late_ns = home_ns_ - returned_ns_, held_ns = held_ns_, caught_ns = caught_ns_;
  std::uint64_t first_ns = home_ns_, left_ns = late_ns;
  const auto add = [&](Span span) {
    if (span.begin_ns >= home_ns_) return;
    const std::uint64_t begin_ns = std::max(span.begin_ns, returned_ns_);
    const std::uint64_t ns = std::min({span.ns, home_ns_ - begin_ns, left_ns});
    first_ns = std::min(first_ns, begin_ns);
    left_ns -= ns;
    site->counts.waited_ns += ns;
    site->timeline.add(&Timeline::Bin::waited_ns, begin_ns - origin_ns, ns);
  };
  for (std::size_t i = 0; i < touches_.spans(); ++i) add(touches_.span(i));
  if (held_ns != 0) add({held_ns, late_ns});
  if (caught_ns != 0) add({caught_ns, calls_ns_});
  if (first_ns == home_ns_) return;
  ++site->counts.waits;
  site->counts.first_ns += first_ns - returned_ns_;
}

void Pending::teach(Sites::Site* site, std::uint64_t origin_ns) const {
  ++site->counts.early;
  site->counts.work += work_;
  if (home_ns_ > returned_ns_) {
    site->counts.late_ns += home_ns_ - returned_ns_;
    site->timeline.add(&Timeline::Bin::late_ns, returned_ns_ - origin_ns, home_ns_ - returned_ns_);
    teach_waits(site, origin_ns);
  }
  if (wanted_.size() != receives_.size()) return;
  site->order.clear();
  for (const std::uint32_t index : wanted_) site->order.push(index);
  if (site->order.failed()) site->order.clear();
}

void Pending::reap() {
  if (is_gapped_ && returned_.load()) std::free(gapped_.packed());
  is_gapped_ = false;
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
  note_.give_back();
  returned_.store(false);  // who looks for calls to reap passes it over
  if (copy_bytes_ > kMostCopyKept) {
    PrivateHeap::release(copy_, copy_bytes_);
    copy_ = nullptr;
    copy_bytes_ = 0;
  }
}

}  // namespace stretto::overlap
