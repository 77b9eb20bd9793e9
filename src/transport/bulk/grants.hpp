// SPDX-License-Identifier: BSD-3-Clause
// How much the peers may send now: the receiver's side of flow control.
//
// Receives of a driver have at most about two *windows* of bytes under way. A window is as much as
// comes in a few milliseconds. So little waits in the network before what is asked for next, and
// the receiver decides from whom that comes. Without it, all sources would fill the receiver's
// link, and the first bytes of a late one would come after all the others' data.
//
//   - With its ask, a receive grants its first bytes: what is first in its order, at least 4 KiB.
//     The receive grants them even if the window is full. As long as they are under way, they leave
//     less of the window to others.
//   - More is granted to sources that have sent something, in the order of the receives' positions.
//   - The first of them has three quarters of the window. The first ones of the other hosts have
//     half a window together: their links are not to stand idle, and the first one's may be busy.
//   - Of each host only one source sends, because they share a link: what is wanted later would
//     take from what is wanted sooner.
//   - A receive that somebody waits for becomes the first one (hurry).
//   - A piece of a pipeline is granted as a whole with its ask (Wish::all_at_once). It comes from
//     one source, as all pieces of its call, and does not exist before: its source has the order.
//     A grant that came later would cost each piece a trip there and back, at each rank of the
//     pipeline. Such a receive leaves others as much of the window as one that has sent nothing.
//
// For the driver thread.
#pragma once
#include <algorithm>
#include <bit>

#include "transport/bulk/message.hpp"

namespace stretto::transport::bulk {

class Grants {
 public:
  // What a receive grants with its ask.
  static std::uint64_t first_bytes(const Message& message) {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < message.order_count; ++i) bytes += message.order[i].bytes;
    if (message.bytes <= kEagerBytes) return std::max(message.bytes, kLeast);  // more would be a mistake, to be seen
    return std::min(message.bytes, std::clamp(bytes, kLeast, kPiece));
  }

