// SPDX-License-Identifier: BSD-3-Clause
// Connections of a communicator's own, over the loopback. Every message arrives once and in order,
// whatever the pace. Both ends choose the same way, and members agree on whether there are
// connections. Ends that have lost step, or each other, find out.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <random>

#include "threads/job.hpp"
#include "threads/loopback.hpp"
#include "threads/mailbox.hpp"
#include "transport/handshake_ends.hpp"
#include "transport/stack.hpp"

namespace stretto::test {
namespace {

using transport::TcpTransport;
using Opened = TcpTransport::Opened;

// Ranks on nodes of `per_node`, which reach each other over the loopback.
class Cluster {
 public:
  Cluster(int ranks, int per_node)
      : group_(everybody(ranks)), boxes_(ranks, Sends::mixed, static_cast<std::uint64_t>(ranks)) {
    for (int r = 0; r < ranks; ++r) {
      nodes_.push_back(r / per_node);
      members_.push_back({&group_, r});
    }
  }
  // Of each node, only the first rank connects.
  void connect_leaders_only(int per_node) {
    for (int r = 0; r < ranks(); ++r) {
      if (r % per_node != 0) nodes_[r] = TcpTransport::kNobody;
    }
  }
  [[nodiscard]] int ranks() const { return group_.size(); }
  [[nodiscard]] bool are_far(int one, int other) const { return nodes_[one] != nodes_[other]; }
  Mailboxes& boxes() { return boxes_; }

  TcpTransport::Opening opening(int rank) { return opening_over_loopback(members_[rank], nodes_.data()); }
  using RankMain = std::function<void(int rank, transport::Stack& stack)>;
  void run(const RankMain& main) {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks(); ++r) {
      threads.emplace_back([&, r] {
        transport::Stack stack;
        stack.start(boxes_.transport(r));
        main(r, stack);
      });
    }
  }

