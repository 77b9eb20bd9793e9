// SPDX-License-Identifier: BSD-3-Clause
// Several threads of each process are in the engine at the same time, from its first use on.
#include <gtest/gtest.h>

#include "threads/job.hpp"

namespace stretto::test {
namespace {

// Three threads make, use and free communicators of their own. A fourth one notes calls that the
// MPI serves. It may do so before there is a segment to note them in.
TEST(ManyThreads, OfOneProcess) {
  constexpr int kRanks = 2, kThreads = 3;
  std::vector<std::unique_ptr<Group>> groups;
  for (int t = 0; t < kThreads; ++t) groups.push_back(std::make_unique<Group>(everybody(kRanks)));
  run_job(kRanks, {}, [&](int rank, engine::Process& process) {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 3 * kEffort; ++i) {
          engine::Comm* comm = make_comm(process, *groups[t], rank);
          ASSERT_NE(comm, nullptr);
          for (const std::size_t bytes : {10, 5000, 200'000}) {
            std::vector<char> buffer(bytes, static_cast<char>(rank == i % kRanks ? i : -1));
            EXPECT_EQ(engine::bcast(*comm, {buffer.data(), bytes, &kBytes}, i % kRanks, true).status, Status::ok);
            EXPECT_EQ(buffer.back(), static_cast<char>(i));
          }
          EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
          engine::comm_free(comm);
        }
      });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i)
        engine::process_note_end(process, engine::process_note(process, Collective::barrier, false));
    });
  });
}

}  // namespace
}  // namespace stretto::test
