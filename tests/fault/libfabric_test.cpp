// SPDX-License-Identifier: BSD-3-Clause
// What cards do and the provider `tcp` does not: memory cannot be registered, queues are full,
// reads fail at their end, the completion queue is broken. Messages come all the same.
#include "transport/fabric/libfabric.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "sys/fault.hpp"
#include "threads/drawn_messages.hpp"
#include "unit/sys_support.hpp"

namespace stretto::test {
namespace {

const sys::HostAddress kLoopback{htonl(INADDR_LOOPBACK), ~0u};
constexpr transport::Libfabric::Settings kByTcp{"tcp", &kLoopback, 1};

class LibfabricFault : public testing::Test {
 protected:
  void SetUp() override {
    sys::fault::disarm();
    transport::Libfabric network;
    if (!network.find(kByTcp)) GTEST_SKIP() << network.why();
  }
  void TearDown() override { sys::fault::disarm(); }
};

TEST_F(LibfabricFault, MemoryThatCannotBeRegisteredIsLeft) {
  for (const char* rule : {"fabric_register:*:ENOMEM", "map_unforked.advise:1:ENOMEM"}) {
    transport::Libfabric network;
    ASSERT_TRUE(network.find(kByTcp));
    const int before = open_descriptors();
    ASSERT_TRUE(sys::fault::arm(rule));
    EXPECT_FALSE(network.begin()) << rule;
    EXPECT_NE(std::string(network.why()).find(strerrordesc_np(ENOMEM)), std::string::npos) << network.why();
    sys::fault::disarm();
    EXPECT_EQ(open_descriptors(), before) << rule;
  }
}

TEST_F(LibfabricFault, MessagesComeWhateverFails) {
  for (const char* rule : {"fabric_read:1:EAGAIN,fabric_read:2:EAGAIN,fabric_read:9:EAGAIN", "fabric_read:1:EINVAL",
                           "fabric_read:7:ENOMEM", "fabric_read.done:1:EIO", "fabric_read.done:5:EIO",
                           "fabric_read.done:*:EIO", "fabric_poll:1:EIO", "fabric_poll:20:EIO", "fabric_poll:90:EIO",
                           "fabric_add_peer:1:EINVAL", "fabric_add_peer:*:EINVAL"}) {
    SCOPED_TRACE(rule);
    std::deque<transport::Libfabric> networks;
    {
      DriverJob job(2, 0, [&](int) {
        EXPECT_TRUE(networks.emplace_back().find(kByTcp));
        return &networks.back();
      });
      ASSERT_TRUE(sys::fault::arm(rule));
      exchange_rounds(job, 4 * kMiB);
      EXPECT_GT(sys::fault::strikes(), 0u);
      sys::fault::disarm();
    }
  }
}

}  // namespace
}  // namespace stretto::test
