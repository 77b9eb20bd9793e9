// SPDX-License-Identifier: BSD-3-Clause
// A system call fails while connections open. Either all members have connections or none has.
// Messages arrive in both cases, and no descriptor is left behind.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "sys/fault.hpp"
#include "threads/loopback.hpp"
#include "threads/mailbox.hpp"
#include "transport/stack.hpp"
#include "unit/sys_support.hpp"

namespace stretto::test {
namespace {

using transport::TcpTransport;

// Each of three ranks, on nodes of their own, sends a word to the next.
void pass_round(const transport::Transport& over, int rank) {
  char mine = static_cast<char>('a' + rank), theirs = 0;
  for (bool sent = false, asked = false; !sent || !asked;) {
    sent = sent || over.send(over.context, (rank + 1) % 3, 0, &mine, 1, 0);
    asked = asked || over.recv(over.context, (rank + 2) % 3, 0, &theirs, 1, 1);
  }
  for (int through = 0; through < 2;) {
    std::uint32_t tickets[2];
    const int count = over.poll(over.context, tickets, 2);
    ASSERT_GE(count, 0);
    through += count;
  }
  EXPECT_EQ(theirs, 'a' + (rank + 2) % 3);
}

// How many of three ranks had connections. Each rank has `addresses` addresses.
int opened(int addresses = 1) {
  Group group(everybody(3)), gate(everybody(3));
  Mailboxes boxes(3, Sends::buffered, 1);
  constexpr std::int32_t kNodes[] = {0, 1, 2};
  std::atomic<int> count = 0;
  std::vector<std::jthread> threads;
  for (int r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      TestMember member{&group, r};
      TcpTransport::Opening opening = opening_over_loopback(member, kNodes);
      for (; opening.address_count < addresses; ++opening.address_count)
        opening.addresses[opening.address_count] = {htonl(INADDR_LOOPBACK + 1), ~0u};
      transport::Stack stack;
      stack.start(boxes.transport(r));
      count += stack.connect(opening) == TcpTransport::Opened::yes ? 1 : 0;
      int ignored[3];
      gate.allgather(r, &r, ignored, sizeof r);
      if (r == 0) sys::fault::disarm();
      gate.allgather(r, &r, ignored, sizeof r);
      pass_round(stack.transport(), r);
      gate.allgather(r, &r, ignored, sizeof r);
    });
  }
  threads.clear();
  EXPECT_EQ(boxes.left_over(), 0u);
  return count;
}

TEST(SocketsFault, AllOrNone) {
  sys::fault::disarm();
  ASSERT_EQ(opened(), 3);
  const int before = open_descriptors();
  for (const char* point : {"random_bytes", "stream_listen", "stream_listen.bind", "stream_accept", "stream_connect",
                            "stream_connected", "stream_send", "stream_receive"}) {
    ASSERT_TRUE(sys::fault::arm((std::string(point) + ":2:EMFILE").c_str()));
    EXPECT_EQ(opened(), 0) << point;
    EXPECT_EQ(open_descriptors(), before) << point;
  }
  // One address is enough.
  for (const char* point : {"stream_connect", "stream_connected"}) {
    ASSERT_TRUE(sys::fault::arm((std::string(point) + ":2:EMFILE").c_str()));
    EXPECT_EQ(opened(2), 3) << point;
    EXPECT_EQ(open_descriptors(), before) << point;
  }
  // These ranks are on one host. A rank that announces fewer addresses than it has seems to be on
  // another host. Peers do not dial that host's address, because it is also their own.
  for (const char* point : {"stream_listen", "stream_listen.bind"}) {
    ASSERT_TRUE(sys::fault::arm((std::string(point) + ":2:EMFILE").c_str()));
    EXPECT_EQ(opened(2) % 3, 0) << point;
    EXPECT_EQ(open_descriptors(), before) << point;
  }
  ASSERT_TRUE(sys::fault::arm("stream_waiting:*:ENOTTY"));  // the streams are then read instead
  EXPECT_EQ(opened(), 3);
}

}  // namespace
}  // namespace stretto::test
