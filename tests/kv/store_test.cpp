// SPDX-License-Identifier: BSD-3-Clause
// Tests the store through its C interface, with processes as ranks.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include "../../bench/kv/crew.hpp"
#include "stretto/kv.h"

using stretto::kv::bench::Crew;

namespace {

// The directory is made before the first test, and so before there are children. It is removed
// after the last test.
struct Directory : testing::Environment {
  void SetUp() override { ASSERT_NE(mkdtemp(path), nullptr); }
  void TearDown() override { EXPECT_EQ(rmdir(path), 0) << "something is left in " << path; }
  char path[32] = "/tmp/stretto-kv-test-XXXXXX";
};
const auto* const environment = static_cast<Directory*>(testing::AddGlobalTestEnvironment(new Directory));
std::string directory() { return environment->path; }

stretto_kv_value number(std::int64_t n) {
  stretto_kv_value value{};
  value.type = STRETTO_KV_INT64;
  value.data.int64 = n;
  return value;
}

stretto_kv_value text(const char* words) {
  stretto_kv_value value{};
  value.type = STRETTO_KV_STRING;
  value.data.string = const_cast<char*>(words);
  return value;
}

// A child reports a failed expectation by its exit status.
#define NEED(condition)                                          \
  if (!(condition)) {                                            \
    std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
    _exit(10);                                                   \
  }

struct Job {
  explicit Job(std::string job) : nspace(std::move(job)) {}
  ~Job() { stretto_kv_remove(directory().c_str(), nspace.c_str()); }
  stretto_kv* open(std::uint32_t rank, unsigned ranks) const {
    stretto_kv* kv = nullptr;
    NEED(stretto_kv_open(directory().c_str(), nspace.c_str(), rank, ranks, &kv) == STRETTO_KV_SUCCESS);
    return kv;
  }
  // Runs `body(kv, rank)` in a process for each rank.
  bool run(unsigned ranks, const std::function<void(stretto_kv*, std::uint32_t)>& body) const {
    Crew crew;
    for (unsigned r = 0; r < ranks; ++r) {
      crew.add([&, r] {
        stretto_kv* const kv = open(r, ranks);
        body(kv, r);
        stretto_kv_close(kv);
      });
    }
    return crew.wait();
  }
  std::string nspace;
};

constexpr stretto_kv_options kNow{1, 0, 0, 0};

std::int64_t get_number(stretto_kv* kv, std::uint32_t rank, const char* key,
                        const stretto_kv_options* options = nullptr) {
  stretto_kv_value value;
  NEED(stretto_kv_get(kv, nullptr, rank, key, options, &value) == STRETTO_KV_SUCCESS);
  NEED(value.type == STRETTO_KV_INT64);
  return value.data.int64;
}

int look(stretto_kv* kv, std::uint32_t rank, const char* key, stretto_kv_options options = kNow) {
  stretto_kv_value value;
  const int status = stretto_kv_get(kv, nullptr, rank, key, &options, &value);
  if (status == STRETTO_KV_SUCCESS) stretto_kv_value_free(&value);
  return status;
}

TEST(KvStore, PutCommitFenceGet) {
  EXPECT_TRUE(Job("fence/1").run(4, [](stretto_kv* kv, std::uint32_t rank) {
    for (std::int64_t round = 0; round < 50; ++round) {
      const auto mine = number(round * 100 + rank);
      NEED(stretto_kv_put(kv, STRETTO_KV_GLOBAL, "n", &mine) == STRETTO_KV_SUCCESS);
      NEED(stretto_kv_commit(kv) == STRETTO_KV_SUCCESS);
      NEED(stretto_kv_fence(kv, 0, 30) == STRETTO_KV_SUCCESS);
      for (std::uint32_t r = 0; r < 4; ++r) NEED(get_number(kv, r, "n", &kNow) == round * 100 + r);
      NEED(stretto_kv_fence(kv, 0, 30) == STRETTO_KV_SUCCESS);
    }
  }));
}

TEST(KvStore, EveryTypeComesBackAsItWas) {
  EXPECT_TRUE(Job("types").run(2, [](stretto_kv* kv, std::uint32_t rank) {
    const std::string large(3'000'000, 'L');
    if (rank == 0) {
      stretto_kv_value flag{}, real{}, bytes{}, unsigned_{};
      flag.type = STRETTO_KV_BOOL, flag.data.flag = 1;
      real.type = STRETTO_KV_DOUBLE, real.data.real = 0.1;
      unsigned_.type = STRETTO_KV_UINT64, unsigned_.data.uint64 = ~0ull;
      bytes.type = STRETTO_KV_BYTES, bytes.bytes = 3, bytes.data.bytes = const_cast<char*>("a\0b");
      const auto string = text(large.c_str());
      NEED(stretto_kv_put(kv, STRETTO_KV_LOCAL, "flag", &flag) == 0 &&
           stretto_kv_put(kv, STRETTO_KV_LOCAL, "real", &real) == 0);
      NEED(stretto_kv_put(kv, STRETTO_KV_LOCAL, "bytes", &bytes) == 0 &&
           stretto_kv_put(kv, STRETTO_KV_LOCAL, "string", &string) == 0);
      NEED(stretto_kv_put(kv, STRETTO_KV_LOCAL, "unsigned", &unsigned_) == 0 && stretto_kv_commit(kv) == 0);
    }
    NEED(stretto_kv_fence(kv, 0, 30) == 0);
    const auto get = [&](const char* key, int type) {
      stretto_kv_value value;
      NEED(stretto_kv_get(kv, nullptr, 0, key, &kNow, &value) == 0 && static_cast<int>(value.type) == type);
      return value;
    };
    NEED(get("flag", STRETTO_KV_BOOL).data.flag == 1 && get("real", STRETTO_KV_DOUBLE).data.real == 0.1);
    NEED(get("unsigned", STRETTO_KV_UINT64).data.uint64 == ~0ull);
    auto bytes = get("bytes", STRETTO_KV_BYTES), string = get("string", STRETTO_KV_STRING);
    NEED(bytes.bytes == 3 && std::memcmp(bytes.data.bytes, "a\0b", 3) == 0 && string.data.string == large);
    stretto_kv_value_free(&bytes);
    stretto_kv_value_free(&string);
    NEED(stretto_kv_fence(kv, 0, 30) == 0);
  }));
}

TEST(KvStore, ScopesAndCommits) {
  EXPECT_TRUE(Job("scopes").run(2, [](stretto_kv* kv, std::uint32_t rank) {
    const auto one = number(1);
    if (rank == 0) {
      NEED(stretto_kv_put(kv, STRETTO_KV_REMOTE, "remote", &one) == 0 &&
           stretto_kv_put(kv, STRETTO_KV_LOCAL, "local", &one) == 0);
      NEED(stretto_kv_commit(kv) == 0 && stretto_kv_put(kv, STRETTO_KV_LOCAL, "later", &one) == 0);
      NEED(look(kv, 0, "remote") == 0 && look(kv, 0, "later") == 0);  // its own values, of any scope, at once
    }
    NEED(stretto_kv_fence(kv, 0, 30) == 0);
    if (rank == 1) {
      NEED(look(kv, 0, "local") == 0);
      NEED(look(kv, 0, "remote") == STRETTO_KV_NOT_FOUND && look(kv, 0, "later") == STRETTO_KV_NOT_FOUND);
      NEED(look(kv, 0, "never", {0, 0, 0.05, 0}) == STRETTO_KV_TIMEOUT &&
           look(kv, 0, "never", {0, 1, 0, 0}) == STRETTO_KV_NOT_FOUND);
    }
    NEED(stretto_kv_fence(kv, 0, 30) == 0);
    NEED(stretto_kv_put(kv, STRETTO_KV_LOCAL, "pmix.key", &one) == STRETTO_KV_BAD_PARAM);
  }));
}

TEST(KvStore, AGetWaitsForItsKey) {
  EXPECT_TRUE(Job("modex").run(2, [](stretto_kv* kv, std::uint32_t rank) {
    if (rank == 0) {
      usleep(20'000);
      const auto value = number(42);
      NEED(stretto_kv_put(kv, STRETTO_KV_GLOBAL, "late", &value) == 0 && stretto_kv_commit(kv) == 0);
    }
    NEED(get_number(kv, 0, "late") == 42);
    NEED(stretto_kv_fence(kv, 0, 30) == 0);
  }));
}

TEST(KvStore, TheAgentsJobDataAreForAll) {
  const Job job("agent");
  stretto_kv* const agent = job.open(STRETTO_KV_WILDCARD, 3);
  const auto size = number(3);
  ASSERT_EQ(stretto_kv_put(agent, STRETTO_KV_GLOBAL, "size", &size), 0);
  ASSERT_EQ(stretto_kv_commit(agent), 0);
  EXPECT_TRUE(job.run(3, [](stretto_kv* kv, std::uint32_t) {
    NEED(get_number(kv, STRETTO_KV_WILDCARD, "size", &kNow) == 3);
    NEED(stretto_kv_fence(kv, 0, 30) == 0);  // the agent is none of the three
  }));
  stretto_kv_close(agent);
}

// The agent or a rank is killed. Calls that need it end with an error and do not hang. Processes
// that have seen its committed values may still read them.
TEST(KvStore, TheDeadAreMissed) {
  const Job job("death");
  Crew crew;
  const pid_t victim = crew.add([&] {
    stretto_kv* const kv = job.open(0, 2);
    const auto value = number(7);
    NEED(stretto_kv_put(kv, STRETTO_KV_GLOBAL, "n", &value) == 0 && stretto_kv_commit(kv) == 0);
    for (;;) pause();
  });
  stretto_kv* const kv = job.open(1, 2);
  EXPECT_EQ(get_number(kv, 0, "n"), 7);
  kill(victim, SIGKILL);
  EXPECT_EQ(get_number(kv, 0, "n", &kNow), 7);
  const auto begin = stretto::sys::now_ns();
  EXPECT_EQ(look(kv, 0, "never", {0, 0, 20, 0}), STRETTO_KV_PEER_GONE);
  EXPECT_EQ(stretto_kv_fence(kv, 0, 20), STRETTO_KV_PEER_GONE);
  EXPECT_LT(stretto::sys::now_ns() - begin, 5'000'000'000u);
  stretto_kv_close(kv);
}

// A rank that closes its store counts as dead.
TEST(KvStore, ARankThatHasClosedItsStoreIsMissed) {
  const Job job("closed");
  stretto_kv* const kv = job.open(1, 2);
  stretto_kv_close(job.open(0, 2));
  EXPECT_EQ(look(kv, 0, "never", {0, 0, 3, 0}), STRETTO_KV_PEER_GONE);
  EXPECT_EQ(stretto_kv_fence(kv, 0, 3), STRETTO_KV_PEER_GONE);
  stretto_kv_close(kv);
}

TEST(KvStore, SeatsThatWereLeftAreTakenAgain) {
  const Job job("guests");
  for (unsigned i = 0; i < 1200; ++i) stretto_kv_close(job.open(0, 1));
}

// Entries that claim to be a member. They lead to a file that could shrink, to no file, or to a
// memory file that is no table.
TEST(KvStore, OneWhoWritesNonsenseIsNotBelieved) {
  const Job job("nonsense");
  stretto_kv* const kv = job.open(0, 1);
  const auto value = number(1);
  ASSERT_EQ(stretto_kv_put(kv, STRETTO_KV_GLOBAL, "n", &value), 0);
  ASSERT_EQ(stretto_kv_commit(kv), 0);
  const std::string path =
      directory() + "/" + std::filesystem::directory_iterator(directory())->path().filename().string();
  const int file = open(path.c_str(), O_RDWR);
  ASSERT_GE(file, 0);
  const auto bytes = std::filesystem::file_size(path);
  auto* const words = static_cast<std::uint64_t*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  int memory = -1;
  ASSERT_EQ(stretto::sys::memfd_open("nonsense", 1 << 16, &memory), 0);
  words[1] = ~std::uint64_t{0};  // the number of entries in use
  std::uint64_t random = 1;
  for (std::size_t i = 48; i < bytes / 8; ++i) words[i] = random = random * 0x9e3779b97f4a7c15u + 1;
  const std::uint64_t me = words[16];
  const std::uint64_t descriptors[] = {static_cast<std::uint64_t>(file), static_cast<std::uint64_t>(memory), 12345,
                                       ~std::uint64_t{0}};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint64_t entry[] = {me, 99, 1, descriptors[i], 1 << 16, i * 8};
    std::memcpy(words + 48 + 32 * i, entry, sizeof entry);
  }
  EXPECT_EQ(look(kv, 1, "n"), STRETTO_KV_NOT_FOUND);
  EXPECT_EQ(get_number(kv, 0, "n"), 1);
  stretto_kv* late = nullptr;
  // It takes the entry of a dead process.
  EXPECT_EQ(stretto_kv_open(directory().c_str(), job.nspace.c_str(), 5, 1, &late), STRETTO_KV_SUCCESS);
  stretto_kv_close(late);
  stretto_kv_close(kv);
  munmap(words, bytes);
  close(file);
  close(memory);
}

}  // namespace
