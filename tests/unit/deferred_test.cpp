// SPDX-License-Identifier: BSD-3-Clause
// What a process says of calls whose data are under way, and how times of such calls add up.
#include "shm/deferred.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "overlap/timeline.hpp"
#include "overlap/touches.hpp"

namespace stretto::test {
namespace {

using shm::DeferredCall;
using shm::DeferredNotes;
using shm::DeferredWait;
using shm::DeferredWriter;

DeferredCall about(const char* name, std::uint64_t call) {
  DeferredCall made;
  std::strncpy(made.name, name, sizeof made.name - 1);
  made.communicator = 3;
  made.ranks = 4;
  made.call = call;
  made.began_ns = 100;
  return made;
}

std::vector<DeferredCall> all_of(const DeferredNotes& notes) {
  std::vector<DeferredCall> all;
  shm::each_deferred(notes, [&](const DeferredCall& call) { all.push_back(call); });
  return all;
}

TEST(Deferred, ACallFromItsBeginningToItsEnd) {
  const auto notes = std::make_unique<DeferredNotes>();
  DeferredWriter writer;
  writer.take(notes.get(), about("Alltoall", 7));
  const std::uint32_t from = writer.part(2, false, 1000), to = writer.part(2, true, 500);
  EXPECT_EQ(writer.part(2, false, 24), from) << "a peer and direction has one part";
  EXPECT_TRUE(all_of(*notes).empty()) << "it is not written yet";
  writer.put();
  writer.returns(200);
  writer.came(from, 1020);
  ASSERT_EQ(all_of(*notes).size(), 1u);
  const DeferredCall call = all_of(*notes)[0];
  EXPECT_EQ(std::string(call.name), "Alltoall");
  EXPECT_EQ(call.number, 1u);
  EXPECT_EQ(call.call, 7u);
  EXPECT_EQ(call.returned_ns, 200u);
  EXPECT_EQ(call.wait, DeferredWait::none);
  EXPECT_EQ(call.left_bytes(), 504u);
  ASSERT_EQ(call.part_count, 2u);
  EXPECT_EQ(call.parts[0].peer, 2);
  EXPECT_EQ(call.parts[0].bytes, 4u);
  EXPECT_TRUE(call.parts[1].sends);
  writer.came(from, 4);
  writer.came(to, 500);
  EXPECT_TRUE(all_of(*notes).empty()) << "nothing is under way any more";
  writer.give_back();
  DeferredCall copy;
  EXPECT_FALSE(shm::deferred_read(notes->of[0], &copy));
}

TEST(Deferred, WhatAThreadWaitsFor) {
  const auto notes = std::make_unique<DeferredNotes>();
  DeferredWriter writer;
  writer.take(notes.get(), about("Bcast", 1));
  (void)writer.part(1, false, 10);
  writer.put();
  writer.waits(DeferredWait::function, 300);
  writer.waits(DeferredWait::function, 400);
  EXPECT_EQ(all_of(*notes)[0].wait, DeferredWait::function);
  EXPECT_EQ(all_of(*notes)[0].waits_since_ns, 300u) << "the first one counts";
  writer.waits(DeferredWait::system_call, 500);
  EXPECT_EQ(all_of(*notes)[0].wait, DeferredWait::system_call);
  writer.touched(600, 1);
  EXPECT_EQ(all_of(*notes)[0].wait, DeferredWait::system_call) << "which touches the page";
  EXPECT_EQ(all_of(*notes)[0].waits_for, 1);
  writer.waits_no_more();
  EXPECT_EQ(all_of(*notes)[0].wait, DeferredWait::touch);
  writer.touched(0, -1);
  EXPECT_EQ(all_of(*notes)[0].wait, DeferredWait::function);
  EXPECT_EQ(all_of(*notes)[0].waits_for, DeferredCall::kOthers);
}

TEST(Deferred, ManyPeersShareTheLastParts) {
  const auto notes = std::make_unique<DeferredNotes>();
  DeferredWriter writer;
  writer.take(notes.get(), about("Alltoall", 1));
  std::vector<std::uint32_t> receives, sends;
  for (int peer = 0; peer < 100; ++peer) receives.push_back(writer.part(peer, false, 10));
  for (int peer = 0; peer < 100; ++peer) sends.push_back(writer.part(peer, true, 1));
  writer.put();
  const DeferredCall call = all_of(*notes)[0];
  EXPECT_EQ(call.part_count, DeferredCall::kParts);
  EXPECT_EQ(call.left_bytes(), 1100u);
  EXPECT_EQ(call.parts[receives[5]].peer, 5);
  EXPECT_EQ(call.parts[receives[99]].peer, DeferredCall::kOthers);
  EXPECT_EQ(call.parts[sends[99]].bytes, 100u);
}

TEST(Deferred, CallsWithoutANoteGoUnnoticed) {
  const auto notes = std::make_unique<DeferredNotes>();
  DeferredWriter writers[DeferredNotes::kNotes + 1];
  for (DeferredWriter& writer : writers) {
    writer.take(notes.get(), about("Gather", 1));
    const std::uint32_t part = writer.part(0, false, 8);
    writer.put();
    writer.came(part, 1);
    writer.touched(1, 0);
  }
  EXPECT_EQ(all_of(*notes).size(), DeferredNotes::kNotes);
  DeferredWriter nowhere;
  nowhere.take(nullptr, about("Gather", 1));
  nowhere.put();
  nowhere.give_back();
}

TEST(Touches, TimeOfThreadsThatWaitTogetherCountsOnce) {
  overlap::Touches touches;
  EXPECT_TRUE(touches.begin(4096, 10));
  EXPECT_FALSE(touches.begin(4096, 15)) << "another thread at the same page";
  EXPECT_FALSE(touches.begin(8192, 20));
  EXPECT_FALSE(touches.end([](std::uint64_t at) { return at >= 12288; }, 25)) << "nobody waits there";
  EXPECT_TRUE(touches.end([](std::uint64_t at) { return at == 4096; }, 30));
  ASSERT_NE(touches.oldest(), nullptr);
  EXPECT_EQ(touches.oldest()->since_ns, 20u);
  EXPECT_EQ(touches.spans(), 0u);
  EXPECT_TRUE(touches.end([](std::uint64_t at) { return at < 65536; }, 40));
  ASSERT_EQ(touches.spans(), 1u);
  EXPECT_EQ(touches.span(0).begin_ns, 10u);
  EXPECT_EQ(touches.span(0).ns, 30u);
  for (std::uint64_t i = 0; i < 100; ++i) {
    touches.begin(i * 4096, 100 + i);
    touches.end_all(101 + i);
  }
  EXPECT_EQ(touches.spans(), overlap::Touches::kSpans);
  std::uint64_t all_ns = 0;
  for (std::size_t i = 0; i < touches.spans(); ++i) all_ns += touches.span(i).ns;
  EXPECT_EQ(all_ns, 130u);
}

TEST(Timeline, AnyRunFits) {
  using overlap::Timeline;
  Timeline timeline;
  constexpr std::uint64_t kBin = Timeline::kFirstBinNs;
  timeline.add(&Timeline::Bin::in_call_ns, kBin / 2, kBin);
  EXPECT_EQ(timeline.used(), 2u);
  EXPECT_EQ(timeline.bin(0).in_call_ns, kBin / 2);
  EXPECT_EQ(timeline.bin(1).in_call_ns, kBin / 2);
  timeline.add(&Timeline::Bin::waited_ns, 1000 * kBin, kBin / 2);
  EXPECT_EQ(timeline.bin_ns(), 8 * kBin);
  EXPECT_EQ(timeline.bin(0).in_call_ns, kBin);
  EXPECT_EQ(timeline.bin(125).waited_ns, kBin / 2);
  EXPECT_EQ(timeline.used(), 126u);
}

}  // namespace
}  // namespace stretto::test
