// SPDX-License-Identifier: BSD-3-Clause
// One rank's calls by schedule that nobody waits for, on a communicator whose members share memory,
// or on one of several nodes with connections between them.
#pragma once
#include <gtest/gtest.h>

#include "engine/call_queue.hpp"
#include "engine/process.hpp"
#include "threads/drivers.hpp"
#include "threads/job.hpp"
#include "transport/bulk/bulk_transport.hpp"

namespace stretto::test {

inline const select::Rules kNoRules;

// Nodes of `each` ranks, and the last one of the rest.
class Nodes {
 public:
  Nodes(int ranks, int each) : drivers_(ranks), each_(each) {
    for (int first = 0; first < ranks; first += each) {
      std::vector<int> members;
      for (int r = first; r < std::min(first + each, ranks); ++r) members.push_back(r);
      groups_.emplace_back(members);
      ranks_.push_back(std::move(members));
    }
  }
  [[nodiscard]] int each() const { return each_; }
  Group& group_of(int rank) { return groups_[static_cast<std::size_t>(rank / each_)]; }
  const int* ranks_near(int rank) { return ranks_[static_cast<std::size_t>(rank / each_)].data(); }
  bulk::Driver& driver(int rank) { return drivers_.driver(rank); }

 private:
  DriverJob drivers_;
  int each_;
  std::deque<Group> groups_;
  std::vector<std::vector<int>> ranks_;
};

struct Queued {
  transport::bulk::BulkTransport far;
  std::vector<int> everybody_;
  engine::Scheduler scheduler;
  engine::CallQueue queue;
  engine::Comm* near = nullptr;  // the scheduler's, of the members that share memory

  void open(engine::Process& process, Group& group, int rank) {
    const transport::Transport nowhere = {
        nullptr, [](void*, int, std::uint32_t, const char*, std::uint64_t, std::uint32_t) { return false; },
        [](void*, int, std::uint32_t, char*, std::uint64_t, std::uint32_t) { return false; },
        [](void*, std::uint32_t*, int) { return 0; }, [](void*) { return Status::invalid; }};
    topo::Placement placement;
    placement.start(group.size());
    open(process, rank, group.size(), placement, nowhere, 1, group, everybody(group.size()).data());
  }
  // `comm` is a number that no other communicator of these nodes has.
  void open(engine::Process& process, Nodes& nodes, int ranks, std::uint64_t comm, int rank) {
    topo::Placement placement;
    placement.start(ranks);
    ASSERT_TRUE(placement.add_level_of("node", nodes.each()));
    everybody_ = everybody(ranks);
    far.start(nodes.driver(rank), comm, everybody_.data(), ranks);
    const int count = (ranks + nodes.each() - 1) / nodes.each();
    open(process, rank, ranks, placement, far.transport(), count, nodes.group_of(rank), nodes.ranks_near(rank));
  }

 private:
  void open(engine::Process& process, int rank, int ranks, const topo::Placement& placement,
            const transport::Transport& elsewhere, int nodes, Group& group, const int* near_ranks) {
    select::Selector selector;
    ASSERT_TRUE(selector.start({.ranks = ranks, .nodes = nodes, .forced = kNativeCollectives}, kNoRules));
    selector.connect(nodes > 1);
    ASSERT_TRUE(scheduler.open(rank, placement, {}, elsewhere, engine::schedule_policy(process), std::move(selector)));
    scheduler.stay_apart();
    if (group.size() < 2) return;
    engine::process_want_lanes_apart(process);
    near = make_comm(process, group, group.rank_of(rank), nullptr, 0);
    ASSERT_NE(near, nullptr);
    scheduler.join(near, near_ranks);
  }
};

}  // namespace stretto::test
