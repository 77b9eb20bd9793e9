// SPDX-License-Identifier: BSD-3-Clause
// Pieces that go by a network which reads remote memory (transport/fabric), instead of over the
// pair's connection. Everything else goes over the connection, which both ends have anyway:
//
//   sender's driver                          receiver's driver
//        |  <------------ reach ------------->  |   first: how each is reached there
//   copy a granted piece to a free slot
//        |  ------------- offer ------------->  |   it stands there
//        |                                    read it into a free landing
//        |                                    copy it to its place: it has arrived
//        |  <------------ taken --------------  |   the slot is free
//
// What is copied into a slot counts as sent: the sender's memory is its own again. Copies cost as
// much as the system's do with a stream, and registered memory is never the program's. So nobody
// watches what the program does with its memory, a fork copies nothing that a card writes to, and
// pages of the program can still be moved.
//
// The receiver reads, because the end of a read says that its data are there. The end of a write
// says that to the sender alone, and what that means differs between networks.
//
// Each piece says how it goes, so ends need not agree. If a read fails, the receiver refuses the
// slot: its piece comes over the connection, and so do all later ones of this pair. A sender whose
// network is broken says so (leave), because reads that it does not serve might never end. All that
// it has offered is refused then.
//
//   slot      event                   then
//   free      a granted piece is due  filled, offered
//   offered   taken                   free
//   offered   refused                 sent from the slot as data; then free
//   offered   the connection is lost  free: what comes of a late read is not used
//
//   landing   event                   then
//   free      an offer is first       reading
//   reading   it is there             copied; taken is due; free
//   reading   it failed               refused is due; free
//   reading   the sender leaves, or   free when the network says that the read has ended: it may
//             the connection is lost  write until then
//
// For the driver thread.
#pragma once
#include <atomic>
#include <cerrno>
#include <cstring>

#include "transport/bulk/message.hpp"
#include "transport/fabric/fabric.hpp"

namespace stretto::transport::bulk {

class Connection;

// A piece that stands in a peer's slot.
struct Offer {
  Head head;
  Offered offered;
};

class RemoteReads {
 public:
  static_assert(kPieceBytes <= Fabric::kSlotBytes);

  // Null: all goes over connections.
  void start(Fabric* fabric) {
    fabric_ = fabric;
    is_broken_ = fabric != nullptr;  // until the thread begins
    for (std::uint32_t slot = 0; slot < Fabric::kSlots; ++slot) outgoing_.push(slot), landings_.push(slot);
  }
  // On the thread.
  void begin() { is_broken_ = fabric_ == nullptr || !fabric_->begin(); }
  [[nodiscard]] Fabric* fabric() const { return is_broken_ ? nullptr : fabric_; }

  // ---- what this process offers ----
  struct Piece {
    const Connection* owner = nullptr;
    Head head;
  };
  [[nodiscard]] bool has_room() {
    waits_for_room_ = waits_for_room_ || outgoing_.empty();
    return !outgoing_.empty();
  }
  // While there is room.
  std::uint32_t fill(const Connection* owner, const Head& head, const char* data) {
    const std::uint32_t slot = outgoing_.pop();
    pieces_[slot] = {owner, head};
    std::memcpy(fabric_->outgoing(slot), data, head.bytes);
    return slot;
  }
  // Null: it is not this connection's.
  [[nodiscard]] const Piece* find(const Connection* owner, std::uint64_t slot) const {
    return pieces_[slot].owner == owner ? &pieces_[slot] : nullptr;
  }
  [[nodiscard]] const char* memory(std::uint32_t slot) const { return fabric_->outgoing(slot); }
  void free(std::uint32_t slot) {
    pieces_[slot].owner = nullptr;
    outgoing_.push(slot);
  }
  void free_all(const Connection* owner) {
    for (std::uint32_t slot = 0; slot < Fabric::kSlots; ++slot) {
      if (pieces_[slot].owner == owner) free(slot);
    }
  }
  [[nodiscard]] bool any_offered() const { return outgoing_.count() != Fabric::kSlots; }

