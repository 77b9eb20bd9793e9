// SPDX-License-Identifier: BSD-3-Clause
// Frames that come. A payload goes straight to where its message is wanted, together with the head
// of the frame behind it.
#include <algorithm>
#include <cerrno>

#include "transport/bulk/connection.hpp"

namespace stretto::transport::bulk {

bool Connection::step_in() {
  for (std::uint64_t turn = 0; readable_ && turn < kTurnBytes;) {
    sys::Place places[2];
    int count = 0;
    std::uint64_t payload = in_.left;
    char* const place = target(&payload);
    if (payload != 0) places[count++] = {place, payload};
    if (payload == in_.left) places[count++] = {in_.head_bytes + in_.head_got, Head::kBytes - in_.head_got};
    const std::size_t wanted = payload + (payload == in_.left ? Head::kBytes - in_.head_got : 0);
    std::size_t received = 0;
    const int error = sys::stream_receive_pieces(stream_, places, count, &received);
    if (error != 0 && error != EAGAIN) {
      lose();
      return false;
    }
    readable_ = error == 0 && received == wanted;
    if (error == 0 && !take_received(received)) return false;
    turn += received;
  }
  if (!readable_) report_from(std::min<std::uint64_t>(in_.left, kReportBytes));
  return readable_;
}

// Where the next bytes of the payload go. *together: how many of them, of `*together`.
char* Connection::target(std::uint64_t* together) {
  switch (in_.into) {
    case In::Into::message: return in_.message->place(in_.at, together);
    case In::Into::slot: return in_.slot->data + in_.at;
    case In::Into::words: return in_.words + in_.at;
    default: *together = std::min<std::uint64_t>(*together, sizeof shared_.sink); return shared_.sink;
  }
}

// The system wakes the driver when so much of a payload is there. At a head it wakes it at once.
void Connection::report_from(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes == reported_from_) return;
  if (sys::stream_readable_from(stream_, bytes, bytes) == 0) reported_from_ = bytes;
}

bool Connection::take_received(std::size_t bytes) {
  const std::uint64_t payload = std::min<std::uint64_t>(bytes, in_.left);
  if (payload != 0) {
    in_.left -= payload;
    if (!has_arrived(payload) || (in_.left == 0 && !end_payload())) return false;
  }
  in_.head_got += static_cast<std::uint32_t>(bytes - payload);
  if (in_.head_got < Head::kBytes) return true;
  in_.head_got = 0;
  return begin_frame();
}

