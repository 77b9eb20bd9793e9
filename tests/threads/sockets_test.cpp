// SPDX-License-Identifier: BSD-3-Clause
// Connections of a communicator's own, over the loopback: every message arrives once and in order whatever the pace, both ends choose the
// same way, members agree on whether there are connections, and ends that have lost step, or each other, find out.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <deque>
#include <functional>
#include <random>

#include "engine/sockets.hpp"
#include "threads/job.hpp"
#include "threads/loopback.hpp"
#include "threads/mailbox.hpp"

namespace stretto::test {
namespace {

using engine::Sockets;
using Opened = Sockets::Opened;

// Ranks on nodes of `per_node`, which reach each other by the loopback.
class Cluster {
 public:
  Cluster(int ranks, int per_node) : group_(everybody(ranks)), boxes_(ranks, Sends::mixed, static_cast<std::uint64_t>(ranks)) {
    for (int r = 0; r < ranks; ++r) {
      nodes_.push_back(r / per_node);
      seats_.push_back({&group_, r});
    }
  }
  [[nodiscard]] int ranks() const { return group_.size(); }
  [[nodiscard]] bool are_far(int one, int other) const { return nodes_[one] != nodes_[other]; }
  Mailboxes& boxes() { return boxes_; }

  Sockets::Opening opening(int rank) {
    return opening_over_loopback(seats_[rank], nodes_.data());
  }
  using RankMain = std::function<void(int rank, Sockets& sockets)>;
  void run(const RankMain& main) {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks(); ++r) {
      threads.emplace_back([&, r] {
        Sockets sockets;
        sockets.start(boxes_.transport(r));
        main(r, sockets);
      });
    }
  }

