// SPDX-License-Identifier: BSD-3-Clause
// Long messages over TCP, moved by a thread. Each pair of ranks of the job has one connection,
// which all communicators share. A message moves while its poster does something else.
//
// Why: a call may return before its data are there, if somebody else moves them. The MPI may be
// called by the program's threads only, so the driver thread has connections of its own.
//
// What goes over a connection (frame.hpp), by two streams (connection.hpp):
//
//   sender's driver                      receiver's driver
//        |  <------------ ask ---------------  |   a receive is posted: its ranges, in this order
//        |  <------------ grant -------------  |   so many bytes more may come (grants.hpp)
//        |  <------------ hurry -------------  |   this range next
//        |  ------------- data ------------->  |   pieces of what was asked for, each byte once
//        |  ------------- eager ------------>  |   a short message, unasked
//        |  <------------ ack ---------------  |   an eager message has its receive
//        |  <------------ fail ------------->  |   a communicator has failed, and why
//
// A message has a key, which both ends know. Keys match, not the order in which messages are
// posted: messages of a pair complete in any order. The pieces of a range go by addresses.
//
// What a send is at its driver, and a receive:
//
//   send      event                        then
//   posted    up to 16 KiB, credit left    an eager frame; complete when the system has it
//   posted    its ask comes                asked
//   -         an ask comes, no send yet    the ask is kept; the send is asked as soon as posted
//   asked     the stream has room          a granted piece goes; complete: the system has the last
//   asked     a hurry                      this range and this message go next
//   complete  its ask or a hurry comes     nothing
//
//   receive   event                        then
//   posted    its eager message is here    copied from its slot; complete; an ack goes
//   posted    otherwise                    an ask goes, even for a short one
//   any       a piece comes                it is received into its place
//   any       its eager message comes      the same; an ack goes
//   any       all bytes are here           complete
//
//   both      a fail, an abandon           complete, with the reason
//   both      the connection is lost       complete: peer_lost, and who
//
// Why nothing waits for ever:
//   - A driver always receives, whether or not it can send. What comes has a place: a posted
//     receive's memory, or one of as many slots as there are credits. So a peer's full socket gets
//     room, also when both sides send.
//   - Each receive that has asked is granted all of it in time: what is under way comes, which
//     makes room in the window, or fails.
//   - A driver sends whatever is due. Nothing that is due waits for another message: an ask waits
//     for no credit, and neither does what is asked for.
//   - A short message that finds no credit is sent when its ask comes. Each receive that waits has
//     asked. So credit can run out, and only what nobody waits for stays.
//   - To send an ask, a hurry or an ack takes no memory. They stand in the receive, or in as many
//     places as there are credits. An ask that comes early takes a message of the pool.
//   - An ask can cross its eager message. The sender knows the names of eager messages until they
//     are acked, and the ack comes behind the ask.
//
// With a network that reads remote memory, pieces go by that (remote_reads.hpp).
//
// Connections open lazily, at the first message of either side, by the handshake of handshake.hpp.
// Each rank may call. If both do, the lower rank refuses the other's call once its own is heard,
// and the higher rank accepts. The thread starts with the first message of this rank. Until then
// the system keeps calls.
//
// The system keeps what goes in some milliseconds (Grants::kept_bytes), and a hurried piece goes
// beside it. A stream is watched for room only while a frame waits for it.
//
// Any thread may call all functions but open, which is the first, and stop, which is the last.
// Only the driver thread has the connections. Threads leave commands for it, under a lock.
#pragma once
#include "transport/bulk/connection.hpp"
#include "transport/handshake_ends.hpp"

namespace stretto::transport::bulk {

struct Peer;

class Driver {
 public:
  struct Settings {
    int rank = 0;                                          // of the job
    sys::HostAddress addresses[sys::kMostAddresses] = {};  // by which others reach this process
    int address_count = 0;
    std::uint32_t buffer_bytes = 0;  // what the system keeps of a stream, each way; 0: as it likes
    Fabric* fabric = nullptr;        // pieces go by it where peers have it, too (remote_reads.hpp). It stays.
  };
  Driver() = default;
  ~Driver() { stop(); }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Listens. `endpoint` is for the peers. unavailable: nobody can reach this process.
  Status open(const Settings& settings, Endpoint* endpoint);
  // A rank of the job can be reached there. Once is enough. unavailable: this process would have
  // too many connections.
  Status introduce(int peer, const Endpoint& endpoint);

  // The memory is the driver's until the handle is done. The handle is the caller's until it is
  // given to complete. Statuses: no_memory, unavailable (no thread, or it has stopped).
  // Of what a call sends to a peer, and is due, the lowest `position` goes first.
  Status post_send(int peer, const Key& key, const void* from, std::uint64_t bytes, Handle* handle,
                   const Listener& listener = {}, std::uint32_t position = 0);
  // At most so many bytes.
  Status post_recv(int peer, const Key& key, void* to, std::uint64_t bytes, Handle* handle,
                   const Listener& listener = {}, const Wish& wish = {});
  // What has not been sent of this range of a receive is to come next.
  void hurry(Handle handle, std::uint64_t offset, std::uint64_t bytes);

