// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace stretto::transport {

Transport TcpTransport::transport() {
  return {
      this,
      [](void* self, int peer, std::uint32_t message_index, const char* data, std::uint64_t bytes,
         std::uint32_t ticket) {
        TcpTransport& t = *static_cast<TcpTransport*>(self);
        Connection& connection = *t.connection_to(peer);
        if (!t.posted_.push(connection.out, const_cast<char*>(data), bytes, ticket, message_index)) return false;
        t.step_out(connection);
        return true;
      },
      [](void* self, int peer, std::uint32_t message_index, char* data, std::uint64_t bytes, std::uint32_t ticket) {
        TcpTransport& t = *static_cast<TcpTransport*>(self);
        Connection& connection = *t.connection_to(peer);
        if (!t.posted_.push(connection.in, data, bytes, ticket, message_index)) return false;
        t.choose_acknowledgement(connection, bytes);
        while (!connection.in.empty() && t.take(connection)) {
        }
        return true;
      },
      [](void* self, std::uint32_t* tickets, int capacity) {
        return static_cast<TcpTransport*>(self)->poll(tickets, capacity);
      },
      [](void* self) { return static_cast<const TcpTransport*>(self)->status_; },
      [](void* self, int peer, std::uint64_t bytes) { return static_cast<TcpTransport*>(self)->accepts(peer, bytes); },
      [](void* self, Collective collective) { static_cast<TcpTransport*>(self)->begin(collective); },
      nullptr,
      [](void* self, Status why, int lost) { static_cast<TcpTransport*>(self)->abort(why, lost); },
      [](void* self) { static_cast<TcpTransport*>(self)->rest(); }};
}

// Short messages to the root leave it as it is: it makes no difference to them.
void TcpTransport::choose_acknowledgement(Connection& connection, std::uint64_t bytes) {
  const bool on_arrival = goes_to_root_ && (connection.acknowledged_on_arrival || bytes > kTuning.tcp_segment_bytes);
  if (on_arrival == connection.acknowledged_on_arrival) return;
  sys::stream_acknowledge(connection.stream, on_arrival);
  connection.acknowledged_on_arrival = on_arrival;
}

void TcpTransport::step_out(Connection& connection) {
  while (!connection.out.empty() && !broken_) {
    const Posted::Message& message = posted_.first(connection.out);
    const bool by_next = !is_short(message.bytes);  // announced here
    const std::size_t bytes = by_next ? 0 : message.bytes, whole = sizeof(Head) + bytes + kTailBytes;
    if (connection.gone < whole) {
      const Head head{by_next ? kByNext : static_cast<std::uint32_t>(bytes), connection.out.through};
      constexpr char kTail[kTailBytes] = {};
      const sys::Piece pieces[] = {{&head, sizeof head}, {message.data, bytes}, {kTail, kTailBytes}};
      std::size_t sent = 0;
      const int error = sys::stream_send(connection.stream, pieces, 3, connection.gone, &sent);
      if (error != 0) {
        if (error != EAGAIN) peer_died({connection.rank, rank_});
        return;
      }
      connection.gone += sent;
      if (connection.gone < whole) continue;
    }
    if (by_next && !send_by_next(connection)) return;
    connection.gone = 0;
    if (!by_next) pop(connection.out);
  }
}

// The first message out has been announced. False: not now.
bool TcpTransport::send_by_next(Connection& connection) {
  const Posted::Message message = posted_.first(connection.out);
  if (!next_.send(next_.context, connection.rank, message.message_index, message.data, message.bytes, message.ticket))
    return false;
  (void)posted_.drop(connection.out);
  return true;
}

// Brings the first message that is waited for to its place, if all of it is in the inbox.
bool TcpTransport::take(Connection& connection) {
  if (connection.tail_due && connection.begin != connection.end) {
    connection.begin += kTailBytes;
    connection.tail_due = false;
  }
  const std::uint32_t there = connection.end - connection.begin;
  if (there < sizeof(Head)) return false;
  const char* const first = inbox(connection) + connection.begin;
  Head head;
  std::memcpy(&head, first, sizeof head);
  if (head.bytes == kFarewell) {
    hear_farewell(connection, head.number);
    return false;
  }
  const Posted::Message& message = posted_.first(connection.in);
  const bool by_next = head.bytes == kByNext;
  if (head.number != connection.in.through || (by_next ? is_short(message.bytes) : head.bytes > message.bytes)) {
    fail(Status::peer_failed);
    return false;
  }
  if (by_next) return receive_by_next(connection);
  if (there < sizeof head + head.bytes) return false;
  if (head.bytes != 0) std::memcpy(message.data, first + sizeof head, head.bytes);
  took(connection, head.bytes);
  pop(connection.in);
  return true;
}

void TcpTransport::took(Connection& connection, std::uint32_t bytes) {
  connection.begin += static_cast<std::uint32_t>(sizeof(Head)) + bytes;
  connection.tail_due = true;
  ++connection.unacked;
}

// The first message that is waited for goes by the next transport, as its sender says.
bool TcpTransport::receive_by_next(Connection& connection) {
  const Posted::Message message = posted_.first(connection.in);
  const int peer = connection.rank;
  if (!next_.recv(next_.context, peer, message.message_index, message.data, message.bytes, message.ticket))
    return false;
  took(connection, 0);
  (void)posted_.drop(connection.in);
  return true;
}

