// SPDX-License-Identifier: BSD-3-Clause
// How members get connected: see handshake.hpp. Whoever does not know a pair's secret is left: the
// caller tries other addresses at the same time, and the listener hears other incoming connections.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "transport/handshake.hpp"
#include "transport/tcp.hpp"

namespace stretto::transport {
namespace {

constexpr std::uint64_t kPatienceNs = 1'000'000'000;  // for all connections
constexpr std::uint64_t kNextAddressNs =
    25'000'000;  // the next address is tried beside one that has not answered for so long
constexpr std::uint64_t kSilentNs =
    50'000'000;                           // a connection that comes in may be silent for so long when the room is full
constexpr std::size_t kMostUnknown = 16;  // connections beside those of the members that are awaited
constexpr std::uint64_t kPauseNs = 20'000;

// Of all communicators of this process. The program has its own use for descriptors.
constexpr std::uint64_t kMostConnections = 256;
constinit std::atomic<std::uint64_t> g_connections = 0;
constinit std::atomic<bool> g_in_vain = false;  // somebody was not able to, or it was no use

bool reserve(std::uint64_t connections) {
  const std::uint64_t most = std::min(kMostConnections, sys::descriptor_limit() / 4);
  if (g_connections.fetch_add(connections, std::memory_order_relaxed) + connections <= most) return true;
  g_connections.fetch_sub(connections, std::memory_order_relaxed);
  return false;
}

template <class T>
Array<T> of_all(const Bootstrap& members, const T& mine) {
  Array<T> all;
  if (!all.resize(static_cast<std::size_t>(members.size), mine))
    std::abort();  // a few words a rank: the others wait for ours
  if (!members.allgather(members.context, &mine, all.data(), sizeof mine)) std::abort();
  return all;
}

bool everybody(const Bootstrap& members, bool mine) {
  const Array<std::uint8_t> all = of_all<std::uint8_t>(members, mine ? 1 : 0);
  return std::all_of(all.begin(), all.end(), [](std::uint8_t word) { return word != 0; });
}

// One end of a connection that is being opened.
struct End {
  enum class Stage : std::uint8_t {
    connecting,
    hello,
    answer,
    proof,
    acceptance
  };  // what comes next from the other end
  int stream = -1;
  Stage stage = Stage::connecting;
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

// Where a member listens.
struct Listeners {
  int streams[sys::kMostAddresses];
  int count = 0;
  Listeners() = default;
  ~Listeners() {
    for (int i = 0; i < count; ++i) sys::close_descriptor(streams[i]);
  }
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;
};

class Handshake {
 public:
  Handshake(const TcpTransport::Opening& opening, const Listeners& listeners, const Array<Endpoint>& endpoints)
      : opening_(opening), listeners_(listeners), endpoints_(endpoints) {
    if (!attempts_.resize(endpoints.size(), {})) std::abort();  // a few words a rank: the others wait for ours
    for (std::size_t peer = 0; peer < endpoints.size(); ++peer) {
      if (!is_far(peer)) continue;
      ++missing_;
      const Endpoint& endpoint = endpoints[peer];
      attempts_[peer].count = dial_order(opening.addresses, opening.address_count, endpoint.addresses,
                                         endpoint.address_count, attempts_[peer].order);
    }
  }
  ~Handshake() {
    for (Attempt& attempt : attempts_) {
      end(attempt);
      if (attempt.stream >= 0) sys::close_descriptor(attempt.stream);
    }
    for (End& caller_end : incoming_) caller_end.close();
  }
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  // True: everybody is connected.
  bool run() {
    for (const std::uint64_t begin = sys::now_ns(); missing_ != 0 && sys::now_ns() - begin < kPatienceNs;) {
      for (std::size_t peer = me() + 1; peer < attempts_.size(); ++peer) {
        if (is_far(peer) && attempts_[peer].stream < 0 && !attempt(peer)) return false;
      }
      if (!accept_incoming()) return false;
      if (missing_ == 0) break;
      if (opening_.policy.poke != nullptr) opening_.policy.poke(opening_.policy.host);
      sys::nap_ns(kPauseNs);
    }
    return missing_ == 0;
  }
  // The stream to a far peer, which is the caller's now.
  int take(std::size_t peer) {
    const int stream = attempts_[peer].stream;
    attempts_[peer].stream = -1;
    return stream;
  }
  [[nodiscard]] bool is_far(std::size_t peer) const { return opening_.nodes[peer] != opening_.nodes[me()]; }

