// SPDX-License-Identifier: BSD-3-Clause
// The two sides of the handshake (handshake.hpp), for all transports with connections of their own:
//
//   Attempt              a caller's: dials one peer's addresses, until one connection has proved
//                        itself
//   IncomingConnections  a listener's: hears connections from peers and strangers
//
// Whoever does not know a pair's secret is left: the caller tries other addresses at the same time,
// and the listener hears other incoming connections. Nothing here blocks.
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/array.hpp"
#include "base/private_heap.hpp"
#include "sys/sys.hpp"
#include "transport/handshake.hpp"

namespace stretto::transport {

// In which order a member tries another's addresses, by their places. Addresses in a network that
// both are in come first. An address that both have is no way from one to the other, because
// bridges to virtual machines and containers have the same address on many hosts. If both have the
// same addresses and no others, they are on one host. Returns how many are tried.
int dial_order(const sys::HostAddress* own, int own_count, const sys::HostAddress* theirs, int their_count, int* order);

// The connections of all transports of this process. The program has its own use for descriptors.
// False: there would be too many.
bool reserve_connections(std::uint64_t count);
void release_connections(std::uint64_t count);

// One end of a connection that is being opened.
struct HandshakeEnd {
  // what comes next from the other end
  enum class Stage : std::uint8_t { connecting, hello, answer, proof, acceptance };
  int stream = -1;
  Stage stage = Stage::connecting;
  std::uint8_t watched = 0;  // for an owner that waits for events
  std::uint32_t got = 0;
  std::uint64_t since_ns = 0;  // the last word, or the beginning
  Hello hello{};
  Answer answer{};
  char heard[sizeof(Hello)] = {};
  static_assert(sizeof(Answer) <= sizeof(Hello));

  // 0: the next word is here. EAGAIN: not yet.
  template <class Word>
  int hear(Word* word) {
    std::size_t more = 0;
    const int error = sys::stream_receive(stream, heard + got, sizeof *word - got, &more);
    if (error != 0) return error;
    got += static_cast<std::uint32_t>(more);
    if (got != sizeof *word) return EAGAIN;
    std::memcpy(word, heard, sizeof *word);
    got = 0;
    return 0;
  }
  // EAGAIN: said; then the other end is heard. A word fits into what the system keeps of a new
  // connection.
  template <class Word>
  int say(const Word& word, Stage next) {
    std::size_t sent = 0;
    const sys::Piece piece{&word, sizeof word};
    const int error = sys::stream_send(stream, &piece, 1, 0, &sent);
    stage = next;
    since_ns = sys::now_ns();
    return error != 0 ? (error == EAGAIN ? EPIPE : error) : sent == sizeof word ? EAGAIN : EPIPE;
  }
  void close() {
    if (stream >= 0) sys::close_descriptor(stream);
    *this = {};
  }
};

// This process among its peers, whose endpoints stand at their ranks.
struct Party {
  std::uint32_t me;
  std::span<const Endpoint> endpoints;

  [[nodiscard]] std::uint64_t hash(Role role, const HandshakeEnd& end) const {
    return handshake_hash(role, endpoints[end.hello.caller].share, endpoints[end.hello.listener].share, end.hello,
                          end.answer.nonce);
  }
  // Moves on as the caller of `peer`, or as a listener. 0: the connection is the pair's. EAGAIN:
  // not yet. The listener's `awaits(hello)` says whether this process wants that connection.
  int step_as_caller(HandshakeEnd& end, std::uint32_t peer, std::uint64_t which) const;
  template <class Awaits>
  int step_as_listener(HandshakeEnd& end, const Awaits& awaits) const {
    std::uint64_t word = 0;
    int error = 0;
    if (end.stage == HandshakeEnd::Stage::hello) {
      error = end.hear(&end.hello);
      if (error != 0) return error;
      return is_for_us(end.hello) && awaits(end.hello) ? answer(end) : EPROTO;
    }
    error = end.hear(&word);
    if (error != 0) return error;
    if (word != hash(Role::proof, end) || !awaits(end.hello)) return EPROTO;
    error = end.say(hash(Role::acceptance, end), HandshakeEnd::Stage::acceptance);
    return error == EAGAIN ? 0 : error;
  }

