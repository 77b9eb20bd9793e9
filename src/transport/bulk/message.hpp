// SPDX-License-Identifier: BSD-3-Clause
// A message of the driver's, and the places where it stands: the pool, the table, and queues.
#pragma once
#include <atomic>
#include <cstdint>
#include <new>

#include "base/status.hpp"
#include "transport/bulk/frame.hpp"
#include "transport/transport.hpp"

namespace stretto::transport::bulk {

struct Message;
using Handle = Message*;

// Whom the driver thread tells of a message. The functions must not wait. They may post messages.
// Less than 64 KiB of a piece may be told of when the rest of the piece is there.
// `finished` is the last call; the handle is done a moment later.
struct Listener {
  void* context = nullptr;
  std::uint64_t word = 0;  // the listener's own
  void (*arrived)(void* context, Handle handle, std::uint64_t offset, std::uint64_t bytes) = nullptr;
  void (*finished)(void* context, Handle handle, Status status) = nullptr;
};

// A part of a receive that is wanted in other memory than the rest.
struct RangeAside {
  Range range;
  char* at = nullptr;
};

// How a receive is to come.
struct Wish {
  const Range* order = nullptr;  // of its parts, up to kMostRanges; the rest comes after them
  std::uint32_t order_count = 0;
  std::uint32_t position = 0;  // receives with lower ones come first
  bool all_at_once = false;    // its source may send all of it as soon as it has it (Grants)
  RangeAside aside;
};

struct Message {
  // The poster's, then the driver's.
  Key key;
  int peer = -1;
  bool sends = false;
  char* data = nullptr;  // a send's is only read
  std::uint64_t bytes = 0;
  RangeAside aside;
  std::uint32_t position = 0;  // of a receive among others, and of a send among those of its call
  std::uint32_t host = 0;      // of a receive's peer: a rank there
  bool all_at_once = false;    // as in Wish
  Listener listener;
  std::uint32_t order_count = 0;
  Range order[kMostRanges] = {};

  // The driver's.
  bool posted = false;  // false: the peer has asked for it, nobody here has posted it yet
  bool asked = false;   // a receive: its ask has gone; a send: its ask has come
  bool sized = false;   // a receive: the sender has said how long it is
  bool queued = false;
  Range urgent;                    // a receive: to be asked for once more
  Range hurried;                   // a receive: what somebody waited for last
  RangeQueue left;                 // a send
  bool framed = false;             // a send: the last of it is in a frame
  std::uint32_t frames = 0;        // of a send, that are being sent
  std::uint64_t urgent_bytes = 0;  // of a send: so many go next, beside what is queued
  std::uint64_t named_bytes = 0;   // of a send: in the ranges of its ask
  bool is_whole = false;           // a send: granted with its ask, as pieces of a pipeline are
  // How many bytes the receiver has granted, and how many of them are sent, or are under way.
  std::uint64_t granted = 0, sent = 0, under_way = 0;
  std::uint64_t grant_due = 0;  // a receive: granted, and not told yet
  RangeSet arrived;             // a receive
  Message* next_in_table = nullptr;
  Message *before = nullptr, *after = nullptr;  // in a queue

  // For all to see.
  std::atomic<std::uint64_t> arrived_bytes{0}, total{0};
  std::atomic<bool> done{false};
  Status status = Status::ok;  // these two: once it is done
  Lost lost;
  Message* next_finished = nullptr;  // for the listener's owner

  Message* next_free = nullptr;

