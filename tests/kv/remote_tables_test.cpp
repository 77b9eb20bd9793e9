// SPDX-License-Identifier: BSD-3-Clause
// Stores of a job on two nodes. The nodes are two directories here. The exchange between them is a
// third directory, with a file for each batch.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "../../bench/kv/crew.hpp"
#include "kv/store.hpp"

using namespace stretto;
using namespace stretto::kv;
using bench::Crew;
using bench::Shared;

namespace {

// A child reports a failed expectation by its exit status.
#define NEED(condition)                                          \
  if (!(condition)) {                                            \
    std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
    _exit(10);                                                   \
  }

constexpr unsigned kRanks = 4, kPerNode = 2, kNodes = kRanks / kPerNode;
constexpr std::uint64_t kBundles = std::uint64_t{1} << 63;  // bundles are numbered from here on
constexpr std::uint64_t kSecond = 1'000'000'000;

struct Counters {
  kv::Word at_fence[kRanks], at_least[kRanks], queries, cut, impatient, bundles_are_lost, answers_come_alone;
};

// Ranks 0 and 1 are on the first node, 2 and 3 on the second.
struct TwoNodes : testing::Test {
  void SetUp() override {
    ASSERT_NE(mkdtemp(path_), nullptr);
    for (const char* folder : {"/node0", "/node1", "/exchange"})
      std::filesystem::create_directory(std::string(path_) + folder);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  struct Rank {
    std::uint32_t number;
    TwoNodes* test;
    Store store;
    std::uint64_t came_along[kRanks] = {};  // batches that came with the answers to queries

    void put(Scope scope, const char* key, std::int64_t value) {
      NEED(store.put(scope, key, {&value, sizeof value, 1, 0}) == Status::ok);
    }
    void commit(Scope scope, const char* key, std::int64_t value) {
      put(scope, key, value);
      NEED(store.commit() == Status::ok);
    }
    Outcome get(std::uint32_t rank, const char* key, std::int64_t* value, std::uint64_t timeout_ns = 20 * kSecond,
                bool refresh = false) {
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
    // What a process can see without asking other nodes. -1: nothing.
    std::int64_t seen(std::uint32_t rank, const char* key) {
      std::int64_t value = -1;
      return get(rank, key, &value, 0) == Outcome::found ? value : -1;
    }
    void fence(bool collect = false) { NEED(store.fence(collect, 20 * kSecond) == Outcome::found); }
  };

  // `bytes` is, for each rank, the size of its table of what was sent and brought.
  bool run(const std::function<void(Rank&)>& body,
           const std::vector<std::size_t>& bytes = std::vector(kRanks, Store::kTableBytes)) {
    Crew crew;
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      crew.add([&, r] {
        Rank rank{r, this, {}, {}};
        const unsigned node = r / kPerNode;
        const std::string directory = path_ + std::string("/node") + std::to_string(node);
        const std::uint32_t here[] = {node * kPerNode, node * kPerNode + 1}, first[] = {0, 0, 2, 2};
        NEED(rank.store.open(directory.c_str(), "job", r, kPerNode) == Status::ok);
        NEED(rank.store.reach(directory.c_str(), {kRanks, here, kPerNode, first}, {&rank, send, ask, look, meet},
                              bytes[r]) == Status::ok);
        body(rank);
        rank.store.close();
      });
    }
    return crew.wait();
  }

  std::string file_of(std::uint32_t rank, std::uint64_t number) {
    return path_ + std::string("/exchange/") + std::to_string(rank) + "." + std::to_string(number);
  }
  static Status send(void* context, std::uint64_t number, const void* data, std::size_t bytes) {
    const Rank& rank = *static_cast<Rank*>(context);
    if (number >= kBundles && rank.test->counters_->bundles_are_lost.load_acquire() != 0) return Status::ok;
    const std::string file = rank.test->file_of(rank.number, number);
    std::ofstream(file + "~", std::ios::binary)
        .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    std::filesystem::rename(file + "~", file);
    return Status::ok;
  }
  static Outcome ask(void* context, std::uint32_t rank, std::uint64_t number, std::uint64_t, Fetched* fetched) {
    Rank& me = *static_cast<Rank*>(context);
    Counters& counters = *me.test->counters_;
    if (counters.cut.load_acquire() != 0) return Outcome::peer_gone;
    bench::add(counters.queries);
    std::uint64_t& came = me.came_along[rank];
    while (counters.answers_come_alone.load_acquire() == 0 && std::filesystem::exists(me.test->file_of(rank, came)))
      ++came;
    return fetch(me.test->file_of(rank, number), fetched);
  }
  static Outcome look(void* context, std::uint32_t rank, std::uint64_t number, Fetched* fetched) {
    const Rank& me = *static_cast<Rank*>(context);
    return number < me.came_along[rank] ? fetch(me.test->file_of(rank, number), fetched) : Outcome::not_found;
  }
  static Outcome fetch(const std::string& file, Fetched* fetched) {
    std::error_code error;
    fetched->bytes = std::filesystem::file_size(file, error);
    if (error) return Outcome::not_found;
    fetched->data = static_cast<char*>(std::malloc(fetched->bytes));
    std::ifstream(file, std::ios::binary).read(fetched->data, static_cast<std::streamsize>(fetched->bytes));
    return Outcome::found;
  }
  static Outcome meet(void* context, std::uint64_t) {
    const Rank& rank = *static_cast<Rank*>(context);
    Counters& counters = *rank.test->counters_;
    const std::uint64_t fence = counters.at_fence[rank.number].load_relaxed() + 1;
    counters.at_fence[rank.number].store_release(fence);
    if (counters.impatient.load_acquire() == rank.number + 1) return Outcome::timed_out;
    for (kv::Word& other : counters.at_fence) bench::wait_until_at_least(other, fence);
    return Outcome::found;
  }

  char path_[40] = "/tmp/stretto-kv-remote-XXXXXX";
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

// A get after a fence sees what was committed before the fence, whichever process has brought what,
// and when. Without a fence no process asks for anything twice.
TEST_F(TwoNodes, AFenceMakesWhatWasBroughtOld) {
  EXPECT_TRUE(run([&](Rank& me) {
    const std::uint32_t peer = me.number ^ 2;
    for (std::int64_t round = 1; round <= 30; ++round) {
      me.commit(Scope::global, "n", round);
      me.fence();
      if (round % 3 != me.number % 3) {
        for (std::uint32_t r = 0; r < kRanks; ++r) NEED(me.number_of(r, "n") == round);
      }
      me.fence();
      if (round % 3 != me.number % 3) NEED(me.seen(peer, "n") == round);
      me.fence();
    }
    NEED(me.number_of(peer, "n") == 30);
    me.fence();
    NEED(me.number_of(peer, "n") == 30);
    me.fence();
    const std::uint64_t before = counters_->queries.load_relaxed();
    me.fence();
    for (int again = 0; again < 100; ++again) NEED(me.seen(peer, "n") == 30);
    me.fence();
    NEED(counters_->queries.load_relaxed() == before);
  }));
}

// One query brings all batches, however many there are. Where an answer brings only what was asked
// for, each batch takes one query, and one more finds the end.
TEST_F(TwoNodes, OneQuestionBringsAllThatThereIs) {
  for (const bool alone : {false, true}) {
    EXPECT_TRUE(run([&](Rank& me) {
      counters_->answers_come_alone.store_release(alone);
      for (std::int64_t round = 0; round < 4; ++round) {
        if (me.number == 0) {
          for (std::int64_t i = 0; i < round; ++i) me.commit(Scope::global, "n", 10 * round + i);
          me.commit(Scope::global, "n", round);
        }
        me.fence();
        const std::uint64_t before = counters_->queries.load_relaxed();
        me.fence();
        if (me.number == 2) {
          NEED(me.number_of(0, "n") == round);
          const auto batches = static_cast<std::uint64_t>(round == 0 ? 2 : round + 1);  // the first batch is empty
          NEED(counters_->queries.load_relaxed() - before == (alone ? 1 + batches + 1 : 1));
        }
        me.fence();
      }
    }));
    std::filesystem::remove_all(path_ + std::string("/exchange"));
    std::filesystem::create_directory(path_ + std::string("/exchange"));
  }
}

TEST_F(TwoNodes, CollectedDataAreHereAndTravelledOnce) {
  EXPECT_TRUE(run([&](Rank& me) {
    for (std::int64_t round = 0; round < 10; ++round) {
      me.commit(Scope::global, "n", 100 * round + me.number);
      const std::uint64_t before = round == 0 ? 0 : counters_->queries.load_relaxed();
      me.fence(false);
      me.fence(true);
      for (std::uint32_t r = 0; r < kRanks; ++r) NEED(me.seen(r, "n") == 100 * round + r);
      const std::uint64_t asked = counters_->queries.load_relaxed();
      for (std::uint32_t r = 0; r < kRanks; ++r) NEED(me.number_of(r, "n") == 100 * round + r);
      me.fence(false);
      // Each node's bundle comes to the other node once.
      if (round != 0) NEED(asked - before <= kNodes);
      NEED(counters_->queries.load_relaxed() == kNodes * static_cast<std::uint64_t>(round + 1));
      me.fence(false);
    }
  }));
}

// Some ranks commit often between the fences, and some do not commit. Some values were brought
// already.
TEST_F(TwoNodes, BundlesGoOnWhereTheLastOnesEnded) {
  EXPECT_TRUE(run([&](Rank& me) {
    std::int64_t last[kRanks] = {-1, -1, -1, -1};
    for (std::int64_t round = 0; round < 20; ++round) {
      counters_->bundles_are_lost.store_release(round % 7 == 3);  // then each rank is asked
      for (std::uint32_t r = 0; r < kRanks; ++r) {
        for (std::int64_t i = 0; i < (round + r) % 4; ++i) {
          last[r] = 100 * round + 10 * r + i;
          if (r == me.number) me.commit(Scope::global, "n", last[r]);
        }
      }
      if (round % 5 == 2) {
        me.fence(false);
        if (last[me.number ^ 3] >= 0) NEED(me.number_of(me.number ^ 3, "n") == last[me.number ^ 3]);
      }
      me.fence(true);
      for (std::uint32_t r = 0; r < kRanks; ++r)
        NEED(me.seen(r, "n") == last[r] && (last[r] < 0 || me.number_of(r, "n") == last[r]));
      me.fence(false);
    }
  }));
}

// A bundle is made while its ranks go on. It has what they committed before they came to the fence.
// It may have what they commit meanwhile.
TEST_F(TwoNodes, RanksCommitWhileTheyCollect) {
  constexpr std::int64_t kCommits = 300, kRounds = 15;
  EXPECT_TRUE(run([&](Rank& me) {
    kv::Word committed;
    committed.store_relaxed(0);
    std::thread other([&] {
      for (std::int64_t i = 1; i <= kCommits; ++i) {
        me.put(Scope::global, "a", i);
        me.commit(Scope::global, "b", i);
        committed.store_release(static_cast<std::uint64_t>(i));
      }
    });
    for (std::int64_t round = 0; round <= kRounds; ++round) {
      if (round == kRounds) other.join();
      me.fence();
      counters_->at_least[me.number].store_release(committed.load_acquire());
      me.fence(true);
      for (std::uint32_t r = 0; r < kRanks; ++r) {
        const auto least = static_cast<std::int64_t>(counters_->at_least[r].load_acquire());
        const std::int64_t seen = me.seen(r, "a");
        NEED(seen >= least || least == 0);
        // "b" is read later. A process sees what it has put itself before it commits.
        NEED(me.seen(r, "b") >= seen || r == me.number);
      }
    }
  }));
}

TEST_F(TwoNodes, WhatARankCannotKeepForItsBundleIsAskedFor) {
  const std::string large(100'000, 'x');
  EXPECT_TRUE(run(
      [&](Rank& me) {
        for (std::int64_t round = 0; round < 10; ++round) {
          if (me.number == 1) {
            NEED(me.store.put(Scope::global, "large", {large.data(), static_cast<std::uint32_t>(large.size()), 1, 0}) ==
                 Status::ok);
          }
          me.commit(Scope::global, "n", round);
          me.fence(true);
          for (std::uint32_t r = 0; r < kRanks; ++r) NEED(me.seen(r, "n") == round);
          me.fence(false);
        }
      },
      {Store::kTableBytes, 512 << 10, Store::kTableBytes, Store::kTableBytes}));
}

// Each is a bundle of node 0, in place of what rank 0 has sent.
TEST_F(TwoNodes, NonsenseInABundleIsNotBelieved) {
  const auto bundle = [](const std::vector<std::pair<const char*, std::string>>& batches) {
    CommitBatch made;
    for (const auto& [key, data] : batches)
      EXPECT_TRUE(made.add(key, {data.data(), static_cast<std::uint32_t>(data.size()), 0, 0}));
    std::size_t bytes = 0;
    const char* const data = made.seal(&bytes);
    return std::string(data, bytes);
  };
  const std::string wrong = bundle({{"n", std::string(8, 'x')}});
  const std::vector<std::string> bundles = {
      "this is no bundle",
      bundle({{"0.0", "this is no batch"}, {"0.1", ""}}),
      bundle({{"0.7", ""}, {"1.0", ""}}),     // a batch number that no rank has, and one that is too small
      bundle({{"2.0", wrong}, {"2.1", ""}}),  // a rank of another node
      bundle({{"4294967296.0", wrong}, {"4294967296.1", ""}}),  // no rank
      bundle({{"0", wrong}, {".", ""}, {"0.1.1", ""}, {"x", wrong}}),
      bundle({{"0.99", wrong}, {"0.100", ""}}),  // with a gap
  };
  EXPECT_TRUE(run([&](Rank& me) {
    counters_->bundles_are_lost.store_release(1);
    for (std::size_t i = 0; i < bundles.size(); ++i) {
      const std::uint64_t number = kBundles + 1 + 2 * i;  // every second fence collects
      if (me.number == 0)
        std::ofstream(file_of(0, number), std::ios::binary)
            .write(bundles[i].data(), static_cast<std::streamsize>(bundles[i].size()));
      me.commit(Scope::global, "n", static_cast<std::int64_t>(i));
      me.fence(true);
      for (std::uint32_t r = 0; r < kRanks; ++r) NEED(me.seen(r, "n") == static_cast<std::int64_t>(i));
      me.fence(false);
    }
  }));
}

// Rank 2 is the first of its node. It gives up collecting fences for which rank 0 is late. All
// ranks stay in step. What rank 2 commits afterwards comes with the next bundle.
TEST_F(TwoNodes, WhoGivesUpACollectingFenceStaysInStep) {
  EXPECT_TRUE(run([&](Rank& me) {
    const std::uint64_t patience[] = {1, kSecond / 20};
    for (std::int64_t round = 0; round < 2; ++round) {
      me.commit(Scope::global, "n", 2 * round);
      me.fence(true);
      const std::string given_up = file_of(99, static_cast<std::uint64_t>(round));
      if (me.number == 2) {
        counters_->impatient.store_release(3);
        NEED(me.store.fence(true, patience[round]) == Outcome::timed_out);
        counters_->impatient.store_release(0);
        std::ofstream(given_up) << "now";
      } else {
        while (me.number == 0 && !std::filesystem::exists(given_up)) usleep(1000);
        NEED(me.store.fence(true, 20 * kSecond) == Outcome::found);
      }
      me.commit(Scope::global, "n", 2 * round + 1);
      me.fence(true);
      for (std::uint32_t r = 0; r < kRanks; ++r) NEED(me.seen(r, "n") == 2 * round + 1);
      me.fence();
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
    if (me.number >= 2)
      NEED(me.get(0, "never", &value, kSecond / 10) == Outcome::timed_out && sys::now_ns() - begin < 2 * kSecond);
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

// All values of a commit appear at once, also to a process that reads while another one brings
// them.
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
        NEED(second >= first);  // "b" is read later
        if (!brings) sys::thread_yield();
      }
    }
    me.fence();
  }));
}

// Rank 2 gives up a fence for which rank 0 is late. What rank 2 then brings must not count as what
// was there when the fence ended.
TEST_F(TwoNodes, WhoGivesUpAFenceVouchesForNothing) {
  EXPECT_TRUE(run([&](Rank& me) {
    me.commit(Scope::global, "n", 1);
    me.fence();
    if (me.number == 2) {
      counters_->impatient.store_release(3);
      NEED(me.store.fence(false, 1) == Outcome::timed_out && me.number_of(0, "n") == 1);
      counters_->impatient.store_release(0);
      std::ofstream(file_of(99, 0)) << "now";
      while (me.number_of(0, "n") != 2) sys::thread_yield();  // asks each time
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
    me.fence();  // all have brought their share
    if (me.number == 0) counters_->cut.store_release(1);
    me.fence();
    std::int64_t value = 0;
    const std::uint32_t peer = me.number ^ 2;
    NEED(me.get(peer, "n", &value) == Outcome::peer_gone);
    NEED(me.get(me.number ^ 1, "n", &value) == Outcome::found && value == 7);  // this node needs no exchange
    NEED(me.seen(peer, "n") == 7);
    const bool brings = me.number % kPerNode == 0;  // from the only other node
    NEED(me.store.fence(true, 20 * kSecond) == (brings ? Outcome::peer_gone : Outcome::found));
  }));
}

TEST_F(TwoNodes, NonsenseFromElsewhereIsNotBelieved) {
  EXPECT_TRUE(run([&](Rank& me) {
    if (me.number == 0) std::ofstream(file_of(0, 1)) << "this is no batch";
    me.fence();
    std::int64_t value = 0;
    if (me.number >= 2) NEED(me.get(0, "n", &value) == Outcome::failed && me.seen(0, "n") == -1);
    me.fence();
  }));
}

TEST_F(TwoNodes, WhatDoesNotFitIsAnError) {
  EXPECT_TRUE(run(
      [&](Rank& me) {
        const std::string large(300'000, 'x');
        if (me.number == 0) {
          for (int i = 0; i < 2; ++i) {
            const std::string key = "large" + std::to_string(i);
            NEED(me.store.put(Scope::remote, key.c_str(),
                              {large.data(), static_cast<std::uint32_t>(large.size()), 1, 0}) == Status::ok);
          }
          me.commit(Scope::remote, "n", 1);
        }
        if (me.number == 1) {  // what other ranks keep does not concern this rank
          for (int i = 0; i < 2; ++i) me.commit(Scope::global, ("small" + std::to_string(i)).c_str(), 2);
        }
        me.fence();
        std::int64_t value = 0;
        if (me.number == 2) {
          for (int fill = 0; fill < 4; ++fill) (void)me.get(1, "small0", &value, kSecond / 100, true);
          NEED(me.get(0, "n", &value) == Outcome::no_memory && me.seen(0, "n") == -1 && me.seen(1, "small1") == 2);
        }
        me.fence();
      },
      std::vector<std::size_t>(kRanks, 512 << 10)));
}

}  // namespace
