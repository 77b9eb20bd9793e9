// SPDX-License-Identifier: BSD-3-Clause
#include "shm/message_states.hpp"

#include <cstdlib>
#include <new>

namespace stretto::shm {

MessageStates::~MessageStates() {
  std::free(scratch_);
  for (Head* list : {serial_, shared_}) {
    while (list != nullptr) {
      Head* const next = list->next;
      std::free(list);
      list = next;
    }
  }
}

char* MessageStates::make_scratch() {
  return scratch_ = static_cast<char*>(std::aligned_alloc(alignof(Head), kScratchBytes));
}

// Shorter arrays stay: teams of their size come again.
MessageStates::Head* MessageStates::take_from(Head*& list, int size) {
  for (Head** link = &list; *link != nullptr; link = &(*link)->next) {
    Head* const head = *link;
    if (head->size < size) continue;
    *link = head->next;
    return head;
  }
  return nullptr;
}

MessageStates::Head* MessageStates::make(int size, bool serial) const {
  const std::size_t bytes = sizeof(Head) + static_cast<std::size_t>(size) * kind_.bytes;
  void* const memory = std::aligned_alloc(alignof(Head), (bytes + alignof(Head) - 1) / alignof(Head) * alignof(Head));
  if (memory == nullptr) return nullptr;
  auto* const head = new (memory) Head{nullptr, size, serial};
  kind_.make(array_of(head), size);
  return head;
}

MessageState* MessageStates::borrow(int size, bool apart) {
  const bool serial = !apart && !concurrent_.load(std::memory_order_relaxed);
  if (!serial) pthread_mutex_lock(&lock_);
  Head* head = take_from(serial ? serial_ : shared_, size);
  if (!serial) pthread_mutex_unlock(&lock_);
  if (head == nullptr) head = make(size, serial);
  return head == nullptr ? nullptr : array_of(head);
}

void MessageStates::give_back(MessageState* states, bool clean) {
  Head* const head = reinterpret_cast<Head*>(states) - 1;
  if (!clean) kind_.make(states, head->size);
  if (!head->serial) pthread_mutex_lock(&lock_);
  Head*& list = head->serial ? serial_ : shared_;
  head->next = list;
  list = head;
  if (!head->serial) pthread_mutex_unlock(&lock_);
}

}  // namespace stretto::shm
