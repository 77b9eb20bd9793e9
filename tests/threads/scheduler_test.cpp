// SPDX-License-Identifier: BSD-3-Clause
// A communicator's schedules call after call. Programs are built, found again and thrown out.
// Messages of one call meet none of another's, whatever the ranks' pace.
#include "engine/scheduler.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <numeric>
#include <thread>
#include <tuple>

#include "engine/process.hpp"
#include "threads/drawn_calls.hpp"
#include "threads/job.hpp"
#include "threads/loopback.hpp"
#include "threads/mailbox.hpp"
#include "threads/scheduled.hpp"

namespace stretto::test {
namespace {

TEST(SchedulerTest, CallsFollowEachOther) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kCalls = 60;
#else
  constexpr int kCalls = 300;
#endif
  for (const int ranks : {1, 2, 5, 9}) {
    topo::Placement placement;
    placement.start(ranks);
    ASSERT_TRUE(placement.add_level_of("socket", 2) && placement.add_level_of("node", 4));
    Mailboxes boxes(ranks, Sends::mixed, static_cast<std::uint64_t>(ranks));
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        shm::WaitPolicy policy;
        policy.spins = 100;
        policy.yield_after_ns = 0;
        engine::Scheduler scheduler;
        ASSERT_TRUE(scheduler.open(r, placement, {}, boxes.transport(r), policy, always(ranks)));
        play(scheduler, r, ranks, kCalls);
      });
    }
    threads.clear();
    EXPECT_EQ(boxes.left_over(), 0u);
  }
}

// From the communicator's fifth call on, messages between nodes of two ranks go over connections.
TEST(SchedulerTest, ConnectionsOpenInBetween) {
  for (const int ranks : {3, 8}) {
    topo::Placement placement;
    placement.start(ranks);
    ASSERT_TRUE(placement.add_level_of("node", 2));
    Mailboxes boxes(ranks, Sends::mixed, static_cast<std::uint64_t>(ranks));
    Group group(everybody(ranks));
    std::vector<std::int32_t> nodes;
    for (int r = 0; r < ranks; ++r) nodes.push_back(r / 2);
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        TestMember member{&group, r};
        const transport::TcpTransport::Opening opening = opening_over_loopback(member, nodes.data());
        engine::Scheduler scheduler;
        ASSERT_TRUE(scheduler.open(r, placement, {}, boxes.transport(r), opening.policy, always(ranks)));
        scheduler.connect_at(5, opening);
        play(scheduler, r, ranks, 20 * kEffort);
      });
    }
    threads.clear();
    EXPECT_EQ(boxes.left_over(), 0u);
    EXPECT_LT(boxes.sent(0, 2), boxes.sent(0, 1));
  }
}

// By rules. Every length goes another way, some operations cannot go the way of their rule, and
// rules leave some calls to others.
TEST(SchedulerTest, RulesDecide) {
  const char kText[] =
      "bcast bytes=0-100: kchain k=2\nbcast bytes=101-10K: hierarchy segment=1K\nbcast bytes=10K-: scatter_ring\n"
      "reduce bytes=0-1K: chain segment=64\nreduce bytes=2K-: scatter_gather\n"
      "allreduce bytes=0-8: recursive_doubling\nallreduce bytes=9-1K: ring segment=128\nallreduce bytes=2K-: "
      "hierarchy:rails\n"
      "allreduce bytes=4K-: hierarchy:stripes\nbcast bytes=20K-: hierarchy:stripes by=chain segment=8K\nreduce "
      "bytes=4K-: hierarchy:stripes\n"
      "barrier: tree k=3\n";
  select::Rules rules;
  FileError error;
  ASSERT_TRUE(rules.parse(kText, sizeof kText - 1, &error)) << error.line << ": " << error.what;
  for (const int ranks : {1, 3, 6}) {
    topo::Placement placement;
    placement.start(ranks);
    ASSERT_TRUE(placement.add_level_of("node", 2));
    for (int r = 0; r < ranks; ++r) ASSERT_TRUE(placement.nics.push({r % 2 == 0 ? 1u : 2u, 0}));
    Mailboxes boxes(ranks, Sends::mixed, static_cast<std::uint64_t>(ranks));
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        select::Selector selector;
        ASSERT_TRUE(selector.start({.ranks = ranks, .nodes = (ranks + 1) / 2}, rules));
        engine::Scheduler scheduler;
        shm::WaitPolicy policy;
        policy.spins = 100;
        policy.yield_after_ns = 0;
        ASSERT_TRUE(scheduler.open(r, placement, {}, boxes.transport(r), policy, std::move(selector)));
        play(scheduler, r, ranks, 10 * kEffort);
        // No line is about it.
        EXPECT_EQ(scheduler.choose(Collective::reduce, 1500).backend, select::Backend::host);
        EXPECT_EQ(scheduler.choose(Collective::reduce, 2048).backend, select::Backend::schedule);
      });
    }
    threads.clear();
    EXPECT_EQ(boxes.left_over(), 0u);
  }
}