  // Where the byte at `offset` of a receive is wanted. *together: how many from there on, of
  // `*together`, follow each other in memory.
  char* place(std::uint64_t offset, std::uint64_t* together) const {
    const Range& other = aside.range;
    const bool is_there = offset >= other.offset && offset < other.end();
    if (is_there)
      *together = std::min(*together, other.end() - offset);
    else if (offset < other.offset && other.bytes != 0)
      *together = std::min(*together, other.offset - offset);
    return is_there ? aside.at + (offset - other.offset) : data + offset;
  }
};

// First in, first out.
class MessageQueue {
 public:
  [[nodiscard]] bool empty() const { return first_ == nullptr; }
  [[nodiscard]] Message* first() const { return first_; }
  void push(Message* message) {
    message->before = last_;
    message->after = nullptr;
    (last_ != nullptr ? last_->after : first_) = message;
    last_ = message;
    message->queued = true;
  }
  // Before those of the same call that stand behind it and have higher positions.
  void push_by_position(Message* message) {
    Message* behind = last_;
    while (behind != nullptr && behind->key.comm == message->key.comm && behind->key.call == message->key.call &&
           behind->position > message->position)
      behind = behind->before;
    if (behind == nullptr) return push_first(message);
    message->before = behind;
    message->after = behind->after;
    (behind->after != nullptr ? behind->after->before : last_) = message;
    behind->after = message;
    message->queued = true;
  }
  void push_first(Message* message) {
    message->before = nullptr;
    message->after = first_;
    (first_ != nullptr ? first_->before : last_) = message;
    first_ = message;
    message->queued = true;
  }
  void remove(Message* message) {
    (message->before != nullptr ? message->before->after : first_) = message->after;
    (message->after != nullptr ? message->after->before : last_) = message->before;
    message->queued = false;
  }

 private:
  Message *first_ = nullptr, *last_ = nullptr;
};

// Messages that keep their places. Memory that a message has taken stays with it. Its owner locks.
class MessagePool {
 public:
  MessagePool() = default;
  ~MessagePool() {
    while (chunks_ != nullptr) {
      Chunk* const chunk = chunks_;
      chunks_ = chunk->next;
      for (Message& message : chunk->messages) message.~Message();
      PrivateHeap::release(chunk, sizeof(Chunk));
    }
  }
  MessagePool(const MessagePool&) = delete;
  MessagePool& operator=(const MessagePool&) = delete;

  // Null: no memory.
  Message* take() {
    if (free_ == nullptr && !grow()) return nullptr;
    Message* const message = free_;
    free_ = message->next_free;
    message->order_count = 0;
    message->aside = {};
    message->granted = message->sent = message->under_way = message->grant_due = 0;
    message->posted = message->asked = message->sized = message->queued = message->framed = false;
    message->frames = 0;
    message->urgent_bytes = message->named_bytes = 0;
    message->is_whole = false;
    message->urgent = message->hurried = {};
    message->arrived.clear();
    message->listener = {};
    message->arrived_bytes.store(0, std::memory_order_relaxed);
    message->total.store(0, std::memory_order_relaxed);
    message->done.store(false, std::memory_order_relaxed);
    message->status = Status::ok;
    message->lost = {};
    return message;
  }
  void give_back(Message* message) {
    message->next_free = free_;
    free_ = message;
  }

 private:
  static constexpr int kChunk = 32;
  struct Chunk {
    Chunk* next;
    Message messages[kChunk];
  };
  bool grow() {
    void* const memory = PrivateHeap::take(sizeof(Chunk));
    if (memory == nullptr) return false;
    chunks_ = new (memory) Chunk{chunks_, {}};
    for (Message& message : chunks_->messages) give_back(&message);
    return true;
  }
  Message* free_ = nullptr;
  Chunk* chunks_ = nullptr;
};

// Messages of one pair by direction and name.
class MessageTable {
 public:
  [[nodiscard]] Message* find(const Key& key, bool sends) const {
    Message* message = buckets_[bucket(key, sends)];
    while (message != nullptr && !(message->key == key && message->sends == sends)) message = message->next_in_table;
    return message;
  }
  void add(Message* message) {
    Message*& first = buckets_[bucket(message->key, message->sends)];
    message->next_in_table = first;
    first = message;
  }
  void remove(Message* message) {
    Message** at = &buckets_[bucket(message->key, message->sends)];
    while (*at != message) at = &(*at)->next_in_table;
    *at = message->next_in_table;
  }
  // `visit` may remove what it gets.
  template <class Visit>
  void each(const Visit& visit) {
    for (Message* first : buckets_) {
      for (Message* next = nullptr; first != nullptr; first = next) {
        next = first->next_in_table;
        visit(first);
      }
    }
  }

 private:
  static constexpr std::size_t kBuckets = 64;
  static std::size_t bucket(const Key& key, bool sends) {
    const std::uint64_t mixed =
        ((key.comm * 31 + key.call) * 31 + key.index) * 0x9e3779b97f4a7c15u + (sends ? 0x2545f4914f6cdd1du : 0);
    return static_cast<std::size_t>(mixed >> 58);
  }
  Message* buckets_[kBuckets] = {};
};

}  // namespace stretto::transport::bulk
