// SPDX-License-Identifier: BSD-3-Clause
// The connection of one pair of ranks, as one of its two drivers sees it. The protocol stands in
// driver.hpp. Only the driver thread comes here.
//
// A connection has two streams, its *tracks*. The system keeps some milliseconds of data of a
// stream (Grants::kept_bytes). What follows in the same stream waits behind them:
//
//   words   all frames but data; and data that somebody waits for: what is granted with an ask, and
//           what is hurried, at most 64 KiB a time
//   bulk    all other data
//
// Frames of different tracks overtake each other. What must keep its order goes by words alone:
// ask, hurry and grant; ask and ack; reach, offer and leave. Data may come in any order, before or
// after any of these:
//   - Data go once their ask has come. The receiver knows their message, or has heard or said that
//     it failed.
//   - A message is complete when all its bytes are here, by whichever track. Frames that are half
//     through have disjoint ranges, so none of them is open then. A send is complete when the last
//     of it is in a frame and none of its frames is half through.
//   - A fail overtakes data. What comes of a failed communicator is dropped, and so is what is half
//     through. A communicator's id is never used again.
//   - The end of a stream says that all of that stream is here. So the peer is gone when both have
//     ended, and nothing is sent after the first. Who sees one end closes its end of the other, so
//     a peer that has lost one stream alone hears of it.
#pragma once
#include <pthread.h>

#include "base/locked.hpp"
#include "sys/poller.hpp"
#include "sys/sys.hpp"
#include "transport/bulk/grants.hpp"
#include "transport/bulk/remote_reads.hpp"
#include "transport/bulk/track.hpp"

namespace stretto::transport::bulk {

// What all connections of a driver share.
struct Shared {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards the pool
  MessagePool pool;
  int rank = 0;                    // of the job
  std::uint32_t buffer_bytes = 0;  // what the system keeps of a stream; 0: as it likes
  Grants grants;                   // the thread's
  RemoteReads reads;               // the same
  char sink[64 << 10];             // for what nobody wants any more
};

// The message has left all tables and queues, and its memory is the poster's again.
void finish(Message* message, Status status, const Lost& lost = {});

class Connection {
 public:
  enum class Stage : std::uint8_t { idle, opening, open, lost };

  // `host`: a rank that runs where the peer does. All peers there have the same.
  Connection(Shared& shared, int peer, std::uint32_t host) : shared_(shared), peer_(peer), host_(host) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] bool is_open() const { return stage_ == Stage::open; }
  void opens() { stage_ = Stage::opening; }
  static constexpr std::uint32_t kTracks = 2;
  // How many of its streams are there.
  [[nodiscard]] std::uint32_t tracks() const { return (words_.stream >= 0 ? 1 : 0) + (bulk_.stream >= 0 ? 1 : 0); }
  // The next stream has proved itself, and is the connection's now. With the last one it is open.
  void opened(int stream, const sys::Poller& poller);
  // All messages end with this status.
  void fail(Status status, const Lost& lost);
  void lose() { fail(Status::peer_lost, {peer_, shared_.rank}); }

  void post(Message* message);
  void hurry(const Key& key, const Range& range);
  void tell_grant(Message* message);
  // The communicator has failed here: its messages end, and the peer hears why.
  void abandon(std::uint64_t comm, const Reason& reason);
  // The communicator is freed.
  void forget(std::uint64_t comm);

  // What the poller says of a stream is tagged so.
  [[nodiscard]] static int peer_of(std::uint64_t tag) { return static_cast<int>(tag / kTracks); }
  void has_event(const sys::Ready& ready) {
    Track& track = ready.tag % kTracks == 0 ? words_ : bulk_;
    track.readable = track.readable || ready.readable;
    track.writable = track.writable || ready.writable;
  }
  // Receives and sends what it can, a turn's bytes at most. True: there is more.
  bool step(const sys::Poller& poller);
  // Which of the pieces that were offered is to be read next, and how soon: a lower word is sooner.
  [[nodiscard]] bool has_offer(std::uint64_t* how_soon) const;
  // Reads it. EAGAIN: later. 0: another one may be read.
  int read_offer();
  // A piece that was offered is here, at `data`, or cannot be read.
  void read_ends(const Offer& offer, const char* data, int error);
  // Before it is closed: the peer receives what has been sent, then the end. False: it has closed
  // its end.
  void end() {
    for (const Track* track : both_) sys::stream_end(track->stream);
  }
  bool drain();

 private:
  // Of each direction, before other connections have their turn.
  static constexpr std::uint64_t kTurnBytes = 1 << 20;
  static constexpr std::size_t kReportBytes = 64 << 10;

  struct Failed {
    std::uint64_t comm;
    Reason reason;
    bool told;  // the peer knows
  };
  // Names of eager messages.
  class Keys {
   public:
    [[nodiscard]] std::uint32_t count() const { return count_; }
    [[nodiscard]] bool full() const { return count_ == kCredit; }
    [[nodiscard]] bool has(const Key& key) const { return find(key) < count_; }
    void push(const Key& key) { keys_[count_++] = key; }
    bool remove(const Key& key) {
      const std::uint32_t at = find(key);
      if (at == count_) return false;
      keys_[at] = keys_[--count_];
      return true;
    }
    Key pop() { return keys_[--count_]; }

