// SPDX-License-Identifier: BSD-3-Clause
// Buffers whose parts have gaps: where packed bytes belong, and when pages are complete.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "overlap/gapped_parts.hpp"
#include "overlap/pages.hpp"

namespace stretto::test {
namespace {

constexpr std::uint64_t kUnit = 64;

// Three parts in one piece of memory: elements of a few runs, the parts side by side or mixed.
struct Parts {
  std::vector<Run> runs;
  Layout layout{};
  std::vector<char> memory = std::vector<char>(20'000, 'g');
  std::vector<std::int64_t> counts{0, 0, 0}, displs{0, 0, 0};
  Blocks blocks;
  std::uint64_t bytes = 0;

  explicit Parts(std::mt19937& random) {
    std::ptrdiff_t at = 0;
    for (std::size_t i = 1 + random() % 4; i-- > 0;) {
      at += static_cast<std::ptrdiff_t>(random() % 40);
      runs.push_back({at, 1 + random() % 100});
      at += static_cast<std::ptrdiff_t>(runs.back().bytes);
      layout.size += runs.back().bytes;
    }
    if (random() % 2 == 0) std::swap(runs.front(), runs.back());  // data come in another order than they lie
    layout.extent = at + static_cast<std::ptrdiff_t>(random() % 30);
    layout.runs = runs.data();
    layout.run_count = runs.size();
    std::int64_t next = 0;
    for (std::size_t part = 0; part < 3; ++part) {
      counts[part] = static_cast<std::int64_t>(random() % 8);
      displs[part] = next;
      next += counts[part] + static_cast<std::int64_t>(random() % 3);
      bytes += static_cast<std::uint64_t>(counts[part]) * layout.size;
    }
    blocks = {memory.data() + 128, &layout, 0, counts.data(), displs.data(), true};
  }
};

TEST(OverlapGapped, BytesGoWhereTheTypeSays) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    Parts parts(random);
    std::vector<char> packed(parts.bytes + 1);
    for (char& each : packed) each = static_cast<char>(random() % 100);
    overlap::GappedParts gapped;
    ASSERT_EQ(gapped.start(parts.blocks, 3, nullptr, packed.data()), parts.bytes != 0);
    if (parts.bytes == 0) continue;
    std::vector<char> expected = parts.memory;
    ASSERT_LE(static_cast<std::uint64_t>(gapped.memory() - parts.memory.data()) + gapped.bytes(), parts.memory.size());
    std::uint64_t begin = 0;
    for (int part = 0; part < 3; ++part) {
      const Region region = parts.blocks.at(part);
      const std::uint64_t end = begin + region.bytes();
      // In two pieces, the later one first.
      const std::uint64_t cut = begin + (end > begin ? random() % (end - begin) : 0);
      for (const auto& [from, to] : {std::pair{cut, end}, std::pair{begin, cut}})
        gapped.each_piece(from, to - from, [&](std::uint64_t at, const char* bytes, std::uint64_t n) {
          ASSERT_LE(at + n, gapped.bytes());
          std::memcpy(gapped.memory() + at, bytes, n);
        });
      begin = end;
    }
    const std::vector<char> placed = parts.memory;
    parts.memory = expected;
    begin = 0;
    for (int part = 0; part < 3; ++part) {
      const Region region = parts.blocks.at(part);
      Stream(region).unpack(packed.data() + begin, region.bytes());
      begin += region.bytes();
    }
    EXPECT_EQ(placed, parts.memory) << "trial " << trial;
  }
}

// Each unit is told once, when the last of its bytes has come, and not before.
TEST(OverlapGapped, UnitsAreCompleteWithTheirLastByte) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    Parts parts(random);
    std::vector<char> packed(parts.bytes + 1);
    overlap::GappedParts gapped;
    if (!gapped.start(parts.blocks, 3, nullptr, packed.data())) continue;
    const overlap::Block all{0, gapped.bytes()};
    overlap::PageLayout layout;
    ASSERT_EQ(layout.make(gapped.memory(), gapped.bytes(), &all, 1, kUnit), overlap::LayoutError::none);
    std::vector<std::uint64_t> awaited(layout.units(), 0);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
    const auto unit_of = [&](std::uint64_t byte) { return (byte - layout.offset()) / kUnit; };
    const auto is_inside = [&](std::uint64_t byte) {
      return byte >= layout.offset() && byte < layout.offset() + layout.bytes();
    };
    gapped.each_piece_of_all(parts.bytes, [&](std::uint64_t at, const char*, std::uint64_t n) {
      pieces.emplace_back(at, n);
      for (std::uint64_t i = at; i < at + n; ++i)
        if (is_inside(i)) ++awaited[unit_of(i)];
    });
    overlap::Arrival arrival;
    ASSERT_TRUE(arrival.begin_gapped(layout, [&](const auto& awaits) {
      for (const auto& [at, n] : pieces) awaits(at, n);
    }));
    for (std::uint64_t unit = 0; unit < layout.units(); ++unit) EXPECT_EQ(arrival.is_idle(unit), awaited[unit] == 0);
    std::shuffle(pieces.begin(), pieces.end(), random);
    std::uint64_t edges = 0;
    for (const auto& [at, n] : pieces)
      for (std::uint64_t i = at; i < at + n; ++i) edges += is_inside(i) ? 0 : 1;
    for (const auto& [at, n] : pieces) {
      EXPECT_EQ(arrival.edges_are_here(), edges == 0);
      const overlap::UnitRun complete = arrival.arrived(at, n);
      for (std::uint64_t i = at; i < at + n; ++i) {
        if (!is_inside(i)) --edges;
        if (!is_inside(i) || --awaited[unit_of(i)] != 0) continue;
        EXPECT_TRUE(unit_of(i) >= complete.first && unit_of(i) < complete.first + complete.count);
      }
      for (std::uint64_t unit = complete.first; unit < complete.first + complete.count; ++unit)
        EXPECT_EQ(awaited[unit], 0u);
    }
    EXPECT_TRUE(arrival.edges_are_here() && arrival.all_is_here());
  }
}

}  // namespace
}  // namespace stretto::test
