// SPDX-License-Identifier: BSD-3-Clause
// The transports of one communicator's schedules, as a chain. A message goes by the first transport
// of the chain that accepts it:
//
//   1  ShmTransport   to members on this node, once they have joined
//   2  TcpTransport   short messages to other nodes, once connections are open
//   3  the last one   all others. In the library: the MPI's own messages, or, for calls with
//                     requests, connections that a thread serves (bulk/bulk_transport.hpp)
//
// As long as the last transport is alone, the stack costs nothing: transport() is the last one.
#pragma once
#include "transport/shm.hpp"
#include "transport/tcp.hpp"
#include "transport/transport.hpp"

namespace stretto::transport {

class Stack {
 public:
  Stack() = default;
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // All messages go by `last`.
  void start(const Transport& last);
  // Messages to `team`'s members, which are these ranks of `size`, go over shared memory from now
  // on. The team stays. False: no memory, nothing has changed.
  bool join(shm::Team& team, const int* ranks, int size);
  void stay_apart() { shm_.stay_apart(); }
  // Collective over the members; no message may be under way.
  TcpTransport::Opened connect(const TcpTransport::Opening& opening);
  [[nodiscard]] const TcpTransport::Measured& measured() const { return tcp_.measured(); }

  // Valid until the chain changes.
  [[nodiscard]] Transport transport();
  // All members do so for each schedule, in the same order.
  void begin(Collective collective);
  void end();
  // The call has failed here, and may have left messages behind. Peers that wait for this member
  // hear of it. Returns the member that has ended, if one has.
  Lost abort(Status why);
  // The member whose connection is gone, as far as this member knows.
  [[nodiscard]] Lost lost() const;
  // After a wait of so long: whether the members on this node that this rank waits for can still
  // come. If not, the transport is broken.
  void check_peers(std::uint64_t waited_ns) { shm_.check_peers(waited_ns); }

 private:
  static constexpr int kMost = 3;

  [[nodiscard]] Transport counted_last();
  void chain();
  [[nodiscard]] const Transport& first_that_accepts(int peer, std::uint64_t bytes) const;
  int poll(std::uint32_t* tickets, int capacity);
  int poll_last(std::uint32_t* tickets, int capacity);
  void abort_last(Status why, int lost);
  [[nodiscard]] Status failure() const;

  Transport last_;
  std::uint64_t last_under_way_ = 0;  // messages
  TcpTransport tcp_;
  ShmTransport shm_;
  Transport layers_[kMost];
  int count_ = 0;
};

}  // namespace stretto::transport