 private:
  // To one peer, or, of lower ranks, from it.
  struct Attempt {
    int stream = -1;  // the pair's
    End ends[sys::kMostAddresses];
    int order[sys::kMostAddresses] = {};  // of the peer's addresses
    int count = 0, tried = 0;
    std::uint64_t tried_ns = 0;  // when the last address was
  };

  [[nodiscard]] std::size_t me() const { return static_cast<std::size_t>(opening_.members.rank); }

  [[nodiscard]] std::uint64_t hash(Role role, const End& end) const {
    return handshake_hash(role, endpoints_[end.hello.caller].share, endpoints_[end.hello.listener].share, end.hello,
                          end.answer.nonce);
  }

  static void end(Attempt& attempt) {
    for (End& one_end : attempt.ends) one_end.close();
  }
  void connected(Attempt& attempt, End& by) {
    attempt.stream = by.stream;
    by.stream = -1;
    end(attempt);
    --missing_;
  }

  // Moves on with all attempts. False: the peer cannot be reached.
  bool attempt(std::size_t peer) {
    Attempt& c = attempts_[peer];
    bool any = false;
    for (int i = 0; i < c.tried; ++i) {
      End& one_end = c.ends[i];
      if (one_end.stream < 0) continue;
      const int error = advance(one_end, peer);
      if (error == 0) {
        connected(c, one_end);
        return true;
      }
      if (error != EAGAIN) one_end.close();
      any = any || error == EAGAIN;
    }
    if (c.tried < c.count && (!any || sys::now_ns() - c.tried_ns >= kNextAddressNs))
      any = dial(c, endpoints_[peer]) || any;
    return any || c.tried < c.count;
  }
  bool dial(Attempt& c, const Endpoint& endpoint) {
    const int to = c.order[c.tried];
    c.tried_ns = sys::now_ns();
    return sys::stream_connect(endpoint.addresses[to], endpoint.ports[to], &c.ends[c.tried++].stream) == 0;
  }
  // 0: the connection is the pair's. EAGAIN: not yet.
  int advance(End& e, std::size_t peer) {
    std::uint64_t word = 0;
    int error = 0;
    switch (e.stage) {
      case End::Stage::connecting:
        error = sys::stream_connected(e.stream);
        if (error != 0) return error;
        e.hello.caller = static_cast<std::uint32_t>(me());
        e.hello.listener = static_cast<std::uint32_t>(peer);
        error = sys::random_bytes(&e.hello.nonce, sizeof e.hello.nonce);
        return error != 0 ? EPROTO : e.say(e.hello, End::Stage::answer);
      case End::Stage::answer:
        error = e.hear(&e.answer);
        if (error != 0) return error;
        return e.answer.hash == hash(Role::answer, e) ? e.say(hash(Role::proof, e), End::Stage::acceptance) : EPROTO;
      default:
        error = e.hear(&word);
        if (error != 0) return error;
        return word == hash(Role::acceptance, e) ? 0 : EPROTO;
    }
  }

