// SPDX-License-Identifier: BSD-3-Clause
// How members get connected (handshake_ends.hpp), and whether the connections are worth it.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "base/tuning.hpp"
#include "transport/handshake_ends.hpp"
#include "transport/pass.hpp"
#include "transport/tcp.hpp"

namespace stretto::transport {
namespace {

constinit std::atomic<bool> g_in_vain = false;  // somebody was not able to, or it was no use

// Whether two members have a connection to each other.
bool connects(const TcpTransport::Opening& opening, std::size_t one, std::size_t other) {
  const std::int32_t a = opening.nodes[one], b = opening.nodes[other];
  return a != b && a != TcpTransport::kNobody && b != TcpTransport::kNobody;
}

class Handshake {
 public:
  Handshake(const TcpTransport::Opening& opening, const Listeners& listeners, const Array<Endpoint>& endpoints)
      : opening_(opening), listeners_(listeners), endpoints_(endpoints) {
    if (!pairs_.resize(endpoints.size(), {})) std::abort();  // a few words a rank: the others wait for ours
    for (std::size_t peer = 0; peer < endpoints.size(); ++peer) {
      if (!is_far(peer)) continue;
      ++missing_;
      pairs_[peer].attempt.start(opening.addresses, opening.address_count, endpoints[peer]);
    }
  }
  ~Handshake() {
    for (Pair& pair : pairs_) {
      pair.attempt.close();
      if (pair.stream >= 0) sys::close_descriptor(pair.stream);
    }
  }
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  // True: everybody is connected.
  bool run() {
    for (const std::uint64_t begin = sys::now_ns(); missing_ != 0 && sys::now_ns() - begin < kTuning.tcp_patience_ns;) {
      for (std::size_t peer = me() + 1; peer < pairs_.size(); ++peer) {
        if (is_far(peer) && pairs_[peer].stream < 0 && !attempt(peer)) return false;
      }
      if (!accept_incoming()) return false;
      if (missing_ == 0) break;
      if (opening_.policy.poke != nullptr) opening_.policy.poke(opening_.policy.host);
      sys::nap_ns(kTuning.opening_pause_ns);
    }
    return missing_ == 0;
  }
  // The stream to a far peer, which is the caller's now.
  int take(std::size_t peer) {
    const int stream = pairs_[peer].stream;
    pairs_[peer].stream = -1;
    return stream;
  }
  [[nodiscard]] bool is_far(std::size_t peer) const { return connects(opening_, me(), peer); }

 private:
  struct Pair {
    int stream = -1;
    Attempt attempt;  // to a higher rank
  };

  [[nodiscard]] std::size_t me() const { return static_cast<std::size_t>(opening_.members.rank); }
  [[nodiscard]] Party party() const { return {static_cast<std::uint32_t>(me()), endpoints_}; }

  // False: the peer cannot be reached.
  bool attempt(std::size_t peer) {
    const int error = pairs_[peer].attempt.step(party(), static_cast<std::uint32_t>(peer), &pairs_[peer].stream);
    if (error == 0) --missing_;
    return error == 0 || error == EAGAIN;
  }
  // False: a listener is broken.
  bool accept_incoming() {
    return incoming_.step(
        party(), listeners_, missing_,
        [&](const Hello& hello) {
          const std::size_t caller = hello.caller;
          return hello.which == 0 && caller < me() && is_far(caller) && pairs_[caller].stream < 0;
        },
        [&](const Hello& hello, int stream) {
          pairs_[hello.caller].stream = stream;
          --missing_;
        });
  }

  const TcpTransport::Opening& opening_;
  const Listeners& listeners_;
  const Array<Endpoint>& endpoints_;
  Array<Pair> pairs_;  // by rank
  IncomingConnections incoming_;
  std::size_t missing_ = 0;
};

std::uint64_t far_members(const TcpTransport::Opening& opening) {
  std::uint64_t far = 0;
  const auto me = static_cast<std::size_t>(opening.members.rank), size = static_cast<std::size_t>(opening.members.size);
  for (std::size_t r = 0; r < size; ++r) far += connects(opening, me, r) ? 1 : 0;
  return far;
}

// Where this member can be reached, if it can; `reserved` connections are its own then.
Endpoint endpoint_of(const TcpTransport::Opening& opening, Listeners& listeners, std::uint64_t* reserved) {
  const std::uint64_t far = far_members(opening);
  const bool willing = opening.address_count > 0 && (opening.always || !g_in_vain.load(std::memory_order_relaxed));
  if (!willing || !reserve_connections(far)) return {};
  if (far == 0) {
    Endpoint none{};
    none.able = true;
    return none;
  }
  *reserved = far;
  return listeners.open(opening.addresses, opening.address_count);
}

}  // namespace

TcpTransport::Opened TcpTransport::open(const Opening& opening) {
  policy_ = opening.policy;
  rank_ = opening.members.rank;
  measured_ = {};
  if (!opening.always && opening.kept.read != nullptr) recall(opening);
  if (measured_.here_ns != 0 && !is_worth()) return Opened::slower;
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
    connected = handshake.run() && by_rank_.resize(endpoints.size(), -1) && connections_.reserve(reserved_) &&
                inboxes_.resize(reserved_ * kInboxBytes, 0);
    for (std::size_t peer = 0; connected && peer < endpoints.size(); ++peer) {
      if (!handshake.is_far(peer)) continue;
      by_rank_[peer] = static_cast<std::int32_t>(connections_.size());
      Connection connection;
      connection.rank = static_cast<int>(peer);
      connection.stream = handshake.take(peer);
      connection.file = sys::file_id(connection.stream);
      connections_.push(connection);
    }
    connected = everybody(opening.members, connected);
    if (!connected && !opening.always) g_in_vain.store(true, std::memory_order_relaxed);
  }
  return connected;
}

