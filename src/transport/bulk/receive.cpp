// SPDX-License-Identifier: BSD-3-Clause
// Frames that come. A payload goes straight to where its message is wanted, together with the head
// of the frame behind it.
#include <algorithm>
#include <cerrno>

#include "transport/bulk/connection.hpp"

namespace stretto::transport::bulk {

namespace {

using Into = IncomingFrame::Into;

// The system wakes the driver when so much of a payload is there. At a head it wakes it at once.
void report_from(Track& track, std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes == track.reported_from) return;
  if (sys::stream_readable_from(track.stream, bytes, bytes) == 0) track.reported_from = bytes;
}

}  // namespace

bool Connection::step_in(Track& track) {
  IncomingFrame& in = track.in;
  for (std::uint64_t turn = 0; track.readable && turn < kTurnBytes;) {
    sys::Place places[2];
    int count = 0;
    std::uint64_t payload = in.left;
    char* const place = target(in, &payload);
    if (payload != 0) places[count++] = {place, payload};
    if (payload == in.left) places[count++] = {in.head_bytes + in.head_got, Head::kBytes - in.head_got};
    const std::size_t wanted = payload + (payload == in.left ? Head::kBytes - in.head_got : 0);
    std::size_t received = 0;
    const int error = sys::stream_receive_pieces(track.stream, places, count, &received);
    track.readable = error == 0 && received == wanted;
    if (error != 0 && error != EAGAIN) {
      stream_ends(track, error);
      return false;
    }
    if (error == 0 && !take_received(in, received)) return false;
    turn += received;
  }
  if (!track.readable && !track.has_ended) report_from(track, std::min<std::uint64_t>(in.left, kReportBytes));
  return track.readable;
}

// All that the peer has sent by it is here, or the network fails.
void Connection::stream_ends(Track& track, int error) {
  track.has_ended = true;
  const Track& other = &track == &words_ ? bulk_ : words_;
  if (error != ECONNRESET || other.has_ended) return lose();
  sys::stream_end(other.stream);
}

bool Connection::drain() {
  bool any_open = false;
  for (Track* const track : both_) {
    int error = 0;
    for (std::size_t received = 0; error == 0;)
      error = sys::stream_receive(track->stream, shared_.sink, sizeof shared_.sink, &received);
    if (error == EAGAIN) report_from(*track, 1);
    any_open = any_open || error == EAGAIN;
  }
  return any_open;
}

// Where the next bytes of the payload go. *together: how many of them, of `*together`.
char* Connection::target(IncomingFrame& in, std::uint64_t* together) {
  switch (in.into) {
    case Into::message: return in.message->place(in.at, together);
    case Into::slot: return in.slot->data + in.at;
    case Into::words: return in.words + in.at;
    default: *together = std::min<std::uint64_t>(*together, sizeof shared_.sink); return shared_.sink;
  }
}

bool Connection::take_received(IncomingFrame& in, std::size_t bytes) {
  const std::uint64_t payload = std::min<std::uint64_t>(bytes, in.left);
  if (payload != 0) {
    in.left -= payload;
    if (!has_arrived(in, payload) || (in.left == 0 && !end_payload(in))) return false;
  }
  in.head_got += static_cast<std::uint32_t>(bytes - payload);
  if (in.head_got < Head::kBytes) return true;
  in.head_got = 0;
  return begin_frame(in);
}

// A part of a payload stands in its place.
bool Connection::has_arrived(IncomingFrame& in, std::uint64_t bytes) {
  const Range range{in.at, bytes};
  in.at += bytes;
  return in.into != Into::message || arrive(in.message, range);
}

bool Connection::arrive(Message* message, const Range& range) {
  if (!message->arrived.add(range)) {
    no_memory();
    return false;
  }
  shared_.grants.arrived(message, range.bytes, sys::now_ns());
  message->arrived_bytes.fetch_add(range.bytes, std::memory_order_release);
  if (message->listener.arrived != nullptr)
    message->listener.arrived(message->listener.context, message, range.offset, range.bytes);
  return true;
}

bool Connection::begin_frame(IncomingFrame& in) {
  const Head& head = in.head;
  bool fine = in.head.read(in.head_bytes);
  in.at = head.kind == Kind::data ? head.offset : 0;
  in.left = fine ? head.payload_bytes() : 0;
  in.into = Into::sink;
  Reason reason;
  if (fine) {
    switch (head.kind) {
      case Kind::ask:
      case Kind::reach:
      case Kind::offer: in.into = Into::words; break;
      case Kind::taken: fine = hear_taken(head); break;
      case Kind::leave: hear_leave(); break;
      case Kind::hurry: fine = hear_hurry(head); break;
      case Kind::grant: fine = hear_grant(head); break;
      case Kind::data: fine = begin_data(in); break;
      case Kind::eager: fine = begin_eager(in); break;
      case Kind::ack: fine = gone_.remove(head.key); break;
      case Kind::fail:
        fine = reason.read(head.offset);
        add_failure(head.key.comm, reason, true);
        break;
    }
  }
  if (!fine) break_off();
  return is_open() && (in.left != 0 || end_payload(in));
}

// Whether nothing of this range of a receive is here, or half through a track.
bool Connection::is_new(const Message& message, const Range& range) const {
  if (message.arrived.overlaps(range)) return false;
  return std::none_of(std::begin(both_), std::end(both_), [&](const Track* track) {
    const IncomingFrame& in = track->in;
    return in.fills(&message) && Range{in.at, in.left}.common(range).bytes != 0;
  });
}

