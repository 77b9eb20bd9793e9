// SPDX-License-Identifier: BSD-3-Clause
// Calls of all kinds across a change of ways: before connections open, at the call that opens them,
// and after it. Connections open or fail to. What one rank alone knows (MPI_IN_PLACE, its own
// lengths) differs from call to call. It must never decide which schedule the rank runs.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <utility>

#include "engine/scheduler.hpp"
#include "reduce/reduce.hpp"
#include "threads/job.hpp"
#include "threads/loopback.hpp"
#include "threads/mailbox.hpp"
#include "threads/scheduled.hpp"

namespace stretto::test {
namespace {

using Bytes = std::vector<char>;
using Numbers = std::vector<std::int64_t>;

// What all ranks draw alike. There are few shapes, so that calls find the programs of earlier
// calls.
struct Draw {
  Collective as;
  int root;
  bool in_place;
  std::size_t length;                // of each part, in elements of 8 bytes
  std::vector<std::size_t> lengths;  // of the forms that have many
  std::vector<std::int32_t> counts, places;

  Draw(int seed, int call, int ranks) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed) * 1000 + static_cast<std::uint64_t>(call));
    constexpr std::size_t kLengths[] = {1, 640, 640, 2500};
    do {
      as = static_cast<Collective>(random() % kCollectives);
    } while (is_neighborhood(as));
    // The ways of these change.
    if (random() % 3 == 0) as = random() % 2 == 0 ? Collective::scatter : Collective::gatherv;
    root = static_cast<int>(random() % 2);
    in_place = random() % 3 == 0;
    length = kLengths[random() % std::size(kLengths)];
    std::int32_t at = 0;
    for (int r = 0; r < ranks; ++r) {
      lengths.push_back(has_many_lengths() ? kLengths[random() % std::size(kLengths)] * (random() % 4 != 0) : length);
      counts.push_back(static_cast<std::int32_t>(lengths.back() * sizeof(std::int64_t)));
      places.push_back(at);
      at += counts.back();
    }
  }
  [[nodiscard]] bool has_many_lengths() const {
    return as == Collective::gatherv || as == Collective::scatterv || as == Collective::allgatherv ||
           as == Collective::reduce_scatter;
  }
  [[nodiscard]] std::size_t total() const {
    return static_cast<std::size_t>(places.back() + counts.back()) / sizeof(std::int64_t);
  }
  [[nodiscard]] std::size_t begin(int rank) const {
    return static_cast<std::size_t>(places[static_cast<std::size_t>(rank)]) / sizeof(std::int64_t);
  }
};

char* raw(Numbers& numbers) { return reinterpret_cast<char*>(numbers.data()); }
Region plain(Numbers& numbers) { return {raw(numbers), numbers.size() * sizeof(std::int64_t), &kBytes}; }
Blocks parts(Numbers& numbers, const Draw& draw) {
  if (!draw.has_many_lengths()) return {raw(numbers), &kBytes, draw.length * sizeof(std::int64_t)};
  return {raw(numbers), &kBytes, 0, draw.counts.data(), draw.places.data()};
}

