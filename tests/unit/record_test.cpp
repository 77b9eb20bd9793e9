// SPDX-License-Identifier: BSD-3-Clause
// Recordings of one rank: what is written can be read, stays small, and is right within its bound.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "mpi/record/numbers.hpp"
#include "record/reader.hpp"
#include "record/times.hpp"
#include "record/writer.hpp"

namespace stretto::record {
namespace {

struct File {
  std::string path = testing::TempDir() + "record-" + std::to_string(getpid());
  ~File() { std::filesystem::remove(path); }

  [[nodiscard]] std::vector<std::uint8_t> bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

// A call as a test makes it.
struct Made {
  std::int64_t number;
  std::uint64_t gap, duration;
};

std::vector<std::int64_t> words(std::int64_t number) {
  return {static_cast<std::int64_t>(Role::function),
          1,
          number % 7,
          static_cast<std::int64_t>(Role::waited),
          2,
          number,
          -number};
}

void write(Writer& writer, const std::vector<Made>& calls) {
  for (const Made& call : calls) {
    const std::vector<std::int64_t> said = words(call.number);
    writer.call(writer.term(said.data(), said.size()), call.gap, call.duration);
  }
}

Span span(const std::vector<std::uint8_t>& bytes) { return {bytes.data(), bytes.size()}; }

// Bytes in use of all streams.
std::size_t used(const Recording& recording) {
  std::size_t all = 0;
  for (int i = 0; i < kStreams; ++i) all += recording.stream(static_cast<Stream>(i)).size;
  return all;
}

// The calls are those that were made; at each call, sums of times are within the bound.
void expect_calls(const Recording& recording, const std::vector<Made>& made, double bound) {
  Calls calls(recording);
  Calls::Call call;
  double gaps = 0, durations = 0, true_gaps = 0, true_durations = 0, recent_gaps = 0, recent_durations = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    ASSERT_TRUE(calls.next(&call)) << i;
    const Values waited = recording.values(call.term, Role::waited);
    ASSERT_EQ(waited.size, 2u);
    ASSERT_EQ(waited.data[0], made[i].number) << i;
    ASSERT_EQ(waited.data[1], -made[i].number) << i;
    gaps += call.gap / recording.seconds_a_tick();
    durations += call.duration / recording.seconds_a_tick();
    true_gaps += static_cast<double>(made[i].gap);
    true_durations += static_cast<double>(made[i].duration);
    recent_gaps += static_cast<double>(made[i].gap) - recent_gaps / stretto::record::kRecent;
    recent_durations += static_cast<double>(made[i].duration) - recent_durations / stretto::record::kRecent;
    // What is kept of one time may be off by its scale.
    const double once = 0.3 * static_cast<double>(made[i].gap + made[i].duration) + 600;
    ASSERT_NEAR(gaps, true_gaps, bound * recent_gaps + once) << i;
    ASSERT_NEAR(durations, true_durations, bound * recent_durations + once) << i;
  }
  EXPECT_FALSE(calls.next(&call));
}

void expect_kept(const std::vector<Made>& made, double bound, std::size_t most_bytes) {
  File file;
  Writer writer;
  ASSERT_EQ(writer.open(file.path.c_str(), {.bound = bound}), 0);
  write(writer, made);
  writer.finish();
  const std::vector<std::uint8_t> bytes = file.bytes();
  Recording recording;
  ASSERT_TRUE(recording.read(span(bytes))) << recording.failure();
  EXPECT_EQ(recording.header().finished, 1u);
  expect_calls(recording, made, bound);
  EXPECT_LT(used(recording), most_bytes);
  std::uint64_t calls = 0;
  for (std::uint32_t term = 0; term < recording.terms(); ++term) calls += recording.totals(term).calls;
  EXPECT_EQ(calls, made.size());
}

std::mt19937_64 g_random(20261128);
std::uint64_t about(double ticks) {
  std::normal_distribution<double> spread(1, 0.05);
  return static_cast<std::uint64_t>(ticks * std::abs(spread(g_random)));
}

// 10^6 calls of 1,000 turns of a loop that has another loop inside.
TEST(Record, ARegularProgramIsSmall) {
  std::vector<Made> made;
  for (int turn = 0; made.size() < 1'000'000; ++turn) {
    made.push_back({1, about(1e6), about(5e4)});
    for (int i = 0; i < 100 + turn % 3; ++i) {
      for (int call = 0; call < 9; ++call) made.push_back({10 + call, about(3000 * (call + 1)), about(900)});
    }
    made.push_back({2, about(2e5), about(1e5)});
  }
  expect_kept(made, 0.01, 400'000);
}

TEST(Record, NoOrderAtAll) {
  std::vector<Made> made;
  std::uniform_int_distribution<int> any(0, 999);
  std::exponential_distribution<double> length(1e-4);
  for (int i = 0; i < 100'000; ++i)
    made.push_back({any(g_random), static_cast<std::uint64_t>(length(g_random)),
                    static_cast<std::uint64_t>(100 * length(g_random))});
  expect_kept(made, 0.01, 1'000'000);
}

// More terms than the writer remembers.
TEST(Record, EverNewTerms) {
  std::vector<Made> made;
  for (int i = 0; i < 150'000; ++i) made.push_back({i, 1000, 1000});
  for (int i = 0; i < 150'000; ++i) made.push_back({i, 1000, 1000});
  expect_kept(made, 0.01, 20'000'000);
}

TEST(Record, WithoutABoundEachTimeIsKept) {
  std::vector<Made> made;
  for (std::uint64_t i = 1; i < 2000; ++i) made.push_back({0, i * i * i, 0});
  File file;
  Writer writer;
  ASSERT_EQ(writer.open(file.path.c_str(), {.bound = 0}), 0);
  write(writer, made);
  const std::vector<std::uint8_t> bytes = file.bytes();
  Recording recording;
  ASSERT_TRUE(recording.read(span(bytes))) << recording.failure();
  EXPECT_EQ(recording.header().finished, 0u);  // as after a kill
  Calls calls(recording);
  Calls::Call call;
  for (const Made& one : made) {
    ASSERT_TRUE(calls.next(&call));
    const auto ticks = static_cast<double>(one.gap);
    // What one time lacks is added to the next one.
    EXPECT_NEAR(call.gap / recording.seconds_a_tick(), ticks, 0.02 * ticks + 2);
    EXPECT_EQ(call.duration, 0);
  }
}

TEST(Record, TimesOfTheProcessor) {
  File file;
  Writer writer;
  ASSERT_EQ(writer.open(file.path.c_str(), {}), 0);
  const std::vector<std::int64_t> said = words(1);
  for (int i = 0; i < 10; ++i)
    writer.call(writer.term(said.data(), said.size()), 1'000'000, 10, i % 4 == 1 ? 1000.0 * i : -1);
  const std::vector<std::uint8_t> bytes = file.bytes();
  Recording recording;
  ASSERT_TRUE(recording.read(span(bytes)));
  Calls calls(recording);
  Calls::Call call;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(calls.next(&call));
    if (i % 4 == 1)
      EXPECT_NEAR(call.processor / recording.seconds_a_tick(), 1000.0 * i, 1);
    else
      EXPECT_LT(call.processor, 0);
  }
}

TEST(Record, TheScaleIsLogarithmic) {
  EXPECT_EQ(code_of(0.9), 0);
  EXPECT_EQ(ticks_of(0), 0);
  for (std::uint16_t code = 1; code < 60 * 64; ++code) {
    EXPECT_EQ(code_of(ticks_of(code)), code);
    EXPECT_NEAR(ticks_of(code) / std::exp2((code - 1) / kStepsEach), 1, 1e-12);
  }
  for (double ticks = 1; ticks < 1e18; ticks *= 1.0037) {
    const double exact = std::log2(ticks) * kStepsEach + 1;
    EXPECT_LE(std::fabs(code_of(ticks) - exact), 0.5 + 1e-9) << ticks;
  }
}

// A recording that comes from another tool: its times are of one clock, in nanoseconds.
TEST(Record, AnotherClock) {
  const File file;
  Writer writer;
  ASSERT_EQ(writer.open(file.path.c_str(), {.rank = 0, .ranks = 1, .bound = 0}), 0);
  constexpr std::uint64_t kFirst = 1'700'000'000'000'000'000, kLast = kFirst + 5'000'000'000;
  writer.set_clock(kFirst, kLast);
  write(writer, {{1, 1 << 20, 1 << 10}, {2, 1 << 20, 1 << 10}});
  writer.define(Definition::place, 7, "x");  // the clock of this process is not looked at any more
  writer.finish();
  const std::vector<std::uint8_t> bytes = file.bytes();
  Recording recording;
  ASSERT_TRUE(recording.read(span(bytes))) << recording.failure();
  const Header& header = recording.header();
  EXPECT_EQ(header.one_clock, 1u);
  EXPECT_EQ(header.first_ns, kFirst);
  EXPECT_EQ(header.last_ns, kLast);
  EXPECT_EQ(header.last_counter - header.first_counter, kLast - kFirst);
  EXPECT_DOUBLE_EQ(recording.seconds_a_tick(), 1e-9);
  Calls calls(recording);
  Calls::Call call;
  ASSERT_TRUE(calls.next(&call));
  EXPECT_NEAR(call.gap, 1e-9 * (1 << 20), 1e-11 * (1 << 20));
  EXPECT_NEAR(call.duration, 1e-9 * (1 << 10), 1e-11 * (1 << 10));
}

TEST(Record, Definitions) {
  File file;
  Writer writer;
  ASSERT_EQ(writer.open(file.path.c_str(), {.rank = 3, .ranks = 8, .host = "here", .program = "./app -x"}), 0);
  writer.define(Definition::function, 5, "MPI_Recv");
  writer.define(Definition::place, 0, "/bin/app+0x12");
  const std::int64_t comm[] = {2, kInter, 1, 4, 2, 1, 2, 3, 0, 0, 1, 9, -2, 2};
  writer.define(Definition::comm, comm, std::size(comm));
  const std::int64_t neighbors[] = {2, 1, 3, 2, 0, 2};
  writer.define(Definition::neighbors, neighbors, std::size(neighbors));
  const std::int64_t said[] = {static_cast<std::int64_t>(Role::function), 1, 5,
                               static_cast<std::int64_t>(Role::place),    1, 0};
  writer.call(writer.term(said, std::size(said)), 1, 2);
  writer.finish();
  const std::vector<std::uint8_t> bytes = file.bytes();
  Recording recording;
  ASSERT_TRUE(recording.read(span(bytes))) << recording.failure();
  EXPECT_EQ(recording.header().rank, 3);
  EXPECT_STREQ(recording.header().program, "./app -x");
  const Text function = recording.function(0), place = recording.place(0);
  EXPECT_EQ(std::string(function.text, function.size), "MPI_Recv");
  EXPECT_EQ(std::string(place.text, place.size), "/bin/app+0x12");
  const Communicator* const found = recording.communicator(2);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->flags, kInter);
  const std::int32_t members[] = {1, 3, 5, 0, 9, 7};
  EXPECT_EQ(std::memcmp(recording.members().data() + found->first_member, members, sizeof members), 0);
  EXPECT_EQ(found->sources, 1u);
  EXPECT_EQ(found->destinations, 2u);
}

TEST(Record, WhatIsNoRecordingIsRefused) {
  std::vector<std::uint8_t> bytes(100'000, 1);
  EXPECT_FALSE(Recording().read(span(bytes)));
  EXPECT_FALSE(Recording().read({}));
  File file;
  Writer writer;
  EXPECT_EQ(writer.open("/does/not/exist/x", {}), ENOENT);
}

// Numbers against a table of the standard library.
TEST(Record, TheLeastFreeNumber) {
  mpi::Numbers numbers;
  std::multimap<std::uintptr_t, std::uint32_t> model;
  std::vector<bool> taken;
  std::uniform_int_distribution<std::uintptr_t> handle(1, 60);
  for (int i = 0; i < 20'000; ++i) {
    const std::uintptr_t one = handle(g_random) * 4096;
    if (g_random() % 2 == 0) {
      std::uint32_t least = 0;
      while (least < taken.size() && taken[least]) ++least;
      ASSERT_EQ(numbers.add(one), least);
      if (least == taken.size()) taken.push_back(true);
      taken[least] = true;
      model.emplace(one, least);
    } else {
      const std::uint32_t number = numbers.take(one);
      const auto [begin, end] = model.equal_range(one);
      auto at = begin;
      while (at != end && at->second != number) ++at;
      ASSERT_EQ(number == mpi::Numbers::kNone, begin == end);
      if (begin == end) continue;
      ASSERT_NE(at, end);
      if (g_random() % 4 == 0) {
        numbers.restore(one, number);
      } else {
        model.erase(at);
        numbers.release(number);
        taken[number] = false;
      }
    }
  }
}

}  // namespace
}  // namespace stretto::record
