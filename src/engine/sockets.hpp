// SPDX-License-Identifier: BSD-3-Clause
// The short messages of a communicator's schedules to other nodes, over TCP connections of its own; all others go by
// the transport beyond.
//
// Why: where hosts talk over TCP, most of what a short message costs is the MPI on top of it. Its progress engine asks
// all its connections and timers before it hands out the one message that a schedule waits for; here a wait reads the
// one connection.
//
// Who decides: all members open connections, or none (open). They do so at one and the same call of the communicator,
// when it has shown that it lives long enough; they measure, and keep to the MPI where it is as fast. From then on the
// length of a message decides, which both its ends know.
//
// A connection is one pair's of one communicator. Schedules post a pair's messages in one order on both sides, and a
// stream keeps it: there is nothing to match. A head of 8 bytes says how long a message is, and its number, by which
// ends that have lost step find out. A message shorter than its place is good, as MPI has it; a longer one breaks the
// transport, as the MPI's does.
//
// Who reads a stream empty sends an acknowledgement, whose way through the system costs as much as a message's, before
// he gets what he has read. So each message has a tail of a byte, which stays unread until the next message is read. A
// sender waits for acknowledgements when ten messages are without, so after some the tail is read by who waits for the
// next message anyhow.
//
// A message of more than a segment is acknowledged at once, whatever stays unread: as it arrives where many ranks send
// to one, who has most to do (Reduce, Gather, Gatherv), and by the receiver, who has least, in all other collectives.
//
// In a Gatherv or Scatterv the sender alone may know how long a message is; a receiver may have declared more. There a
// long message that goes beyond is announced by a head on the connection. A receiver that has declared much waits for
// what the connection brings, and is told.
//
// Nothing blocks. A message that the system does not take at once is sent on at later looks; its ticket comes back when
// all of it is with the system.
#pragma once
#include "base/array.hpp"
#include "base/profile.hpp"
#include "engine/engine.hpp"
#include "engine/posted.hpp"
#include "sched/execute.hpp"
#include "shm/wait.hpp"
#include "sys/sys.hpp"

namespace stretto::engine {

// In which order a member tries another's addresses, by their places: first those in a network that both are in. An
// address that both have is no way from one to the other: bridges to virtual machines and containers have the same on
// many hosts. If both have the same addresses and no others, they are on one host. Returns how many are tried.
int dial_order(const sys::HostAddress* own, int own_count, const sys::HostAddress* theirs, int their_count, int* order);

class Sockets {
 public:
  struct Opening {
    Bootstrap members;
    const std::int32_t* nodes = nullptr;                   // of all members
    shm::WaitPolicy policy;                                // how this one waits, and drives the host
    bool always = false;                                   // whether or not they are faster; the same on all members
    sys::HostAddress addresses[sys::kMostAddresses] = {};  // by which others reach this member
    int address_count = 0;
  };
  // What came of it, the same on all members. A process that could not be connected, or whose connections were slower,
  // is not able to from then on.
  enum class Opened : std::uint8_t { yes, unable, slower };

  Sockets() = default;
  ~Sockets() { close(); }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;

  // All messages go beyond.
  void start(const sched::Transport& beyond) { beyond_ = beyond; }
  // Collective over the members; no message may be under way.
  Opened open(const Opening& opening);
  // There and back between two nodes, in ns, here and beyond, as rank 0 has measured it; 0: it has not.
  struct Measured {
    std::uint64_t here_ns = 0, beyond_ns = 0;
  };
  [[nodiscard]] const Measured& measured() const { return measured_; }
  // A call has failed, and may have left messages behind: no later one works, and peers that wait for this member hear
  // why. Nothing, if there are no connections.
  void give_up(Status why) { give_up(why, lost_.rank); }
  // The same; `lost` is the member that has ended, -1: nobody knows which.
  void give_up(Status why, int lost);
  // A member that has died, or whose connection is gone, as far as this member knows; -1: none. And who says so:
  // itself, or a peer.
  struct Lost {
    int rank = -1, witness = -1;
  };
  [[nodiscard]] const Lost& lost() const { return lost_; }
  [[nodiscard]] sched::Transport transport();
  // A call of that collective begins.
  void begin(Collective collective) {
    goes_to_root_ = stretto::goes_to_root(collective);
    announces_ = lengths_are_senders(collective);
  }