  // ---- what this process reads ----
  // What is being read stands in the network before what is read next. So it is no more than goes
  // in a few milliseconds (Grants::kept_bytes), or one piece.
  [[nodiscard]] bool may_read(std::uint64_t most_bytes) const {
    return !landings_.empty() && (reading_bytes_ == 0 || reading_bytes_ < most_bytes);
  }
  // While it may. EAGAIN: later. Others: it cannot be read.
  int read(Connection* reader, std::uint64_t peer, const Offer& offer) {
    const std::uint32_t landing = landings_.pop();
    const int error = fabric_->read(peer, offer.offered.window, offer.head.bytes, landing);
    if (error != 0) {
      landings_.push(landing);
    } else {
      readings_[landing] = {reader, offer};
      reading_bytes_ += offer.head.bytes;
    }
    network_is_full_ = network_is_full_ || error == EAGAIN;
    return error;
  }
  // The peer's network is of no use any more, and may not even say that reads have failed.
  template <class Refuse>
  void abandon(const Connection* reader, const Refuse& refuse) {
    for (Reading& reading : readings_) {
      if (reading.reader != reader) continue;
      const Offer offer = reading.offer;
      reading_bytes_ -= offer.head.bytes;
      reading = {};
      refuse(offer);
    }
  }
  // So far. Any thread may ask.
  [[nodiscard]] std::uint64_t read_bytes() const { return read_bytes_.load(std::memory_order_relaxed); }
  // Tells readers what is through. `done(reader, offer, data, error)`; then the landing is free. If
  // the network is broken, all that is under way has failed, and its landings stay as they are.
  // True: something was.
  template <class Done>
  bool poll(const Done& done) {
    constexpr int kMost = 16;
    FabricDone through[kMost];
    int count = 0;
    bool any = false;
    while (fabric() != nullptr && (count = fabric_->poll(through, kMost)) > 0) {
      any = true;
      for (int i = 0; i < count; ++i) end(through[i], done);
    }
    if (count >= 0) return any;
    is_broken_ = true;
    for (std::uint32_t i = 0; i < Fabric::kSlots; ++i) end({i, EIO}, done);
    return true;
  }
  // Whether it is worth while to step all connections again, now that there is room.
  bool take_wake() {
    const bool wake = waits_for_room_ && !outgoing_.empty();
    if (wake) waits_for_room_ = false;
    return wake;
  }
  // poll() is to be called again soon, whatever the descriptor says.
  [[nodiscard]] bool is_to_be_polled() {
    const bool full = network_is_full_;
    network_is_full_ = false;
    const bool busy = any_offered() || landings_.count() != Fabric::kSlots;
    return full || (fabric() != nullptr && fabric_->descriptor() < 0 && busy);
  }

 private:
  template <class Done>
  void end(const FabricDone& through, const Done& done) {
    const Reading reading = readings_[through.landing];
    readings_[through.landing] = {};
    reading_bytes_ -= reading.offer.head.bytes;
    if (reading.reader == nullptr) return is_broken_ ? void() : landings_.push(through.landing);
    const char* const data = through.error == 0 ? fabric_->landing(through.landing) : nullptr;
    if (data != nullptr) read_bytes_.fetch_add(reading.offer.head.bytes, std::memory_order_relaxed);
    done(*reading.reader, reading.offer, data, through.error);
    if (!is_broken_) landings_.push(through.landing);
  }
  class Slots {
   public:
    [[nodiscard]] bool empty() const { return count_ == 0; }
    [[nodiscard]] std::uint32_t count() const { return count_; }
    void push(std::uint32_t slot) { slots_[count_++] = slot; }
    std::uint32_t pop() { return slots_[--count_]; }

   private:
    std::uint32_t slots_[Fabric::kSlots];
    std::uint32_t count_ = 0;
  };

  struct Reading {
    Connection* reader = nullptr;  // null: it has ended, or its reader waits for it no more
    Offer offer;
  };

  Fabric* fabric_ = nullptr;
  bool is_broken_ = false;
  std::atomic<std::uint64_t> read_bytes_{0};
  Slots outgoing_, landings_;  // free ones
  Piece pieces_[Fabric::kSlots];
  Reading readings_[Fabric::kSlots];
  bool waits_for_room_ = false, network_is_full_ = false;
  std::uint64_t reading_bytes_ = 0;
};

}  // namespace stretto::transport::bulk
