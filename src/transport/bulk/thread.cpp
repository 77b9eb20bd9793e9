// SPDX-License-Identifier: BSD-3-Clause
// What the driver thread does, but for connections that open (opening.cpp).
#include <algorithm>
#include <span>

#include "transport/bulk/driver.hpp"
#include "transport/bulk/peer.hpp"

namespace stretto::transport::bulk {
namespace {

constexpr std::uint64_t kBetweenPollsNs = 50'000;  // of a network without a descriptor

}  // namespace

void* Driver::main(void* self) {
  static_cast<Driver*>(self)->run();
  return nullptr;
}

void Driver::run() {
  watch_listeners(true);
  shared_.reads.begin();
  if (Fabric* const fabric = shared_.reads.fabric(); fabric != nullptr && fabric->descriptor() >= 0)
    (void)sys::poller_set(poller_, fabric->descriptor(), {true, false}, kFabricTag);
  while (take_commands()) {
    if (sys::now_ns() >= due_ns_) step_handshakes();
    bool more = step_all();
    shared_.grants.give([&](Message* message) {
      more = true;
      find(message->peer)->connection.tell_grant(message);
    });
    if (!wait_for_events(more)) {
      fail_all(Status::unavailable);
      due_ns_ = ~std::uint64_t{0};
      sys::nap_ns(1'000'000);
    }
  }
  serve_readers();
  close_all();
}

// True: there is more.
bool Driver::step_all() {
  RemoteReads& reads = shared_.reads;
  bool more = reads.poll([](Connection& reader, const Offer& offer, const char* data, int error) {
    reader.read_ends(offer, data, error);
  });
  each_peer([&](Peer& peer) {
    if (peer.connection.is_open()) more = peer.connection.step(poller_) || more;
  });
  return start_reads() || reads.take_wake() || more;
}

// Of all peers' offers the one that is wanted soonest. True: some have an answer, maybe.
bool Driver::start_reads() {
  bool any = false;
  for (bool goes_on = true; goes_on;) {
    Peer* first = nullptr;
    std::uint64_t how_soon = ~std::uint64_t{0};
    each_peer([&](Peer& peer) {
      std::uint64_t soon = 0;
      if (!peer.connection.has_offer(&soon) || soon >= how_soon) return;
      first = &peer;
      how_soon = soon;
    });
    const bool may = how_soon == 0 || shared_.reads.may_read(2 * shared_.grants.kept_bytes());
    goes_on = first != nullptr && may && first->connection.read_offer() == 0;
    any = any || goes_on;
  }
  return any;
}

// False: it is time to stop.
bool Driver::take_commands() {
  bool stopping = false;
  {
    const Locked locked(shared_.lock);
    taken_.clear();
    met_.clear();
    taken_.swap(commands_);
    met_.swap(introduced_);
    stopping = stopping_;
  }
  for (const Introduced& each : met_) meet(each.peer, each.endpoint);
  for (const Command& command : taken_) perform(command);
  return !stopping;
}

void Driver::perform(const Command& command) {
  Peer* const peer = find(command.peer);
  if (command.what == Command::What::task) {
    command.task(command.context);
  } else if (command.what == Command::What::forget) {
    each_peer([&](Peer& each) { each.connection.forget(command.key.comm); });
  } else if (peer == nullptr) {
    if (command.message != nullptr) finish(command.message, Status::invalid);
  } else if (command.what == Command::What::post) {
    if (peer->connection.stage() == Connection::Stage::idle) call(*peer);
    peer->connection.post(command.message);
  } else if (command.what == Command::What::hurry) {
    peer->connection.hurry(command.key, command.range);
  } else if (command.what == Command::What::abandon) {
    peer->connection.abandon(command.key.comm, command.reason);
  }
}

int Driver::attend(int fd, void (*ready)(void* context), void* context) {
  attended_ = ready;
  attended_context_ = context;
  return sys::poller_set(poller_, fd, {true, false}, kAttendedTag);
}

void Driver::meet(int rank, const Endpoint& endpoint) {
  const auto at = static_cast<std::size_t>(rank);
  if (at >= peers_.size() && (!endpoints_.resize(at + 1, {}) || !peers_.resize(at + 1, nullptr))) return;
  endpoints_[at] = endpoint;
  if (rank != shared_.rank) peers_[at] = PrivateHeap::make<Peer>(shared_, rank, host_of(endpoint));
}

// The first rank of its host. Some addresses of hosts may be alike, such as those of bridges, but
// not all.
std::uint32_t Driver::host_of(const Endpoint& endpoint) const {
  const auto addresses = [](const Endpoint& of) { return std::span(of.addresses).first(of.address_count); };
  const auto is_alike = [](const sys::HostAddress& one, const sys::HostAddress& other) { return one.ip == other.ip; };
  const Endpoint* const first = std::find_if(endpoints_.begin(), endpoints_.end(), [&](const Endpoint& other) {
    return other.able && std::ranges::equal(addresses(other), addresses(endpoint), is_alike);
  });
  return static_cast<std::uint32_t>(first - endpoints_.begin());
}

// False: the system does not let the driver wait.
bool Driver::wait_for_events(bool more) {
  const std::uint64_t now = sys::now_ns();
  if (Fabric* const fabric = shared_.reads.fabric(); fabric != nullptr && !more) more = !fabric->may_wait();
  std::uint64_t due_ns = std::min(due_ns_, attended_due_ns_);
  if (shared_.reads.is_to_be_polled()) due_ns = std::min(due_ns, now + kBetweenPollsNs);
  std::uint64_t timeout_ns = sys::kForever;
  if (more || due_ns <= now)
    timeout_ns = 0;
  else if (due_ns != ~std::uint64_t{0})
    timeout_ns = due_ns - now;
  {
    const Locked locked(shared_.lock);
    if (!commands_.empty() || stopping_) timeout_ns = 0;
    parked_ = timeout_ns != 0;
  }
  sys::Ready ready[sys::kMostReady];
  int count = 0;
  bool woken = false;
  const int error = sys::poller_wait(poller_, timeout_ns, ready, &count, &woken);
  {
    const Locked locked(shared_.lock);
    parked_ = false;
  }
  bool attends = attended_due_ns_ != ~std::uint64_t{0} && sys::now_ns() >= attended_due_ns_;
  for (int i = 0; i < count; ++i) {
    if (ready[i].tag == kHandshakeTag)
      due_ns_ = 0;
    else if (ready[i].tag == kAttendedTag)
      attends = true;
    else
      note_event(ready[i]);
  }
  if (attends && attended_ != nullptr) attended_(attended_context_);
  return error == 0;
}

void Driver::note_event(const sys::Ready& ready) {
  Peer* const peer = ready.tag < kHandshakeTag ? find(Connection::peer_of(ready.tag)) : nullptr;
  if (peer == nullptr) return;
  peer->connection.has_event(ready);
  // Whoever calls says nothing before the last stream is there, so this is the end of the first.
  if (peer->is_called && peer->connection.stage() == Connection::Stage::opening) peer->connection.lose();
}

void Driver::fail_all(Status status) {
  each_peer([&](Peer& peer) {
    peer.attempt.close();
    peer.calls = false;
    peer.connection.fail(status, {});
  });
  incoming_.close();
}

// What peers are still to read counts as sent.
void Driver::serve_readers() {
  constexpr std::uint64_t kPatienceNs = 2'000'000'000;
  for (const std::uint64_t begin = sys::now_ns(); shared_.reads.any_offered() && sys::now_ns() - begin < kPatienceNs;) {
    (void)step_all();
    sys::Ready ready[sys::kMostReady];
    int count = 0;
    bool woken = false;
    if (sys::poller_wait(poller_, kBetweenPollsNs, ready, &count, &woken) != 0) break;
    for (int i = 0; i < count; ++i) note_event(ready[i]);
  }
}

// A stream that is closed with something unread takes what is on its way to the peer back. So the
// driver receives until its peers have closed their ends, which they do when they see this end.
void Driver::close_all() {
  constexpr std::uint64_t kPatienceNs = 200'000'000;
  constexpr std::uint64_t kPauseNs = 5'000'000;
  each_peer([](Peer& peer) {
    if (peer.connection.is_open()) peer.connection.end();
  });
  for (const std::uint64_t begin = sys::now_ns(); sys::now_ns() - begin < kPatienceNs;) {
    bool open = false;
    each_peer([&](Peer& peer) {
      if (!peer.connection.is_open()) return;
      if (peer.connection.drain())
        open = true;
      else
        peer.connection.fail(Status::unavailable, {});
    });
    sys::Ready ready[sys::kMostReady];
    int count = 0;
    bool woken = false;
    if (!open || sys::poller_wait(poller_, kPauseNs, ready, &count, &woken) != 0) break;
  }
  fail_all(Status::unavailable);
  each_peer([](Peer& peer) { PrivateHeap::destroy(&peer); });
  peers_.clear();
}

}  // namespace stretto::transport::bulk
