// SPDX-License-Identifier: BSD-3-Clause
// The store when the system refuses: each time it returns an error, loses nothing and leaves
// nothing behind.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "kv/store.hpp"
#include "sys/fault.hpp"
#include "unit/sys_support.hpp"

using namespace stretto;
using namespace stretto::kv;
namespace fault = stretto::sys::fault;

namespace {

struct KvFault : testing::Test {
  void SetUp() override {
    fault::disarm();
    ASSERT_NE(mkdtemp(directory), nullptr);
  }
  void TearDown() override {
    fault::disarm();
    char path[256];
    ASSERT_TRUE(Store::path_of(directory, "job", path, sizeof path));
    (void)sys::remove_file(path);
    EXPECT_EQ(rmdir(directory), 0);
  }
  char directory[32] = "/tmp/stretto-kv-fault-XXXXXX";
};

TEST_F(KvFault, OpeningFailsCleanly) {
  {
    Store store;
    ASSERT_EQ(store.open(directory, "job", 0, 1, 16 << 20), Status::ok);
    store.close();
  }
  const std::uint64_t calls = fault::calls();
  const int before = open_descriptors();
  unsigned refused = 0;
  for (std::uint64_t n = 1; n <= calls; ++n) {
    fault::fail_nth(n, n % 2 ? ENOSPC : EACCES);
    Store store;
    const Status status = store.open(directory, "job", 0, 1, 16 << 20);
    refused += status != Status::ok;
    if (status == Status::ok) store.close();
    EXPECT_EQ(open_descriptors(), before) << "call " << n;
  }
  EXPECT_GE(refused, 5u);
}

// Shared memory has no more room. put() says so, and the values put before are still there.
TEST_F(KvFault, FullMemoryIsAnErrorOfPut) {
  Store store;
  ASSERT_EQ(store.open(directory, "job", 0, 1, 16 << 20), Status::ok);
  const std::string value(1000, 'v');
  const auto put = [&](const std::string& key) {
    return store.put(Scope::global, key.c_str(), {value.data(), 1000, 1, 0});
  };
  ASSERT_EQ(put("first"), Status::ok);
  ASSERT_TRUE(fault::arm("memfd_reserve:*:ENOSPC"));
  int put_before = 0;
  while (put("k" + std::to_string(put_before)) == Status::ok) ASSERT_LT(++put_before, 1000);
  EXPECT_EQ(put("after"), Status::no_memory);
  ASSERT_EQ(store.commit(), Status::ok);
  const auto is_there = [&](const std::string& key) {
    Name name;
    EXPECT_TRUE(name_make("job", 0, key.c_str(), &name));
    return store.get(name, 0, false, [&](const Value& found) { EXPECT_EQ(found.bytes, 1000u); }) == Outcome::found;
  };
  EXPECT_TRUE(is_there("first"));
  for (int i = 0; i < put_before; ++i) EXPECT_TRUE(is_there("k" + std::to_string(i)));
  EXPECT_FALSE(is_there("after"));
  fault::disarm();
  EXPECT_EQ(put("after"), Status::ok);  // there is room again
  EXPECT_TRUE(is_there("after"));
  store.close();
}

}  // namespace
