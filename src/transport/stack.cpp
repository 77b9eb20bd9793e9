// SPDX-License-Identifier: BSD-3-Clause
#include "transport/stack.hpp"

namespace stretto::transport {

void Stack::start(const Transport& last) {
  last_ = last;
  tcp_.start(counted_last());
  chain();
}

bool Stack::join(shm::Team& team, const int* ranks, int size) {
  const bool joined = shm_.join(team, ranks, size);
  chain();
  return joined;
}

TcpTransport::Opened Stack::connect(const TcpTransport::Opening& opening) {
  const TcpTransport::Opened opened = tcp_.open(opening);
  chain();
  return opened;
}

void Stack::chain() {
  count_ = 0;
  if (shm_.joined()) layers_[count_++] = shm_.transport();
  if (tcp_.connected()) layers_[count_++] = tcp_.transport();
  layers_[count_++] = counted_last();
}

// The last transport, and how many of its messages are under way: those of the connections, too,
// which announce long messages and hand them on.
Transport Stack::counted_last() {
  Transport counted;
  counted.context = this;
  counted.send = [](void* self, int peer, std::uint32_t message_index, const char* data, std::uint64_t bytes,
                    std::uint32_t ticket) {
    Stack& s = *static_cast<Stack*>(self);
    const bool taken = s.last_.send(s.last_.context, peer, message_index, data, bytes, ticket);
    s.last_under_way_ += taken ? 1 : 0;
    return taken;
  };
  counted.recv = [](void* self, int peer, std::uint32_t message_index, char* data, std::uint64_t bytes,
                    std::uint32_t ticket) {
    Stack& s = *static_cast<Stack*>(self);
    const bool taken = s.last_.recv(s.last_.context, peer, message_index, data, bytes, ticket);
    s.last_under_way_ += taken ? 1 : 0;
    return taken;
  };
  counted.poll = [](void* self, std::uint32_t* tickets, int capacity) {
    return static_cast<Stack*>(self)->poll_last(tickets, capacity);
  };
  counted.failure = [](void* self) { return static_cast<const Stack*>(self)->last_.why_broken(); };
  counted.begin = [](void* self, Collective collective) {
    const Transport& last = static_cast<const Stack*>(self)->last_;
    if (last.begin != nullptr) last.begin(last.context, collective);
  };
  counted.abort = [](void* self, Status why, int lost) { static_cast<Stack*>(self)->abort_last(why, lost); };
  return counted;
}

// A transport that gives up keeps no message.
void Stack::abort_last(Status why, int lost) {
  if (last_.abort == nullptr) return;
  last_.abort(last_.context, why, lost);
  last_under_way_ = 0;
}

const Transport& Stack::first_that_accepts(int peer, std::uint64_t bytes) const {
  const Transport* layer = layers_;
  while (layer->accepts != nullptr && !layer->accepts(layer->context, peer, bytes)) ++layer;
  return *layer;
}

Transport Stack::transport() {
  if (count_ == 1) return last_;
  Transport chained;
  chained.context = this;
  chained.send = [](void* self, int peer, std::uint32_t message_index, const char* data, std::uint64_t bytes,
                    std::uint32_t ticket) {
    const Transport& by = static_cast<Stack*>(self)->first_that_accepts(peer, bytes);
    return by.send(by.context, peer, message_index, data, bytes, ticket);
  };
  chained.recv = [](void* self, int peer, std::uint32_t message_index, char* data, std::uint64_t bytes,
                    std::uint32_t ticket) {
    const Transport& by = static_cast<Stack*>(self)->first_that_accepts(peer, bytes);
    return by.recv(by.context, peer, message_index, data, bytes, ticket);
  };
  chained.poll = [](void* self, std::uint32_t* tickets, int capacity) {
    return static_cast<Stack*>(self)->poll(tickets, capacity);
  };
  chained.failure = [](void* self) { return static_cast<const Stack*>(self)->failure(); };
  return chained;
}

void Stack::begin(Collective collective) {
  for (int i = 0; i < count_; ++i) {
    if (layers_[i].begin != nullptr) layers_[i].begin(layers_[i].context, collective);
  }
}

void Stack::end() {
  for (int i = 0; i < count_; ++i) {
    if (layers_[i].end != nullptr) layers_[i].end(layers_[i].context);
  }
}

Lost Stack::lost() const {
  return tcp_.lost().rank < 0 && last_.lost != nullptr ? last_.lost(last_.context) : tcp_.lost();
}

Lost Stack::abort(Status why) {
  const Lost lost = why == Status::peer_lost ? this->lost() : why == Status::peer_gone ? Lost{shm_.lost(), -1} : Lost{};
  for (int i = 0; i < count_; ++i) {
    if (layers_[i].abort != nullptr) layers_[i].abort(layers_[i].context, why, lost.rank);
  }
  return lost;
}

int Stack::poll_last(std::uint32_t* tickets, int capacity) {
  const int count = last_.poll(last_.context, tickets, capacity);
  last_under_way_ -= static_cast<std::uint64_t>(count > 0 ? count : 0);
  return count;
}

// In the order of the chain: a look into shared memory costs least. The last transport is asked
// only if it has something to do, where connections have: it drives the MPI, which takes long.
int Stack::poll(std::uint32_t* tickets, int capacity) {
  for (int i = 0; i + 1 < count_; ++i) {
    const int count = layers_[i].poll(layers_[i].context, tickets, capacity);
    if (count != 0) return count;
  }
  if (last_under_way_ != 0 || !tcp_.connected()) return poll_last(tickets, capacity);
  const Transport& connections = layers_[count_ - 2];
  connections.rest(connections.context);
  return 0;
}

Status Stack::failure() const {
  for (int i = 0; i < count_; ++i) {
    const Status why = layers_[i].why_broken();
    if (why != Status::ok) return why;
  }
  return Status::peer_failed;
}

}  // namespace stretto::transport
