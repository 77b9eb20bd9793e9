// SPDX-License-Identifier: BSD-3-Clause
// The owner of a table writes nonsense into it. Readers come back with some answer, and read
// nothing outside the mapping. The mapping ends at a page that must not be touched.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <random>
#include <string>

#include "kv/table.hpp"

using namespace stretto;
using namespace stretto::kv;

namespace {

TEST(KvTableFuzz, NonsenseIsReadWithoutHarm) {
  Table table;
  ASSERT_EQ(table.create(512 << 10), Status::ok);
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.push_back("key" + std::to_string(i));
  const auto name_of = [&](std::size_t i) {
    Name name;
    EXPECT_TRUE(name_make("job", 0, keys[i].c_str(), &name));
    return name;
  };
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < keys.size(); ++i)
      ASSERT_EQ(table.put(name_of(i), {keys[i].data(), 4, 0, 0}), Status::ok);
    table.commit();
  }
  const TableView good = table.view();
  auto* memory =
      static_cast<char*>(mmap(nullptr, good.bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory + good.bytes, 4096, PROT_NONE), 0);
  const TableView bad{memory, good.bytes, good.header};
  std::mt19937_64 random(4711);
  std::uint64_t found = 0, bytes = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    if (trial % 20 == 0) std::memcpy(memory, good.base, good.bytes);
    for (int hit = 0; hit < 30; ++hit) {
      const std::uint64_t at = good.header + random() % 60'000;  // where header, index and entries are
      const std::uint64_t value = random() >> (random() % 64);
      std::memcpy(memory + at, &value, random() % 8 + 1);
    }
    for (std::size_t i = 0; i < keys.size(); i += 7) {
      Value value;
      if (!bad.find(name_of(i), &value)) continue;
      ++found;
      const auto* text = static_cast<const char*>(value.data);
      ASSERT_TRUE(text >= memory && text + value.bytes <= memory + good.bytes);
      bytes += value.bytes;
    }
    (void)bad.is_valid();
  }
  EXPECT_GT(found, 1000u);  // not all of it was destroyed
  EXPECT_GT(bytes, found);
  munmap(memory, good.bytes + 4096);
  table.destroy();
}

}  // namespace