 private:
  Group group_;
  Mailboxes boxes_;
  std::vector<std::int32_t> nodes_;
  std::deque<TestMember> members_;
};

struct Posted {
  int peer;
  bool sends;
  std::vector<char> data;
  char seed;
};
char letter(char seed, std::size_t i) { return static_cast<char>(seed + static_cast<char>(i * 7)); }

// What all ranks draw alike: how long the messages of a pair are in this round.
std::vector<std::size_t> lengths(int round, int from, int to) {
  constexpr std::size_t kLengths[] = {0, 1, 8, 100, 3000, kTuning.tcp_bytes, kTuning.tcp_bytes + 1, 20'000};
  std::mt19937 random(static_cast<unsigned>((round * 64 + from) * 64 + to));
  std::vector<std::size_t> result(random() % 4);
  for (std::size_t& length : result) length = kLengths[random() % std::size(kLengths)];
  return result;
}

// This rank's messages of a round. Those of each pair and direction are in order, all others mixed.
std::vector<Posted> drawn(int round, int rank, int ranks, std::mt19937& random) {
  std::vector<std::deque<Posted>> lines;
  for (int peer = 0; peer < ranks; ++peer) {
    for (const bool sends : {true, false}) {
      lines.emplace_back();
      const int from = sends ? rank : peer, to = sends ? peer : rank;
      if (from == to) continue;
      for (const std::size_t length : lengths(round, from, to)) {
        Posted message{peer, sends, std::vector<char>(length),
                       static_cast<char>(from * 31 + to * 5 + round + static_cast<int>(lines.back().size()))};
        for (std::size_t i = 0; sends && i < length; ++i) message.data[i] = letter(message.seed, i);
        lines.back().push_back(std::move(message));
      }
    }
  }
  std::vector<Posted> all;
  while (std::erase_if(lines, [](const auto& line) { return line.empty(); }), !lines.empty()) {
    auto& line = lines[random() % lines.size()];
    all.push_back(std::move(line.front()));
    line.pop_front();
  }
  return all;
}

void exchange(const transport::Transport& over, std::vector<Posted>& messages, std::mt19937& random) {
  std::vector<int> back(messages.size(), 0);
  std::size_t posted = 0, through = 0;
  while (through < messages.size()) {
    while (posted < messages.size() && random() % 8 != 0) {
      Posted& m = messages[posted];
      const auto ticket = static_cast<std::uint32_t>(posted);
      const bool taken = m.sends ? over.send(over.context, m.peer, 0, m.data.data(), m.data.size(), ticket)
                                 : over.recv(over.context, m.peer, 0, m.data.data(), m.data.size(), ticket);
      posted += taken ? 1 : 0;
    }
    std::uint32_t tickets[3];
    const int count = over.poll(over.context, tickets, 3);
    ASSERT_GE(count, 0);
    for (int i = 0; i < count; ++i) ++back[tickets[i]];
    through += static_cast<std::size_t>(count);
    if (count == 0 || random() % 16 == 0) std::this_thread::yield();
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(back[i], 1);
    for (std::size_t at = 0; at < messages[i].data.size(); ++at)
      ASSERT_EQ(messages[i].data[at], letter(messages[i].seed, at)) << "message " << i << ", byte " << at;
  }
}

TEST(TcpTransportTest, MessagesArrive) {
  for (const auto& [ranks, per_node] : {std::pair{2, 1}, {3, 1}, {5, 2}, {8, 2}, {7, 3}}) {
    Cluster cluster(ranks, per_node);
    cluster.run([&](int rank, transport::Stack& stack) {
      ASSERT_EQ(stack.connect(cluster.opening(rank)), Opened::yes);
      std::mt19937 random(static_cast<unsigned>(rank));
      for (int round = 0; round < 10 * kEffort; ++round) {
        std::vector<Posted> messages = drawn(round, rank, ranks, random);
        // The collective decides which rank must acknowledge them.
        stack.begin(round % 3 == 0 ? Collective::reduce : Collective::scatter);
        exchange(stack.transport(), messages, random);
      }
    });
    EXPECT_EQ(cluster.boxes().left_over(), 0u);
  }
}

// More than the system takes before the other end looks: the rest goes later.
// All others send and receive by the next transport.
TEST(TcpTransportTest, OnlyLeadersOfNodesConnect) {
  for (const auto& [ranks, per_node] : {std::pair{4, 2}, {7, 3}, {8, 2}}) {
    Cluster cluster(ranks, per_node);
    cluster.connect_leaders_only(per_node);
    cluster.run([&](int rank, transport::Stack& stack) {
      const TcpTransport::Opening opening = cluster.opening(rank);
      EXPECT_FALSE(opening.has_all());
      ASSERT_EQ(stack.connect(opening), Opened::yes);
      std::mt19937 random(static_cast<unsigned>(rank));
      for (int round = 0; round < 10 * kEffort; ++round) {
        std::vector<Posted> messages = drawn(round, rank, ranks, random);
        stack.begin(round % 3 == 0 ? Collective::reduce : Collective::scatter);
        exchange(stack.transport(), messages, random);
      }
    });
    EXPECT_EQ(cluster.boxes().left_over(), 0u);
  }
}

TEST(TcpTransportTest, ManyAtOnce) {
  constexpr int kMessages = 2000;
  Cluster cluster(2, 1);
  cluster.run([&](int rank, transport::Stack& stack) {
    ASSERT_EQ(stack.connect(cluster.opening(rank)), Opened::yes);
    std::vector<Posted> messages;
    for (int i = 0; i < kMessages; ++i) {
      messages.push_back({1 - rank, rank == 0, std::vector<char>(kTuning.tcp_bytes), static_cast<char>(i)});
      for (std::size_t at = 0; rank == 0 && at < messages.back().data.size(); ++at)
        messages.back().data[at] = letter(static_cast<char>(i), at);
    }
    if (rank == 1) sys::nap_ns(50'000'000);
    std::mt19937 random(static_cast<unsigned>(rank));
    exchange(stack.transport(), messages, random);
  });
  EXPECT_EQ(cluster.boxes().sent(0, 1), 0u);
}

// The length of a message and the places of its ends decide which way it goes.
TEST(TcpTransportTest, OthersGoBeyond) {
  Cluster cluster(3, 2);
  cluster.run([&](int rank, transport::Stack& stack) {
    ASSERT_EQ(stack.connect(cluster.opening(rank)), Opened::yes);
    std::vector<Posted> messages;
    for (int peer = 0; peer < 3; ++peer) {
      for (const std::size_t length : {std::size_t{8}, std::size_t{kTuning.tcp_bytes} + 1}) {
        if (peer == rank) continue;
        messages.push_back({peer, true, std::vector<char>(length), 0});
        messages.push_back({peer, false, std::vector<char>(length), 0});
        for (std::size_t at = 0; at < length; ++at) messages[messages.size() - 2].data[at] = letter(0, at);
      }
    }
    std::mt19937 random(static_cast<unsigned>(rank));
    exchange(stack.transport(), messages, random);
  });
  EXPECT_EQ(cluster.boxes().sent(0, 1), 2u);  // on a node
  EXPECT_EQ(cluster.boxes().sent(0, 2), 1u);  // the long one
}

// In a Gatherv or Scatterv a receiver may have declared more than arrives. It cannot know which way
// the message goes.
TEST(TcpTransportTest, TheSenderSaysHowLongAMessageIs) {
  constexpr std::size_t kSent[] = {8, 20'000, kTuning.tcp_bytes, kTuning.tcp_bytes + 1, 0, 50'000, 3};
  constexpr std::size_t kDeclared[] = {50'000, 50'000, 50'000, 50'000, 50'000, 50'000, 3};
  Cluster cluster(2, 1);
  cluster.boxes().take_shorter();
  cluster.run([&](int rank, transport::Stack& stack) {
    ASSERT_EQ(stack.connect(cluster.opening(rank)), Opened::yes);
    std::vector<Posted> messages;
    for (std::size_t i = 0; i < std::size(kSent); ++i) {
      messages.push_back(
          {1 - rank, rank == 0, std::vector<char>(rank == 0 ? kSent[i] : kDeclared[i], '-'), static_cast<char>(i)});
      for (std::size_t at = 0; rank == 0 && at < kSent[i]; ++at)
        messages.back().data[at] = letter(static_cast<char>(i), at);
    }
    stack.begin(Collective::scatterv);
    const transport::Transport over = stack.transport();
    for (std::uint32_t i = 0; i < messages.size(); ++i) {
      std::vector<char>& data = messages[i].data;
      std::uint32_t tickets[8];
      while (!(rank == 0 ? over.send(over.context, 1, i, data.data(), data.size(), i)
                         : over.recv(over.context, 0, i, data.data(), data.size(), i))) {
      }
      for (int through = 0; i + 1 == messages.size() && through < static_cast<int>(messages.size());) {
        const int count = over.poll(over.context, tickets, 8);
        ASSERT_GE(count, 0);
        through += count;
      }
    }
    for (std::size_t i = 0; i < messages.size() && rank == 1; ++i) {
      for (std::size_t at = 0; at < kDeclared[i]; ++at)
        ASSERT_EQ(messages[i].data[at], at < kSent[i] ? letter(static_cast<char>(i), at) : '-') << i << ", byte " << at;
    }
  });
  EXPECT_EQ(cluster.boxes().sent(0, 1), 3u);
}

int polled(const transport::Transport& over, std::uint64_t patience_ns = 10'000'000'000) {
  std::uint32_t ticket = 0;
  int count = 0;
  for (const std::uint64_t begin = sys::now_ns(); count == 0 && sys::now_ns() - begin < patience_ns;)
    count = over.poll(over.context, &ticket, 1);
  return count;
}

// A receiver of a message that is too long tells the ranks that wait for it.
TEST(TcpTransportTest, AShorterMessageIsGoodAndALongerOneIsNot) {
  Cluster cluster(2, 1);
  cluster.run([&](int rank, transport::Stack& stack) {
    ASSERT_EQ(stack.connect(cluster.opening(rank)), Opened::yes);
    const transport::Transport over = stack.transport();
    char data[16] = "abcdefg";
    if (rank == 0) {
      ASSERT_TRUE(over.send(over.context, 1, 0, data, 4, 0) && over.send(over.context, 1, 0, data, 9, 0));
      EXPECT_EQ(polled(over), 1);
      EXPECT_EQ(polled(over), 1);
      ASSERT_TRUE(over.recv(over.context, 1, 0, data, 1, 0));
      EXPECT_EQ(polled(over), -1);
      return;
    }
    char place[16] = "0123456789";
    ASSERT_TRUE(over.recv(over.context, 0, 0, place, 8, 0));
    EXPECT_EQ(polled(over), 1);
    EXPECT_STREQ(place, "abcd456789");
    ASSERT_TRUE(over.recv(over.context, 0, 0, place, 8, 0));
    EXPECT_EQ(polled(over), -1);
    EXPECT_STREQ(place, "abcd456789");
  });
}

TEST(TcpTransportTest, WhoIsGoneIsMissed) {
  Cluster cluster(2, 1);
  cluster.run([&](int rank, transport::Stack& stack) {
    ASSERT_EQ(stack.connect(cluster.opening(rank)), Opened::yes);
    if (rank == 0) return;
    char data[8] = {};
    const transport::Transport over = stack.transport();
    ASSERT_TRUE(over.recv(over.context, 0, 0, data, sizeof data, 0));
    EXPECT_EQ(polled(over), -1);
    EXPECT_EQ(over.why_broken(), Status::peer_lost);
    EXPECT_EQ(stack.lost().rank, 0);
    EXPECT_EQ(stack.lost().witness, 1);
  });
}

// Rank 2 is gone. Rank 0 finds out, and tells rank 1, which waits for rank 0 alone.
TEST(TcpTransportTest, WhoGivesUpSaysWhy) {
  Cluster cluster(3, 1);
  cluster.run([&](int rank, transport::Stack& stack) {
    ASSERT_EQ(stack.connect(cluster.opening(rank)), Opened::yes);
    if (rank == 2) return;
    char data[8] = {};
    const transport::Transport over = stack.transport();
    ASSERT_TRUE(over.recv(over.context, rank == 0 ? 2 : 0, 0, data, sizeof data, 0));
    EXPECT_EQ(polled(over), -1);
    EXPECT_EQ(over.why_broken(), Status::peer_lost);
    EXPECT_EQ(stack.lost().rank, 2);
    EXPECT_EQ(stack.lost().witness, 0);
    if (rank == 0) sys::nap_ns(100'000'000);  // rank 1 reads before this end is closed
  });
}

// Stands between a member and what the others tell it. It changes their endpoints, or calls their
// listeners.
class Meddler {
 public:
  using Meddle = std::function<void(int rank, transport::Endpoint* endpoints)>;
  Meddler(const engine::Bootstrap& members, Meddle meddle) : members_(members), meddle_(std::move(meddle)) {}
  [[nodiscard]] engine::Bootstrap bootstrap() {
    return {members_.rank, members_.size, this, [](void* context, const void* mine, void* all, std::size_t bytes) {
              auto* const self = static_cast<Meddler*>(context);
              const bool fine = self->members_.allgather(self->members_.context, mine, all, bytes);
              if (bytes == sizeof(transport::Endpoint))
                self->meddle_(self->members_.rank, static_cast<transport::Endpoint*>(all));
              return fine;
            }};
  }

 private:
  engine::Bootstrap members_;
  Meddle meddle_;
};

// The outcome, and how long the members need for it.
void open_with(Cluster& cluster, const Meddler::Meddle& meddle, Opened expected, std::uint64_t within_ns) {
  cluster.run([&](int rank, transport::Stack& stack) {
    TcpTransport::Opening opening = cluster.opening(rank);
    // Only this member has it.
    opening.addresses[0].ip = htonl(INADDR_LOOPBACK + 10 + static_cast<unsigned>(rank));
    Meddler meddler(opening.members, meddle);
    opening.members = meddler.bootstrap();
    const std::uint64_t begin = sys::now_ns();
    EXPECT_EQ(stack.connect(opening), expected);
    EXPECT_LT(sys::now_ns() - begin, within_ns);
    if (expected != Opened::yes) return;
    std::vector<Posted> messages;
    for (int peer = 0; peer < cluster.ranks(); ++peer) {
      if (!cluster.are_far(rank, peer)) continue;
      messages.push_back({peer, true, std::vector<char>(9), 0});
      messages.push_back({peer, false, std::vector<char>(9), 0});
      for (std::size_t at = 0; at < 9; ++at) messages[messages.size() - 2].data[at] = letter(0, at);
    }
    std::mt19937 random(static_cast<unsigned>(rank));
    exchange(stack.transport(), messages, random);
  });
}

constexpr std::uint64_t kPatienceNs = 1'000'000'000;  // as long as members wait for each other
const sys::HostAddress kLoopback{inet_addr("127.0.0.1"), ~0u};

// The first address of an endpoint becomes that of another program. The true one is tried after it.
void put_first(transport::Endpoint& endpoint, std::uint16_t port) {
  endpoint.addresses[1] = endpoint.addresses[0];
  endpoint.addresses[0] = kLoopback;
  endpoint.ports[1] = endpoint.ports[0];
  endpoint.ports[0] = port;
  endpoint.address_count = 2;
}

TEST(TcpTransportTest, NobodyIsAtTheFirstAddress) {
  int closed = -1;
  std::uint16_t port = 0;
  ASSERT_EQ(sys::stream_listen(kLoopback, &closed, &port), 0);
  sys::close_descriptor(closed);
  Cluster cluster(3, 1);
  open_with(
      cluster,
      [&](int rank, transport::Endpoint* endpoints) {
        for (int peer = rank + 1; peer < 3; ++peer) put_first(endpoints[peer], port);
      },
      Opened::yes, kPatienceNs);
}

TEST(TcpTransportTest, ASilentStrangerIsAtTheFirstAddress) {
  int stranger = -1;
  std::uint16_t port = 0;
  ASSERT_EQ(sys::stream_listen(kLoopback, &stranger, &port), 0);
  Cluster cluster(4, 2);
  open_with(
      cluster,
      [&](int rank, transport::Endpoint* endpoints) {
        for (int peer = rank + 1; peer < 4; ++peer) put_first(endpoints[peer], port);
      },
      Opened::yes, kPatienceNs / 2);
  sys::close_descriptor(stranger);
}

// More than a listener holds, and more than it accepts at once. Some say something.
TEST(TcpTransportTest, StrangersAtTheDoor) {
  constexpr int kStrangers = 100;
  std::vector<int> strangers;
  Cluster cluster(3, 1);
  open_with(
      cluster,
      [&](int rank, transport::Endpoint* endpoints) {
        if (rank != 0) return;
        for (int i = 0; i < kStrangers; ++i) {
          int stream = -1;
          const transport::Endpoint& endpoint = endpoints[1 + i % 2];
          ASSERT_EQ(sys::stream_connect(endpoint.addresses[0], endpoint.ports[0], &stream), 0);
          strangers.push_back(stream);
          const transport::Hello hello{{}, 0, static_cast<std::uint32_t>(i % 3)};
          const sys::Piece words{&hello, i % 4 == 0 ? sizeof hello : 5};
          std::size_t sent = 0;
          if (i % 4 < 2) (void)sys::stream_send(stream, &words, 1, 0, &sent);
        }
      },
      Opened::yes, kPatienceNs);
  for (const int stream : strangers) sys::close_descriptor(stream);
}

// Accepts connections and passes on what it is told.
class Relay {
 public:
  explicit Relay(bool answers_wrongly = false) : wrong_(answers_wrongly) {
    EXPECT_EQ(sys::stream_listen(kLoopback, &listener_, &port_), 0);
  }
  ~Relay() {
    (void)heard();
    for (const int stream : streams_) sys::close_descriptor(stream);
    sys::close_descriptor(listener_);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  void start(const transport::Endpoint& to) {
    thread_ = std::jthread([this, to](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        serve(to);
        sys::nap_ns(100'000);
      }
    });
  }
  [[nodiscard]] std::string heard() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    return heard_;
  }

 private:
  void serve(const transport::Endpoint& to) {
    int stream = -1, other = -1;
    while (sys::stream_accept(listener_, &stream) == 0) {
      streams_.push_back(stream);
      EXPECT_EQ(sys::stream_connect(to.addresses[0], to.ports[0], &other), 0);
      streams_.push_back(other);
    }
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      char words[4096];
      std::size_t bytes = 0, sent = 0;
      if (sys::stream_receive(streams_[i], words, sizeof words, &bytes) != 0) continue;
      heard_.append(words, bytes);
      if (wrong_ && i % 2 == 1) words[bytes - 1] = static_cast<char>(words[bytes - 1] ^ 1);
      const sys::Piece piece{words, bytes};
      (void)sys::stream_send(streams_[i ^ 1], &piece, 1, 0, &sent);
    }
  }

  const bool wrong_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::vector<int> streams_;
  std::string heard_;
  std::jthread thread_;
};

// It hears no secret, and what it has heard opens no other connection.
TEST(TcpTransportTest, ARelayLearnsNothing) {
  Relay relay;
  Cluster cluster(2, 1);
  std::vector<transport::Endpoint> told;
  open_with(
      cluster,
      [&](int rank, transport::Endpoint* endpoints) {
        if (rank != 0) return;
        told.assign(endpoints, endpoints + 2);
        relay.start(endpoints[1]);
        endpoints[1].addresses[0] = kLoopback;
        endpoints[1].ports[0] = relay.port();
      },
      Opened::yes, kPatienceNs);
  const std::string heard = relay.heard();
  ASSERT_GT(heard.size(), sizeof(transport::Hello) + sizeof(transport::Answer));
  const std::uint64_t secrets[] = {told[0].share.low,
                                   told[0].share.high,
                                   told[1].share.low,
                                   told[1].share.high,
                                   told[0].share.low ^ told[1].share.low,
                                   told[0].share.high ^ told[1].share.high};
  for (const std::uint64_t secret : secrets)
    EXPECT_EQ(heard.find(std::string(reinterpret_cast<const char*>(&secret), sizeof secret)), std::string::npos);
}

// The caller's words of one handshake, said again to the listener of another. The secret is the
// same here, and the numbers are fresh.
TEST(TcpTransportTest, OldWordsAreWorthNothing) {
  const SipKey one{1, 2}, other{3, 4};
  const transport::Hello hello{{{5, 6}}, 0, 1};
  const std::uint64_t proof = transport::handshake_hash(transport::Role::proof, one, other, hello, {{7, 8}});
  EXPECT_NE(proof, transport::handshake_hash(transport::Role::proof, one, other, hello, {{7, 9}}));
  EXPECT_NE(proof, transport::handshake_hash(transport::Role::answer, one, other, hello, {{7, 8}}));
  EXPECT_NE(proof, transport::handshake_hash(transport::Role::proof, one, other, {{{5, 6}}, 1, 0}, {{7, 8}}));
  EXPECT_NE(proof, transport::handshake_hash(transport::Role::proof, one, {3, 5}, hello, {{7, 8}}));
}

TEST(TcpTransportTest, AWrongAnswerIsRefused) {
  for (const bool alone : {false, true}) {
    Relay relay(true);
    Cluster cluster(2, 1);
    open_with(
        cluster,
        [&](int rank, transport::Endpoint* endpoints) {
          if (rank != 0) return;
          relay.start(endpoints[1]);
          put_first(endpoints[1], relay.port());
          if (alone) endpoints[1].address_count = 1;
        },
        alone ? Opened::unable : Opened::yes, kPatienceNs + kPatienceNs / 2);
  }
}

// An address that both hosts have leads to neither.
TEST(TcpTransportTest, OwnAddressesAreNotDialled) {
  const auto address = [](const char* ip, const char* mask = "255.255.255.0") {
    return sys::HostAddress{inet_addr(ip), inet_addr(mask)};
  };
  const sys::HostAddress docker = address("172.17.0.1", "255.255.0.0"), here = address("10.0.0.1"),
                         there = address("10.0.0.2"), far = address("10.9.0.2");
  const auto order = [](const std::vector<sys::HostAddress>& own, const std::vector<sys::HostAddress>& theirs) {
    int places[sys::kMostAddresses];
    const int count = transport::dial_order(own.data(), static_cast<int>(own.size()), theirs.data(),
                                            static_cast<int>(theirs.size()), places);
    return std::vector<int>(places, places + count);
  };
  EXPECT_EQ(order({here, docker}, {docker, far, there}), (std::vector<int>{2, 1}));
  EXPECT_EQ(order({docker, here}, {docker}), (std::vector<int>{}));
  EXPECT_EQ(order({docker, here}, {here, docker}), (std::vector<int>{0, 1}));  // on one host
}

TEST(TcpTransportTest, OneThatHasNoAddressIsEnough) {
  Cluster cluster(4, 1);
  cluster.run([&](int rank, transport::Stack& stack) {
    TcpTransport::Opening opening = cluster.opening(rank);
    if (rank == 2) opening.address_count = 0;
    EXPECT_EQ(stack.connect(opening), Opened::unable);
    std::vector<Posted> messages = {{(rank + 1) % 4, true, std::vector<char>(1, letter(0, 0)), 0},
                                    {(rank + 3) % 4, false, std::vector<char>(1), 0}};
    std::mt19937 random(static_cast<unsigned>(rank));
    exchange(stack.transport(), messages, random);
  });
  EXPECT_EQ(cluster.boxes().sent(0, 1), 1u);
}

// A transport whose messages are through after so long, whichever rank sent them.
struct Pretended {
  std::uint64_t took_ns = 0;
  int messages = 0, waiting = 0;
  transport::Transport transport() {
    return {this,
            [](void* self, int, std::uint32_t, const char*, std::uint64_t, std::uint32_t) {
              return static_cast<Pretended*>(self)->post();
            },
            [](void* self, int, std::uint32_t, char*, std::uint64_t, std::uint32_t) {
              return static_cast<Pretended*>(self)->post();
            },
            [](void* self, std::uint32_t* tickets, int) { return static_cast<Pretended*>(self)->poll(tickets); }};
  }
  bool post() {
    ++messages;
    ++waiting;
    return true;
  }
  int poll(std::uint32_t* tickets) {
    if (waiting == 0) return 0;
    if (took_ns != 0) sys::nap_ns(took_ns);
    tickets[0] = 0;
    --waiting;
    return 1;
  }
};

// A member that has found connections useless does not ask again.
TEST(TcpTransportTest, WhatIsNotFasterIsClosed) {
  for (const auto& [took_ns, expected] :
       {std::pair{20'000'000ul, Opened::yes}, {0ul, Opened::slower}, {0ul, Opened::unable}}) {
    Cluster cluster(4, 2);
    cluster.run([&](int rank, transport::Stack& stack) {
      Pretended beyond{took_ns};
      stack.start(beyond.transport());
      TcpTransport::Opening opening = cluster.opening(rank);
      opening.always = false;
      EXPECT_EQ(stack.connect(opening), expected);
      EXPECT_EQ(stack.measured().here_ns != 0, rank == 0 && expected != Opened::unable);
      const int before = beyond.messages;
      const transport::Transport over = stack.transport();
      char word = 0;
      ASSERT_TRUE(over.send(over.context, (rank + 2) % 4, 0, &word, 1, 0) &&
                  over.recv(over.context, (rank + 2) % 4, 0, &word, 1, 0));
      EXPECT_EQ(polled(over), 1);
      EXPECT_EQ(polled(over), 1);
      EXPECT_EQ(beyond.messages - before, expected == Opened::yes ? 0 : 2);
    });
  }
}

}  // namespace
}  // namespace stretto::test