// The message of which the frame brings a piece. Null: it has ended. *fine: false if this is not
// what the protocol says.
Message* Connection::awaited(const Head& head, bool* fine) {
  Message* const message = table_.find(head.key, false);
  *fine = message != nullptr || failure_of(head.key.comm) != nullptr;
  if (message == nullptr) return nullptr;
  const std::uint64_t total = message->total.load(std::memory_order_relaxed);
  *fine = message->asked && (!message->sized || total == head.total) && is_new(*message, {head.offset, head.bytes});
  if (!*fine) return nullptr;
  if (head.total > message->bytes) {
    refuse_longer(message);
    return nullptr;
  }
  message->sized = true;
  message->total.store(head.total, std::memory_order_relaxed);
  return message;
}

bool Connection::begin_data(IncomingFrame& in) {
  bool fine = false;
  in.message = awaited(in.head, &fine);
  if (in.message != nullptr) in.into = Into::message;
  return fine;
}

bool Connection::begin_eager(IncomingFrame& in) {
  const Head& head = in.head;
  if (eager_in_ == kCredit || find_slot(head.key) != nullptr) return false;
  ++eager_in_;
  if (failure_of(head.key.comm) != nullptr) return true;
  if (Message* const message = table_.find(head.key, false)) {
    if (message->sized) return false;
    if (head.total > message->bytes) {
      refuse_longer(message);
      return true;
    }
    if (message->queued) asks_.remove(message);  // it need not ask any more
    message->asked = message->sized = true;
    message->total.store(head.total, std::memory_order_relaxed);
    in.message = message;
    in.into = Into::message;
    return true;
  }
  // Fewer than all slots are used: each stands for a message that is not acked.
  EagerSlot& slot =
      *std::find_if(std::begin(slots_), std::end(slots_), [](const EagerSlot& each) { return !each.used; });
  if (slot.data == nullptr) slot.data = static_cast<char*>(PrivateHeap::take(kEagerBytes));
  if (slot.data == nullptr) {
    no_memory();
    return true;
  }
  slot.key = head.key;
  slot.bytes = static_cast<std::uint32_t>(head.bytes);
  slot.used = true;
  slot.complete = false;
  in.slot = &slot;
  in.into = Into::slot;
  return true;
}

// All of a frame is here.
bool Connection::end_payload(IncomingFrame& in) {
  const Into into = in.into;
  in.into = Into::head;
  const Kind kind = in.head.kind;
  if (into == Into::words) return kind == Kind::ask ? end_ask(in) : kind == Kind::offer ? end_offer(in) : end_reach(in);
  if (into == Into::slot) {
    EagerSlot& slot = *in.slot;
    slot.complete = true;
    if (failure_of(slot.key.comm) != nullptr)
      free_slot(slot);
    else if (slot.waiting != nullptr)
      deliver(slot, slot.waiting);
  } else if (kind == Kind::eager) {
    acks_.push(in.head.key);
  }
  if (into == Into::message) end_piece(in.message);
  return is_open();
}

void Connection::end_piece(Message* message) {
  if (message->arrived_bytes.load(std::memory_order_relaxed) != message->total.load(std::memory_order_relaxed)) return;
  take_out(message);
  finish(message, Status::ok);
}

bool Connection::end_ask(const IncomingFrame& in) {
  const Key& key = in.head.key;
  const auto count = static_cast<std::uint32_t>(in.head.bytes);
  Range order[kMostRanges];
  bool fine = read_ranges(in.words, count, order);
  if (fine && !gone_.has(key) && failure_of(key.comm) == nullptr) {
    Message* message = table_.find(key, true);
    fine = message == nullptr || !message->asked;
    const bool is_early = message == nullptr;
    if (is_early) {
      const Locked locked(shared_.lock);
      message = shared_.pool.take();
    }
    if (message == nullptr) {
      no_memory();
      return false;
    }
    if (fine) {
      message->granted = in.head.offset;
      message->order_count = count;
      std::copy_n(order, count, message->order);
      for (std::uint32_t i = 0; i < count; ++i) message->named_bytes += order[i].bytes;
    }
    if (is_early) {
      message->key = key;
      message->peer = peer_;
      message->sends = message->asked = true;
      table_.add(message);
    } else if (fine) {
      answer(message);
    }
  }
  if (!fine) break_off();
  return is_open();
}

// A message that has gone needs none.
bool Connection::hear_grant(const Head& head) {
  Message* const message = table_.find(head.key, true);
  if (message == nullptr) return true;
  if (!message->asked) return false;
  message->granted = std::min(message->granted + head.bytes, kMostBytes);
  if (message->posted && !message->queued && !message->left.empty()) queue_to_send(message);
  return true;
}

// Only the order changes. A message that has gone needs none.
bool Connection::hear_hurry(const Head& head) {
  Message* const message = table_.find(head.key, true);
  if (message == nullptr) return true;
  if (!message->asked) return false;
  const Range range{head.offset, head.bytes};
  if (message->posted) {
    const bool queued = message->queued;
    if (queued) queue_of(*message).remove(message);
    const std::uint64_t moved = message->left.bring_forward(range);
    if (!message->is_whole)
      message->urgent_bytes = std::min<std::uint64_t>(message->urgent_bytes + moved, kUrgentBytes);
    message->position = 0;
    if (queued) queue_of(*message).push_first(message);
    return true;
  }
  message->order_count = std::min(message->order_count + 1, kMostRanges);
  std::copy_backward(message->order, message->order + message->order_count - 1, message->order + message->order_count);
  message->order[0] = range;
  return true;
}

}  // namespace stretto::transport::bulk
