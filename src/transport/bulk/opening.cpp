// SPDX-License-Identifier: BSD-3-Clause
// Connections that open. The driver moves on with all of them when one has an event, or when it is
// time for the next address or the next call. Whoever has called for the first stream of a pair
// calls for the others, one after the other.
#include <algorithm>
#include <cerrno>

#include "transport/bulk/driver.hpp"
#include "transport/bulk/peer.hpp"

namespace stretto::transport::bulk {
namespace {

constexpr int kMostCalls = 100;  // of peers whose system answers
constexpr std::uint64_t kBetweenCallsNs = 20'000'000;

}  // namespace

void Driver::call(Peer& peer) {
  peer.connection.opens();
  peer.calls_left = kMostCalls;
  peer.call_ns = 1;  // now
  due_ns_ = 0;
}

void Driver::step_handshakes() {
  due_ns_ = ~std::uint64_t{0};
  step_incoming();
  each_peer([&](Peer& peer) {
    if (peer.connection.stage() == Connection::Stage::opening) step_call(peer);
  });
}

void Driver::step_call(Peer& peer) {
  const std::uint64_t now = sys::now_ns();
  if (peer.is_called) return;
  if (!peer.calls && now < peer.call_ns) return due_at(peer.call_ns);
  if (!peer.calls) {
    peer.attempt.start(settings_.addresses, settings_.address_count, endpoints_[static_cast<std::size_t>(peer.rank)],
                       peer.connection.tracks());
    peer.calls = true;
  }
  int stream = -1;
  const int error = peer.attempt.step(party(), static_cast<std::uint32_t>(peer.rank), &stream);
  if (error == 0) {
    peer.calls = false;
    peer.connection.opened(stream, poller_);
    if (peer.connection.stage() == Connection::Stage::opening) call(peer);
  } else if (error == EAGAIN) {
    if (peer.attempt.has_more_addresses()) due_at(now + Attempt::kNextAddressNs);
    for (HandshakeEnd& end : peer.attempt) watch(end);
  } else {
    // A peer that has a call under way to this rank refuses, and so may one whom strangers besiege.
    peer.calls = false;
    if (!peer.attempt.was_heard() || --peer.calls_left == 0) return peer.connection.lose();
    peer.call_ns = now + kBetweenCallsNs;
    due_at(peer.call_ns);
  }
}

bool Driver::awaits(const Hello& hello) {
  const auto caller = static_cast<int>(hello.caller);
  const Peer* const peer = find(caller);
  if (peer == nullptr || peer->connection.is_open() || peer->connection.stage() == Connection::Stage::lost)
    return false;
  if (hello.which != peer->connection.tracks()) return false;
  if (hello.which != 0) return peer->is_called;
  return !peer->calls || !peer->attempt.was_heard() || caller < shared_.rank;
}

void Driver::step_incoming() {
  const bool fine = incoming_.step(
      party(), listeners_, peers_.size(), [&](const Hello& hello) { return awaits(hello); },
      [&](const Hello& hello, int stream) {
        Peer& peer = *find(static_cast<int>(hello.caller));
        peer.attempt.close();
        peer.calls = false;
        peer.is_called = true;
        peer.connection.opened(stream, poller_);
      });
  for (HandshakeEnd& end : incoming_) watch(end);
  const bool has_room = fine && !incoming_.is_full();
  watch_listeners(has_room);
  if (!has_room) due_at(sys::now_ns() + IncomingConnections::kSilentNs);
}

void Driver::watch(HandshakeEnd& end) {
  if (end.stream < 0) return;
  const bool connecting = end.stage == HandshakeEnd::Stage::connecting;
  const std::uint8_t wanted = connecting ? 2 : 1;
  if (end.watched == wanted) return;
  if (sys::poller_set(poller_, end.stream, {!connecting, connecting}, kHandshakeTag) != 0)
    due_at(sys::now_ns() + 1'000'000);
  else
    end.watched = wanted;
}

void Driver::watch_listeners(bool watched) {
  if (watched == listeners_watched_) return;
  for (int i = 0; i < listeners_.count; ++i) {
    if (sys::poller_set(poller_, listeners_.streams[i], {watched, false}, kHandshakeTag) != 0)
      return due_at(sys::now_ns() + 1'000'000);
  }
  listeners_watched_ = watched;
}

}  // namespace stretto::transport::bulk
