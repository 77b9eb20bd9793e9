// SPDX-License-Identifier: BSD-3-Clause
// How members get connected: see handshake.hpp. Whoever does not know a pair's secret is left: the caller tries other
// addresses at the same time, and the listener hears other guests.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine/handshake.hpp"
#include "engine/sockets.hpp"

namespace stretto::engine {
namespace {

constexpr std::uint64_t kPatienceNs = 1'000'000'000;  // for all connections
constexpr std::uint64_t kNextAddressNs =
    25'000'000;  // the next address is tried beside one that has not answered for so long
constexpr std::uint64_t kSilentNs = 50'000'000;  // a guest may be silent for so long when the room is full
constexpr std::size_t kMostStrangers = 16;       // guests beside the members that are awaited
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
  // EAGAIN: said; then the other end is heard. A word fits into what the system keeps of a new connection.
  template <class Word>
  int say(const Word& word, Stage next) {
    std::size_t sent = 0;
    const sys::Piece piece{&word, sizeof word};
    const int error = sys::stream_send(stream, &piece, 1, 0, &sent);
    stage = next;
    since_ns = sys::now_ns();
    return error != 0 ? (error == EAGAIN ? EPIPE : error) : sent == sizeof word ? EAGAIN : EPIPE;
  }
  void hang_up() {
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

class Meeting {
 public:
  Meeting(const Sockets::Opening& opening, const Listeners& listeners, const Array<Card>& cards)
      : opening_(opening), listeners_(listeners), cards_(cards) {
    if (!calls_.resize(cards.size(), {})) std::abort();  // a few words a rank: the others wait for ours
    for (std::size_t peer = 0; peer < cards.size(); ++peer) {
      if (!is_far(peer)) continue;
      ++missing_;
      const Card& card = cards[peer];
      calls_[peer].count =
          dial_order(opening.addresses, opening.address_count, card.addresses, card.address_count, calls_[peer].order);
    }
  }
  ~Meeting() {
    for (Call& call : calls_) {
      end(call);
      if (call.stream >= 0) sys::close_descriptor(call.stream);
    }
    for (End& guest : guests_) guest.hang_up();
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // True: everybody is connected.
  bool hold() {
    for (const std::uint64_t begin = sys::now_ns(); missing_ != 0 && sys::now_ns() - begin < kPatienceNs;) {
      for (std::size_t peer = me() + 1; peer < calls_.size(); ++peer) {
        if (is_far(peer) && calls_[peer].stream < 0 && !call(peer)) return false;
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
    const int stream = calls_[peer].stream;
    calls_[peer].stream = -1;
    return stream;
  }
  [[nodiscard]] bool is_far(std::size_t peer) const { return opening_.nodes[peer] != opening_.nodes[me()]; }

 private:
  // To one peer, or, of lower ranks, from it.
  struct Call {
    int stream = -1;  // the pair's
    End attempts[sys::kMostAddresses];
    int order[sys::kMostAddresses] = {};  // of the peer's addresses
    int count = 0, tried = 0;
    std::uint64_t tried_ns = 0;  // when the last address was
  };

  [[nodiscard]] std::size_t me() const { return static_cast<std::size_t>(opening_.members.rank); }

  [[nodiscard]] std::uint64_t hash(Role role, const End& end) const {
    return handshake_hash(role, cards_[end.hello.caller].share, cards_[end.hello.listener].share, end.hello,
                          end.answer.nonce);
  }

  static void end(Call& call) {
    for (End& attempt : call.attempts) attempt.hang_up();
  }
  void connected(Call& call, End& by) {
    call.stream = by.stream;
    by.stream = -1;
    end(call);
    --missing_;
  }

  // Moves on with all attempts. False: the peer cannot be reached.
  bool call(std::size_t peer) {
    Call& c = calls_[peer];
    bool any = false;
    for (int i = 0; i < c.tried; ++i) {
      End& attempt = c.attempts[i];
      if (attempt.stream < 0) continue;
      const int error = advance(attempt, peer);
      if (error == 0) {
        connected(c, attempt);
        return true;
      }
      if (error != EAGAIN) attempt.hang_up();
      any = any || error == EAGAIN;
    }
    if (c.tried < c.count && (!any || sys::now_ns() - c.tried_ns >= kNextAddressNs)) any = dial(c, cards_[peer]) || any;
    return any || c.tried < c.count;
  }
  bool dial(Call& c, const Card& card) {
    const int to = c.order[c.tried];
    c.tried_ns = sys::now_ns();
    return sys::stream_connect(card.addresses[to], card.ports[to], &c.attempts[c.tried++].stream) == 0;
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
  bool welcome() {
    for (int i = 0; i < listeners_.count; ++i) {
      while (has_room()) {
        End guest;
        const int error = sys::stream_accept(listeners_.streams[i], &guest.stream);
        if (error == EAGAIN) break;
        if (error != 0) return false;
        guest.stage = End::Stage::hello;
        guest.since_ns = sys::now_ns();
        if (!guests_.push(guest)) guest.hang_up();
      }
    }
    for (std::size_t i = 0; i < guests_.size();) {
      const int error = receive(guests_[i]);
      if (error == EAGAIN) {
        ++i;
        continue;
      }
      if (error != 0) guests_[i].hang_up();
      guests_.splice(i, 1, 0);
    }
    return true;
  }
  // Where strangers have filled the room, the one that has been silent for longest goes; who comes waits till then.
  bool has_room() {
    if (guests_.size() < missing_ + kMostStrangers) return true;
    End* const silent = std::min_element(guests_.begin(), guests_.end(),
                                         [](const End& a, const End& b) { return a.since_ns < b.since_ns; });
    if (sys::now_ns() - silent->since_ns < kSilentNs) return false;
    silent->hang_up();
    guests_.splice(static_cast<std::size_t>(silent - guests_.begin()), 1, 0);
    return true;
  }
  // Moves on with a guest. 0: the connection is the pair's. EAGAIN: not yet.
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
    connected(calls_[e.hello.caller], e);
    return 0;
  }
  [[nodiscard]] bool is_awaited(const Hello& hello) const {
    return hello.listener == me() && hello.caller < me() && is_far(hello.caller) && calls_[hello.caller].stream < 0;
  }

  const Sockets::Opening& opening_;
  const Listeners& listeners_;
  const Array<Card>& cards_;
  Array<Call> calls_;  // by rank
  Array<End> guests_;
  std::size_t missing_ = 0;
};

std::uint64_t far_members(const Sockets::Opening& opening) {
  std::uint64_t far = 0;
  for (int r = 0; r < opening.members.size; ++r) far += opening.nodes[r] != opening.nodes[opening.members.rank] ? 1 : 0;
  return far;
}

// Where this member can be reached, if it can; `reserved` connections are its own then.
Card card_of(const Sockets::Opening& opening, Listeners& listeners, std::uint64_t* reserved) {
  Card card{};
  const std::uint64_t far = far_members(opening);
  const bool willing = opening.address_count > 0 && (opening.always || !g_in_vain.load(std::memory_order_relaxed));
  if (!willing || !reserve(far)) return card;
  *reserved = far;
  for (int i = 0; i < opening.address_count; ++i) {
    int& at = listeners.count;
    if (sys::stream_listen(opening.addresses[i], &listeners.streams[at], &card.ports[at]) != 0) continue;
    card.addresses[at++] = opening.addresses[i];
  }
  card.address_count = listeners.count;
  card.able = listeners.count > 0 && sys::random_bytes(&card.share, sizeof card.share) == 0;
  return card;
}

// One message to the peer, or from it.
bool pass(const sched::Transport& transport, const shm::WaitPolicy& policy, int peer, bool sends) {
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

Sockets::Opened Sockets::open(const Opening& opening) {
  policy_ = opening.policy;
  rank_ = opening.members.rank;
  const bool connected = connect(opening);
  if (connected && (opening.always || is_faster(opening))) return Opened::yes;
  close();
  return connected ? Opened::slower : Opened::unable;
}

bool Sockets::connect(const Opening& opening) {
  Listeners listeners;
  const Array<Card> cards = of_all(opening.members, card_of(opening, listeners, &reserved_));
  bool connected = std::all_of(cards.begin(), cards.end(), [](const Card& card) { return card.able; });
  if (connected) {
    Meeting meeting(opening, listeners, cards);
    connected = meeting.hold() && lines_.resize(cards.size(), {}) && inboxes_.resize(cards.size() * kInboxBytes, 0);
    for (std::size_t peer = 0; connected && peer < cards.size(); ++peer) {
      if (!meeting.is_far(peer)) continue;
      lines_[peer].stream = meeting.take(peer);
      lines_[peer].file = sys::file_id(lines_[peer].stream);
    }
    connected = everybody(opening.members, connected);
    if (!connected && !opening.always) g_in_vain.store(true, std::memory_order_relaxed);
  }
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
  while (line.tail_due && line.begin == line.end &&
         sys::stream_receive(line.stream, tail, kTailBytes, &received) == EAGAIN && sys::now_ns() - begin < kPatienceNs)
    sys::nap_ns(kPauseNs);
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
  broken_ = has_given_up_ = false;
  status_ = Status::ok;
  lost_ = {};
  g_connections.fetch_sub(reserved_, std::memory_order_relaxed);
  reserved_ = 0;
}

}  // namespace stretto::engine