// What `from` sends in a call: to `to`, or to all ranks (0).
std::int64_t word(int call, int from, int to, std::size_t i) {
  return ((call * 64 + from) * 64 + to) * std::int64_t{100'000} + static_cast<std::int64_t>(i);
}
Numbers words(int call, int from, int to, std::size_t count) {
  Numbers all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = word(call, from, to, i);
  return all;
}
void append(Numbers& all, const Numbers& more) { all.insert(all.end(), more.begin(), more.end()); }

Numbers sum(int call, int ranks, std::size_t count) {
  Numbers all(count);
  for (int r = 0; r < ranks; ++r) {
    for (std::size_t i = 0; i < count; ++i) all[i] += word(call, r, 0, i);
  }
  return all;
}

// One rank of a job.
class Player {
 public:
  Player(engine::Scheduler& scheduler, int ranks) : s_(scheduler), me_(scheduler.rank()), ranks_(ranks) {}

  void play(int call, const Draw& draw) {
    call_ = call;
    switch (draw.as) {
      case Collective::barrier: return good(engine::barrier(s_));
      case Collective::bcast: return bcast(draw);
      case Collective::gather:
      case Collective::gatherv: return gather(draw);
      case Collective::scatter:
      case Collective::scatterv: return scatter(draw);
      case Collective::allgather:
      case Collective::allgatherv: return allgather(draw);
      case Collective::alltoall:
      case Collective::alltoallv:
      case Collective::alltoallw: return alltoall(draw);
      default: return reduction(draw);
    }
  }
  [[nodiscard]] int served() const { return served_; }

 private:
  void good(const engine::Outcome& outcome) {
    EXPECT_EQ(outcome.status, Status::ok) << "call " << call_;
    is_served_ = outcome.path == Path::schedule;
    served_ += is_served_ ? 1 : 0;
  }
  void good(const engine::Outcome& outcome, const Numbers& got, const Numbers& expected) {
    good(outcome);
    if (is_served_) {
      EXPECT_EQ(got, expected) << "call " << call_ << ", rank " << me_;
    }
  }

  void bcast(const Draw& draw) {
    const Numbers expected = words(call_, draw.root, 0, draw.length);
    Numbers buffer = me_ == draw.root ? expected : Numbers(draw.length, -1);
    const engine::Outcome outcome = engine::bcast(s_, plain(buffer), draw.root, true);
    good(outcome, buffer, expected);
  }
  void gather(const Draw& draw) {
    const bool is_root = me_ == draw.root, in_place = is_root && draw.in_place;
    const std::size_t mine = draw.lengths[static_cast<std::size_t>(me_)];
    Numbers send = words(call_, me_, 0, mine), all(is_root ? draw.total() : 0, -1), expected;
    for (int r = 0; r < ranks_ && is_root; ++r)
      append(expected, words(call_, r, 0, draw.lengths[static_cast<std::size_t>(r)]));
    if (in_place) std::copy(send.begin(), send.end(), all.begin() + static_cast<std::ptrdiff_t>(draw.begin(me_)));
    const engine::Outcome outcome =
        engine::gather(s_, draw.as, in_place ? Region{} : plain(send),
                       is_root ? parts(all, draw) : Blocks{nullptr, &kBytes}, draw.root, in_place, true);
    good(outcome, all, expected);
  }
  void scatter(const Draw& draw) {
    const bool is_root = me_ == draw.root, in_place = is_root && draw.in_place;
    const std::size_t mine = draw.lengths[static_cast<std::size_t>(me_)];
    const bool declares_more = draw.as == Collective::scatterv && !is_root && mine != 0 && call_ % 2 == 0;
    Numbers all, got(declares_more ? mine + 3000 : mine, -1);
    for (int r = 0; r < ranks_ && is_root; ++r)
      append(all, words(call_, draw.root, r, draw.lengths[static_cast<std::size_t>(r)]));
    const engine::Outcome outcome = engine::scatter(s_, draw.as, is_root ? parts(all, draw) : Blocks{nullptr, &kBytes},
                                                    in_place ? Region{} : plain(got), draw.root, in_place, true);
    got.resize(mine);
    good(outcome, got, in_place ? Numbers(mine, -1) : words(call_, draw.root, me_, mine));
  }
  void allgather(const Draw& draw) {
    Numbers send = words(call_, me_, 0, draw.lengths[static_cast<std::size_t>(me_)]), all(draw.total(), -1), expected;
    for (int r = 0; r < ranks_; ++r) append(expected, words(call_, r, 0, draw.lengths[static_cast<std::size_t>(r)]));
    if (draw.in_place) std::copy(send.begin(), send.end(), all.begin() + static_cast<std::ptrdiff_t>(draw.begin(me_)));
    const engine::Outcome outcome =
        engine::allgather(s_, draw.as, draw.in_place ? Region{} : plain(send), parts(all, draw), draw.in_place, true);
    good(outcome, all, expected);
  }
  void alltoall(const Draw& draw) {
    Numbers send, all, expected;
    for (int r = 0; r < ranks_; ++r)
      append(send, words(call_, me_, r, draw.length)), append(expected, words(call_, r, me_, draw.length));
    all = draw.in_place ? send : Numbers(send.size(), -1);
    const engine::Outcome outcome =
        engine::alltoall(s_, draw.as, draw.in_place ? Blocks{nullptr, &kBytes} : parts(send, draw), parts(all, draw),
                         draw.in_place, true);
    good(outcome, all, expected);
  }
  void reduction(const Draw& draw) {
    const auto add = reduce::kernel3(reduce::Op::sum, reduce::Type::i64);
    const engine::KernelOp by{add, sizeof(std::int64_t)};
    const bool in_parts = draw.as == Collective::reduce_scatter || draw.as == Collective::reduce_scatter_block;
    const bool scans = draw.as == Collective::scan || draw.as == Collective::exscan;
    const bool gets = draw.as == Collective::reduce ? me_ == draw.root : draw.as != Collective::exscan || me_ != 0;
    const bool in_place = gets && draw.in_place;
    const std::size_t count = in_parts ? draw.total() : draw.length;
    Numbers own = words(call_, me_, 0, count), out(count, -1);
    if (in_place) out = own;
    const engine::KernelArgs vector{in_place ? raw(out) : raw(own), raw(out), count * sizeof(std::int64_t)};
    std::vector<std::uint64_t> begins;
    for (const std::int32_t place : draw.places) begins.push_back(static_cast<std::uint64_t>(place));
    begins.push_back(draw.total() * sizeof(std::int64_t));
    engine::Outcome outcome;
    switch (draw.as) {
      case Collective::reduce: outcome = engine::reduce(s_, vector, by, draw.root); break;
      case Collective::allreduce: outcome = engine::allreduce(s_, vector, by); break;
      case Collective::scan:
      case Collective::exscan: outcome = engine::scan(s_, vector, by, draw.as == Collective::exscan); break;
      default: outcome = engine::reduce_scatter(s_, draw.as, vector, by, begins.data()); break;
    }
    Numbers expected = sum(call_, scans ? me_ + (draw.as == Collective::scan ? 1 : 0) : ranks_, count);
    const std::size_t first = in_parts ? draw.begin(me_) : 0,
                      got = in_parts ? draw.lengths[static_cast<std::size_t>(me_)] : count;
    expected = Numbers(expected.begin() + static_cast<std::ptrdiff_t>(first),
                       expected.begin() + static_cast<std::ptrdiff_t>(first + got));
    out.resize(gets ? got : 0);
    good(outcome, out, gets ? expected : Numbers());
  }

  engine::Scheduler& s_;
  const int me_, ranks_;
  int call_ = 0, served_ = 0;
  bool is_served_ = false;
};

struct Case {
  bool opens;      // the connections
  bool automatic;  // what is built in decides which calls go by schedule
  const char* rules = "";
};

// Calls by members on nodes of two.
void run_job_across_a_change(const Case& c, int ranks, int seed) {
  select::Rules rules;
  FileError error;
  ASSERT_TRUE(rules.parse(c.rules, std::strlen(c.rules), &error)) << error.what;
  topo::Placement placement;
  placement.start(ranks);
  ASSERT_TRUE(placement.add_level_of("node", 2));
  Mailboxes boxes(ranks, Sends::mixed, static_cast<std::uint64_t>(ranks));
  boxes.take_shorter();
  Group group(everybody(ranks));
  std::vector<std::int32_t> nodes;
  for (int r = 0; r < ranks; ++r) nodes.push_back(r / 2);
  std::vector<int> served(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        TestMember member{&group, r};
        transport::TcpTransport::Opening opening = opening_over_loopback(member, nodes.data());
        // The last member cannot be reached: it is not at the only address that it names.
        if (!c.opens && r == ranks - 1) opening.addresses[0] = {inet_addr("192.0.2.1"), ~0u};
        select::Selector selector;
        ASSERT_TRUE(selector.start({.ranks = ranks,
                                    .nodes = (ranks + 1) / 2,
                                    .forced = c.automatic ? 0 : kNativeCollectives,
                                    .across_nodes = c.automatic},
                                   rules));
        engine::Scheduler scheduler;
        ASSERT_TRUE(scheduler.open(r, placement, {}, boxes.transport(r), opening.policy, std::move(selector)));
        scheduler.connect_at(20, opening);
        Player player(scheduler, ranks);
        for (int call = 0; call < 60; ++call) player.play(call, Draw(seed, call, ranks));
        served[static_cast<std::size_t>(r)] = player.served();
      });
    }
  }
  EXPECT_GT(served[0], 10);
  EXPECT_EQ(served, std::vector<int>(served.size(), served[0]));
  EXPECT_EQ(boxes.left_over(), 0u);
}

class ChangingWays : public testing::TestWithParam<Case> {};

TEST_P(ChangingWays, AllMembersRunTheSameSchedules) {
  for (const int ranks : {4, 5, 8}) {
    for (int seed = 0; seed < kEffort / 2 + 1; ++seed) {
      run_job_across_a_change(GetParam(), ranks, seed);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// Lengths that the root alone knows must not choose a rule. These calls have the way of 0 bytes.
constexpr const char* kRulesByLength =
    "gatherv bytes=0-100: flat\ngatherv bytes=101-: binomial\nscatterv bytes=0-100: flat\nscatterv bytes=101-: "
    "binomial\n"
    "alltoallv bytes=101-: linear\ngather bytes=0-10K: binomial\nscatter bytes=10K-: flat\n";

INSTANTIATE_TEST_SUITE_P(Outcomes, ChangingWays,
                         testing::Values(Case{true, false}, Case{false, false}, Case{true, true}, Case{false, true},
                                         Case{true, false, kRulesByLength}, Case{false, true, kRulesByLength}));

}  // namespace
}  // namespace stretto::test
