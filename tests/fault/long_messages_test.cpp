// SPDX-License-Identifier: BSD-3-Clause
// A system call fails while drivers move messages. Each message either arrives, or ends with an
// error on both sides. Nobody waits for ever, and no descriptor is left behind.
#include <gtest/gtest.h>

#include <string>

#include "sys/fault.hpp"
#include "threads/drivers.hpp"
#include "unit/sys_support.hpp"

namespace stretto::test {
namespace {

using bulk::Handle;

// Two ranks exchange messages. Returns how many of them arrived; those that did are right.
int exchanged() {
  constexpr std::size_t kLengths[] = {10, 300'000, 1'000'000};
  constexpr std::uint32_t kMessages = 3;
  std::atomic<int> arrived = 0;
  DriverJob job(2);
  job.run([&](int rank, bulk::Driver& driver) {
    std::vector<std::vector<char>> out, in;
    std::vector<Handle> handles(2 * kMessages, nullptr);
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      out.emplace_back(kLengths[i], static_cast<char>('a' + rank));
      in.emplace_back(kLengths[i]);
      (void)driver.post_send(1 - rank, {1, 1, i}, out[i].data(), kLengths[i], &handles[2 * i]);
      (void)driver.post_recv(1 - rank, {1, 1, i}, in[i].data(), kLengths[i], &handles[2 * i + 1]);
    }
    for (std::uint32_t i = 0; i < 2 * kMessages; ++i) {
      if (handles[i] == nullptr) continue;
      const bool fine = wait_and_complete(driver, handles[i]) == Status::ok;
      if (!fine || i % 2 == 0) continue;
      ++arrived;
      EXPECT_TRUE(in[i / 2] == std::vector<char>(kLengths[i / 2], static_cast<char>('b' - rank)));
    }
    driver.stop();
  });
  return arrived;
}

TEST(LongMessagesFault, EveryMessageEnds) {
  sys::fault::disarm();
  ASSERT_EQ(exchanged(), 6);
  const int before = open_descriptors();
  for (const char* point : {"random_bytes", "stream_accept", "stream_connect", "stream_connected", "stream_send",
                            "stream_receive", "stream_receive_pieces", "poller_add", "poller_modify", "poller_wait"}) {
    for (const char* nth : {"1", "2", "3", "7"}) {
      // The endpoints are told before anything fails.
      const bool at_opening = std::string(point) == "random_bytes" && nth[0] < '3';
      if (at_opening) continue;
      ASSERT_TRUE(sys::fault::arm((std::string(point) + ":" + nth + ":EPIPE").c_str()));
      EXPECT_LE(exchanged(), 6) << point << " " << nth;
      EXPECT_EQ(open_descriptors(), before) << point << " " << nth;
      sys::fault::disarm();
    }
  }
}

// Once, and something else can be tried.
TEST(LongMessagesFault, OpeningIsTriedAgain) {
  for (const char* rule : {"stream_accept:1:EMFILE", "poller_add:3:ENOSPC"}) {
    ASSERT_TRUE(sys::fault::arm(rule));
    EXPECT_EQ(exchanged(), 6) << rule;
    sys::fault::disarm();
  }
}

TEST(LongMessagesFault, WhoCannotListenSaysSo) {
  for (const char* point : {"stream_listen", "random_bytes", "poller_open", "poller_open.waker"}) {
    sys::fault::disarm();
    const int before = open_descriptors();
    ASSERT_TRUE(sys::fault::arm((std::string(point) + ":1:EMFILE").c_str()));
    bulk::Driver driver;
    bulk::Driver::Settings settings;
    settings.addresses[0] = {htonl(INADDR_LOOPBACK), ~0u};
    settings.address_count = 1;
    transport::Endpoint endpoint;
    EXPECT_EQ(driver.open(settings, &endpoint), Status::unavailable) << point;
    EXPECT_EQ(open_descriptors(), before) << point;
    Handle handle = nullptr;
    char word = 0;
    EXPECT_EQ(driver.post_send(1, {}, &word, 1, &handle), Status::unavailable);
    sys::fault::disarm();
  }
}

}  // namespace
}  // namespace stretto::test
