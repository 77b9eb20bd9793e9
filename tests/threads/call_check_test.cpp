// SPDX-License-Identifier: BSD-3-Clause
// Ranks that contradict each other. The check finds it without a watchdog, in the call or the next
// one, and raises no false alarm. Three ranks take part, and rank 2 is the odd one out.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>

#include "threads/job.hpp"

namespace stretto::test {
namespace {

constexpr int kRanks = 3;
using Statuses = std::array<Status, kRanks>;

Layout layout_of(const Run& run, ElementCode element) {
  Layout layout{run.bytes, static_cast<std::ptrdiff_t>(run.bytes), &run, 1, true};
  layout.signature.append(element, 1);
  return layout;
}
constexpr Run kFour{0, 4}, kEight{0, 8};
const Layout kInts = layout_of(kFour, element_code(ElementKind::integer, 4));
const Layout kDoubles = layout_of(kEight, element_code(ElementKind::real, 8));
const Layout kChars = layout_of(kByteRun, element_code(ElementKind::bytes, 1));

void add(void* out, const void* left, const void* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    static_cast<int*>(out)[i] = static_cast<const int*>(left)[i] + static_cast<const int*>(right)[i];
}

// Log lines are limited per second.
void await_next_second() {
  using namespace std::chrono;
  const auto second = [] { return floor<seconds>(steady_clock::now()); };
  for (const auto now = second(); second() == now;) std::this_thread::sleep_for(milliseconds(5));
  std::this_thread::sleep_for(milliseconds(5));  // the clock that counts them is a coarse one
}

struct Seen {
  Statuses call{}, next{};  // of the call in question, and of a Barrier after it
  std::string text;
  [[nodiscard]] bool tells(const std::string& words) const { return text.find(words) != std::string::npos; }
};

template <class Body>
Seen play(unsigned check, Body body) {
  Group group(everybody(kRanks));
  engine::Settings settings;
  settings.check = check;
  Seen seen;
  await_next_second();
  testing::internal::CaptureStderr();
  run_job(kRanks, settings, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    seen.call[rank] = body(*comm, rank).status;
    seen.next[rank] = engine::barrier(*comm).status;
    engine::comm_free(comm);
  });
  seen.text = testing::internal::GetCapturedStderr();
  return seen;
}

engine::Outcome bcast(engine::Comm& comm, const Layout& layout, std::uint64_t count, int root) {
  std::vector<char> buffer(count * layout.size);
  return engine::bcast(comm, {buffer.data(), count, &layout}, root, true);
}

engine::Outcome allreduce(engine::Comm& comm, std::uint64_t bytes, std::uint8_t op, bool good = true) {
  std::vector<char> own(bytes), out(bytes);
  return engine::allreduce(comm, {own.data(), out.data(), bytes, good},
                           {add, 4, op, element_code(ElementKind::integer, 4)});
}

// A short Bcast needs no answer: both roots are through before any rank can know. The next call
// finds what was left in the queues. Rank 1 waits for its root, and may see in the call itself that
// rank 2 is in another one. It is told so once.
TEST(Check, AnotherRootIsFoundByWhatNobodyTook) {
  const Seen seen = play(1, [](engine::Comm& comm, int rank) { return bcast(comm, kChars, 12, rank == 2 ? 2 : 0); });
  for (const int root : {0, 2}) {
    EXPECT_EQ(seen.call[root], Status::ok) << seen.text;
    EXPECT_EQ(seen.next[root], Status::other_root) << seen.text;
  }
  const bool at_once = seen.call[1] == Status::other_root;
  EXPECT_EQ(seen.call[1], at_once ? Status::other_root : Status::ok) << seen.text;
  EXPECT_EQ(seen.next[1], at_once ? Status::ok : Status::other_root) << seen.text;
  EXPECT_TRUE(seen.tells(
      "call 2 there: rank 0 calls MPI_Bcast (root 0, 12 bytes), but rank 2 calls MPI_Bcast (root 2, 12 bytes): "
      "all ranks must name the same root"))
      << seen.text;
}

TEST(Check, AnotherRootIsFoundByWhoWaits) {
  const Seen seen = play(1, [](engine::Comm& comm, int rank) {
    std::vector<char> own(8), all(24);
    return engine::gather(comm, Collective::gather, {own.data(), 8, &kBytes}, {all.data(), &kBytes, 8},
                          rank == 2 ? 2 : 0, false, true);
  });
  EXPECT_EQ(seen.call[0], Status::other_root) << seen.text;
  EXPECT_EQ(seen.call[2], Status::other_root) << seen.text;
}

TEST(Check, AnotherCollectiveIsFoundOnAllSides) {
  const Seen seen =
      play(1, [](engine::Comm& comm, int rank) { return rank == 2 ? allreduce(comm, 16, 1) : engine::barrier(comm); });
  for (const Status status : seen.call) EXPECT_EQ(status, Status::mismatch) << seen.text;
  EXPECT_TRUE(seen.tells("calls MPI_Barrier, but rank 2 calls MPI_Allreduce (MPI_SUM, 4 integers of 4 bytes)"))
      << seen.text;
}

TEST(Check, AnotherOperationIsFoundInTheRecords) {
  const Seen seen = play(1, [](engine::Comm& comm, int rank) { return allreduce(comm, 16, rank == 2 ? 3 : 1); });
  for (const Status status : seen.call) EXPECT_EQ(status, Status::other_op) << seen.text;
  EXPECT_TRUE(seen.tells(
      "rank 0 calls MPI_Allreduce (MPI_SUM, 4 integers of 4 bytes), but rank 2 calls MPI_Allreduce (MPI_MAX, 4"))
      << seen.text;
}

// The calls are so different that the ranks go different ways and wait for each other.
TEST(Check, AnotherLengthIsFoundByWhoWaits) {
  const Seen seen = play(1, [](engine::Comm& comm, int rank) { return allreduce(comm, rank == 2 ? 16 : 400'000, 1); });
  for (const Status status : seen.call) EXPECT_NE(status, Status::ok) << seen.text;
  EXPECT_EQ(seen.call[0], Status::other_length) << seen.text;
}

TEST(Check, OtherTypesWarnByDefaultAndFailWhereItIsStrict) {
  const auto mixed = [](engine::Comm& comm, int rank) {
    return rank == 2 ? bcast(comm, kInts, 6, 0) : bcast(comm, kDoubles, 3, 0);
  };
  Seen seen = play(1, mixed);
  EXPECT_EQ(seen.call, (Statuses{Status::ok, Status::ok, Status::ok}));
  EXPECT_TRUE(seen.tells(
      "rank 2 calls MPI_Bcast (root 0, 6 integers of 4 bytes), rank 0 calls MPI_Bcast (root 0, 3 reals of 8 bytes)"))
      << seen.text;
  seen = play(2, mixed);
  EXPECT_EQ(seen.call[2], Status::other_type);
  EXPECT_EQ(play(0, mixed).text, "");
}

TEST(Check, BytesGoWithEverything) {
  const auto mixed = [](engine::Comm& comm, int rank) {
    return rank == 2 ? bcast(comm, kChars, 24, 0) : bcast(comm, kDoubles, 3, 0);
  };
  EXPECT_EQ(play(1, mixed).text, "");
  const Seen strict = play(2, mixed);
  EXPECT_EQ(strict.call, (Statuses{Status::ok, Status::ok, Status::ok}));
  EXPECT_TRUE(strict.tells("the sequence of basic datatypes sent is not the one received")) << strict.text;
}

// Before any data move, and on every rank.
TEST(Check, StrictFindsEverythingOnAllRanksInTheCall) {
  const auto expect = [](Status status, auto body) {
    const Seen seen = play(2, body);
    EXPECT_EQ(seen.call, (Statuses{status, status, status})) << seen.text;
    EXPECT_EQ(seen.next, (Statuses{Status::ok, Status::ok, Status::ok})) << seen.text;
  };
  expect(Status::other_root, [](engine::Comm& comm, int rank) { return bcast(comm, kChars, 12, rank == 2 ? 2 : 0); });
  expect(Status::other_length,
         [](engine::Comm& comm, int rank) { return bcast(comm, kChars, rank == 2 ? 14 : 12, 0); });
  expect(Status::other_op, [](engine::Comm& comm, int rank) { return allreduce(comm, 16, rank == 2 ? 3 : 1); });
  expect(Status::other_length,
         [](engine::Comm& comm, int rank) { return allreduce(comm, rank == 2 ? 16 : 400'000, 1); });
  expect(Status::mismatch,
         [](engine::Comm& comm, int rank) { return rank == 2 ? bcast(comm, kInts, 4, 0) : engine::barrier(comm); });
}

// Rank 2 has wrong arguments, so it cannot say how long its message would have been. The others
// must not wait for ever.
TEST(Check, WrongArgumentsOfAPeerEndTheWait) {
  const Seen seen =
      play(1, [](engine::Comm& comm, int rank) { return allreduce(comm, rank == 2 ? 0 : 400'000, 1, rank != 2); });
  EXPECT_EQ(seen.call[0], Status::peer_failed) << seen.text;
  EXPECT_EQ(seen.call[1], Status::peer_failed) << seen.text;
}

TEST(Check, WhoFreesTheCommunicatorEarlyIsNamed) {
  Group group(everybody(2));
  await_next_second();
  testing::internal::CaptureStderr();
  run_job(2, {}, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, group, rank);
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    if (rank == 0) EXPECT_EQ(engine::barrier(*comm).status, Status::peer_gone);
    engine::comm_free(comm);
    for (int i = 0; rank == 1 && i < 20; ++i) {  // its block goes back only when a rank looks
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      engine::comm_free(make_comm(process, *std::make_unique<Group>(everybody(1)), 0));
    }
  });
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("has freed the communicator after 1 calls there"), std::string::npos) << text;
}

TEST(Check, WhoFinalizesEarlyIsNamed) {
  Group group(everybody(2));
  engine::Process* processes[2];
  for (auto& process : processes) process = engine::process_create({}, {});
  await_next_second();
  testing::internal::CaptureStderr();
  {
    std::jthread early([&] {
      engine::Comm* comm = make_comm(*processes[1], group, 1);
      EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
      engine::comm_free(comm);
// There peers read its segment itself, not a mapping of their own.
#if !defined(__SANITIZE_THREAD__)
      engine::process_destroy(processes[1]);
      processes[1] = nullptr;
#endif
    });
    engine::Comm* comm = make_comm(*processes[0], group, 0);
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
#if !defined(__SANITIZE_THREAD__)
    EXPECT_EQ(engine::barrier(*comm).status, Status::peer_gone);
#endif
    engine::comm_free(comm);
  }
  const std::string text = testing::internal::GetCapturedStderr();
#if !defined(__SANITIZE_THREAD__)
  EXPECT_NE(text.find("has called MPI_Finalize after 1 calls there; rank 0 waits for it in call 2, MPI_Barrier"),
            std::string::npos)
      << text;
#endif
  for (auto* process : processes) engine::process_destroy(process);
}

// Rank 0 frees the communicator and uses its memory again. Rank 1 has lost the processor, and has
// yet to read what rank 0 described.
TEST(Check, AClaimStaysUntilItWasRead) {
  Group old({0, 1, 2}), next({0, 2, 3});
  engine::Settings settings;
  settings.check = 2;
  int times = 0;
  const auto lose_the_processor = [](void* times) {
    if (++*static_cast<int*>(times) < 4) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  };
  std::vector<engine::Process*> processes;
  for (int r = 0; r < 4; ++r)
    processes.push_back(engine::process_create(
        settings, r == 1 ? engine::HostProgress{&times, lose_the_processor} : engine::HostProgress{}));
  {
    std::vector<std::jthread> ranks;
    for (int r = 0; r < 4; ++r) {
      ranks.emplace_back([&, r] {
        if (old.rank_of(r) >= 0) {
          engine::Comm* comm = make_comm(*processes[r], old, r);
          ASSERT_NE(comm, nullptr);
          // Until rank 1 waits.
          if (r != 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
          EXPECT_EQ(bcast(*comm, kInts, 1, 2).status, Status::ok);
          engine::comm_free(comm);
        }
        if (next.rank_of(r) >= 0) {
          engine::Comm* comm = make_comm(*processes[r], next, next.rank_of(r));
          ASSERT_NE(comm, nullptr);
          EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
          engine::comm_free(comm);
        }
      });
    }
  }
  for (auto* process : processes) engine::process_destroy(process);
}

// The check finds nothing where nothing is wrong. Ranks come late at random, run ahead as far as
// they can, and finalize early.
TEST(Check, NoFalseAlarm) {
  for (const unsigned check : {1u, 2u}) {
    Group group(everybody(kRanks));
    engine::Settings settings;
    settings.check = check;
    testing::internal::CaptureStderr();
    run_job(kRanks, settings, [&](int rank, engine::Process& process) {
      engine::Comm* comm = make_comm(process, group, rank);
      ASSERT_NE(comm, nullptr);
      std::mt19937 random(static_cast<unsigned>(rank) + 100 * check);
      for (int n = 0; n < 60 * kEffort; ++n) {
        if (random() % 24 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 6));
        const int root = n % kRanks;
        EXPECT_EQ(bcast(*comm, n % 2 == 0 ? kInts : kDoubles, 1 + n % 50, root).status, Status::ok);
        EXPECT_EQ(allreduce(*comm, n % 7 == 0 ? 40'000 : 16, 1).status, Status::ok);
        std::vector<char> own(300), all(900);
        EXPECT_EQ(engine::gather(*comm, Collective::gather, {own.data(), 300, &kBytes}, {all.data(), &kBytes, 300},
                                 root, false, true)
                      .status,
                  Status::ok);
      }
      engine::comm_free(comm);
    });
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  }
}

}  // namespace
}  // namespace stretto::test