 private:
  Group group_;
  Mailboxes boxes_;
  std::vector<std::int32_t> nodes_;
  std::deque<Seat> seats_;
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
  constexpr std::size_t kLengths[] = {0, 1, 8, 100, 3000, kProfile.socket_bytes, kProfile.socket_bytes + 1, 20'000};
  std::mt19937 random(static_cast<unsigned>((round * 64 + from) * 64 + to));
  std::vector<std::size_t> result(random() % 4);
  for (std::size_t& length : result) length = kLengths[random() % std::size(kLengths)];
  return result;
}

// This rank's messages of a round, those of each pair and direction in order, all others mixed.
std::vector<Posted> drawn(int round, int rank, int ranks, std::mt19937& random) {
  std::vector<std::deque<Posted>> lines;
  for (int peer = 0; peer < ranks; ++peer) {
    for (const bool sends : {true, false}) {
      lines.emplace_back();
      const int from = sends ? rank : peer, to = sends ? peer : rank;
      if (from == to) continue;
      for (const std::size_t length : lengths(round, from, to)) {
        Posted message{peer, sends, std::vector<char>(length), static_cast<char>(from * 31 + to * 5 + round + static_cast<int>(lines.back().size()))};
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

void exchange(const sched::Transport& over, std::vector<Posted>& messages, std::mt19937& random) {
  std::vector<int> back(messages.size(), 0);
  std::size_t posted = 0, through = 0;
  while (through < messages.size()) {
    while (posted < messages.size() && random() % 8 != 0) {
      Posted& m = messages[posted];
      const auto ticket = static_cast<std::uint32_t>(posted);
      const bool taken = m.sends ? over.send(over.context, m.peer, 0, m.data.data(), m.data.size(), ticket) : over.recv(over.context, m.peer, 0, m.data.data(), m.data.size(), ticket);
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
    for (std::size_t at = 0; at < messages[i].data.size(); ++at) ASSERT_EQ(messages[i].data[at], letter(messages[i].seed, at)) << "message " << i << ", byte " << at;
  }
}

TEST(SocketsTest, MessagesArrive) {
  for (const auto& [ranks, per_node] : {std::pair{2, 1}, {3, 1}, {5, 2}, {8, 2}, {7, 3}}) {
    Cluster cluster(ranks, per_node);
    cluster.run([&](int rank, Sockets& sockets) {
      ASSERT_EQ(sockets.open(cluster.opening(rank)), Opened::yes);
      std::mt19937 random(static_cast<unsigned>(rank));
      for (int round = 0; round < 10 * kEffort; ++round) {
        std::vector<Posted> messages = drawn(round, rank, ranks, random);
        sockets.begin(round % 3 == 0 ? Collective::reduce : Collective::scatter);  // on whom it falls to acknowledge them
        exchange(sockets.transport(), messages, random);
      }
    });
    EXPECT_EQ(cluster.boxes().left_over(), 0u);
  }
}

// More than the system takes before the other end looks: the rest goes later.
TEST(SocketsTest, ManyAtOnce) {
  constexpr int kMessages = 2000;
  Cluster cluster(2, 1);
  cluster.run([&](int rank, Sockets& sockets) {
    ASSERT_EQ(sockets.open(cluster.opening(rank)), Opened::yes);
    std::vector<Posted> messages;
    for (int i = 0; i < kMessages; ++i) {
      messages.push_back({1 - rank, rank == 0, std::vector<char>(kProfile.socket_bytes), static_cast<char>(i)});
      for (std::size_t at = 0; rank == 0 && at < messages.back().data.size(); ++at) messages.back().data[at] = letter(static_cast<char>(i), at);
    }
    if (rank == 1) sys::nap_ns(50'000'000);
    std::mt19937 random(static_cast<unsigned>(rank));
    exchange(sockets.transport(), messages, random);
  });
  EXPECT_EQ(cluster.boxes().sent(0, 1), 0u);
}

// Which way a message goes is a matter of its length and of where its ends are.
TEST(SocketsTest, OthersGoBeyond) {
  Cluster cluster(3, 2);
  cluster.run([&](int rank, Sockets& sockets) {
    ASSERT_EQ(sockets.open(cluster.opening(rank)), Opened::yes);
    std::vector<Posted> messages;
    for (int peer = 0; peer < 3; ++peer) {
      for (const std::size_t length : {std::size_t{8}, std::size_t{kProfile.socket_bytes} + 1}) {
        if (peer == rank) continue;
        messages.push_back({peer, true, std::vector<char>(length), 0});
        messages.push_back({peer, false, std::vector<char>(length), 0});
        for (std::size_t at = 0; at < length; ++at) messages[messages.size() - 2].data[at] = letter(0, at);
      }
    }
    std::mt19937 random(static_cast<unsigned>(rank));
    exchange(sockets.transport(), messages, random);
  });
  EXPECT_EQ(cluster.boxes().sent(0, 1), 2u);  // on a node
  EXPECT_EQ(cluster.boxes().sent(0, 2), 1u);  // the long one
}

int polled(const sched::Transport& over, std::uint64_t patience_ns = 10'000'000'000) {
  std::uint32_t ticket = 0;
  int count = 0;
  for (const std::uint64_t begin = sys::now_ns(); count == 0 && sys::now_ns() - begin < patience_ns;) count = over.poll(over.context, &ticket, 1);
  return count;
}

// Who gets one that is too long tells those who wait for him.
TEST(SocketsTest, AShorterMessageIsGoodAndALongerOneIsNot) {
  Cluster cluster(2, 1);
  cluster.run([&](int rank, Sockets& sockets) {
    ASSERT_EQ(sockets.open(cluster.opening(rank)), Opened::yes);
    const sched::Transport over = sockets.transport();
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

TEST(SocketsTest, WhoIsGoneIsMissed) {
  Cluster cluster(2, 1);
  cluster.run([&](int rank, Sockets& sockets) {
    ASSERT_EQ(sockets.open(cluster.opening(rank)), Opened::yes);
    if (rank == 0) return;
    char data[8] = {};
    const sched::Transport over = sockets.transport();
    ASSERT_TRUE(over.recv(over.context, 0, 0, data, sizeof data, 0));
    EXPECT_EQ(polled(over), -1);
  });
}

// Nobody is at the first one, or it is no address of this network.
TEST(SocketsTest, AddressesAreTriedInTurn) {
  Cluster cluster(3, 1);
  cluster.run([&](int rank, Sockets& sockets) {
    Sockets::Opening opening = cluster.opening(rank);
    opening.addresses[opening.address_count++] = {inet_addr("192.0.2.1"), inet_addr("255.255.255.0")};
    std::swap(opening.addresses[0], opening.addresses[1]);
    EXPECT_EQ(sockets.open(opening), Opened::yes);
  });
}

TEST(SocketsTest, OneThatHasNoAddressIsEnough) {
  Cluster cluster(4, 1);
  cluster.run([&](int rank, Sockets& sockets) {
    Sockets::Opening opening = cluster.opening(rank);
    if (rank == 2) opening.address_count = 0;
    EXPECT_EQ(sockets.open(opening), Opened::unable);
    std::vector<Posted> messages = {{(rank + 1) % 4, true, std::vector<char>(1, letter(0, 0)), 0}, {(rank + 3) % 4, false, std::vector<char>(1), 0}};
    std::mt19937 random(static_cast<unsigned>(rank));
    exchange(sockets.transport(), messages, random);
  });
  EXPECT_EQ(cluster.boxes().sent(0, 1), 1u);
}

// A transport whose messages are through after so long, wherever they come from.
struct Pretended {
  std::uint64_t took_ns = 0;
  int messages = 0, waiting = 0;
  sched::Transport transport() {
    return {this, [](void* self, int, std::uint32_t, const char*, std::uint64_t, std::uint32_t) { return static_cast<Pretended*>(self)->post(); },
            [](void* self, int, std::uint32_t, char*, std::uint64_t, std::uint32_t) { return static_cast<Pretended*>(self)->post(); },
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

// Who has found out that connections are no use does not ask again.
TEST(SocketsTest, WhatIsNotFasterIsClosed) {
  for (const auto& [took_ns, expected] : {std::pair{20'000'000ul, Opened::yes}, {0ul, Opened::slower}, {0ul, Opened::unable}}) {
    Cluster cluster(4, 2);
    cluster.run([&](int rank, Sockets& sockets) {
      Pretended beyond{took_ns};
      sockets.start(beyond.transport());
      Sockets::Opening opening = cluster.opening(rank);
      opening.always = false;
      EXPECT_EQ(sockets.open(opening), expected);
      EXPECT_EQ(sockets.measured().here_ns != 0, rank == 0 && expected != Opened::unable);
      const int before = beyond.messages;
      const sched::Transport over = sockets.transport();
      char word = 0;
      ASSERT_TRUE(over.send(over.context, (rank + 2) % 4, 0, &word, 1, 0) && over.recv(over.context, (rank + 2) % 4, 0, &word, 1, 0));
      EXPECT_EQ(polled(over), 1);
      EXPECT_EQ(polled(over), 1);
      EXPECT_EQ(beyond.messages - before, expected == Opened::yes ? 0 : 2);
    });
  }
}

}  // namespace
}  // namespace stretto::test
