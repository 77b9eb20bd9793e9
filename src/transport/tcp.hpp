// SPDX-License-Identifier: BSD-3-Clause
// The short messages of a communicator's schedules to other nodes, over TCP connections of its own.
// All others go by the next transport of the stack.
//
// Why: where hosts talk over TCP, the MPI on top of it takes most of what a short message costs.
// The MPI's progress engine asks all its connections and timers before it hands out the one message
// that a schedule waits for. A wait here reads one connection.
//
// Who decides: all members open connections, or none (open). They do so at one and the same call of
// the communicator, when it has shown that it lives long enough. They measure, and keep to the MPI
// where it is as fast. From then on the length of a message decides, which both its ends know.
//
// A connection belongs to one pair of members of one communicator. Schedules post a pair's messages
// in one order on both sides, and a stream keeps that order: there is nothing to match. A head of 8
// bytes says how long a message is, and its number: members that have lost step find out by it. A
// message that is shorter than its place is good, as in MPI. A longer one breaks the transport, as
// in MPI.
//
// Acknowledgements. A receive that empties the socket makes the kernel send an ACK before it
// returns, which costs as much as a message. Each message therefore ends with one byte, its tail,
// that stays unread until the next message is read. A sender waits when ten messages are not
// acknowledged, so the receiver reads the tail too after some messages, while it waits for the next
// one anyway.
//
// The kernel acknowledges a message of more than a segment at once, whatever stays unread. In
// Reduce, Gather and Gatherv, where many ranks send to one, it does so as the message arrives,
// because the receiver has most to do. In all other collectives it does so in the receiver's call,
// because the receiver has least to do.
//
// In a Gatherv or Scatterv the sender alone may know how long a message is: a receiver may have
// declared more. There a head on the connection announces a long message, which the next transport
// carries. A receiver that has declared a long message reads the connection, and is told.
//
// Nothing blocks. A later poll sends what the system does not take at once. The ticket of a message
// comes back when the system has all of it.
#pragma once
#include <algorithm>

#include "base/array.hpp"
#include "base/bootstrap.hpp"
#include "base/tuning.hpp"
#include "shm/waiter.hpp"
#include "sys/sys.hpp"
#include "transport/posted.hpp"
#include "transport/transport.hpp"

namespace stretto::transport {

class TcpTransport {
 public:
  static constexpr std::int32_t kNobody = -1;
  // How long a word takes there and back. 0: not measured.
  struct Measured {
    std::uint64_t here_ns = 0, next_ns = 0;
  };
  // What earlier jobs have measured between two members. All members have it, or none; the first
  // of the two asks.
  struct Kept {
    void* context = nullptr;
    Measured (*read)(void* context, int one, int other) = nullptr;  // null: nothing is kept
    void (*write)(void* context, int one, int other, const Measured& measured) = nullptr;
  };
  struct Opening {
    Bootstrap members;
    // Of all members. Members of different nodes connect, but those whose node is kNobody.
    const std::int32_t* nodes = nullptr;
    shm::WaitPolicy policy;                                // how this one waits, and drives the host
    bool always = false;                                   // whether or not they are faster; the same on all members
    sys::HostAddress addresses[sys::kMostAddresses] = {};  // by which others reach this member
    int address_count = 0;
    Kept kept;
    // Whether any two members of different nodes connect.
    [[nodiscard]] bool has_all() const {
      return std::find(nodes, nodes + members.size, kNobody) == nodes + members.size;
    }
  };
  // What came of it, the same on all members. A process that could not be connected, or whose
  // connections were slower, is not able to from then on.
  enum class Opened : std::uint8_t { yes, unable, slower };

  TcpTransport() = default;
  ~TcpTransport() { close(); }
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  // `next` carries what is announced here, and is what connections are compared with.
  void start(const Transport& next) { next_ = next; }
  // Collective over the members; no message may be under way.
  Opened open(const Opening& opening);
  // There and back between two nodes, in ns, here and by the next transport, as the first
  // member that connects has measured it; 0: it has not.
  [[nodiscard]] const Measured& measured() const { return measured_; }
  [[nodiscard]] bool connected() const { return !connections_.empty(); }
  // The member that has died, or whose connection is gone.
  [[nodiscard]] const Lost& lost() const { return lost_; }
  [[nodiscard]] Transport transport();