TcpTransport::Ends TcpTransport::ends(const Opening& opening) {
  const int size = opening.members.size;
  int first = 0;
  while (first < size && opening.nodes[first] == kNobody) ++first;
  int other = first + 1;
  while (other < size && (opening.nodes[other] == kNobody || opening.nodes[other] == opening.nodes[first])) ++other;
  return {first, other};
}

// Takes what an earlier job has measured. All members get what the first one knows.
void TcpTransport::recall(const Opening& opening) {
  const Ends at = ends(opening);
  if (opening.members.rank == at.first) measured_ = opening.kept.read(opening.kept.context, at.first, at.other);
  measured_ = of_all(opening.members, measured_)[static_cast<std::size_t>(at.first)];
}

// The two ends send a word there and back, by turns over the connection and by the next transport.
// A round's result is its median. The best of several rounds counts, because load makes them
// longer.
bool TcpTransport::measure(const Opening& opening, const Ends& at) {
  constexpr int kTrips = kTuning.tcp_trips;
  const int me = opening.members.rank, peer = me == at.first ? at.other : at.first;
  const Transport over[2] = {transport(), next_};
  const auto there_and_back = [&](const Transport& by) {
    char word[8] = {};
    return pass(by, opening.policy, peer, me == at.first, word, sizeof word) &&
           pass(by, opening.policy, peer, me != at.first, word, sizeof word);
  };
  Measured best{~std::uint64_t{0}, ~std::uint64_t{0}};
  std::uint64_t* const best_of[2] = {&best.here_ns, &best.next_ns};
  bool fine[2] = {true, true};  // the peer hears of a failure: poll has aborted
  for (int round = -1; round < kTuning.tcp_rounds && fine[1]; ++round) {  // the first does not count
    std::uint64_t took[2][kTrips] = {};
    for (int trip = 0; trip < (round < 0 ? kTuning.tcp_first_trips : kTrips) && fine[1]; ++trip) {
      for (int way = 0; way < 2; ++way) {
        const std::uint64_t begin = sys::now_ns();
        fine[way] = fine[way] && there_and_back(over[way]);
        took[way][trip] = sys::now_ns() - begin;
      }
    }
    for (int way = 0; way < 2 && round >= 0; ++way) {
      std::sort(std::begin(took[way]), std::end(took[way]));
      *best_of[way] = std::min(*best_of[way], took[way][kTrips / 2]);
    }
  }
  if (me == at.first && fine[0] && fine[1]) measured_ = best;
  return fine[0] && fine[1];
}

// The first end decides for all members.
bool TcpTransport::is_faster(const Opening& opening) {
  const Ends at = ends(opening);
  const int me = opening.members.rank;
  const bool known = measured_.here_ns != 0, is_end = me == at.first || me == at.other;
  const bool fine = known || !is_end || measure(opening, at);
  if (me == at.first && !known && fine && opening.kept.write != nullptr)
    opening.kept.write(opening.kept.context, at.first, at.other, measured_);
  const bool faster = everybody(opening.members, fine && (me != at.first || is_worth()));
  if (!faster) g_in_vain.store(true, std::memory_order_relaxed);
  return faster;
}

// A stream that is closed with something unread takes what is on its way to the peer back.
void TcpTransport::close_connection(Connection& connection) {
  const std::uint64_t begin = sys::now_ns();
  char tail[kTailBytes];
  std::size_t received = 0;
  while (connection.tail_due && connection.begin == connection.end &&
         sys::stream_receive(connection.stream, tail, kTailBytes, &received) == EAGAIN &&
         sys::now_ns() - begin < kTuning.tcp_tail_ns)
    sys::nap_ns(kTuning.opening_pause_ns);
  sys::close_descriptor(connection.stream);
}

void TcpTransport::close() {
  for (Connection& connection : connections_) {
    // Programs that close descriptors which they do not know get our numbers for files of their
    // own.
    if (connection.stream >= 0 && sys::file_id(connection.stream) == connection.file) close_connection(connection);
  }
  connections_.clear();
  by_rank_.clear();
  inboxes_.clear();
  posted_.clear();
  broken_ = has_aborted_ = false;
  status_ = Status::ok;
  lost_ = {};
  release_connections(reserved_);
  reserved_ = 0;
}

}  // namespace stretto::transport