// Whether to read a stream: there is more than a tail, or it is time to acknowledge, or to see
// whether the stream has ended.
bool TcpTransport::has_news(Connection& connection) {
  std::size_t waiting = 0;
  if (looks_ % kTuning.tcp_looks_per_poke == 0 || sys::stream_waiting(connection.stream, &waiting) != 0) return true;
  if (waiting == 0) connection.unacked = 0;
  const bool only_tail = waiting == kTailBytes && connection.tail_due && connection.begin == connection.end;
  return waiting != 0 && (!only_tail || connection.unacked >= kTuning.tcp_messages_per_ack);
}

// To be read: the first message that is waited for without its tail, unless it is high time to
// acknowledge.
std::uint32_t TcpTransport::wanted_bytes(const Connection& connection) const {
  const bool whole = connection.unacked >= 2 * kTuning.tcp_messages_per_ack;
  const std::uint32_t tails = (connection.tail_due ? kTailBytes : 0) + (whole ? kTailBytes : 0);
  const std::uint64_t bytes = std::min<std::uint64_t>(posted_.first(connection.in).bytes, kTuning.tcp_bytes);
  return static_cast<std::uint32_t>(sizeof(Head) + bytes) + tails - (connection.end - connection.begin);
}

void TcpTransport::step_in(Connection& connection) {
  while (!connection.in.empty() && !broken_ && take(connection)) {
  }
  while (!connection.in.empty() && !broken_ && has_news(connection)) {
    if (connection.begin != 0) {
      std::memmove(inbox(connection), inbox(connection) + connection.begin, connection.end - connection.begin);
      connection.end -= connection.begin;
      connection.begin = 0;
    }
    std::size_t received = 0;
    const std::uint32_t wanted = wanted_bytes(connection);
    const int error = sys::stream_receive(connection.stream, inbox(connection) + connection.end, wanted, &received);
    if (received < wanted) connection.unacked = 0;
    if (error != 0) {
      if (error != EAGAIN) peer_died({connection.rank, rank_});
      return;
    }
    connection.end += static_cast<std::uint32_t>(received);
    while (!connection.in.empty() && take(connection)) {
    }
  }
}

// The connection with the message that has been waited for longest, null: nothing is waited for.
TcpTransport::Connection* TcpTransport::first_awaited() {
  Connection* first = nullptr;
  for (Connection& connection : connections_) {
    if (!connection.in.empty() && (first == nullptr || connection.in.first < first->in.first)) first = &connection;
  }
  return first;
}

// A look in vain keeps others from the processor, and most of it is asking the system. So it asks
// about one connection, whose message was asked for before all others: schedules ask in the order
// in which they go on. Only if that has come it asks about the next; and now and then about all of
// them, since the peer that is asked may wait for what another's message lets this rank do.
void TcpTransport::step() {
  ++looks_;
  for (Connection& connection : connections_) step_out(connection);
  if (looks_ % kTuning.tcp_looks_per_round == 0) {
    for (Connection& connection : connections_) step_in(connection);
    return;
  }
  for (Connection* connection = first_awaited(); connection != nullptr && !broken_; connection = first_awaited()) {
    step_in(*connection);
    if (!connection->in.empty()) return;
  }
}

// A rank that finds nothing gives the processor away where processors are short, as the host does
// when it is asked in vain. It drives the host now and then: a wait looks many times before it does
// so itself (shm/waiter.hpp), and looks take longer here.
void TcpTransport::rest() {
  if (!posted_.any_left()) return;
  if (looks_ % kTuning.tcp_looks_per_poke == 0 && policy_.poke != nullptr) policy_.poke(policy_.host);
  if (policy_.yield_after_ns == 0) sys::thread_yield();
}

void TcpTransport::peer_died(const Lost& lost) {
  if (status_ == Status::ok) lost_ = lost;
  fail(Status::peer_lost);
}

void TcpTransport::hear_farewell(const Connection& connection, std::uint32_t word) {
  Reason reason;
  (void)reason.read(word);
  switch (reason.why) {
    case Status::peer_gone:
    case Status::peer_lost: return peer_died({reason.lost, connection.rank});
    case Status::not_moved: return fail(Status::not_moved);
    default: return fail(Status::peer_failed);
  }
}

// Those who are in the middle of a message cannot be told why: they see that the stream ends.
void TcpTransport::abort(Status why, int lost) {
  if (connections_.empty() || has_aborted_) return;
  has_aborted_ = true;
  fail(why);
  const Head farewell{kFarewell, Reason{status_, lost}.word()};
  const sys::Piece words{&farewell, sizeof farewell};
  for (const Connection& connection : connections_) {
    if (connection.stream < 0) continue;
    std::size_t sent = 0;
    if (connection.gone == 0) (void)sys::stream_send(connection.stream, &words, 1, 0, &sent);
    sys::stream_end(connection.stream);
  }
}

int TcpTransport::poll(std::uint32_t* tickets, int capacity) {
  if (!posted_.any_through() && posted_.any_left()) step();
  if (broken_) {
    abort(status_, lost_.rank);
    return -1;
  }
  return posted_.hand_out(tickets, capacity);
}

}  // namespace stretto::transport
