// SPDX-License-Identifier: BSD-3-Clause
// Frames that go. What is short and lets the peer go on goes first: failures, slots that are free,
// asks, acks, then eager messages, then pieces of what the peer has asked for.
#include <cerrno>
#include <cstring>

#include "transport/bulk/connection.hpp"

namespace stretto::transport::bulk {

bool Connection::step_out() {
  if (const std::uint32_t bytes = shared_.grants.kept_bytes(); bytes != kept_bytes_) {
    kept_bytes_ = bytes;
    if (shared_.buffer_bytes == 0) (void)sys::stream_keeps(stream_, bytes);
  }
  for (std::uint64_t turn = 0; writable_ && turn < kTurnBytes;) {
    if (out_.head_bytes == 0 && !next_frame()) return false;
    const sys::Piece pieces[] = {{out_.head, out_.head_bytes}, {out_.payload, out_.payload_bytes}};
    const std::uint64_t whole = out_.head_bytes + out_.payload_bytes;
    std::size_t sent = 0;
    const int error = sys::stream_send(stream_, pieces, 2, out_.gone, &sent);
    if (error != 0 && error != EAGAIN) {
      lose();
      return false;
    }
    out_.gone += sent;
    turn += sent;
    writable_ = out_.gone == whole;
    if (writable_) frame_gone();
  }
  return writable_;
}

bool Connection::next_frame() {
  if (failures_due_ && next_failure()) return true;
  // An ack alone can wait. With other frames it costs nothing.
  if (frame_network()) return true;
  const bool sends_data = may_send_data();
  const bool others = !asks_.empty() || may_send_eagerly() || sends_data;
  if (acks_.count() >= kCredit / 2 || (acks_.count() != 0 && others)) {
    frame(Kind::ack, acks_.pop(), 0, 0, 0);
    --eager_in_;
  } else if (!asks_.empty()) {
    frame_ask(asks_.first());
  } else if (may_send_eagerly()) {
    frame_eager(eager_.first());
  } else if (!refused_.empty()) {
    frame_refused();
  } else if (sends_data) {
    frame_data(data_.first());
  } else {
    return false;
  }
  return true;
}

void Connection::frame(Kind kind, const Key& key, std::uint64_t offset, std::uint64_t bytes, std::uint64_t total) {
  const Head head{kind, key, offset, bytes, total};
  head.write(out_.head);
  out_.head_bytes = Head::kBytes;
  out_.payload = nullptr;
  out_.payload_bytes = out_.gone = 0;
  out_.message = nullptr;
  out_.is_last = false;
}

bool Connection::next_failure() {
  for (Failed& failed : failed_) {
    if (failed.told) continue;
    failed.told = true;
    frame(Kind::fail, {failed.comm, 0, 0}, failed.reason.word(), 0, 0);
    return true;
  }
  failures_due_ = false;
  return false;
}

void Connection::frame_ask(Message* message) {
  asks_.remove(message);
  if (message->asked && message->urgent.bytes != 0) {
    const Range urgent = message->urgent;
    message->urgent = {};
    if (message->grant_due != 0) asks_.push_first(message);
    return frame(Kind::hurry, message->key, urgent.offset, urgent.bytes, 0);
  }
  if (message->asked) {
    frame(Kind::grant, message->key, 0, message->grant_due, 0);
    message->grant_due = 0;
    return;
  }
  message->asked = true;
  frame(Kind::ask, message->key, message->granted, message->order_count, 0);
  message->grant_due = 0;
  write_ranges(message->order, message->order_count, out_.head + Head::kBytes);
  out_.head_bytes += static_cast<std::uint32_t>(message->order_count * sizeof(Range));
}

// The peer may ask for it all the same, until it has acked it.
void Connection::frame_eager(Message* message) {
  eager_.remove(message);
  table_.remove(message);
  gone_.push(message->key);
  frame(Kind::eager, message->key, 0, message->bytes, message->bytes);
  out_.payload = message->data;
  out_.payload_bytes = message->bytes;
  out_.message = message;
  out_.is_last = true;
}

void Connection::frame_data(Message* message) {
  const std::uint32_t most = may_offer() ? kPieceBytes : std::min(kept_bytes_, kPieceBytes);
  const Range piece = message->left.empty()
                          ? Range{}
                          : message->left.take(std::min<std::uint64_t>(message->granted - message->sent, most));
  message->sent += piece.bytes;
  if (may_offer() && piece.bytes != 0) {
    frame_offer(message, piece);
  } else {
    frame(Kind::data, message->key, piece.offset, piece.bytes, message->bytes);
    out_.payload = message->data + piece.offset;
    out_.payload_bytes = piece.bytes;
  }
  out_.message = message;
  out_.is_last = message->left.empty();
  if (out_.is_last || message->sent == message->granted) data_.remove(message);
  if (out_.is_last) table_.remove(message);
}

void Connection::frame_gone() {
  out_.head_bytes = 0;
  PrivateHeap::release(out_.copy, out_.payload_bytes);
  out_.copy = nullptr;
  if (out_.is_refused) shared_.reads.free(out_.slot);
  out_.is_refused = false;
  Message* const message = out_.message;
  out_.message = nullptr;
  if (message != nullptr && out_.is_last) finish(message, Status::ok);
}

// The message ends in the middle of a frame. The peer gets the rest of the frame from a copy, and
// then the reason.
void Connection::detach(Message* message) {
  if (out_.message != message) return;
  out_.message = nullptr;
  if (out_.payload_bytes == 0) return;
  out_.copy = static_cast<char*>(PrivateHeap::take(out_.payload_bytes));
  if (out_.copy == nullptr) return no_memory();
  std::memcpy(out_.copy, out_.payload, out_.payload_bytes);
  out_.payload = out_.copy;
}

}  // namespace stretto::transport::bulk