// Nodes have three ranks, which send each other nothing through the mailboxes.
class SchedulerOnNodes : public testing::TestWithParam<std::tuple<SingleCopyChoice, std::size_t>> {};

TEST_P(SchedulerOnNodes, MessagesGoOverSharedMemory) {
  constexpr int kNode = 3;
  const int calls = 20 * kEffort;
  engine::Settings settings;
  settings.slots = 2;
  std::tie(settings.single_copy, settings.slot_bytes) = GetParam();
  for (const int ranks : {2, 5, 9}) {
    topo::Placement placement;
    placement.start(ranks);
    ASSERT_TRUE(placement.add_level_of("socket", 2) && placement.add_level_of("node", kNode));
    Mailboxes boxes(ranks, Sends::mixed, static_cast<std::uint64_t>(ranks));
    std::deque<Group> nodes;
    for (int first = 0; first < ranks; first += kNode) {
      std::vector<int> members;
      for (int r = first; r < std::min(ranks, first + kNode); ++r) members.push_back(r);
      nodes.emplace_back(members);
    }
    run_job(ranks, settings, [&](int r, engine::Process& process) {
      Group& node = nodes[static_cast<std::size_t>(r / kNode)];
      shm::WaitPolicy policy;
      policy.spins = 100;
      policy.yield_after_ns = 0;
      engine::Scheduler scheduler;
      ASSERT_TRUE(scheduler.open(r, placement, {}, boxes.transport(r), policy, always(ranks)));
      std::vector<int> members;
      for (int i = 0; i < node.size(); ++i) members.push_back(r / kNode * kNode + i);
      engine::Comm* const comm = make_comm(process, node, r % kNode, nullptr, 0);
      ASSERT_NE(comm, nullptr);
      scheduler.join(comm, members.data());
      play(scheduler, r, ranks, calls);
    });
    EXPECT_EQ(boxes.left_over(), 0u);
    for (int from = 0; from < ranks; ++from) {
      for (int to = from / kNode * kNode; to < std::min(ranks, from / kNode * kNode + kNode); ++to)
        EXPECT_EQ(boxes.sent(from, to), 0u);
    }
    EXPECT_EQ(boxes.sent(0, kNode) > 0, ranks > kNode);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, SchedulerOnNodes,
                         testing::Combine(testing::Values(SingleCopyChoice::off, SingleCopyChoice::always),
                                          testing::Values(4096, 65536)));

// Runs this rank's steps of a call whose ranks are all on one node.
void run_on_node(
    engine::Process& process, Group& node, int rank, sched::Builder& builder, std::vector<char>& send,
    std::vector<char>& receive, const std::function<void()>& before = [] {},
    const std::function<void()>& after = [] {}) {
  sched::Program program;
  sched::Execution execution;
  ASSERT_TRUE(program.prepare(builder.finish()) && execution.prepare(program));
  const std::vector<int> members = everybody(node.size());
  transport::Stack by_queues;
  by_queues.start({nullptr, nullptr, nullptr, [](void*, std::uint32_t*, int) { return 0; }});
  engine::Comm* const comm = make_comm(process, node, rank, nullptr, 0);
  ASSERT_TRUE(comm && by_queues.join(*comm->team, members.data(), node.size()));
  before();
  by_queues.begin(Collective::reduce);
  sched::Binding binding;
  binding.buffers[0] = send.data();
  binding.buffers[1] = receive.data();
  binding.transport = by_queues.transport();
  EXPECT_EQ(execution.run(binding, {}), Status::ok);
  by_queues.end();
  engine::comm_free(comm);
  after();
}

// Rank 0 sends to rank 1, which has no place for it before rank 2 has sent something. Rank 2 has
// that from rank 0. Slots must not fill up with what is for rank 1.
TEST(ShmTransport, WhoIsNotReadyHoldsUpNobody) {
  constexpr std::uint64_t kBytes = 1 << 18;
  engine::Settings settings;
  settings.slots = 2;
  settings.slot_bytes = 4096;
  Group node(everybody(3));
  run_job(3, settings, [&](int r, engine::Process& process) {
    sched::Builder builder;
    const sched::Slice out{sched::Buffer::send, 0, kBytes}, in{sched::Buffer::receive, 0, kBytes};
    if (r == 0) builder.send(1, out), builder.send(2, out);
    if (r == 1) builder.recv(2, in), builder.recv(0, in);
    if (r == 2) builder.recv(0, in), builder.send(1, in);
    std::vector<char> send(kBytes, 'x'), receive(kBytes, '-');
    run_on_node(process, node, r, builder, send, receive);
    if (r != 0) {
      EXPECT_EQ(receive, send);
    }
  });
}

// Nor need a sender wait for a rank that is not in the call yet, as long as a lane holds the data.
TEST(ShmTransport, WhatALaneHoldsIsSentAhead) {
  engine::Settings settings;
  settings.slots = 2;
  settings.slot_bytes = 4096;
  const std::uint64_t lane = settings.slots * settings.slot_bytes;
  for (const std::uint64_t first : {lane, lane / 2, shm::kMostInlineBytes + std::uint64_t{1}}) {
    const std::uint64_t second = std::min<std::uint64_t>(lane - first, 5000), bytes = first + second;
    Group node(everybody(2));
    std::atomic<bool> sent = false;
    run_job(2, settings, [&](int r, engine::Process& process) {
      sched::Builder builder;
      const auto move = [&](std::uint64_t from, std::uint64_t length) {
        if (length == 0) return;
        if (r == 0)
          builder.send(1, {sched::Buffer::send, from, length});
        else
          builder.recv(0, {sched::Buffer::receive, from, length});
      };
      move(0, first), move(first, second);
      std::vector<char> send(bytes), receive(bytes, '-');
      std::iota(send.begin(), send.end(), '\0');
      const auto wait_until_sent = [&] {
        if (r == 1) sent.wait(false);
      };
      const auto say_sent = [&] {
        if (r == 0) sent = true, sent.notify_all();
      };
      run_on_node(process, node, r, builder, send, receive, wait_until_sent, say_sent);
      if (r == 1) {
        EXPECT_EQ(receive, send);
      }
    });
  }
}

// A rank that waits for long says once for which rank. The rank that comes late says nothing.
TEST(SchedulerTest, SaysWhomItWaitsFor) {
  constexpr int kRanks = 3;
  topo::Placement placement;
  placement.start(kRanks);
  topo::Hosts hosts;
  for (const char* name : {"spare", "left", "left", "right"}) hosts.add(name);
  const int job_ranks[kRanks] = {1, 2, 3};
  Mailboxes boxes(kRanks, Sends::waiting, 1);
  testing::internal::CaptureStderr();
  std::vector<std::jthread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      engine::Scheduler scheduler;
      ASSERT_TRUE(scheduler.open(r, placement, {}, boxes.transport(r), {}, always(kRanks)));
      scheduler.watch({100'000'000, &hosts, job_ranks});
      EXPECT_EQ(engine::barrier(scheduler).status, Status::ok);
      if (r == 2) std::this_thread::sleep_for(std::chrono::milliseconds(500));
      EXPECT_EQ(engine::barrier(scheduler).status, Status::ok);
    });
  }
  threads.clear();
  const std::string text = testing::internal::GetCapturedStderr();
  for (const char* rank : {"0", "1"}) {
    const std::string said =
        std::string(
            "watchdog: MPI_Barrier has stood still for 0 s: call 2 by schedule on a communicator of 3 ranks; rank ") +
        rank + " on left waits for data of: 2 on right;";
    EXPECT_NE(text.find(said), std::string::npos) << text;
    EXPECT_EQ(text.find(said), text.rfind(said)) << text;
  }
  EXPECT_EQ(text.find("rank 2 on right waits"), std::string::npos) << text;
}

// What all ranks must decide alike depends on nothing but the arguments.
TEST(Plans, LongVectorsGoInSegments) {
  topo::Placement placement;
  placement.start(4);
  ASSERT_TRUE(placement.add_level_of("node", 2));
  topo::Hierarchy hierarchy;
  ASSERT_TRUE(hierarchy.build(placement));
  const auto plan = [&](std::uint64_t bytes) {
    const select::CommTraits traits{.ranks = 4, .nodes = 2};
    return select::plan_of(select::selection_across_nodes(Collective::bcast, traits, bytes), hierarchy, traits, bytes);
  };
  EXPECT_EQ(plan(8).segments, 1);
  EXPECT_FALSE(plan(8).as_chain);
  EXPECT_EQ(plan(1 << 20).segments, 128);  // of 8 KiB, as messages that connections hold
  EXPECT_TRUE(plan(1 << 20).as_chain);
  EXPECT_EQ(plan(std::uint64_t{1} << 40).segments, kTuning.schedule_most_segments);
  EXPECT_EQ(plan(8).node_level, 0);
}

}  // namespace
}  // namespace stretto::test
