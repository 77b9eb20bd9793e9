// SPDX-License-Identifier: BSD-3-Clause
// What the program's threads do.
#include "transport/bulk/driver.hpp"

#include <algorithm>
#include <cstring>

#include "sys/thread.hpp"
#include "transport/bulk/peer.hpp"

namespace stretto::transport::bulk {

Status Driver::open(const Settings& settings, Endpoint* endpoint) {
  settings_ = settings;
  shared_.rank = settings.rank;
  shared_.buffer_bytes = settings.buffer_bytes;
  shared_.reads.start(settings.fabric);
  process_ = sys::process_id();
  *endpoint = listeners_.open(settings.addresses, settings.address_count);
  Introduced own{settings.rank, *endpoint};
  if (!endpoint->able || sys::poller_open(&poller_) != 0) {
    listeners_.close();
    return Status::unavailable;
  }
  const Locked locked(shared_.lock);
  if (!introduced_.push(own)) return Status::no_memory;
  opened_ = true;
  return Status::ok;
}

Status Driver::introduce(int peer, const Endpoint& endpoint) {
  const Locked locked(shared_.lock);
  if (!opened_ || stopping_ || !endpoint.able || peer < 0 || peer == shared_.rank) return Status::unavailable;
  const auto at = static_cast<std::size_t>(peer);
  if (at >= known_.size() && !known_.resize(at + 1, 0)) return Status::no_memory;
  if (known_[at] != 0) return Status::ok;
  if (!reserve_connections(Connection::kTracks)) return Status::unavailable;
  reserved_ += Connection::kTracks;
  if (!introduced_.push({peer, endpoint})) return Status::no_memory;
  known_[at] = 1;
  Command command{Command::What::introduce};
  return !running_ || push(command) ? Status::ok : Status::no_memory;
}

Status Driver::post_send(int peer, const Key& key, const void* from, std::uint64_t bytes, Handle* handle,
                         const Listener& listener, std::uint32_t position) {
  char* const data = const_cast<char*>(static_cast<const char*>(from));
  Wish wish;
  wish.position = position;
  return post(peer, key, data, bytes, true, listener, wish, handle);
}

Status Driver::post_recv(int peer, const Key& key, void* to, std::uint64_t bytes, Handle* handle,
                         const Listener& listener, const Wish& wish) {
  return post(peer, key, static_cast<char*>(to), bytes, false, listener, wish, handle);
}

Status Driver::post(int peer, const Key& key, char* data, std::uint64_t bytes, bool sends, const Listener& listener,
                    const Wish& wish, Handle* handle) {
  if (bytes > kMostBytes) return Status::invalid;
  const Locked locked(shared_.lock);
  if (!opened_ || stopping_ || (!running_ && !start_thread())) return Status::unavailable;
  Message* const message = shared_.pool.take();
  if (message == nullptr) return Status::no_memory;
  message->key = key;
  message->peer = peer;
  message->sends = sends;
  message->data = data;
  message->bytes = bytes;
  message->listener = listener;
  message->aside = wish.aside;
  message->position = wish.position;
  message->all_at_once = wish.all_at_once;
  const Range whole{0, bytes};
  for (std::uint32_t i = 0; i < std::min(wish.order_count, kMostRanges); ++i) {
    const Range range = wish.order[i].common(whole);
    if (range.bytes != 0) message->order[message->order_count++] = range;
  }
  *handle = message;
  Command command{Command::What::post};
  command.peer = peer;
  command.message = message;
  if (push(command)) return Status::ok;
  shared_.pool.give_back(message);
  return Status::no_memory;
}

// With the lock held.
bool Driver::push(const Command& command) {
  if (!commands_.push(command)) return false;
  if (parked_) (void)sys::poller_wake(poller_);
  parked_ = false;
  return true;
}

// Without memory it is tried again: the driver empties its list all the time. Peers that hear of a
// failure may call first, so there must be a thread.
void Driver::order(const Command& command) {
  for (bool ordered = false; !ordered;) {
    {
      const Locked locked(shared_.lock);
      const bool wanted =
          running_ || (command.what == Command::What::abandon && opened_ && !stopping_ && start_thread());
      ordered = stopping_ || !wanted || push(command);
    }
    if (!ordered) sys::nap_ns(100'000);
  }
}

// With the lock held. The thread needs a small stack, but the program's thread-local variables may
// lie in it, too.
bool Driver::start_thread() {
  constexpr std::size_t kStackBytes = 256 << 10;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  const bool small = pthread_attr_setstacksize(&attributes, kStackBytes) == 0;
  running_ = (small && sys::thread_start(&thread_, &attributes, main, this) == 0) ||
             sys::thread_start(&thread_, nullptr, main, this) == 0;
  pthread_attr_destroy(&attributes);
  return running_;
}

Status Driver::on_thread(void (*task)(void* context), void* context) {
  Command command{Command::What::task};
  command.task = task;
  command.context = context;
  const Locked locked(shared_.lock);
  if (!opened_ || stopping_ || (!running_ && !start_thread())) return Status::unavailable;
  return push(command) ? Status::ok : Status::no_memory;
}

void Driver::hurry(Handle handle, std::uint64_t offset, std::uint64_t bytes) {
  if (handle->sends || bytes == 0 || done(handle)) return;
  Command command{Command::What::hurry};
  command.peer = handle->peer;
  command.key = handle->key;
  command.range = Range{offset, bytes}.common({0, handle->bytes});
  if (command.range.bytes != 0) order(command);
}

void Driver::complete(Handle handle) {
  while (!done(handle)) sys::thread_yield();  // its listener may have been told a moment ago
  const Locked locked(shared_.lock);
  shared_.pool.give_back(handle);
}

void Driver::abandon(int peer, std::uint64_t comm, const Reason& reason) {
  Command command{Command::What::abandon};
  command.peer = peer;
  command.key.comm = comm;
  command.reason = reason;
  order(command);
}

void Driver::forget(std::uint64_t comm) {
  Command command{Command::What::forget};
  command.key.comm = comm;
  order(command);
}

void Driver::stop() {
  bool running = false;
  {
    const Locked locked(shared_.lock);
    if (!opened_ || stopping_) return;
    stopping_ = true;
    running = running_ && process_ == sys::process_id();
    if (parked_) (void)sys::poller_wake(poller_);
    parked_ = false;
  }
  if (running) pthread_join(thread_, nullptr);
  listeners_.close();
  sys::poller_close(&poller_);
  release_connections(reserved_);
}

}  // namespace stretto::transport::bulk
