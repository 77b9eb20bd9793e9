// SPDX-License-Identifier: BSD-3-Clause
// One rank's calls by schedule that nobody waits for, on a communicator whose members share memory.
#pragma once
#include <gtest/gtest.h>

#include "engine/call_queue.hpp"
#include "engine/process.hpp"
#include "threads/job.hpp"

namespace stretto::test {

inline const select::Rules kNoRules;

struct Queued {
  engine::Scheduler scheduler;
  engine::CallQueue queue;

  void open(engine::Process& process, Group& group, int rank) {
    const int ranks = group.size();
    topo::Placement placement;
    placement.start(ranks);
    select::Selector selector;
    ASSERT_TRUE(selector.start({.ranks = ranks, .forced = kNativeCollectives}, kNoRules));
    const transport::Transport nowhere = {
        nullptr, [](void*, int, std::uint32_t, const char*, std::uint64_t, std::uint32_t) { return false; },
        [](void*, int, std::uint32_t, char*, std::uint64_t, std::uint32_t) { return false; },
        [](void*, std::uint32_t*, int) { return 0; }, [](void*) { return Status::invalid; }};
    ASSERT_TRUE(scheduler.open(rank, placement, {}, nowhere, engine::schedule_policy(process), std::move(selector)));
    scheduler.stay_apart();
    engine::Comm* const comm = make_comm(process, group, rank, nullptr, 0);
    ASSERT_NE(comm, nullptr);
    scheduler.join(comm, everybody(ranks).data());
  }
};

}  // namespace stretto::test