// A part of a payload stands in its place.
bool Connection::has_arrived(std::uint64_t bytes) {
  const Range range{in_.at, bytes};
  in_.at += bytes;
  return in_.into != In::Into::message || arrive(in_.message, range);
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

bool Connection::begin_frame() {
  bool fine = in_.head.read(in_.head_bytes);
  in_.at = in_.head.kind == Kind::data ? in_.head.offset : 0;
  in_.left = fine ? in_.head.payload_bytes() : 0;
  in_.into = In::Into::sink;
  Reason reason;
  if (fine) {
    switch (in_.head.kind) {
      case Kind::ask:
      case Kind::reach:
      case Kind::offer: in_.into = In::Into::words; break;
      case Kind::taken: fine = hear_taken(); break;
      case Kind::leave: hear_leave(); break;
      case Kind::hurry: fine = hear_hurry(); break;
      case Kind::grant: fine = hear_grant(); break;
      case Kind::data: fine = begin_data(); break;
      case Kind::eager: fine = begin_eager(); break;
      case Kind::ack: fine = gone_.remove(in_.head.key); break;
      case Kind::fail:
        fine = reason.read(in_.head.offset);
        add_failure(in_.head.key.comm, reason, true);
        break;
    }
  }
  if (!fine) break_off();
  return is_open() && (in_.left != 0 || end_payload());
}

// The message of which the frame brings a piece. Null: it has ended. *fine: false if this is not
// what the protocol says.
Message* Connection::awaited(bool* fine) {
  const Head& head = in_.head;
  Message* const message = table_.find(head.key, false);
  *fine = message != nullptr || failure_of(head.key.comm) != nullptr;
  if (message == nullptr) return nullptr;
  const std::uint64_t total = message->total.load(std::memory_order_relaxed);
  *fine = message->asked && (!message->sized || total == head.total) &&
          !message->arrived.overlaps({head.offset, head.bytes});
  if (!*fine) return nullptr;
  if (head.total > message->bytes) {
    refuse_longer(message);
    return nullptr;
  }
  message->sized = true;
  message->total.store(head.total, std::memory_order_relaxed);
  return message;
}

bool Connection::begin_data() {
  bool fine = false;
  in_.message = awaited(&fine);
  if (in_.message != nullptr) in_.into = In::Into::message;
  return fine;
}

bool Connection::begin_eager() {
  if (eager_in_ == kCredit || find_slot(in_.head.key) != nullptr) return false;
  ++eager_in_;
  if (failure_of(in_.head.key.comm) != nullptr) return true;
  if (Message* const message = table_.find(in_.head.key, false)) {
    if (message->sized) return false;
    if (in_.head.total > message->bytes) {
      refuse_longer(message);
      return true;
    }
    if (message->queued) asks_.remove(message);  // it need not ask any more
    message->asked = message->sized = true;
    message->total.store(in_.head.total, std::memory_order_relaxed);
    in_.message = message;
    in_.into = In::Into::message;
    return true;
  }
  // Fewer than all slots are used: each stands for a message that is not acked.
  Slot& slot = *std::find_if(std::begin(slots_), std::end(slots_), [](const Slot& each) { return !each.used; });
  if (slot.data == nullptr) slot.data = static_cast<char*>(PrivateHeap::take(kEagerBytes));
  if (slot.data == nullptr) {
    no_memory();
    return true;
  }
  slot.key = in_.head.key;
  slot.bytes = static_cast<std::uint32_t>(in_.head.bytes);
  slot.used = true;
  slot.complete = false;
  in_.slot = &slot;
  in_.into = In::Into::slot;
  return true;
}

// All of a frame is here.
bool Connection::end_payload() {
  const In::Into into = in_.into;
  in_.into = In::Into::head;
  const bool eager = in_.head.kind == Kind::eager;
  if (into == In::Into::words)
    return in_.head.kind == Kind::ask ? end_ask() : in_.head.kind == Kind::offer ? end_offer() : end_reach();
  if (into == In::Into::slot) {
    Slot& slot = *in_.slot;
    slot.complete = true;
    if (failure_of(slot.key.comm) != nullptr)
      free_slot(slot);
    else if (slot.waiting != nullptr)
      deliver(slot, slot.waiting);
  } else if (eager) {
    acks_.push(in_.head.key);
  }
  if (into == In::Into::message) end_piece(in_.message);
  return is_open();
}

void Connection::end_piece(Message* message) {
  if (message->arrived_bytes.load(std::memory_order_relaxed) != message->total.load(std::memory_order_relaxed)) return;
  take_out(message);
  finish(message, Status::ok);
}

bool Connection::end_ask() {
  const Key& key = in_.head.key;
  const auto count = static_cast<std::uint32_t>(in_.head.bytes);
  Range order[kMostRanges];
  bool fine = read_ranges(in_.words, count, order);
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
      message->granted = in_.head.offset;
      message->order_count = count;
      std::copy_n(order, count, message->order);
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
bool Connection::hear_grant() {
  Message* const message = table_.find(in_.head.key, true);
  if (message == nullptr) return true;
  if (!message->asked) return false;
  message->granted = std::min(message->granted + in_.head.bytes, kMostBytes);
  if (message->posted && !message->queued && !message->left.empty()) data_.push_by_position(message);
  return true;
}

// Only the order changes. A message that has gone needs none.
bool Connection::hear_hurry() {
  Message* const message = table_.find(in_.head.key, true);
  if (message == nullptr) return true;
  if (!message->asked) return false;
  const Range range{in_.head.offset, in_.head.bytes};
  if (message->posted) {
    message->left.bring_forward(range);
    if (message->queued) {
      data_.remove(message);
      data_.push_first(message);
    }
    message->position = 0;
    return true;
  }
  message->order_count = std::min(message->order_count + 1, kMostRanges);
  std::copy_backward(message->order, message->order + message->order_count - 1, message->order + message->order_count);
  message->order[0] = range;
  return true;
}

}  // namespace stretto::transport::bulk
