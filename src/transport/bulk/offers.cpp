// SPDX-License-Identifier: BSD-3-Clause
// Pieces that go by a network of remote reads: both ends of remote_reads.hpp.
#include <algorithm>

#include "transport/bulk/connection.hpp"

namespace stretto::transport::bulk {

// ---- both ----

// What ends say to each other of the network. False: there is nothing.
bool Connection::frame_network() {
  const bool is_broken = shared_.reads.fabric() == nullptr;
  if (reach_due_ && !is_broken) {
    frame_reach();
  } else if (leave_due_ && is_broken) {
    leave_due_ = false;
    word(Kind::leave, {}, 0, 0, 0);
  } else if (!taken_.empty()) {
    frame_taken();
  } else {
    return false;
  }
  return true;
}

void Connection::frame_reach() {
  reach_due_ = false;
  leave_due_ = true;  // once it is broken
  const FabricAddress& own = shared_.reads.fabric()->address();
  const std::uint32_t bytes = write_address(own, words_.out.head + Head::kBytes);
  word(Kind::reach, {}, own.format, bytes, 0);
  words_.out.head_bytes += bytes;
}

// ---- the sender ----

void Connection::frame_offer(Message* message, const Range& piece) {
  const Head head{Kind::data, message->key, piece.offset, piece.bytes, message->bytes};
  const std::uint32_t slot = shared_.reads.fill(this, head, message->data + piece.offset);
  word(Kind::offer, head.key, head.offset, head.bytes, head.total);
  Offered{shared_.reads.fabric()->window(slot), slot}.write(words_.out.head + Head::kBytes);
  words_.out.head_bytes += Offered::kBytes;
}

// False: this is not what the protocol says.
bool Connection::hear_taken(const Head& head) {
  const auto slot = static_cast<std::uint32_t>(head.offset);
  if (shared_.reads.find(this, slot) == nullptr) return false;
  if (head.total == 0) return shared_.reads.free(slot), true;
  peer_reads_ = false;
  if (!refused_.push(slot)) no_memory();
  return true;
}

void Connection::frame_refused() {
  OutgoingFrame& out = bulk_.out;
  out.slot = refused_.back();
  refused_.resize(refused_.size() - 1, 0);
  const Head head = shared_.reads.find(this, out.slot)->head;
  frame(out, head.kind, head.key, head.offset, head.bytes, head.total);
  out.payload = shared_.reads.memory(out.slot);
  out.payload_bytes = head.bytes;
  out.is_refused = true;
}

// ---- the receiver ----

// Only a process with such a network itself can read, or be read.
bool Connection::end_reach(const IncomingFrame& in) {
  FabricAddress address;
  if (!read_address(in.words, in.head, &address)) {
    break_off();
    return false;
  }
  Fabric* const fabric = shared_.reads.fabric();
  const bool same = fabric != nullptr && std::strcmp(address.provider, fabric->address().provider) == 0 &&
                    address.format == fabric->address().format;
  reads_peer_ = same && fabric->add_peer(address, &peer_name_) == 0;
  peer_reads_ = reads_peer_;
  return true;
}

void Connection::hear_leave() {
  peer_reads_ = reads_peer_ = false;
  shared_.reads.abandon(this, [&](const Offer& offer) { answer_offer(offer, true); });
}

bool Connection::end_offer(const IncomingFrame& in) {
  Offer offer{in.head, {}};
  bool fine = false;
  Message* const message = awaited(in.head, &fine);
  fine = fine && is_open() && offer.offered.read(in.words) && offers_.size() < Fabric::kSlots;
  if (!fine) {
    break_off();
    return false;
  }
  if (message == nullptr)
    answer_offer(offer, false);
  else if (!offers_.push(offer))
    no_memory();
  return is_open();
}

// What a thread waits for, then by the receives' positions, as grants do. 0: it has only to be
// answered.
std::uint64_t Connection::how_soon(const Offer& offer) const {
  const Message* const message = table_.find(offer.head.key, false);
  if (message == nullptr || !reads_peer_ || shared_.reads.fabric() == nullptr) return 0;
  const Range piece{offer.head.offset, offer.head.bytes};
  return piece.common(message->hurried).bytes != 0 ? 1 : std::uint64_t{2} + message->position;
}

std::size_t Connection::next_offer() const {
  const Offer* const next =
      std::min_element(offers_.begin(), offers_.end(),
                       [this](const Offer& one, const Offer& other) { return how_soon(one) < how_soon(other); });
  return static_cast<std::size_t>(next - offers_.begin());
}

bool Connection::has_offer(std::uint64_t* soon) const {
  if (!is_open() || offers_.empty()) return false;
  *soon = how_soon(offers_[next_offer()]);
  return true;
}

int Connection::read_offer() {
  const std::size_t at = next_offer();
  const Offer offer = offers_[at];
  const bool wanted = table_.find(offer.head.key, false) != nullptr;
  const bool can_read = reads_peer_ && shared_.reads.fabric() != nullptr;
  const int error = wanted && can_read ? shared_.reads.read(this, peer_name_, offer) : EAFNOSUPPORT;
  if (error == EAGAIN) return EAGAIN;
  (void)offers_.splice(at, 1, 0);
  if (error != 0) answer_offer(offer, wanted);
  return 0;
}

void Connection::read_ends(const Offer& offer, const char* data, int error) {
  if (!is_open()) return;
  Message* const message = table_.find(offer.head.key, false);
  answer_offer(offer, error != 0 && message != nullptr);
  if (message == nullptr || error != 0) return;
  const Range piece{offer.head.offset, offer.head.bytes};
  if (!is_new(*message, piece)) return break_off();
  for (std::uint64_t at = 0, together; at < piece.bytes; at += together) {
    together = piece.bytes - at;
    char* const place = message->place(piece.offset + at, &together);
    std::memcpy(place, data + at, together);
  }
  if (arrive(message, piece)) end_piece(message);
}

// Refused: it is to come over the connection. No later one is read, because what ails one ails all.
void Connection::answer_offer(const Offer& offer, bool refused) {
  reads_peer_ = reads_peer_ && !refused;
  if (!taken_.push({offer.offered.slot, refused})) no_memory();
}

void Connection::frame_taken() {
  const Taken taken = taken_.back();
  taken_.resize(taken_.size() - 1, {});
  word(Kind::taken, {}, taken.slot, 0, taken.refused ? 1 : 0);
}

}  // namespace stretto::transport::bulk
