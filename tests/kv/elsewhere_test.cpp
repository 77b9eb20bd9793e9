// SPDX-License-Identifier: BSD-3-Clause
// Stores of a job on two nodes, which are two directories here; the road between them is a third one, with a file for each parcel.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "../../bench/kv/crew.hpp"
#include "kv/store.hpp"

using namespace stretto;
using namespace stretto::kv;
using bench::Crew;
using bench::Shared;

namespace {

// In a child a failed expectation is an exit status.
#define NEED(condition) \
  if (!(condition)) { std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); _exit(10); }

constexpr unsigned kRanks = 4, kPerNode = 2;
constexpr std::uint64_t kSecond = 1'000'000'000;

struct Counters {
  kv::Word at_fence[kRanks], fetches, cut, impatient;
};

// Ranks 0 and 1 are on the first node, 2 and 3 on the second.
struct TwoNodes : testing::Test {
  void SetUp() override {
    ASSERT_NE(mkdtemp(path_), nullptr);
    for (const char* folder : {"/node0", "/node1", "/road"}) std::filesystem::create_directory(std::string(path_) + folder);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  struct Rank {
    std::uint32_t number;
    TwoNodes* test;
    Store store;

    void put(Scope scope, const char* key, std::int64_t value) {
      NEED(store.put(scope, key, {&value, sizeof value, 1, 0}) == Status::ok);
    }
    void commit(Scope scope, const char* key, std::int64_t value) {
      put(scope, key, value);
      NEED(store.commit() == Status::ok);
    }
    Outcome get(std::uint32_t rank, const char* key, std::int64_t* value, std::uint64_t timeout_ns = 20 * kSecond, bool refresh = false) {
      Name name;
      NEED(name_make("job", rank, key, &name));
      return store.get(name, timeout_ns, refresh, [&](const Value& found) {
        NEED(found.bytes == sizeof *value);
        std::memcpy(value, found.data, sizeof *value);
      });
    }
    std::int64_t number_of(std::uint32_t rank, const char* key, bool refresh = false) {
      std::int64_t value = -1;
      NEED(get(rank, key, &value, 20 * kSecond, refresh) == Outcome::found);
      return value;
    }
    // What can be seen without asking other nodes; -1: nothing.
    std::int64_t seen(std::uint32_t rank, const char* key) {
      std::int64_t value = -1;
      return get(rank, key, &value, 0) == Outcome::found ? value : -1;
    }
    void fence(bool collect = false) { NEED(store.fence(collect, 20 * kSecond) == Outcome::found); }
  };

  bool run(const std::function<void(Rank&)>& body, std::size_t brought_bytes = Store::kTableBytes) {
    Crew crew;
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      crew.add([&, r] {
        Rank rank{r, this, {}};
        const unsigned node = r / kPerNode;
        const std::string directory = path_ + std::string("/node") + std::to_string(node);
        const std::uint32_t here[] = {node * kPerNode, node * kPerNode + 1};
        NEED(rank.store.open(directory.c_str(), "job", r, kPerNode) == Status::ok);
        NEED(rank.store.reach(directory.c_str(), {kRanks, here, kPerNode}, {&rank, send, fetch, meet}, brought_bytes) == Status::ok);
        body(rank);
        rank.store.close();
      });
    }
    return crew.wait();
  }

  std::string file_of(std::uint32_t rank, std::uint64_t number) {
    return path_ + std::string("/road/") + std::to_string(rank) + "." + std::to_string(number);
  }
  static Status send(void* context, std::uint64_t number, const void* data, std::size_t bytes) {
    const Rank& rank = *static_cast<Rank*>(context);
    const std::string file = rank.test->file_of(rank.number, number);
    std::ofstream(file + "~", std::ios::binary).write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    std::filesystem::rename(file + "~", file);
    return Status::ok;
  }
  static Outcome fetch(void* context, std::uint32_t rank, std::uint64_t number, std::uint64_t, Fetched* fetched) {
    TwoNodes& test = *static_cast<Rank*>(context)->test;
    if (test.counters_->cut.load_acquire() != 0) return Outcome::peer_gone;
    bench::add(test.counters_->fetches);
    const std::string file = test.file_of(rank, number);
    std::error_code error;
    fetched->bytes = std::filesystem::file_size(file, error);
    if (error) return Outcome::not_found;
    fetched->data = static_cast<char*>(std::malloc(fetched->bytes));
    std::ifstream(file, std::ios::binary).read(fetched->data, static_cast<std::streamsize>(fetched->bytes));
    return Outcome::found;
  }
  static Outcome meet(void* context, bool, std::uint64_t) {
    const Rank& rank = *static_cast<Rank*>(context);
    Counters& counters = *rank.test->counters_;
    const std::uint64_t fence = counters.at_fence[rank.number].load_relaxed() + 1;
    counters.at_fence[rank.number].store_release(fence);
    if (counters.impatient.load_acquire() == rank.number + 1) return Outcome::timed_out;
    for (kv::Word& other : counters.at_fence) bench::wait_until_at_least(other, fence);
    return Outcome::found;
  }

