// SPDX-License-Identifier: BSD-3-Clause
// How members get connected: each listens, all tell each other where, the lower rank of a pair calls the higher one, and both say who they are. Whoever
// hears something else, from a host that has the same address or from a stranger, tries the next address, or waits for the next guest.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine/sockets.hpp"

namespace stretto::engine {
namespace {

constexpr std::uint64_t kPatienceNs = 1'000'000'000;    // for all connections
constexpr std::uint64_t kOneCallNs = 300'000'000;       // for an address that does not answer
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

// What a member tells the others.
struct Card {
  std::uint64_t key;  // that only members know
  sys::HostAddress addresses[sys::kMostAddresses];
  std::int32_t address_count;
  std::uint16_t port;
  bool able;
};

// The first words on a connection, both ways: the key of whom it is meant for, and who speaks.
struct Hello {
  std::uint64_t key, rank;
};

template <class T>
Array<T> of_all(const Bootstrap& members, const T& mine) {
  Array<T> all;
  if (!all.resize(static_cast<std::size_t>(members.size), mine)) std::abort();  // a few words a rank: the others wait for ours
  if (!members.allgather(members.context, &mine, all.data(), sizeof mine)) std::abort();
  return all;
}

bool everybody(const Bootstrap& members, bool mine) {
  const Array<std::uint8_t> all = of_all<std::uint8_t>(members, mine ? 1 : 0);
  return std::all_of(all.begin(), all.end(), [](std::uint8_t word) { return word != 0; });
}

// The beginning of a connection.
struct Greeting {
  int stream = -1;
  std::uint32_t got = 0;
  Hello heard{};