  // Hears who is at the doors. False: a door is broken.
  bool accept_incoming() {
    for (int i = 0; i < listeners_.count; ++i) {
      while (has_room()) {
        End caller_end;
        const int error = sys::stream_accept(listeners_.streams[i], &caller_end.stream);
        if (error == EAGAIN) break;
        if (error != 0) return false;
        caller_end.stage = End::Stage::hello;
        caller_end.since_ns = sys::now_ns();
        if (!incoming_.push(caller_end)) caller_end.close();
      }
    }
    for (std::size_t i = 0; i < incoming_.size();) {
      const int error = receive(incoming_[i]);
      if (error == EAGAIN) {
        ++i;
        continue;
      }
      if (error != 0) incoming_[i].close();
      incoming_.splice(i, 1, 0);
    }
    return true;
  }
  // Where unknown connections have filled the room, the one that has been silent for longest is
  // closed; new ones wait until then.
  bool has_room() {
    if (incoming_.size() < missing_ + kMostUnknown) return true;
    End* const silent = std::min_element(incoming_.begin(), incoming_.end(),
                                         [](const End& a, const End& b) { return a.since_ns < b.since_ns; });
    if (sys::now_ns() - silent->since_ns < kSilentNs) return false;
    silent->close();
    incoming_.splice(static_cast<std::size_t>(silent - incoming_.begin()), 1, 0);
    return true;
  }
  // Moves on with a connection that comes in. 0: the connection is the pair's. EAGAIN: not yet.
  int receive(End& e) {
    std::uint64_t word = 0;
    int error = 0;
    if (e.stage == End::Stage::hello) {
      error = e.hear(&e.hello);
      if (error != 0) return error;
      if (!is_awaited(e.hello)) return EPROTO;
      error = sys::random_bytes(&e.answer.nonce, sizeof e.answer.nonce);
      if (error != 0) return EPROTO;
      e.answer.hash = hash(Role::answer, e);
      return e.say(e.answer, End::Stage::proof);
    }
    error = e.hear(&word);
    if (error != 0) return error;
    if (word != hash(Role::proof, e) || !is_awaited(e.hello)) return EPROTO;
    error = e.say(hash(Role::acceptance, e), End::Stage::acceptance);
    if (error != EAGAIN) return error;
    connected(attempts_[e.hello.caller], e);
    return 0;
  }
  [[nodiscard]] bool is_awaited(const Hello& hello) const {
    return hello.listener == me() && hello.caller < me() && is_far(hello.caller) && attempts_[hello.caller].stream < 0;
  }