   private:
    [[nodiscard]] std::uint32_t find(const Key& key) const {
      std::uint32_t at = 0;
      while (at < count_ && !(keys_[at] == key)) ++at;
      return at;
    }
    Key keys_[kCredit];
    std::uint32_t count_ = 0;
  };

  [[nodiscard]] std::uint64_t tag_of(const Track& track) const {
    return static_cast<std::uint64_t>(peer_) * kTracks + (&track == &words_ ? 0 : 1);
  }
  void watch(Track& track, const sys::Poller& poller);

  // connection.cpp: messages
  void post_after_loss(Message* message);
  void post_send(Message* message);
  void post_recv(Message* message);
  void answer(Message* message);
  void deliver(EagerSlot& slot, Message* message);
  void free_slot(EagerSlot& slot);
  void refuse_longer(Message* message);
  EagerSlot* find_slot(const Key& key);
  [[nodiscard]] const Failed* failure_of(std::uint64_t comm) const;
  void add_failure(std::uint64_t comm, const Reason& reason, bool told);
  void drop(std::uint64_t comm, Status why, const Lost& lost);
  void take_out(Message* message);
  void give_back(Message* message);
  void break_off() { fail(Status::peer_failed, {-1, shared_.rank}); }
  void no_memory() { fail(Status::no_memory, {-1, shared_.rank}); }

  // receive.cpp: frames that come. False: the connection is gone.
  bool step_in(Track& track);
  bool take_received(IncomingFrame& in, std::size_t bytes);
  bool begin_frame(IncomingFrame& in);
  bool begin_data(IncomingFrame& in);
  bool begin_eager(IncomingFrame& in);
  Message* awaited(const Head& head, bool* fine);
  [[nodiscard]] bool is_new(const Message& message, const Range& range) const;
  bool arrive(Message* message, const Range& range);
  void end_piece(Message* message);
  bool end_payload(IncomingFrame& in);
  bool end_ask(const IncomingFrame& in);
  bool hear_hurry(const Head& head);
  bool hear_grant(const Head& head);
  char* target(IncomingFrame& in, std::uint64_t* together);
  bool has_arrived(IncomingFrame& in, std::uint64_t bytes);
  void stream_ends(Track& track, int error);

  // offers.cpp: pieces that go by a network of remote reads
  bool end_reach(const IncomingFrame& in);
  bool end_offer(const IncomingFrame& in);
  bool hear_taken(const Head& head);
  void hear_leave();
  [[nodiscard]] std::uint64_t how_soon(const Offer& offer) const;
  [[nodiscard]] std::size_t next_offer() const;
  void answer_offer(const Offer& offer, bool refused);
  bool frame_network();
  void frame_reach();
  void frame_taken();
  void frame_offer(Message* message, const Range& piece);
  void frame_refused();
  [[nodiscard]] bool may_offer() const { return peer_reads_ && shared_.reads.fabric() != nullptr; }

  // send.cpp: frames that go
  bool step_out(Track& track);
  bool next_word();
  bool next_of_bulk();
  static void frame(OutgoingFrame& out, Kind kind, const Key& key, std::uint64_t offset, std::uint64_t bytes,
                    std::uint64_t total);
  void word(Kind kind, const Key& key, std::uint64_t offset, std::uint64_t bytes, std::uint64_t total) {
    frame(words_.out, kind, key, offset, bytes, total);
  }
  bool next_failure();
  void frame_ask(Message* message);
  void frame_eager(Message* message);
  void frame_data(Track& track, Message* message);
  void frame_gone(OutgoingFrame& out);
  void leave_frame(OutgoingFrame& out, Status status, const Lost& lost = {});
  void detach(OutgoingFrame& out);
  [[nodiscard]] MessageQueue& queue_of(const Message& message);
  void queue_to_send(Message* message);
  [[nodiscard]] Message* next_to_send();
  [[nodiscard]] bool may_send_eagerly() const { return !eager_.empty() && !gone_.full(); }

  struct Taken {
    std::uint32_t slot;
    bool refused;
  };
  Shared& shared_;
  const int peer_;
  const std::uint32_t host_;
  Stage stage_ = Stage::idle;
  Status status_ = Status::ok;  // why it is lost
  Lost lost_;
  Track words_, bulk_;
  Track* const both_[kTracks] = {&words_, &bulk_};

  MessageTable table_;
  MessageQueue asks_;           // receives, to be asked for
  MessageQueue eager_;          // short sends that wait for credit or their turn
  MessageQueue urgent_;         // sends of which something urgent is due
  MessageQueue data_;           // other sends that are asked for, those of a call by position
  Keys gone_;                   // sent eagerly, and not acked
  Keys acks_;                   // received eagerly, to be acked
  std::uint32_t eager_in_ = 0;  // received eagerly, and not acked
  EagerSlot slots_[kCredit];
  Array<Failed, PrivateHeap> failed_;
  bool failures_due_ = false;
  // Of a network that reads remote memory.
  bool reach_due_ = false, leave_due_ = false;
  bool peer_reads_ = false;  // whether the peer takes offers
  bool reads_peer_ = false;  // whether this process can read there
  std::uint64_t peer_name_ = 0;
  Array<Offer, PrivateHeap> offers_;           // to be read
  Array<Taken, PrivateHeap> taken_;            // to be told
  Array<std::uint32_t, PrivateHeap> refused_;  // own slots, to be sent
};

}  // namespace stretto::transport::bulk
