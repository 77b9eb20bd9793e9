// SPDX-License-Identifier: BSD-3-Clause
#include "transport/handshake_ends.hpp"

#include <atomic>

namespace stretto::transport {
namespace {

constexpr std::size_t kMostUnknown = 16;  // connections beside those of the peers that are awaited
constexpr std::uint64_t kMostConnections = 512;
constinit std::atomic<std::uint64_t> g_connections = 0;

}  // namespace

bool reserve_connections(std::uint64_t count) {
  const std::uint64_t most = std::min(kMostConnections, sys::descriptor_limit() / 4);
  if (g_connections.fetch_add(count, std::memory_order_relaxed) + count <= most) return true;
  g_connections.fetch_sub(count, std::memory_order_relaxed);
  return false;
}

void release_connections(std::uint64_t count) { g_connections.fetch_sub(count, std::memory_order_relaxed); }

int dial_order(const sys::HostAddress* own, int own_count, const sys::HostAddress* theirs, int their_count,
               int* order) {
  const auto is_own = [&](const sys::HostAddress& address) {
    return std::any_of(own, own + own_count, [&](const sys::HostAddress& mine) { return mine.ip == address.ip; });
  };
  const bool one_stack = own_count == their_count && std::all_of(theirs, theirs + their_count, is_own);
  int count = 0;
  for (const bool near : {true, false}) {
    for (int i = 0; i < their_count; ++i) {
      const bool found =
          std::any_of(own, own + own_count, [&](const sys::HostAddress& mine) { return mine.neighbours(theirs[i]); });
      if (found == near && (one_stack || !is_own(theirs[i]))) order[count++] = i;
    }
  }
  return count;
}

int Party::step_as_caller(HandshakeEnd& end, std::uint32_t peer, std::uint64_t which) const {
  std::uint64_t word = 0;
  int error = 0;
  switch (end.stage) {
    case HandshakeEnd::Stage::connecting:
      error = sys::stream_connected(end.stream);
      if (error != 0) return error;
      end.hello.caller = me;
      end.hello.listener = peer;
      end.hello.which = which;
      error = sys::random_bytes(&end.hello.nonce, sizeof end.hello.nonce);
      return error != 0 ? EPROTO : end.say(end.hello, HandshakeEnd::Stage::answer);
    case HandshakeEnd::Stage::answer:
      error = end.hear(&end.answer);
      if (error != 0) return error;
      return end.answer.hash == hash(Role::answer, end)
                 ? end.say(hash(Role::proof, end), HandshakeEnd::Stage::acceptance)
                 : EPROTO;
    default:
      error = end.hear(&word);
      if (error != 0) return error;
      return word == hash(Role::acceptance, end) ? 0 : EPROTO;
  }
}

int Party::answer(HandshakeEnd& end) const {
  if (sys::random_bytes(&end.answer.nonce, sizeof end.answer.nonce) != 0) return EPROTO;
  end.answer.hash = hash(Role::answer, end);
  return end.say(end.answer, HandshakeEnd::Stage::proof);
}

int Attempt::step(const Party& party, std::uint32_t peer, int* stream) {
  bool any = false;
  for (HandshakeEnd& one_end : *this) {
    if (one_end.stream < 0) continue;
    const int error = party.step_as_caller(one_end, peer, which_);
    heard_ = heard_ || one_end.stage != HandshakeEnd::Stage::connecting;
    if (error == 0) {
      *stream = one_end.stream;
      one_end.stream = -1;
      close();
      return 0;
    }
    if (error != EAGAIN) one_end.close();
    any = any || error == EAGAIN;
  }
  if (has_more_addresses() && (!any || sys::now_ns() - tried_ns_ >= kNextAddressNs))
    any = dial(party.endpoints[peer]) || any;
  return any || has_more_addresses() ? EAGAIN : EHOSTUNREACH;
}

bool Attempt::dial(const Endpoint& to) {
  const int at = order_[tried_];
  tried_ns_ = sys::now_ns();
  return sys::stream_connect(to.addresses[at], to.ports[at], &ends_[tried_++].stream) == 0;
}

Endpoint Listeners::open(const sys::HostAddress* addresses, int address_count) {
  Endpoint endpoint{};
  for (int i = 0; i < address_count; ++i) {
    if (sys::stream_listen(addresses[i], &streams[count], &endpoint.ports[count]) != 0) continue;
    endpoint.addresses[count++] = addresses[i];
  }
  endpoint.address_count = count;
  endpoint.able = count > 0 && sys::random_bytes(&endpoint.share, sizeof endpoint.share) == 0;
  return endpoint;
}

bool IncomingConnections::accept(const Listeners& listeners, std::size_t awaited) {
  full_ = false;
  for (int i = 0; i < listeners.count; ++i) {
    while (has_room(awaited)) {
      HandshakeEnd caller_end;
      const int error = sys::stream_accept(listeners.streams[i], &caller_end.stream);
      if (error == EAGAIN) break;
      if (error != 0) return false;
      caller_end.stage = HandshakeEnd::Stage::hello;
      caller_end.since_ns = sys::now_ns();
      if (!ends_.push(caller_end)) caller_end.close();
    }
  }
  return true;
}

// Where unknown connections have filled the room, the one that has been silent for longest is
// closed; new ones wait until then.
bool IncomingConnections::has_room(std::size_t awaited) {
  if (ends_.size() < awaited + kMostUnknown) return true;
  HandshakeEnd* const silent = std::min_element(
      ends_.begin(), ends_.end(), [](const HandshakeEnd& a, const HandshakeEnd& b) { return a.since_ns < b.since_ns; });
  full_ = sys::now_ns() - silent->since_ns < kSilentNs;
  if (full_) return false;
  silent->close();
  ends_.splice(static_cast<std::size_t>(silent - ends_.begin()), 1, 0);
  return true;
}

}  // namespace stretto::transport
