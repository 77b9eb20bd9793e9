// SPDX-License-Identifier: BSD-3-Clause
// Where calls keep the state of their messages: one element for each member of a team. A call
// borrows an array when it first asks its team for it, and gives it back when it ends. So a process
// has as many arrays as calls are under way, not as many as communicators.
//
// Where calls come one after the other, arrays are borrowed without a lock, from one list. When
// threads begin to call at the same time, all calls from then on use the other list, under the
// lock. A thread that is in a call at that moment gives its array back to the list it came from.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstddef>

namespace stretto::shm {

struct MessageState;

class MessageStates {
 public:
  // How one element is made: see message.hpp.
  struct Kind {
    std::size_t bytes;
    void (*make)(MessageState* states, int count);
  };

  explicit MessageStates(const Kind& kind) : kind_(kind) {}
  ~MessageStates();
  MessageStates(const MessageStates&) = delete;
  MessageStates& operator=(const MessageStates&) = delete;

  void set_concurrent(bool concurrent) { concurrent_.store(concurrent, std::memory_order_relaxed); }
  // For a team of `size` members, with all messages done. `apart`: another thread may be in a call
  // all the same. Null: there is no memory.
  MessageState* borrow(int size, bool apart);
  // `clean`: all its messages are done.
  void give_back(MessageState* states, bool clean);

  // Memory for one step of a call, where calls come one after the other. Null: several threads
  // call, or there is no memory.
  static constexpr std::size_t kScratchBytes = 16 << 10;
  char* scratch() {
    if (concurrent_.load(std::memory_order_relaxed)) return nullptr;
    return scratch_ != nullptr ? scratch_ : make_scratch();
  }

 private:
  // What lies before an array.
  struct alignas(64) Head {
    Head* next;
    int size;
    bool serial;  // the list it belongs to
  };

  static MessageState* array_of(Head* head) { return reinterpret_cast<MessageState*>(head + 1); }
  static Head* take_from(Head*& list, int size);
  [[nodiscard]] Head* make(int size, bool serial) const;

  char* make_scratch();

  Kind kind_;
  std::atomic<bool> concurrent_{true};
  char* scratch_ = nullptr;
  Head* serial_ = nullptr;
  Head* shared_ = nullptr;  // under the lock
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
};

}  // namespace stretto::shm