 private:
  // A call of that collective begins.
  void begin(Collective collective) {
    goes_to_root_ = stretto::goes_to_root(collective);
    announces_ = lengths_are_senders(collective);
  }
  // A call has failed, and may have left messages behind: no later one works, and peers that wait
  // for this member hear why. `lost` is the member that has ended; -1: nobody knows which.
  void abort(Status why, int lost);

  struct Head {
    std::uint32_t bytes, number;
  };
  // The last words of a member that gives up, in place of a message: `bytes` is this, `number` is
  // the reason.
  static constexpr std::uint32_t kFarewell = ~std::uint32_t{0};
  // In place of a length: the message goes by the next transport.
  static constexpr std::uint32_t kByNext = kFarewell - 1;
  struct Connection {
    int rank = -1;
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
  static constexpr std::uint32_t kInboxBytes = 2 * (kTuning.tcp_bytes + sizeof(Head) + kTailBytes);
  static_assert(kInboxBytes / 2 < sys::kStreamMessageBytes);

  // tcp_connect.cpp
  bool connect(const Opening& opening);
  // The first member that connects, and the first one on another node.
  struct Ends {
    int first, other;
  };
  static Ends ends(const Opening& opening);
  void recall(const Opening& opening);
  [[nodiscard]] bool is_worth() const {
    return measured_.here_ns != 0 && measured_.here_ns * 100 < measured_.next_ns * kTuning.tcp_worth;
  }
  // False: the peer cannot be reached.
  bool measure(const Opening& opening, const Ends& ends);
  bool is_faster(const Opening& opening);
  void close_connection(Connection& connection);
  void close();

  bool has_news(Connection& connection);
  [[nodiscard]] std::uint32_t wanted_bytes(const Connection& connection) const;
  // Null: there is none to that peer.
  Connection* connection_to(int peer) {
    const std::int32_t place = by_rank_.empty() ? -1 : by_rank_[static_cast<std::size_t>(peer)];
    return place >= 0 ? &connections_[static_cast<std::size_t>(place)] : nullptr;
  }
  bool accepts(int peer, std::uint64_t bytes) {
    return (announces_ || is_short(bytes)) && connection_to(peer) != nullptr;
  }
  static bool is_short(std::uint64_t bytes) { return bytes <= kTuning.tcp_bytes; }
  char* inbox(const Connection& connection) {
    return inboxes_.data() + static_cast<std::size_t>(&connection - connections_.data()) * kInboxBytes;
  }
  void fail(Status status) {
    broken_ = true;
    if (status_ == Status::ok) status_ = status;
  }
  void pop(Posted::Queue& queue) {
    if (!posted_.pop(queue)) fail(Status::no_memory);
  }
  void peer_died(const Lost& lost);
  void hear_farewell(const Connection& connection, std::uint32_t word);
  void step_out(Connection& connection);
  void choose_acknowledgement(Connection& connection, std::uint64_t bytes);
  void step_in(Connection& connection);
  bool take(Connection& connection);
  bool send_by_next(Connection& connection);
  bool receive_by_next(Connection& connection);
  void took(Connection& connection, std::uint32_t bytes);
  Connection* first_awaited();
  void step();
  int poll(std::uint32_t* tickets, int capacity);
  void rest();

  Transport next_;
  shm::WaitPolicy policy_;
  Array<Connection> connections_;
  Array<std::int32_t> by_rank_;  // places in connections_; -1: none to that member. Empty: not open
  Array<char> inboxes_;          // what has come, for each of them
  Posted posted_;
  std::uint32_t looks_ = 0;
  bool broken_ = false, has_aborted_ = false;
  Status status_ = Status::ok;  // why it is broken
  Lost lost_;
  int rank_ = 0;
  bool announces_ = false;      // this call's members announce what goes by the next transport
  bool goes_to_root_ = false;   // what this call's members send
  std::uint64_t reserved_ = 0;  // of the connections that this process may have
  Measured measured_;
};

}  // namespace stretto::transport
