// SPDX-License-Identifier: BSD-3-Clause
// Allgather and Alltoall by rails, Gather by tiers, in jobs of few and many ranks and on
// fabricated placements.
#include <optional>

#include "threads/moving_calls.hpp"
#include "threads/reduction_calls.hpp"

namespace stretto::test {
namespace {

constexpr const char* kByGroups = "allgather: shm:rails\nalltoall: shm:rails\ngather: shm:tiers\n";
constexpr const char* kStraight = "allgather: shm:boards\nalltoall: shm:channels\ngather: shm:channels\n";
constexpr std::int32_t kElementBytes = 12;  // of moving::layout_of

// What all ranks know of a call. It is derived from the seed alone.
struct Parts {
  std::uint64_t seed;
  Collective collective;
  int root;
  bool in_place;
  std::int32_t count;
  int sleeper;
  std::vector<unsigned> layouts;      // by rank
  std::vector<std::int32_t> surplus;  // what a rank has room for beyond that

  Parts(std::uint64_t s, int ranks) : seed(s) {
    std::mt19937_64 random(s);
    const Collective all[] = {Collective::allgather, Collective::alltoall, Collective::gather};
    collective = all[random() % std::size(all)];
    root = static_cast<int>(random() % static_cast<unsigned>(ranks));
    in_place = random() % 3 == 0;
    const std::int32_t counts[] = {0, 1, 2, 7, 43, 90, 400};
    count = counts[random() % (ranks > 17 ? 5 : std::size(counts))];
    sleeper = random() % 4 == 0 ? static_cast<int>(random() % static_cast<unsigned>(ranks)) : -1;
    for (int r = 0; r < ranks; ++r) {
      layouts.push_back(static_cast<unsigned>(random() % 4));
      surplus.push_back(!in_place && random() % 4 == 0 ? static_cast<std::int32_t>(random() % 5) : 0);
    }
  }
  // Whether a rank sends others different parts.
  [[nodiscard]] bool to_each() const { return collective == Collective::alltoall; }
  [[nodiscard]] bool has_root() const { return collective == Collective::gather; }
  [[nodiscard]] bool receives(int rank) const { return !has_root() || rank == root; }
};

class Rank {
 public:
  Rank(Comm& comm, const Parts& parts)
      : comm_(comm),
        p_(parts),
        self_(engine::comm_rank(comm)),
        ranks_(engine::comm_size(comm)),
        layout_(moving::layout_of(parts.layouts[static_cast<std::size_t>(self_)])) {}

  void play() {
    if (p_.sleeper == self_) std::this_thread::sleep_for(std::chrono::microseconds(p_.seed % 300));
    EXPECT_EQ(attempt(p_.count, true), Status::ok) << "seed " << p_.seed;
    check();
  }
  // What has come is what was sent.
  void check() {
    for (int r = 0; r < ranks_ && p_.receives(self_); ++r)
      received_->check(r, bytes(), p_.seed, r, p_.to_each() ? self_ : 0);
    received_->check_rest(p_.seed);
  }
  // As a rank that gives this count, or whose arguments are wrong.
  Status attempt(std::int32_t count, bool good) {
    const int blocks = p_.to_each() ? ranks_ : 1, rooms = p_.receives(self_) ? ranks_ : 1;
    const bool in_place = p_.in_place && p_.receives(self_);
    const auto spread = [&](std::int32_t each, int of) {
      std::vector<std::int32_t> displs;
      for (int b = 0; b < of; ++b) displs.push_back(b * each);
      return displs;
    };
    const std::int32_t room = count + p_.surplus[static_cast<std::size_t>(self_)];
    moving::Memory sent(layout_, std::vector(static_cast<std::size_t>(blocks), count), spread(count, blocks));
    received_.emplace(layout_, std::vector(static_cast<std::size_t>(rooms), room), spread(room, rooms));
    for (int b = 0; b < blocks; ++b) sent.fill(b, p_.seed, self_, b);
    for (int b = 0; b < rooms && in_place; ++b) {
      if (p_.to_each() || b == self_) received_->fill(b, p_.seed, self_, p_.to_each() ? b : 0);
    }
    const Blocks out{sent.block(0).base, &layout_, static_cast<std::uint64_t>(count)};
    const Blocks in{received_->block(0).base, &layout_, static_cast<std::uint64_t>(room)};
    const Collective as = p_.collective;
    switch (as) {
      case Collective::alltoall: return engine::alltoall(comm_, as, out, in, in_place, good).status;
      case Collective::gather:
        return engine::gather(comm_, as, sent.block(0), p_.receives(self_) ? in : Blocks{}, p_.root, in_place, good)
            .status;
      default: return engine::allgather(comm_, as, sent.block(0), in, in_place, good).status;
    }
  }

 private:
  [[nodiscard]] std::uint64_t bytes() const { return static_cast<std::uint64_t>(p_.count) * kElementBytes; }

  Comm& comm_;
  const Parts& p_;
  int self_, ranks_;
  Layout layout_;
  std::optional<moving::Memory> received_;
};

struct Where {
  int size;
  int tiers;  // of kFabricatedTiers
};

class PartsByGroups : public testing::TestWithParam<Where> {
 protected:
  PartsByGroups() { g_tiers = &kFabricatedTiers[GetParam().tiers]; }
  ~PartsByGroups() override { g_tiers = nullptr; }
  PartsByGroups(const PartsByGroups&) = delete;
  PartsByGroups& operator=(const PartsByGroups&) = delete;