  // 0: all is heard. EAGAIN: not yet.
  int listen() {
    std::size_t more = 0;
    const int error = sys::stream_receive(stream, reinterpret_cast<char*>(&heard) + got, sizeof heard - got, &more);
    if (error != 0) return error;
    got += static_cast<std::uint32_t>(more);
    return got == sizeof heard ? 0 : EAGAIN;
  }
  [[nodiscard]] bool say(const Hello& hello) const {
    std::size_t sent = 0;
    const sys::Piece words{&hello, sizeof hello};
    return sys::stream_send(stream, &words, 1, 0, &sent) == 0 && sent == sizeof hello;
  }
  void hang_up() {
    if (stream >= 0) sys::close_descriptor(stream);
    *this = {};
  }
};

class Meeting {
 public:
  Meeting(const Sockets::Opening& opening, int listener, const Array<Card>& cards) : opening_(opening), listener_(listener), cards_(cards) {
    if (!calls_.resize(cards.size(), {})) std::abort();  // as above
    for (std::size_t peer = 0; peer < cards.size(); ++peer) missing_ += is_far(peer) ? 1 : 0;
  }
  ~Meeting() {
    for (Call& call : calls_) call.greeting.hang_up();
    for (Greeting& guest : guests_) guest.hang_up();
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // True: everybody is connected.
  bool hold() {
    for (const std::uint64_t begin = sys::now_ns(); missing_ != 0 && sys::now_ns() - begin < kPatienceNs;) {
      for (std::size_t peer = me() + 1; peer < calls_.size(); ++peer) {
        if (is_far(peer) && !calls_[peer].through && !call(peer)) return false;
      }
      if (!welcome()) return false;
      if (missing_ == 0) break;
      if (opening_.policy.poke != nullptr) opening_.policy.poke(opening_.policy.host);
      sys::nap_ns(kPauseNs);
    }
    return missing_ == 0;
  }
  // The stream to a far peer, which is the caller's now.
  int take(std::size_t peer) {
    const int stream = calls_[peer].greeting.stream;
    calls_[peer].greeting.stream = -1;
    return stream;
  }
  [[nodiscard]] bool is_far(std::size_t peer) const { return opening_.nodes[peer] != opening_.nodes[me()]; }

 private:
  struct Call {
    Greeting greeting;
    int attempt = 0;  // which address is next
    std::uint64_t since_ns = 0;
    bool said = false, through = false;
  };

  [[nodiscard]] std::size_t me() const { return static_cast<std::size_t>(opening_.members.rank); }

  // The peer's addresses in the order in which they are tried: those first that share a network with one of ours. Null: there are no more.
  const sys::HostAddress* address(const Card& card, int attempt) const {
    for (const bool near : {true, false}) {
      for (int i = 0; i < card.address_count; ++i) {
        const auto is_near = [&](const sys::HostAddress& own) { return own.neighbours(card.addresses[i]); };
        const bool found = std::any_of(opening_.addresses, opening_.addresses + opening_.address_count, is_near);
        if (found == near && attempt-- == 0) return &card.addresses[i];
      }
    }
    return nullptr;
  }

  // Moves on with a call. False: the peer cannot be reached.
  bool call(std::size_t peer) {
    Call& c = calls_[peer];
    if (c.greeting.stream < 0) return dial(c, cards_[peer]);
    int error = c.said ? c.greeting.listen() : sys::stream_connected(c.greeting.stream);
    if (error == 0 && !c.said) {
      c.said = c.greeting.say({cards_[peer].key, me()});
      error = c.said ? EAGAIN : EPIPE;
    }
    if (error == 0 && is_right(c.greeting.heard, peer)) return arrived(c);
    const bool patient = error == EAGAIN && (c.said || sys::now_ns() - c.since_ns < kOneCallNs);
    if (!patient) c.greeting.hang_up();
    return true;
  }
  bool dial(Call& c, const Card& card) {
    const sys::HostAddress* const to = address(card, c.attempt++);
    if (to == nullptr) return false;
    c.said = false;
    c.since_ns = sys::now_ns();
    return sys::stream_connect(*to, card.port, &c.greeting.stream) == 0 || address(card, c.attempt) != nullptr;
  }
  [[nodiscard]] bool is_right(const Hello& heard, std::size_t peer) const { return heard.key == cards_[me()].key && heard.rank == peer; }
  bool arrived(Call& c) {
    c.through = true;
    --missing_;
    return true;
  }

  // Hears who is at the door. False: the door is broken.
  bool welcome() {
    Greeting guest;
    int error = sys::stream_accept(listener_, &guest.stream);
    for (; error == 0; error = sys::stream_accept(listener_, &guest.stream)) {
      if (!guests_.push(guest)) guest.hang_up();
      guest = {};
    }
    for (std::size_t i = 0; i < guests_.size();) {
      const int heard = guests_[i].listen();
      if (heard == EAGAIN) {
        ++i;
        continue;
      }
      if (heard != 0 || !seat(guests_[i])) guests_[i].hang_up();
      guests_.splice(i, 1, 0);
    }
    return error == EAGAIN;
  }
  bool seat(const Greeting& guest) {
    const std::uint64_t peer = guest.heard.rank;
    if (peer >= me() || !is_far(peer) || calls_[peer].through || !is_right(guest.heard, peer)) return false;
    if (!guest.say({cards_[peer].key, me()})) return false;
    calls_[peer].greeting = guest;
    return arrived(calls_[peer]);
  }

  const Sockets::Opening& opening_;
  const int listener_;
  const Array<Card>& cards_;
  Array<Call> calls_;  // by rank
  Array<Greeting> guests_;
  std::size_t missing_ = 0;
};

std::uint64_t far_members(const Sockets::Opening& opening) {
  std::uint64_t far = 0;
  for (int r = 0; r < opening.members.size; ++r) far += opening.nodes[r] != opening.nodes[opening.members.rank] ? 1 : 0;
  return far;
}

// Where this member can be reached, if it can; `reserved` connections are its own then.
Card card_of(const Sockets::Opening& opening, int* listener, std::uint64_t* reserved) {
  Card card{};
  const std::uint64_t far = far_members(opening);
  const bool willing = opening.address_count > 0 && (opening.always || !g_in_vain.load(std::memory_order_relaxed));
  if (!willing || !reserve(far)) return card;
  *reserved = far;
  card.address_count = opening.address_count;
  std::copy(std::begin(opening.addresses), std::end(opening.addresses), card.addresses);
  card.able = sys::random_bytes(&card.key, sizeof card.key) == 0 && sys::stream_listen(listener, &card.port) == 0;
  return card;
}

// One message to the peer, or from it.
bool pass(const sched::Transport& transport, const shm::WaitPolicy& policy, int peer, bool sends) {
  constexpr std::uint64_t kBytes = 8;
  char data[kBytes] = {};
  shm::Waiter waiter(policy);
  bool posted = false;
  for (std::uint32_t ticket = 0;;) {
    if (!posted) posted = (sends ? transport.send(transport.context, peer, 0, data, kBytes, 0) : transport.recv(transport.context, peer, 0, data, kBytes, 0));
    const int count = transport.poll(transport.context, &ticket, 1);
    if (count != 0) return count > 0;
    (void)waiter.step();
  }
}

}  // namespace

Sockets::Opened Sockets::open(const Opening& opening) {
  policy_ = opening.policy;
  const bool connected = connect(opening);
  if (connected && (opening.always || is_faster(opening))) return Opened::yes;
  close();
  return connected ? Opened::slower : Opened::unable;
}

bool Sockets::connect(const Opening& opening) {
  int listener = -1;
  const Array<Card> cards = of_all(opening.members, card_of(opening, &listener, &reserved_));
  bool connected = std::all_of(cards.begin(), cards.end(), [](const Card& card) { return card.able; });
  if (connected) {
    Meeting meeting(opening, listener, cards);
    connected = meeting.hold() && lines_.resize(cards.size(), {}) && inboxes_.resize(cards.size() * kInboxBytes, 0);
    for (std::size_t peer = 0; connected && peer < cards.size(); ++peer) {
      if (!meeting.is_far(peer)) continue;
      lines_[peer].stream = meeting.take(peer);
      lines_[peer].file = sys::file_id(lines_[peer].stream);
    }
    connected = everybody(opening.members, connected);
    if (!connected) g_in_vain.store(true, std::memory_order_relaxed);
  }
  sys::close_descriptor(listener);
  return connected;
}

// Rank 0 and the first one on another node send a word there and back, by turns over the connection and beyond.
bool Sockets::is_faster(const Opening& opening) {
  constexpr int kTrips = 24, kFirst = 4;
  const int size = opening.members.size, me = opening.members.rank;
  int other = 1;
  while (other < size && opening.nodes[other] == opening.nodes[0]) ++other;
  const int peer = me == 0 ? other : 0;
  const auto there_and_back = [&](const sched::Transport& over) {
    return pass(over, opening.policy, peer, me == 0) && pass(over, opening.policy, peer, me != 0);
  };
  bool fine = true;
  std::uint64_t took[2][kTrips] = {};
  for (int trip = 0; trip < kFirst + kTrips && (me == 0 || me == other); ++trip) {
    const std::uint64_t begin = sys::now_ns();
    if (fine && !there_and_back(transport())) fine = false;  // the peer hears of it: poll has given up
    const std::uint64_t between = sys::now_ns();
    if (!there_and_back(beyond_)) return everybody(opening.members, false);
    if (trip < kFirst) continue;
    took[0][trip - kFirst] = between - begin;
    took[1][trip - kFirst] = sys::now_ns() - between;
  }
  for (auto& times : took) std::sort(std::begin(times), std::end(times));
  if (me == 0) measured_ = {took[0][kTrips / 2], took[1][kTrips / 2]};
  const bool faster = everybody(opening.members, fine && (me != 0 || measured_.here_ns * 10 < measured_.beyond_ns * 9));
  if (!faster) g_in_vain.store(true, std::memory_order_relaxed);
  return faster;
}

// A stream that is closed with something unread takes what is on its way to the peer back.
void Sockets::hang_up(Line& line) {
  constexpr std::uint64_t kPatienceNs = 10'000'000;
  const std::uint64_t begin = sys::now_ns();
  char tail[kTailBytes];
  std::size_t received = 0;
  while (line.tail_due && line.begin == line.end && sys::stream_receive(line.stream, tail, kTailBytes, &received) == EAGAIN && sys::now_ns() - begin < kPatienceNs) sys::nap_ns(kPauseNs);
  sys::close_descriptor(line.stream);
}

void Sockets::close() {
  for (Line& line : lines_) {
    // Programs that close descriptors which they do not know get our numbers for files of their own.
    if (line.stream >= 0 && sys::file_id(line.stream) == line.file) hang_up(line);
  }
  lines_.clear();
  inboxes_.clear();
  posted_.clear();
  broken_ = false;
  g_connections.fetch_sub(reserved_, std::memory_order_relaxed);
  reserved_ = 0;
}

}  // namespace stretto::engine
