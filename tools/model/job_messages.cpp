// SPDX-License-Identifier: BSD-3-Clause
#include "job_messages.hpp"

#include <algorithm>

namespace stretto::modelling {

void Operations::finish(std::uint32_t operation, double done, const Cause& cause) {
  Operation& finished = all_[operation];
  finished.done = done;
  finished.cause = cause;
  if (finished.waiter == Operation::kNobody) return;
  woken_.push_back({finished.waiter, done});
  finished.waiter = Operation::kNobody;
}

bool Operations::have_ended(const std::vector<std::uint32_t>& operations, std::uint32_t rank) {
  for (const std::uint32_t each : operations) {
    if (all_[each].done >= 0) continue;
    all_[each].waiter = rank;
    return false;
  }
  return true;
}

std::size_t Messages::Hash::operator()(const End& end) const {
  std::uint64_t hash = end.comm;
  for (const std::uint64_t word :
       {static_cast<std::uint64_t>(end.from), static_cast<std::uint64_t>(end.to), static_cast<std::uint64_t>(end.tag)})
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u ^ hash >> 31;
  return hash;
}

// The first message that has the other end, or a new one that waits for it.
std::uint32_t Messages::match(std::deque<std::uint32_t>& others, std::deque<std::uint32_t>& own) {
  if (others.empty()) {
    own.push_back(messages_.take());
    return own.back();
  }
  const std::uint32_t found = others.front();
  others.pop_front();
  return found;
}

std::uint32_t Messages::send(const End& end, std::uint64_t bytes, bool waits, const Cause& by) {
  Channel& channel = channels_[end];
  const std::uint32_t number = match(channel.receives, channel.sends);
  Message& message = messages_[number];
  message.from = end.from;
  message.to = end.to;
  message.bytes = bytes;
  message.waits = waits || bytes > eager_bytes_;
  message.sent = by;
  const std::uint32_t made = message.send = operations_.make(message.waits ? -1 : by.time);
  const bool is_whole = message.receive != Message::kNone;
  if (!message.waits || is_whole) deliver(message);
  if (is_whole) messages_.give_back(number);
  return made;
}

std::uint32_t Messages::receive(const End& end, const Cause& by) {
  Channel& channel = channels_[end];
  const std::uint32_t number = match(channel.sends, channel.receives);
  Message& message = messages_[number];
  message.posted = by;
  const std::uint32_t made = message.receive = operations_.make();
  if (message.send == Message::kNone) return made;
  deliver(message);
  messages_.give_back(number);
  return made;
}

// Sends the message on its way, if it is not, and ends the receive, if there is one.
void Messages::deliver(Message& message) {
  if (message.arrived < 0) {
    const Network::Passage passage =
        message.waits
            ? network_.pass_on_request(message.from, message.to, message.bytes, message.sent.time, message.posted.time)
            : network_.pass(message.from, message.to, message.bytes, message.sent.time);
    message.arrived = passage.arrives;
    if (message.waits) operations_.finish(message.send, passage.leaves, message.posted);
  }
  if (message.receive == Message::kNone) return;
  operations_[message.receive].overhead = network_.receive_time(message.from, message.to, message.bytes);
  operations_.finish(message.receive, std::max(message.arrived, message.posted.time), message.sent);
}

}  // namespace stretto::modelling