  // A receive is about to ask. False: no memory.
  bool add(Message* message) {
    message->under_way = first_bytes(*message);
    message->granted = message->all_at_once ? std::max(message->bytes, message->under_way) : message->under_way;
    under_way_ += message->under_way;
    if (message->granted >= message->bytes) return true;
    if (message->host >= seen_.size() &&
        (!seen_.resize(message->host + 1, 0) || !next_of_hosts_.resize(message->host + 1, nullptr)))
      return false;
    return put(message);
  }
  void arrived(Message* message, std::uint64_t bytes, std::uint64_t now_ns) {
    const std::uint64_t counted = std::min(bytes, message->under_way);
    message->under_way -= counted;
    under_way_ -= counted;
    measure(bytes, now_ns);
  }
  // The receive has ended, or asks no more.
  void remove(Message* message) {
    under_way_ -= message->under_way;
    message->under_way = 0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (waiting_[i] == message) return (void)waiting_.splice(i, 1, 0);
    }
  }
  // Somebody waits for this receive: it goes first from now on.
  void hurry(Message* message) {
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (waiting_[i] != message) continue;
      std::copy_backward(waiting_.begin(), waiting_.begin() + i, waiting_.begin() + i + 1);
      waiting_[0] = message;
      message->position = 0;
      if (message->under_way == 0) grant(message, kPiece);
    }
  }
  // Words wait behind the data that the system has, where the card's queue knows no priorities. So
  // it has no more than goes in some four milliseconds, if data go as fast as they come. That is
  // twice what this says (sys::stream_keeps). With less, the link stands idle when this thread gets
  // a processor late. In steps, since each change is a system call.
  [[nodiscard]] std::uint32_t kept_bytes() const {
    const std::uint64_t kept = rate_ / 2, step = std::max<std::uint64_t>(std::bit_floor(kept) / 8, 1);
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kept / step * step, 16 << 10, 4 << 20));
  }
  // Grants what the window has room for. `tell(message)` says it to the peer.
  template <class Tell>
  void give(const Tell& tell) {
    Message* const first = first_present();
    if (first == nullptr) return;
    // Alone it takes no link from others. What it has asked for comes without a pause, also if this
    // thread gets a processor late.
    const std::uint64_t most = waiting_.size() == 1 ? 4 * window_ : window_ / 4 * 3;
    while (first->under_way < most && first->granted < first->bytes)
      grant(first, std::clamp(window_ / 8, kPiece, kMostPiece));
    const std::size_t count = find_next_of_hosts(first);
    const std::uint64_t share = count == 0 ? 0 : std::max(window_ / 2 / count, kOthersPiece);
    for (std::size_t i = 0; i < count; ++i) {
      Message* const other = next_of_hosts_[i];
      while (other->under_way < share && other->granted < other->bytes) grant(other, kOthersPiece);
    }
    for (std::size_t i = 0; i < waiting_.size();) {
      Message* const message = waiting_[i];
      if (message->grant_due != 0) tell(message);
      if (message->granted >= message->bytes)
        (void)waiting_.splice(i, 1, 0);
      else
        ++i;
    }
  }

 private:
  static constexpr std::uint64_t kLeast = 4 << 10, kPiece = 64 << 10, kMostPiece = 1 << 20, kOthersPiece = 32 << 10;
  static constexpr std::uint64_t kLeastWindow = 128 << 10, kMostWindow = 16 << 20;
  static constexpr std::uint64_t kWindowNs = 4'000'000, kMeasureNs = 2'000'000;

  static bool is_present(const Message& message) { return message.arrived_bytes.load(std::memory_order_relaxed) != 0; }
  Message* first_present() const {
    for (Message* const message : waiting_) {
      if (is_present(*message)) return message;
    }
    return nullptr;
  }
  // The first one of each host but that of `first`. Returns how many there are.
  std::size_t find_next_of_hosts(const Message* first) {
    std::size_t count = 0;
    ++turn_;
    seen_[first->host] = turn_;
    for (Message* const message : waiting_) {
      if (seen_[message->host] == turn_ || !is_present(*message) || message->granted == message->bytes) continue;
      seen_[message->host] = turn_;
      next_of_hosts_[count++] = message;
    }
    return count;
  }
  bool put(Message* message) {
    std::size_t at = waiting_.size();
    while (at > 0 && waiting_[at - 1]->position > message->position) --at;
    if (!waiting_.splice(at, 0, 1)) return false;
    waiting_[at] = message;
    return true;
  }
  void grant(Message* message, std::uint64_t piece) {
    const std::uint64_t more = std::min(piece, message->bytes - message->granted);
    message->granted += more;
    message->grant_due += more;
    message->under_way += more;
    under_way_ += more;
  }
  // The window follows the rate at which data come while some are under way. What the system keeps
  // falls slowly: some may be late because their source is.
  void measure(std::uint64_t bytes, std::uint64_t now_ns) {
    if (since_ns_ == 0) since_ns_ = now_ns;
    measured_ += bytes;
    if (const std::uint64_t took = now_ns - since_ns_; took >= kMeasureNs) {
      const std::uint64_t wanted = measured_ * kWindowNs / took;
      rate_ = wanted > rate_ ? (rate_ + wanted) / 2 : (7 * rate_ + wanted) / 8;
      window_ = std::clamp((3 * window_ + wanted) / 4, kLeastWindow, kMostWindow);
      since_ns_ = now_ns;
      measured_ = 0;
    }
    if (under_way_ == 0) since_ns_ = measured_ = 0;
  }

  Array<Message*, PrivateHeap> waiting_;  // receives that are not all granted, by position
  Array<Message*, PrivateHeap> next_of_hosts_;
  Array<std::uint64_t, PrivateHeap> seen_;  // by host: in this turn of give()
  std::uint64_t turn_ = 0;
  std::uint64_t under_way_ = 0, window_ = 512 << 10;
  std::uint64_t rate_ = 128 << 10;  // bytes in kWindowNs
  std::uint64_t since_ns_ = 0, measured_ = 0;
};

}  // namespace stretto::transport::bulk