 private:
  struct Head {
    std::uint32_t bytes, number;
  };
  // The last words of a member that gives up, in place of a message: `bytes` is this, `number` says why.
  static constexpr std::uint32_t kFarewell = ~std::uint32_t{0};
  // In place of a length: the message goes beyond.
  static constexpr std::uint32_t kBeyond = kFarewell - 1;
  struct Reason {
    std::uint32_t word;
    static Reason of(Status why, int lost) {
      return {static_cast<std::uint32_t>(why) << 24 | (static_cast<std::uint32_t>(lost + 1) & 0xffffff)};
    }
    [[nodiscard]] Status why() const { return static_cast<Status>(word >> 24); }
    [[nodiscard]] int lost() const { return static_cast<int>(word & 0xffffff) - 1; }
  };
  struct Line {
    int stream = -1;
    sys::FileId file;
    Posted::Queue out, in;
    std::uint64_t gone = 0;            // bytes of the first message out, with head and tail
    std::uint32_t begin = 0, end = 0;  // of what has come, in its inbox
    bool tail_due = false;             // the tail of the last message has not been read
    std::uint32_t unacked = 0;         // messages since the stream was read empty
    bool acknowledged_on_arrival = false;
  };
  static constexpr std::uint32_t kTailBytes = 1;
  static constexpr std::uint32_t kInboxBytes = 2 * (kProfile.socket_bytes + sizeof(Head) + kTailBytes);
  static_assert(kInboxBytes / 2 < sys::kStreamMessageBytes);

  // sockets_open.cpp
  bool connect(const Opening& opening);
  bool is_faster(const Opening& opening);
  void hang_up(Line& line);
  void close();

  bool has_news(Line& line);
  [[nodiscard]] std::uint32_t wanted_bytes(const Line& line) const;
  // Null: there is none to that peer.
  Line* line_to(int peer) {
    if (lines_.empty()) return nullptr;
    Line& line = lines_[static_cast<std::size_t>(peer)];
    return line.stream >= 0 ? &line : nullptr;
  }
  // Null: it goes beyond.
  Line* line_of(int peer, std::uint64_t bytes) { return is_short(bytes) ? line_to(peer) : nullptr; }
  static bool is_short(std::uint64_t bytes) { return bytes <= kProfile.socket_bytes; }
  char* inbox(const Line& line) {
    return inboxes_.data() + static_cast<std::size_t>(&line - lines_.data()) * kInboxBytes;
  }
  bool went_beyond(bool taken);
  void fail(Status status) {
    broken_ = true;
    if (status_ == Status::ok) status_ = status;
  }
  void pop(Posted::Queue& queue) {
    if (!posted_.pop(queue)) fail(Status::no_memory);
  }
  void lose(const Lost& lost);
  void hear_farewell(const Line& line, const Reason& reason);
  [[nodiscard]] Status failure() const { return status_ != Status::ok ? status_ : beyond_.why_broken(); }
  [[nodiscard]] int rank_of(const Line& line) const { return static_cast<int>(&line - lines_.data()); }
  void step_out(Line& line);
  void choose_acknowledgement(Line& line, std::uint64_t bytes);
  void step_in(Line& line);
  bool take(Line& line);
  bool send_beyond(Line& line);
  bool receive_beyond(Line& line);
  void took(Line& line, std::uint32_t bytes);
  Line* first_awaited();
  void step();
  int poll(std::uint32_t* tickets, int capacity);
  int poll_beyond(std::uint32_t* tickets, int capacity);
  void look_in_vain();

  sched::Transport beyond_;
  shm::WaitPolicy policy_;
  Array<Line> lines_;    // by rank; empty: not open
  Array<char> inboxes_;  // what has come, for each of them
  Posted posted_;
  std::uint64_t beyond_under_way_ = 0;
  std::uint32_t looks_ = 0;
  bool broken_ = false, has_given_up_ = false;
  Status status_ = Status::ok;  // why it is broken
  Lost lost_;
  int rank_ = 0;
  bool announces_ = false;      // this call's members announce what goes beyond
  bool goes_to_root_ = false;   // what this call's members send
  std::uint64_t reserved_ = 0;  // of the connections that this process may have
  Measured measured_;
};

}  // namespace stretto::engine