  char path_[40] = "/tmp/stretto-kv-elsewhere-XXXXXX";
  Shared<Counters> counters_;
};

TEST_F(TwoNodes, ScopesAreKept) {
  EXPECT_TRUE(run([](Rank& me) {
    me.put(Scope::local, "local", 10 + me.number);
    me.put(Scope::remote, "remote", 20 + me.number);
    me.commit(Scope::global, "global", 30 + me.number);
    me.put(Scope::global, "later", 1);  // not committed
    me.fence();
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      const bool here = r / kPerNode == me.number / kPerNode;
      std::int64_t value = 0;
      NEED(me.number_of(r, "global") == 30 + r);
      if (r == me.number) {
        NEED(me.number_of(r, "local") == 10 + r && me.number_of(r, "remote") == 20 + r);
      } else {
        NEED(me.get(r, "local", &value, kSecond / 20) == (here ? Outcome::found : Outcome::timed_out));
        NEED(me.get(r, "remote", &value, kSecond / 20) == (here ? Outcome::timed_out : Outcome::found));
        NEED(me.seen(r, "later") == -1);
      }
    }
    me.fence();
  }));
}

// A get after a fence sees what was committed before it, whoever has brought what when; without a fence nothing is asked for twice.
TEST_F(TwoNodes, AFenceMakesWhatWasBroughtOld) {
  EXPECT_TRUE(run([&](Rank& me) {
    const std::uint32_t peer = me.number ^ 2;
    for (std::int64_t round = 1; round <= 30; ++round) {
      me.commit(Scope::global, "n", round);
      me.fence();
      if (round % 3 != me.number % 3) {
        for (std::uint32_t r = 0; r < kRanks; ++r) NEED(me.number_of(r, "n") == round);
      }
      const std::uint64_t before = counters_->fetches.load_relaxed();
      me.fence();
      if (round % 3 != me.number % 3) NEED(me.seen(peer, "n") == round);
      NEED(counters_->fetches.load_relaxed() >= before);
      me.fence();
    }
    NEED(me.number_of(peer, "n") == 30);
    me.fence();
    NEED(me.number_of(peer, "n") == 30);
    me.fence();
    const std::uint64_t before = counters_->fetches.load_relaxed();
    me.fence();
    for (int again = 0; again < 100; ++again) NEED(me.seen(peer, "n") == 30);
    me.fence();
    NEED(counters_->fetches.load_relaxed() == before);
  }));
}

TEST_F(TwoNodes, CollectedDataAreHereAndTravelledOnce) {
  EXPECT_TRUE(run([&](Rank& me) {
    for (std::int64_t round = 0; round < 10; ++round) {
      me.commit(Scope::global, "n", 100 * round + me.number);
      const std::uint64_t before = round == 0 ? 0 : counters_->fetches.load_relaxed();
      me.fence(false);
      me.fence(true);
      for (std::uint32_t r = 0; r < kRanks; ++r) NEED(me.seen(r, "n") == 100 * round + r);
      const std::uint64_t fetched = counters_->fetches.load_relaxed();
      for (std::uint32_t r = 0; r < kRanks; ++r) NEED(me.number_of(r, "n") == 100 * round + r);
      me.fence(false);
      // Of each rank the new parcel and the question for the next, once on the other node; the first time also that it is there.
      if (round != 0) NEED(fetched - before <= kRanks * 2);
      NEED(counters_->fetches.load_relaxed() <= kRanks * 2 * static_cast<std::uint64_t>(round + 1) + kRanks);
      me.fence(false);
    }
  }));
}

