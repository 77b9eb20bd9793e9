// SPDX-License-Identifier: BSD-3-Clause
#include "engine/sockets.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace stretto::engine {

sched::Transport Sockets::transport() {
  return {this,
          [](void* sockets, int peer, std::uint32_t edge, const char* data, std::uint64_t bytes, std::uint32_t ticket) {
            Sockets& s = *static_cast<Sockets*>(sockets);
            Line* const line = s.announces_ ? s.line_to(peer) : s.line_of(peer, bytes);
            if (line == nullptr)
              return s.went_beyond(s.beyond_.send(s.beyond_.context, peer, edge, data, bytes, ticket));
            if (!s.posted_.push(line->out, const_cast<char*>(data), bytes, ticket, edge)) return false;
            s.step_out(*line);
            return true;
          },
          [](void* sockets, int peer, std::uint32_t edge, char* data, std::uint64_t bytes, std::uint32_t ticket) {
            Sockets& s = *static_cast<Sockets*>(sockets);
            Line* const line = s.announces_ ? s.line_to(peer) : s.line_of(peer, bytes);
            if (line == nullptr)
              return s.went_beyond(s.beyond_.recv(s.beyond_.context, peer, edge, data, bytes, ticket));
            if (!s.posted_.push(line->in, data, bytes, ticket, edge)) return false;
            s.choose_acknowledgement(*line, bytes);
            while (!line->in.empty() && s.take(*line)) {
            }
            return true;
          },
          [](void* sockets, std::uint32_t* tickets, int capacity) {
            return static_cast<Sockets*>(sockets)->poll(tickets, capacity);
          },
          [](void* sockets) { return static_cast<const Sockets*>(sockets)->failure(); }};
}

bool Sockets::went_beyond(bool taken) {
  beyond_under_way_ += taken ? 1 : 0;
  return taken;
}

// Short messages to the root leave it as it is: it makes no difference to them.
void Sockets::choose_acknowledgement(Line& line, std::uint64_t bytes) {
  const bool on_arrival = goes_to_root_ && (line.acknowledged_on_arrival || bytes > kProfile.socket_segment_bytes);
  if (on_arrival == line.acknowledged_on_arrival) return;
  sys::stream_acknowledge(line.stream, on_arrival);
  line.acknowledged_on_arrival = on_arrival;
}

void Sockets::step_out(Line& line) {
  while (!line.out.empty() && !broken_) {
    const Posted::Message& message = posted_.first(line.out);
    const bool beyond = !is_short(message.bytes);  // announced here
    const std::size_t bytes = beyond ? 0 : message.bytes, whole = sizeof(Head) + bytes + kTailBytes;
    if (line.gone < whole) {
      const Head head{beyond ? kBeyond : static_cast<std::uint32_t>(bytes), line.out.through};
      constexpr char kTail[kTailBytes] = {};
      const sys::Piece pieces[] = {{&head, sizeof head}, {message.data, bytes}, {kTail, kTailBytes}};
      std::size_t sent = 0;
      const int error = sys::stream_send(line.stream, pieces, 3, line.gone, &sent);
      if (error != 0) {
        if (error != EAGAIN) lose({rank_of(line), rank_});
        return;
      }
      line.gone += sent;
      if (line.gone < whole) continue;
    }
    if (beyond && !send_beyond(line)) return;
    line.gone = 0;
    if (!beyond) pop(line.out);
  }
}

// The first message out has been announced. False: not now.
bool Sockets::send_beyond(Line& line) {
  const Posted::Message message = posted_.first(line.out);
  if (!went_beyond(
          beyond_.send(beyond_.context, rank_of(line), message.edge, message.data, message.bytes, message.ticket)))
    return false;
  (void)posted_.drop(line.out);
  return true;
}

// Brings the first message that is waited for to its place, if all of it is in the inbox.
bool Sockets::take(Line& line) {
  if (line.tail_due && line.begin != line.end) {
    line.begin += kTailBytes;
    line.tail_due = false;
  }
  const std::uint32_t there = line.end - line.begin;
  if (there < sizeof(Head)) return false;
  const char* const first = inbox(line) + line.begin;
  Head head;
  std::memcpy(&head, first, sizeof head);
  if (head.bytes == kFarewell) {
    hear_farewell(line, {head.number});
    return false;
  }
  const Posted::Message& message = posted_.first(line.in);
  const bool beyond = head.bytes == kBeyond;
  if (head.number != line.in.through || (beyond ? is_short(message.bytes) : head.bytes > message.bytes)) {
    fail(Status::peer_failed);
    return false;
  }
  if (beyond) return receive_beyond(line);
  if (there < sizeof head + head.bytes) return false;
  if (head.bytes != 0) std::memcpy(message.data, first + sizeof head, head.bytes);
  took(line, head.bytes);
  pop(line.in);
  return true;
}

void Sockets::took(Line& line, std::uint32_t bytes) {
  line.begin += static_cast<std::uint32_t>(sizeof(Head)) + bytes;
  line.tail_due = true;
  ++line.unacked;
}

// The first message that is waited for goes beyond, as its sender says.
bool Sockets::receive_beyond(Line& line) {
  const Posted::Message message = posted_.first(line.in);
  const int peer = rank_of(line);
  if (!went_beyond(beyond_.recv(beyond_.context, peer, message.edge, message.data, message.bytes, message.ticket)))
    return false;
  took(line, 0);
  (void)posted_.drop(line.in);
  return true;
}

