// SPDX-License-Identifier: BSD-3-Clause
// The table of one process. Readers find what was put once it is committed, even if they look while
// it is written.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "kv/table.hpp"

using namespace stretto;
using namespace stretto::kv;

namespace {

Name name_of(const std::string& key, std::uint32_t rank = 0) {
  Name name;
  EXPECT_TRUE(name_make("job", rank, key.c_str(), &name));
  return name;
}

struct KvTable : testing::Test {
  void SetUp() override { ASSERT_EQ(table.create(64 << 20), Status::ok); }
  void TearDown() override { table.destroy(); }
  void put(const std::string& key, const std::string& value, std::uint32_t rank = 0) {
    texts.push_back(key);
    Value stored{value.data(), static_cast<std::uint32_t>(value.size()), 1, 2};
    ASSERT_EQ(table.put(name_of(texts.back(), rank), stored), Status::ok);
  }
  std::string get(const std::string& key, std::uint64_t up_to = 0, std::uint32_t rank = 0) {
    Value value;
    if (!table.view().find(name_of(key, rank), &value, up_to)) return "-";
    EXPECT_EQ(value.type, 1);
    EXPECT_EQ(value.scope, 2);
    return {static_cast<const char*>(value.data), value.bytes};
  }
  Table table;
  std::vector<std::string> texts;
};

TEST_F(KvTable, CommittedIsFound) {
  put("a", "1");
  EXPECT_EQ(get("a"), "-");
  EXPECT_EQ(get("a", TableView::kNewest), "1");
  put("b", "");
  table.commit();
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(get("b"), "");
  EXPECT_EQ(get("c"), "-");
  EXPECT_EQ(get("a", 0, 1), "-");
}

TEST_F(KvTable, ANewerValueTakesOverWhenItIsCommitted) {
  put("a", "1");
  table.commit();
  put("a", "2");
  put("a", "3");
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(get("a", TableView::kNewest), "3");
  table.commit();
  EXPECT_EQ(get("a"), "3");
  EXPECT_EQ(get("a", 1), "1") << "an older generation is still there";
}

TEST_F(KvTable, GrowsWithoutLosingAnything) {
  constexpr int kKeys = 20'000;
  for (int i = 0; i < kKeys; ++i) put("key" + std::to_string(i), std::to_string(i * 3), i % 7);
  put("long", std::string(1 << 20, 'x'));
  table.commit();
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(get("key" + std::to_string(i), 0, i % 7), std::to_string(i * 3));
  EXPECT_EQ(get("long").size(), 1u << 20);
  EXPECT_EQ(get("key1", 0, 2), "-");
}

TEST_F(KvTable, FullIsAnErrorAndLosesNothing) {
  Table small;
  ASSERT_EQ(small.create(256 << 10), Status::ok);
  const std::string value(2000, 'v');
  int fitted = 0;
  for (;; ++fitted) {
    texts.push_back("k" + std::to_string(fitted));
    if (small.put(name_of(texts.back()), {value.data(), 2000, 0, 0}) != Status::ok) break;
    ASSERT_LT(fitted, 200);
  }
  small.commit();
  EXPECT_GT(fitted, 20);
  for (int i = 0; i < fitted; ++i) {
    Value found;
    EXPECT_TRUE(small.view().find(name_of(texts[i]), &found));
    EXPECT_EQ(found.bytes, 2000u);
  }
  small.destroy();
}

TEST_F(KvTable, ReadersSeeWholeCommits) {
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  put("a", std::string(8, '\0'));
  put("b", std::string(8, '\0'));
  table.commit();
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&] {
      std::uint64_t last = 0;
      while (!stop) {
        const auto number = [&](const char* key) {
          Value value;
          std::uint64_t n = 0;
          if (!table.view().find(name_of(key), &value) || value.bytes != 8) return ++wrong, n;
          std::memcpy(&n, value.data, 8);
          return n;
        };
        const std::uint64_t a = number("a"), b = number("b");
        wrong += a < last || b < a;  // b is put with a, and looked for later
        last = a;
      }
    });
  }
  constexpr std::uint64_t kCommits = 3000;
  for (std::uint64_t i = 1; i <= kCommits; ++i) {
    Value value{&i, sizeof i, 0, 0};
    ASSERT_EQ(table.put(name_of("a"), value), Status::ok);
    ASSERT_EQ(table.put(name_of("b"), value), Status::ok);
    if (i % 4 == 0) put("other" + std::to_string(i), "x");  // the index grows meanwhile
    table.commit();
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(KvTable, NamesThatAreNone) {
  Name name;
  EXPECT_FALSE(name_make("", 0, "key", &name));
  EXPECT_FALSE(name_make("job", 0, "", &name));
  EXPECT_FALSE(name_make("job", 0, std::string(5000, 'k').c_str(), &name));
}

}  // namespace