  static bool done(Handle handle) { return handle->done.load(std::memory_order_acquire); }
  // The handle, which is done, is the driver's again.
  void complete(Handle handle);

  // The communicator's messages with this peer end soon, also those posted later. The peer's do,
  // too, and hear the reason.
  void abandon(int peer, std::uint64_t comm, const Reason& reason);
  // The communicator is freed: nothing is posted for it any more.
  void forget(std::uint64_t comm);
  // Calls `task` on the thread, after all that was ordered before. Statuses: as of post_send.
  Status on_thread(void (*task)(void* context), void* context);
  // Tasks only: `ready` is called on the thread whenever this descriptor is readable. One
  // descriptor at a time. 0 or errno.
  int attend(int fd, void (*ready)(void* context), void* context);
  // On the thread: it is called at this time, too. Each time replaces the one before; ~0: no time.
  void attend_by(std::uint64_t ns) { attended_due_ns_ = ns; }
  // What has come by the network of remote reads so far.
  [[nodiscard]] std::uint64_t read_bytes() const { return shared_.reads.read_bytes(); }
  // Ends the thread and closes all connections. Messages that are open end: unavailable. Peers
  // receive all that has been sent.
  void stop();

 private:
  struct Command {
    enum class What : std::uint8_t { post, hurry, abandon, forget, introduce, task };
    What what;
    int peer = -1;
    Message* message = nullptr;
    Key key = {};
    Range range = {};
    Reason reason = {};
    void (*task)(void* context) = nullptr;
    void* context = nullptr;
  };
  struct Introduced {
    int peer;
    Endpoint endpoint;
  };
  static constexpr std::uint64_t kHandshakeTag = std::uint64_t{1} << 32, kAttendedTag = kHandshakeTag + 1,
                                 kFabricTag = kHandshakeTag + 2;

  Status post(int peer, const Key& key, char* data, std::uint64_t bytes, bool sends, const Listener& listener,
              const Wish& wish, Handle* handle);
  void order(const Command& command);
  bool push(const Command& command);
  bool start_thread();

  // The thread's. thread.cpp
  static void* main(void* self);
  void run();
  bool step_all();
  bool start_reads();
  bool take_commands();
  void perform(const Command& command);
  void meet(int peer, const Endpoint& endpoint);
  [[nodiscard]] std::uint32_t host_of(const Endpoint& endpoint) const;
  bool wait_for_events(bool more);
  void note_event(const sys::Ready& ready);
  void fail_all(Status status);
  void serve_readers();
  void close_all();
  [[nodiscard]] Peer* find(int peer) const {
    const auto at = static_cast<std::size_t>(peer);
    return peer >= 0 && at < peers_.size() ? peers_[at] : nullptr;
  }
  template <class Visit>
  void each_peer(const Visit& visit) {
    for (Peer* const peer : peers_) {
      if (peer != nullptr) visit(*peer);
    }
  }

  // opening.cpp: connections that open
  [[nodiscard]] Party party() const { return {static_cast<std::uint32_t>(shared_.rank), endpoints_}; }
  void call(Peer& peer);
  void step_handshakes();
  void step_call(Peer& peer);
  void step_incoming();
  bool awaits(const Hello& hello);
  void watch(HandshakeEnd& end);
  void watch_listeners(bool watched);
  void due_at(std::uint64_t ns) { due_ns_ = due_ns_ < ns ? due_ns_ : ns; }

  Shared shared_;
  Settings settings_;
  sys::Poller poller_;
  Listeners listeners_;
  int process_ = 0;  // a forked child has no thread
  pthread_t thread_{};

  // Under the lock.
  bool opened_ = false, running_ = false, stopping_ = false, parked_ = false;
  Array<Command, PrivateHeap> commands_;
  Array<Introduced, PrivateHeap> introduced_;
  Array<std::uint8_t, PrivateHeap> known_;  // by rank: introduced
  std::uint64_t reserved_ = 0;              // connections

  // The thread's.
  Array<Command, PrivateHeap> taken_;
  Array<Introduced, PrivateHeap> met_;
  Array<Peer*, PrivateHeap> peers_;         // by rank
  Array<Endpoint, PrivateHeap> endpoints_;  // by rank
  IncomingConnections incoming_;
  std::uint64_t due_ns_ = 0;  // when handshakes are to move on
  std::uint64_t attended_due_ns_ = ~std::uint64_t{0};
  bool listeners_watched_ = false;
  void (*attended_)(void* context) = nullptr;
  void* attended_context_ = nullptr;
};

}  // namespace stretto::transport::bulk