  [[nodiscard]] static int size() { return GetParam().size; }
  // Many threads on few processors take turns.
  [[nodiscard]] static int cases(int few) { return (size() > 8 ? few / 8 + 1 : few) * kEffort; }
  void run(const engine::Settings& settings, const std::function<void(int rank, Comm& comm)>& body) {
    Group world(everybody(size()));
    run_job(size(), settings, [&](int rank, engine::Process& process) {
      Comm* comm = make_comm(process, world, rank);
      ASSERT_NE(comm, nullptr);
      body(rank, *comm);
      EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
      engine::comm_free(comm);
    });
  }
};

TEST_P(PartsByGroups, ArriveAsTheyWereSent) {
  engine::Settings single = few_slots();
  single.single_copy = SingleCopyChoice::always;
  const struct {
    engine::Settings settings;
    const char* rules;
  } ways[] = {{few_slots(), ""}, {few_slots(), kByGroups}, {{}, kByGroups}, {single, kByGroups}};
  for (const auto& way : ways) {
    run(way.settings, [&](int, Comm& comm) {
      obey(comm, way.rules);
      for (int i = 0; i < cases(10) && !HasFailure(); ++i) {
        const Parts parts(700u * static_cast<unsigned>(size()) + static_cast<unsigned>(i), size());
        Rank(comm, parts).play();
      }
    });
  }
}

// No rank hangs, nobody takes wrong data for right ones, and the next call is as good as any.
TEST_P(PartsByGroups, MistakesOfOneRankLeaveNobodyWaiting) {
  for (const char* const rules : {"", kByGroups}) {
    run(few_slots(), [&](int rank, Comm& comm) {
      obey(comm, rules);
      for (int i = 0; i < cases(8) && !HasFailure(); ++i) {
        Parts parts(900u * static_cast<unsigned>(size()) + static_cast<unsigned>(i), size());
        const int wrong = static_cast<int>(parts.seed * 5 % static_cast<unsigned>(size()));
        const bool bad = i % 2 == 0;
        const std::int32_t count = rank == wrong && !bad ? parts.count + 1 + i % 3 * 200 : parts.count;
        Rank own(comm, parts);
        const Status status = own.attempt(count, rank != wrong || !bad);
        const bool told =
            status == Status::peer_failed || status == Status::other_length || status == Status::truncated;
        if (parts.has_root() && rank != wrong) {  // who has done its part need not know
          EXPECT_TRUE(told || status == Status::ok) << "seed " << parts.seed << " status " << static_cast<int>(status);
          EXPECT_FALSE(rank == parts.root && status == Status::ok && *rules != 0) << "seed " << parts.seed;
          if (status == Status::ok && *rules != 0) own.check();
        } else if (bad) {
          EXPECT_EQ(status, rank == wrong ? Status::invalid : Status::peer_failed) << "seed " << parts.seed;
        } else {
          EXPECT_TRUE(told || *rules == 0 || parts.has_root())
              << "seed " << parts.seed << " status " << static_cast<int>(status);
        }
        if (i % 3 == 0) {
          const Parts next(parts.seed + 50, size());
          Rank(comm, next).play();
        }
      }
    });
  }
}

// As ranks do whose counts lie on both sides of a threshold. In a Gather, a rank that has done its
// part is gone. The rank that misses it finds what lies unread (shm/call_check.hpp).
TEST_P(PartsByGroups, RanksThatGoDifferentWaysNotice) {
  run({}, [&](int rank, Comm& comm) {
    for (int i = 0; i < cases(4); ++i) {
      const bool odd = (rank == i % size()) != (i % 2 == 0);
      Parts parts(300u + static_cast<unsigned>(i), size());
      if (parts.has_root()) parts.collective = i % 2 == 0 ? Collective::allgather : Collective::alltoall;
      obey(comm, odd ? kByGroups : kStraight);
      const Status status = Rank(comm, parts).attempt(parts.count, true);
      EXPECT_TRUE(status == Status::other_length || status == Status::peer_failed) << static_cast<int>(status);
    }
  });
}

std::vector<Where> few_ranks() {
  std::vector<Where> all;
  for (const int size : {3, 5, 7, 8, 16}) {
    for (int tiers = 0; tiers < std::ssize(kFabricatedTiers); ++tiers) all.push_back({size, tiers});
  }
  all.push_back({17, 1});
  return all;
}
std::string name_of(const testing::TestParamInfo<Where>& where) {
  return std::to_string(where.param.size) + "by" + std::to_string(where.param.tiers);
}
INSTANTIATE_TEST_SUITE_P(Ranks, PartsByGroups, testing::ValuesIn(few_ranks()), name_of);

// Under sanitizers these take minutes: --gtest_also_run_disabled_tests runs them.
#if defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(DISABLED_ManyRanks, PartsByGroups, testing::Values(Where{33, 1}, Where{64, 2}), name_of);
#else
INSTANTIATE_TEST_SUITE_P(ManyRanks, PartsByGroups, testing::Values(Where{33, 1}, Where{64, 2}), name_of);
#endif

}  // namespace
}  // namespace stretto::test
