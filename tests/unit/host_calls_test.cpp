// SPDX-License-Identifier: BSD-3-Clause
// Notes of calls that the host serves: read while they are written, and in words.
#include "shm/host_calls.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "observe/host_call_words.hpp"

namespace stretto::test {
namespace {

using shm::Awaited;
using shm::HostCall;
using shm::HostCalls;

HostCall receive(std::uint64_t number, int source, int tag) {
  HostCall call;
  call.number = number;
  call.open = true;
  std::strcpy(call.name, "MPI_Recv");
  call.awaited = 1;
  Awaited& part = call.parts[0];
  part.rank = part.world = source;
  part.tag = tag;
  part.bytes = 8;
  std::strcpy(part.where, "MPI_COMM_WORLD");
  return call;
}

TEST(HostCalls, AreReadWholeOrNotAtAll) {
  const auto calls = std::make_unique<HostCalls>();
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (int n = 1; n <= 20'000; ++n) {
      shm::HostCallNote* const note = calls->take(0);
      ASSERT_NE(note, nullptr);
      note->write(receive(static_cast<std::uint64_t>(n), n, n));
      note->end();
    }
    over = true;
  });
  std::uint64_t latest = 0;
  while (!over) {
    HostCall call;
    if (!host_call_read(calls->of[0], &call)) continue;
    EXPECT_EQ(call.parts[0].rank, call.parts[0].tag);
    EXPECT_EQ(static_cast<std::uint64_t>(call.parts[0].rank), call.number);
    EXPECT_GE(call.number, latest);
    latest = call.number;
  }
  writer.join();
}

TEST(HostCalls, TheOneThatIsOpenCounts) {
  const auto calls = std::make_unique<HostCalls>();
  EXPECT_EQ(host_call_now(*calls).number, 0u);
  shm::HostCallNote* const first = calls->take(0);
  first->write(receive(1, 1, 1));
  shm::HostCallNote* const second = calls->take(0);
  second->write(receive(2, 2, 2));
  EXPECT_EQ(host_call_now(*calls).number, 1u) << "it has waited longer";
  first->end();
  EXPECT_EQ(host_call_now(*calls).number, 2u);
  second->end();
  EXPECT_EQ(host_call_now(*calls).number, 2u) << "the latest";
  EXPECT_FALSE(host_call_now(*calls).open);
  for (unsigned i = 0; i < HostCalls::kNotes; ++i) EXPECT_NE(calls->take(i), nullptr);
  EXPECT_EQ(calls->take(0), nullptr);
}

TEST(HostCalls, LocksAreKnownByTargetAndWindow) {
  const auto calls = std::make_unique<HostCalls>();
  calls->lock(2, "window", 4711);
  EXPECT_EQ(calls->lock_of(1, "window"), nullptr);
  EXPECT_EQ(calls->lock_of(2, "other"), nullptr);
  ASSERT_NE(calls->lock_of(2, "window"), nullptr);
  EXPECT_EQ(calls->lock_of(2, "window")->caller.load_relaxed(), 4711u);
  calls->unlock(2, "window");
  EXPECT_EQ(calls->lock_of(2, "window"), nullptr);
}

TEST(HostCalls, InWords) {
  const auto modules = std::make_unique<shm::Modules>();
  const auto words = [&](const HostCall& call) { return std::string(observe::HostCallWords(call, *modules).text); };
  HostCall call = receive(1, 3, 99);
  EXPECT_EQ(words(call), "MPI_Recv (from 3, tag 99, 8 bytes, on MPI_COMM_WORLD)");
  call.parts[0].world = 7;
  call.parts[0].tag = Awaited::kAny;
  call.parts[0].bytes = 1;
  EXPECT_EQ(words(call), "MPI_Recv (from 3 (rank 7 of the job), any tag, 1 byte, on MPI_COMM_WORLD)");
  call.parts[0].rank = Awaited::kAny;
  call.parts[0].bytes = Awaited::kNoBytes;
  EXPECT_EQ(words(call), "MPI_Recv (from any rank, any tag, on MPI_COMM_WORLD)");
  std::strcpy(call.name, "MPI_Waitall");
  call.awaited = 5;
  for (Awaited& part : call.parts) part.what = Awaited::What::request;
  std::strcpy(call.parts[1].where, "MPI_Iallreduce");
  call.parts[0].where[0] = 0;
  EXPECT_EQ(words(call), "MPI_Waitall (all of 5 requests: a request; MPI_Iallreduce; a request; ...)");
  HostCall fence;
  std::strcpy(fence.name, "MPI_Win_fence");
  std::strcpy(fence.where, "a window");
  fence.kind = shm::HostCallKind::all;
  fence.members = 4;
  EXPECT_EQ(words(fence), "MPI_Win_fence (all 4 ranks of a window)");
}

}  // namespace
}  // namespace stretto::test