// Whether to read a stream: there is more than a tail, or it is time to acknowledge, or to see whether the stream has
// ended.
bool Sockets::has_news(Line& line) {
  std::size_t waiting = 0;
  if (looks_ % kProfile.socket_looks_per_poke == 0 || sys::stream_waiting(line.stream, &waiting) != 0) return true;
  if (waiting == 0) line.unacked = 0;
  const bool only_tail = waiting == kTailBytes && line.tail_due && line.begin == line.end;
  return waiting != 0 && (!only_tail || line.unacked >= kProfile.socket_messages_per_ack);
}

// To be read: the first message that is waited for without its tail, unless it is high time to acknowledge.
std::uint32_t Sockets::wanted_bytes(const Line& line) const {
  const bool whole = line.unacked >= 2 * kProfile.socket_messages_per_ack;
  const std::uint32_t tails = (line.tail_due ? kTailBytes : 0) + (whole ? kTailBytes : 0);
  const std::uint64_t bytes = std::min<std::uint64_t>(posted_.first(line.in).bytes, kProfile.socket_bytes);
  return static_cast<std::uint32_t>(sizeof(Head) + bytes) + tails - (line.end - line.begin);
}

void Sockets::step_in(Line& line) {
  while (!line.in.empty() && !broken_ && take(line)) {
  }
  while (!line.in.empty() && !broken_ && has_news(line)) {
    if (line.begin != 0) {
      std::memmove(inbox(line), inbox(line) + line.begin, line.end - line.begin);
      line.end -= line.begin;
      line.begin = 0;
    }
    std::size_t received = 0;
    const std::uint32_t wanted = wanted_bytes(line);
    const int error = sys::stream_receive(line.stream, inbox(line) + line.end, wanted, &received);
    if (received < wanted) line.unacked = 0;
    if (error != 0) {
      if (error != EAGAIN) lose({rank_of(line), rank_});
      return;
    }
    line.end += static_cast<std::uint32_t>(received);
    while (!line.in.empty() && take(line)) {
    }
  }
}

// The line with the message that has been waited for longest, null: nothing is waited for.
Sockets::Line* Sockets::first_awaited() {
  Line* first = nullptr;
  for (Line& line : lines_) {
    if (!line.in.empty() && (first == nullptr || line.in.first < first->in.first)) first = &line;
  }
  return first;
}

// A look in vain keeps others from the processor, and most of it is asking the system. So it asks about one line, whose
// message was asked for before all others: schedules ask in the order in which they go on. Only if that has come it
// asks about the next; and now and then about all of them, since the peer that is asked may wait for what another's
// message lets this rank do.
void Sockets::step() {
  ++looks_;
  for (Line& line : lines_) step_out(line);
  if (looks_ % kProfile.socket_looks_per_round == 0) {
    for (Line& line : lines_) step_in(line);
    return;
  }
  for (Line* line = first_awaited(); line != nullptr && !broken_; line = first_awaited()) {
    step_in(*line);
    if (!line->in.empty()) return;
  }
}

int Sockets::poll_beyond(std::uint32_t* tickets, int capacity) {
  const int count = beyond_.poll(beyond_.context, tickets, capacity);
  beyond_under_way_ -= static_cast<std::uint64_t>(count > 0 ? count : 0);
  return count;
}

// Who finds nothing gives the processor away where processors are short, as the host does when it is asked in vain; and
// drives the host now and then: a wait looks many times before it does so itself (shm/wait.hpp), and looks take longer
// here.
void Sockets::look_in_vain() {
  if (looks_ % kProfile.socket_looks_per_poke == 0 && policy_.poke != nullptr) policy_.poke(policy_.host);
  if (policy_.yield_after_ns == 0) sys::thread_yield();
}

void Sockets::lose(const Lost& lost) {
  if (status_ == Status::ok) lost_ = lost;
  fail(Status::peer_lost);
}

void Sockets::hear_farewell(const Line& line, const Reason& reason) {
  switch (reason.why()) {
    case Status::peer_gone:
    case Status::peer_lost: return lose({reason.lost(), rank_of(line)});
    case Status::not_moved: return fail(Status::not_moved);
    default: return fail(Status::peer_failed);
  }
}

// Those who are in the middle of a message cannot be told why: they see that the stream ends.
void Sockets::give_up(Status why, int lost) {
  if (lines_.empty() || has_given_up_) return;
  has_given_up_ = true;
  fail(why);
  const Head farewell{kFarewell, Reason::of(status_, lost).word};
  const sys::Piece words{&farewell, sizeof farewell};
  for (const Line& line : lines_) {
    if (line.stream < 0) continue;
    std::size_t sent = 0;
    if (line.gone == 0) (void)sys::stream_send(line.stream, &words, 1, 0, &sent);
    sys::stream_end(line.stream);
  }
}

int Sockets::poll(std::uint32_t* tickets, int capacity) {
  if (!posted_.any_through() && posted_.any_left()) step();
  if (broken_) {
    give_up(status_);
    return -1;
  }
  if (posted_.any_through()) return posted_.hand_out(tickets, capacity);
  if (beyond_under_way_ != 0 || lines_.empty()) return poll_beyond(tickets, capacity);
  if (posted_.any_left()) look_in_vain();
  return 0;
}

}  // namespace stretto::engine