 private:
  [[nodiscard]] bool is_for_us(const Hello& hello) const {
    return hello.listener == me && hello.caller != me && hello.caller < endpoints.size();
  }
  int answer(HandshakeEnd& end) const;
};

class Attempt {
 public:
  void start(const sys::HostAddress* own, int own_count, const Endpoint& to, std::uint64_t which = 0) {
    *this = {};
    which_ = which;
    count_ = dial_order(own, own_count, to.addresses, to.address_count, order_);
  }
  // 0: `*stream` is the pair's. EAGAIN: not yet. Others: the peer cannot be reached.
  int step(const Party& party, std::uint32_t peer, int* stream);
  void close() {
    for (HandshakeEnd& end : ends_) end.close();
  }
  // The next address is tried beside one that has not answered for so long.
  static constexpr std::uint64_t kNextAddressNs = 25'000'000;
  [[nodiscard]] bool has_more_addresses() const { return tried_ < count_; }
  // Some host has taken the call, whoever it is.
  [[nodiscard]] bool was_heard() const { return heard_; }
  HandshakeEnd* begin() { return ends_; }
  HandshakeEnd* end() { return ends_ + tried_; }

 private:
  bool dial(const Endpoint& to);

  HandshakeEnd ends_[sys::kMostAddresses];
  int order_[sys::kMostAddresses] = {};  // of the peer's addresses
  int count_ = 0, tried_ = 0;
  bool heard_ = false;
  std::uint64_t which_ = 0;     // of the pair's streams
  std::uint64_t tried_ns_ = 0;  // when the last address was
};

// Where a process listens.
struct Listeners {
  int streams[sys::kMostAddresses];
  int count = 0;
  Listeners() = default;
  ~Listeners() { close(); }
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;

  // Listens at these addresses, and writes the endpoint to be told. Not able: nobody can reach us.
  Endpoint open(const sys::HostAddress* addresses, int address_count);
  void close() {
    while (count > 0) sys::close_descriptor(streams[--count]);
  }
};

class IncomingConnections {
 public:
  ~IncomingConnections() { close(); }
  // Accepts and hears connections. `awaits(hello)` says whether one is wanted, and
  // `connected(hello, stream)` gets each that has proved itself. There is room for as many
  // connections as callers are `awaited`, and some for strangers. False: a listener is broken.
  template <class Awaits, class Connected>
  bool step(const Party& party, const Listeners& listeners, std::size_t awaited, const Awaits& awaits,
            const Connected& connected) {
    if (!accept(listeners, awaited)) return false;
    for (std::size_t i = 0; i < ends_.size();) {
      const int error = party.step_as_listener(ends_[i], awaits);
      if (error == EAGAIN) {
        ++i;
        continue;
      }
      if (error != 0)
        ends_[i].close();
      else
        connected(ends_[i].hello, ends_[i].stream);
      ends_.splice(i, 1, 0);
    }
    return true;
  }
  void close() {
    for (HandshakeEnd& end : ends_) end.close();
    ends_.clear();
  }
  // Whether connections wait outside until one of those inside has been silent for so long.
  static constexpr std::uint64_t kSilentNs = 50'000'000;
  [[nodiscard]] bool is_full() const { return full_; }
  HandshakeEnd* begin() { return ends_.begin(); }
  HandshakeEnd* end() { return ends_.end(); }

 private:
  bool accept(const Listeners& listeners, std::size_t awaited);
  bool has_room(std::size_t awaited);

  Array<HandshakeEnd, PrivateHeap> ends_;
  bool full_ = false;
};

}  // namespace stretto::transport