TEST_F(TwoNodes, AGetWaitsAndARefreshAsks) {
  EXPECT_TRUE(run([](Rank& me) {
    if (me.number == 0) {
      usleep(30'000);
      me.commit(Scope::global, "late", 1);
    }
    NEED(me.number_of(0, "late") == 1);
    std::int64_t value = 0;
    const std::uint64_t begin = sys::now_ns();
    if (me.number >= 2) NEED(me.get(0, "never", &value, kSecond / 10) == Outcome::timed_out && sys::now_ns() - begin < 2 * kSecond);
    me.fence();
    NEED(me.number_of(0, "late") == 1);
    me.fence();
    NEED(me.number_of(0, "late") == 1);
    me.fence();
    if (me.number == 0) {
      me.commit(Scope::global, "late", 2);
      std::ofstream(me.test->file_of(99, 0)) << "done";
    } else {
      while (!std::filesystem::exists(me.test->file_of(99, 0))) usleep(1000);
      if (me.number >= 2) NEED(me.number_of(0, "late", true) == 2);
    }
    me.fence();
  }));
}

// All values of a commit at once, also for those who read what another process is bringing at that moment.
TEST_F(TwoNodes, CommitsArriveWhole) {
  constexpr std::int64_t kCommits = 300;
  EXPECT_TRUE(run([&](Rank& me) {
    if (me.number == 0) {
      for (std::int64_t i = 1; i <= kCommits; ++i) {
        me.put(Scope::global, "a", i);
        for (int more = 0; more < 20; ++more) me.put(Scope::global, ("more" + std::to_string(more)).c_str(), i);
        me.commit(Scope::global, "b", i);
      }
    } else if (me.number >= 2) {
      for (std::int64_t first = 0; first < kCommits;) {
        const bool brings = me.number == 2;
        first = brings ? me.number_of(0, "a", true) : me.seen(0, "a");
        const std::int64_t second = me.seen(0, "b");
        NEED(second >= first);  // read later
        if (!brings) sys::thread_yield();
      }
    }
    me.fence();
  }));
}

// Rank 2 gives up a fence that rank 0 is late for: what it brings then must not pass for what was there when the fence ended.
TEST_F(TwoNodes, WhoGivesUpAFenceVouchesForNothing) {
  EXPECT_TRUE(run([&](Rank& me) {
    me.commit(Scope::global, "n", 1);
    me.fence();
    if (me.number == 2) {
      counters_->impatient.store_release(3);
      NEED(me.store.fence(false, 1) == Outcome::timed_out && me.number_of(0, "n") == 1);
      counters_->impatient.store_release(0);
      std::ofstream(file_of(99, 0)) << "now";
      while (me.number_of(0, "n") != 2) sys::thread_yield();  // asks, each time
    } else {
      while (me.number == 0 && !std::filesystem::exists(file_of(99, 0))) usleep(1000);
      if (me.number == 0) me.commit(Scope::global, "n", 2);
      me.fence();
      NEED(me.number_of(0, "n") == 2);
    }
    me.fence();
    NEED(me.number_of(0, "n") == 2);
    me.fence();
  }));
}

TEST_F(TwoNodes, AWayThatIsCutIsAnError) {
  EXPECT_TRUE(run([&](Rank& me) {
    me.commit(Scope::global, "n", 7);
    me.fence(true);
    me.fence();  // all have brought theirs
    if (me.number == 0) counters_->cut.store_release(1);
    me.fence();
    std::int64_t value = 0;
    const std::uint32_t peer = me.number ^ 2;
    NEED(me.get(peer, "n", &value) == Outcome::peer_gone);
    NEED(me.get(me.number ^ 1, "n", &value) == Outcome::found && value == 7);  // this node needs no road
    NEED(me.seen(peer, "n") == 7);
    NEED(me.store.fence(true, 20 * kSecond) == Outcome::peer_gone);
  }));
}

TEST_F(TwoNodes, NonsenseFromElsewhereIsNotBelieved) {
  EXPECT_TRUE(run([&](Rank& me) {
    if (me.number == 0) std::ofstream(file_of(0, 1)) << "this is no parcel";
    me.fence();
    std::int64_t value = 0;
    if (me.number >= 2) NEED(me.get(0, "n", &value) == Outcome::failed && me.seen(0, "n") == -1);
    me.fence();
  }));
}

TEST_F(TwoNodes, WhatDoesNotFitIsAnError) {
  EXPECT_TRUE(run([&](Rank& me) {
    const std::string large(300'000, 'x');
    if (me.number == 0) {
      for (int i = 0; i < 2; ++i) {
        const std::string key = "large" + std::to_string(i);
        NEED(me.store.put(Scope::remote, key.c_str(), {large.data(), static_cast<std::uint32_t>(large.size()), 1, 0}) == Status::ok);
      }
      me.commit(Scope::remote, "n", 1);
    }
    if (me.number == 1) {  // what others hold is no concern of theirs
      for (int i = 0; i < 2; ++i) me.commit(Scope::global, ("small" + std::to_string(i)).c_str(), 2);
    }
    me.fence();
    std::int64_t value = 0;
    if (me.number == 2) {
      for (int fill = 0; fill < 4; ++fill) (void)me.get(1, "small0", &value, kSecond / 100, true);
      NEED(me.get(0, "n", &value) == Outcome::no_memory && me.seen(0, "n") == -1 && me.seen(1, "small1") == 2);
    }
    me.fence();
  }, 512 << 10));
}

}  // namespace
