// SPDX-License-Identifier: BSD-3-Clause
// The connection of one pair of ranks, as one of its two drivers sees it. The protocol stands in
// driver.hpp. Only the driver thread comes here.
#pragma once
#include <pthread.h>

#include "base/locked.hpp"
#include "sys/poller.hpp"
#include "sys/sys.hpp"
#include "transport/bulk/grants.hpp"
#include "transport/bulk/remote_reads.hpp"

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
  [[nodiscard]] int stream() const { return stream_; }
  void opens() { stage_ = Stage::opening; }
  // The stream has proved itself, and is the connection's now.
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

  void has_event(bool readable, bool writable) {
    readable_ = readable_ || readable;
    writable_ = writable_ || writable;
  }
  // Receives and sends what it can, a turn's bytes at most. True: there is more.
  bool step(const sys::Poller& poller);
  // A piece that was offered is here, at `data`, or cannot be read.
  void read_ends(const Offer& offer, const char* data, int error);
  // Before it is closed: the peer receives what has been sent, then the end. False: it has closed
  // its end.
  void end() { sys::stream_end(stream_); }
  bool drain();

 private:
  // Of each direction, before other connections have their turn.
  static constexpr std::uint64_t kTurnBytes = 1 << 20;
  static constexpr std::size_t kReportBytes = 64 << 10;

  struct Slot {  // an eager message that has come before its receive
    Key key;
    std::uint32_t bytes = 0;
    bool used = false, complete = false;
    char* data = nullptr;  // kEagerBytes, or none yet
    Message* waiting = nullptr;
  };
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

  // connection.cpp: messages
  void post_after_loss(Message* message);
  void post_send(Message* message);
  void post_recv(Message* message);
  void answer(Message* message);
  void deliver(Slot& slot, Message* message);
  void free_slot(Slot& slot);
  void refuse_longer(Message* message);
  Slot* find_slot(const Key& key);
  [[nodiscard]] const Failed* failure_of(std::uint64_t comm) const;
  void add_failure(std::uint64_t comm, const Reason& reason, bool told);
  void drop(std::uint64_t comm, Status why, const Lost& lost);
  void take_out(Message* message);
  void give_back(Message* message);
  void break_off() { fail(Status::peer_failed, {-1, shared_.rank}); }
  void no_memory() { fail(Status::no_memory, {-1, shared_.rank}); }

  // receive.cpp: frames that come. False: the connection is gone.
  bool step_in();
  bool take_received(std::size_t bytes);
  bool begin_frame();
  bool begin_data();
  bool begin_eager();
  Message* awaited(bool* fine);
  bool arrive(Message* message, const Range& range);
  void end_piece(Message* message);
  bool end_payload();
  bool end_ask();
  bool hear_hurry();
  bool hear_grant();
  char* target(std::uint64_t* together);
  bool has_arrived(std::uint64_t bytes);
  void report_from(std::size_t bytes);

  // offers.cpp: pieces that go by a network of remote reads
  bool end_reach();
  bool end_offer();
  bool hear_taken();
  void hear_leave();
  void start_reads();
  void answer_offer(const Offer& offer, bool refused);
  bool frame_network();
  void frame_reach();
  void frame_taken();
  void frame_offer(Message* message, const Range& piece);
  void frame_refused();
  [[nodiscard]] bool may_offer() const { return peer_reads_ && shared_.reads.fabric() != nullptr; }
  [[nodiscard]] bool may_send_data() { return !data_.empty() && (!may_offer() || shared_.reads.has_room()); }

  // send.cpp: frames that go
  bool step_out();
  bool next_frame();
  void frame(Kind kind, const Key& key, std::uint64_t offset, std::uint64_t bytes, std::uint64_t total);
  bool next_failure();
  void frame_ask(Message* message);
  void frame_eager(Message* message);
  void frame_data(Message* message);
  void frame_gone();
  void detach(Message* message);
  [[nodiscard]] bool may_send_eagerly() const { return !eager_.empty() && !gone_.full(); }

  struct In {
    enum class Into : std::uint8_t { head, message, slot, words, sink };
    char head_bytes[Head::kBytes];
    std::uint32_t head_got = 0;
    Into into = Into::head;
    Head head;
    std::uint64_t at = 0, left = 0;  // of the payload
    Message* message = nullptr;
    Slot* slot = nullptr;
    char words[kMostWords];
  };
  struct Taken {
    std::uint32_t slot;
    bool refused;
  };
  struct Out {
    char head[Head::kBytes + kMostWords];
    std::uint32_t head_bytes = 0;  // 0: there is no frame
    const char* payload = nullptr;
    std::uint64_t payload_bytes = 0, gone = 0;
    Message* message = nullptr;  // whose payload it is
    bool is_last = false;        // then the message is complete
    char* copy = nullptr;        // of the payload of a message that has ended meanwhile
    bool is_refused = false;     // the payload is that of `slot`
    std::uint32_t slot = 0;
  };

  Shared& shared_;
  const int peer_;
  const std::uint32_t host_;
  Stage stage_ = Stage::idle;
  Status status_ = Status::ok;  // why it is lost
  Lost lost_;
  int stream_ = -1;
  sys::FileId file_;
  bool readable_ = false, writable_ = false, watched_for_room_ = false;
  std::size_t reported_from_ = 1;
  std::uint32_t kept_bytes_ = 0;  // as sys::stream_keeps

  MessageTable table_;
  MessageQueue asks_;           // receives, to be asked for
  MessageQueue eager_;          // short sends that wait for credit or their turn
  MessageQueue data_;           // sends that are asked for, those of a call by position
  Keys gone_;                   // sent eagerly, and not acked
  Keys acks_;                   // received eagerly, to be acked
  std::uint32_t eager_in_ = 0;  // received eagerly, and not acked
  Slot slots_[kCredit];
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
  In in_;
  Out out_;
};

}  // namespace stretto::transport::bulk