  const TcpTransport::Opening& opening_;
  const Listeners& listeners_;
  const Array<Endpoint>& endpoints_;
  Array<Attempt> attempts_;  // by rank
  Array<End> incoming_;
  std::size_t missing_ = 0;
};

std::uint64_t far_members(const TcpTransport::Opening& opening) {
  std::uint64_t far = 0;
  for (int r = 0; r < opening.members.size; ++r) far += opening.nodes[r] != opening.nodes[opening.members.rank] ? 1 : 0;
  return far;
}

// Where this member can be reached, if it can; `reserved` connections are its own then.
Endpoint endpoint_of(const TcpTransport::Opening& opening, Listeners& listeners, std::uint64_t* reserved) {
  Endpoint endpoint{};
  const std::uint64_t far = far_members(opening);
  const bool willing = opening.address_count > 0 && (opening.always || !g_in_vain.load(std::memory_order_relaxed));
  if (!willing || !reserve(far)) return endpoint;
  *reserved = far;
  for (int i = 0; i < opening.address_count; ++i) {
    int& at = listeners.count;
    if (sys::stream_listen(opening.addresses[i], &listeners.streams[at], &endpoint.ports[at]) != 0) continue;
    endpoint.addresses[at++] = opening.addresses[i];
  }
  endpoint.address_count = listeners.count;
  endpoint.able = listeners.count > 0 && sys::random_bytes(&endpoint.share, sizeof endpoint.share) == 0;
  return endpoint;
}

// One message to the peer, or from it.
bool pass(const Transport& transport, const shm::WaitPolicy& policy, int peer, bool sends) {
  constexpr std::uint64_t kBytes = 8;
  char data[kBytes] = {};
  shm::Waiter waiter(policy);
  bool posted = false;
  for (std::uint32_t ticket = 0;;) {
    if (!posted)
      posted = (sends ? transport.send(transport.context, peer, 0, data, kBytes, 0)
                      : transport.recv(transport.context, peer, 0, data, kBytes, 0));
    const int count = transport.poll(transport.context, &ticket, 1);
    if (count != 0) return count > 0;
    (void)waiter.step();
  }
}

}  // namespace

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

TcpTransport::Opened TcpTransport::open(const Opening& opening) {
  policy_ = opening.policy;
  rank_ = opening.members.rank;
  const bool connected = connect(opening);
  if (connected && (opening.always || is_faster(opening))) return Opened::yes;
  close();
  return connected ? Opened::slower : Opened::unable;
}

bool TcpTransport::connect(const Opening& opening) {
  Listeners listeners;
  const Array<Endpoint> endpoints = of_all(opening.members, endpoint_of(opening, listeners, &reserved_));
  bool connected =
      std::all_of(endpoints.begin(), endpoints.end(), [](const Endpoint& endpoint) { return endpoint.able; });
  if (connected) {
    Handshake handshake(opening, listeners, endpoints);
    connected = handshake.run() && connections_.resize(endpoints.size(), {}) &&
                inboxes_.resize(endpoints.size() * kInboxBytes, 0);
    for (std::size_t peer = 0; connected && peer < endpoints.size(); ++peer) {
      if (!handshake.is_far(peer)) continue;
      connections_[peer].stream = handshake.take(peer);
      connections_[peer].file = sys::file_id(connections_[peer].stream);
    }
    connected = everybody(opening.members, connected);
    if (!connected && !opening.always) g_in_vain.store(true, std::memory_order_relaxed);
  }
  return connected;
}

// Rank 0 and the first one on another node send a word there and back, by turns over the connection
// and by the next transport.
bool TcpTransport::is_faster(const Opening& opening) {
  constexpr int kTrips = 24, kFirst = 4;
  const int size = opening.members.size, me = opening.members.rank;
  int other = 1;
  while (other < size && opening.nodes[other] == opening.nodes[0]) ++other;
  const int peer = me == 0 ? other : 0;
  const auto there_and_back = [&](const Transport& over) {
    return pass(over, opening.policy, peer, me == 0) && pass(over, opening.policy, peer, me != 0);
  };
  bool fine = true;
  std::uint64_t took[2][kTrips] = {};
  for (int trip = 0; trip < kFirst + kTrips && (me == 0 || me == other); ++trip) {
    const std::uint64_t begin = sys::now_ns();
    if (fine && !there_and_back(transport())) fine = false;  // the peer hears of it: poll has aborted
    const std::uint64_t between = sys::now_ns();
    if (!there_and_back(next_)) return everybody(opening.members, false);
    if (trip < kFirst) continue;
    took[0][trip - kFirst] = between - begin;
    took[1][trip - kFirst] = sys::now_ns() - between;
  }
  for (auto& times : took) std::sort(std::begin(times), std::end(times));
  if (me == 0) measured_ = {took[0][kTrips / 2], took[1][kTrips / 2]};
  const bool faster = everybody(opening.members, fine && (me != 0 || measured_.here_ns * 10 < measured_.next_ns * 9));
  if (!faster) g_in_vain.store(true, std::memory_order_relaxed);
  return faster;
}

// A stream that is closed with something unread takes what is on its way to the peer back.
void TcpTransport::close_connection(Connection& connection) {
  constexpr std::uint64_t kPatienceNs = 10'000'000;
  const std::uint64_t begin = sys::now_ns();
  char tail[kTailBytes];
  std::size_t received = 0;
  while (connection.tail_due && connection.begin == connection.end &&
         sys::stream_receive(connection.stream, tail, kTailBytes, &received) == EAGAIN &&
         sys::now_ns() - begin < kPatienceNs)
    sys::nap_ns(kPauseNs);
  sys::close_descriptor(connection.stream);
}

void TcpTransport::close() {
  for (Connection& connection : connections_) {
    // Programs that close descriptors which they do not know get our numbers for files of their
    // own.
    if (connection.stream >= 0 && sys::file_id(connection.stream) == connection.file) close_connection(connection);
  }
  connections_.clear();
  inboxes_.clear();
  posted_.clear();
  broken_ = has_aborted_ = false;
  status_ = Status::ok;
  lost_ = {};
  g_connections.fetch_sub(reserved_, std::memory_order_relaxed);
  reserved_ = 0;
}

}  // namespace stretto::transport
