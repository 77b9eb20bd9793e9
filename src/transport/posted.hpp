// SPDX-License-Identifier: BSD-3-Clause
// What a transport of its own has taken and not yet moved: messages in queues, one for each
// direction of a pair, in whose order they go; and the tickets of those that are through.
#pragma once
#include "base/array.hpp"
#include "transport/transport.hpp"

namespace stretto::transport {

class Posted {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

 public:
  struct Message {
    char* data;
    std::uint64_t bytes;
    std::uint32_t ticket;
    std::uint32_t message_index;  // as its caller counts
    std::uint32_t next;           // in its queue
  };
  struct Queue {
    std::uint32_t first = kNone, last = kNone;
    std::uint32_t posted = 0, through = 0;  // messages so far
    [[nodiscard]] bool empty() const { return first == kNone; }
  };

  // False: no memory.
  bool push(Queue& queue, char* data, std::uint64_t bytes, std::uint32_t ticket, std::uint32_t message_index = 0) {
    if (left_ == 0) messages_.clear();
    const auto at = static_cast<std::uint32_t>(messages_.size());
    if (!messages_.push({data, bytes, ticket, message_index, kNone})) return false;
    if (queue.empty())
      queue.first = at;
    else
      messages_[queue.last].next = at;
    queue.last = at;
    ++queue.posted;
    ++left_;
    return true;
  }
  [[nodiscard]] const Message& first(const Queue& queue) const { return messages_[queue.first]; }
  // The first one of a queue is through. False: no memory for its ticket.
  bool pop(Queue& queue) { return through_.push(drop(queue)); }
  // The first one of a queue is somebody else's. Returns its ticket.
  std::uint32_t drop(Queue& queue) {
    const Message& message = first(queue);
    queue.first = message.next;
    ++queue.through;
    --left_;
    return message.ticket;
  }

  [[nodiscard]] bool any_left() const { return left_ != 0; }
  [[nodiscard]] bool any_through() const { return !through_.empty(); }
  int hand_out(std::uint32_t* tickets, int capacity) { return transport::hand_out(through_, tickets, capacity); }
  // Forgets all of them. Queues are to be made anew.
  void clear() {
    messages_.clear();
    through_.clear();
    left_ = 0;
  }

 private:
  Array<Message> messages_;
  Array<std::uint32_t> through_;  // tickets to be handed out
  std::uint64_t left_ = 0;
};

}  // namespace stretto::transport
