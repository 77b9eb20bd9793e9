// SPDX-License-Identifier: BSD-3-Clause
// Compares regions, streams and blocks with an oracle that copies byte by byte.
#include "base/region.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace stretto {
namespace {

using Random = std::mt19937_64;
using Piece = Run;  // inside a TEST, Run is gtest's

std::size_t below(Random& random, std::size_t bound) { return static_cast<std::size_t>(random() % bound); }

// A layout that owns its runs.
struct Typemap {
  std::vector<Run> runs;
  Layout layout{};

  void finish(std::ptrdiff_t extent) {
    std::size_t size = 0;
    for (const Run& run : runs) size += run.bytes;
    const bool dense = runs.size() == 1 && extent == static_cast<std::ptrdiff_t>(size);
    bool uniform = !runs.empty();
    for (const Run& run : runs) uniform = uniform && run.bytes == runs[0].bytes;
    layout = {size, extent, runs.data(), runs.size(), dense, uniform ? runs[0].bytes : 0};
  }
};

// Runs in a shuffled order. None overlap, and some offsets are negative. The extent may be smaller
// than the span, so that elements interleave. Their stride then keeps their bytes apart.
Typemap random_typemap(Random& random) {
  Typemap map;
  const std::size_t kind = below(random, 8);
  if (kind == 0) {  // no data
    map.finish(static_cast<std::ptrdiff_t>(below(random, 9)));
    return map;
  }
  if (kind <= 2) {  // plain memory, perhaps off its origin
    const std::size_t bytes = 1 + below(random, 40);
    map.runs.push_back({static_cast<std::ptrdiff_t>(below(random, 33)) - 16, bytes});
    map.finish(static_cast<std::ptrdiff_t>(bytes));
    return map;
  }
  std::ptrdiff_t at = static_cast<std::ptrdiff_t>(below(random, 65)) - 32;
  const std::size_t count = 1 + below(random, 9);
  const std::size_t widths[] = {1, 2, 3, 4, 8, 16, 17, 31};
  const bool uniform = below(random, 2) == 0;
  const std::size_t common = widths[below(random, 8)];
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bytes = uniform ? common : widths[below(random, 8)];
    map.runs.push_back({at, bytes});
    at += static_cast<std::ptrdiff_t>(bytes + below(random, 12));
  }
  const std::ptrdiff_t first = map.runs.front().offset;
  std::shuffle(map.runs.begin(), map.runs.end(), random);
  const std::ptrdiff_t extent = at - first + static_cast<std::ptrdiff_t>(below(random, 10));
  map.finish(below(random, 4) == 0 ? -extent : extent);
  return map;
}

// Memory around a region. The origin is in the middle, so that negative offsets and extents have
// room.
struct Arena {
  std::vector<char> bytes = std::vector<char>(1 << 14, '\x5a');
  char* origin() { return bytes.data() + bytes.size() / 2; }
};

// The oracle: the addresses of a region's bytes, in stream order.
std::vector<char*> places(const Region& region) {
  std::vector<char*> result;
  for (std::uint64_t element = 0; element < region.count; ++element) {
    char* origin = region.base + static_cast<std::ptrdiff_t>(element) * region.layout->extent;
    for (std::size_t r = 0; r < region.layout->run_count; ++r) {
      const Run& run = region.layout->runs[r];
      char* piece = origin + run.offset;
      for (std::size_t i = 0; i < run.bytes; ++i) result.push_back(piece + i);
    }
  }
  return result;
}

std::size_t offset_in(const std::vector<char>& bytes, const char* place) {
  return static_cast<std::size_t>(place - bytes.data());
}

void fill(Arena& arena, Random& random) {
  for (char& byte : arena.bytes) byte = static_cast<char>(random());
}

Region random_region(Arena& arena, const Typemap& map, Random& random) {
  return {arena.origin(), below(random, 20), &map.layout};
}

TEST(Region, SizesAndFlatness) {
  const Piece run{-3, 8};
  const Layout dense{8, 8, &run, 1, true};
  const Layout gapped{8, 12, &run, 1, false};
  const Layout empty{0, 16, nullptr, 0, true};
  char memory[64];
  EXPECT_EQ((Region{memory + 8, 5, &dense}.bytes()), 40u);
  EXPECT_EQ((Region{memory + 8, 5, &dense}.flat()), memory + 5);
  EXPECT_EQ((Region{memory + 8, 2, &gapped}.flat()), nullptr);
  EXPECT_EQ((Region{memory + 8, 1, &gapped}.flat()), memory + 5) << "one element of one run is plain memory";
  EXPECT_EQ((Region{memory, 5, &empty}.bytes()), 0u);
  EXPECT_EQ((Region{memory, 5, &empty}.flat()), nullptr) << "no run to point at";
  EXPECT_EQ((Region{nullptr, 0, &dense}.flat()), nullptr);
  EXPECT_EQ((Region{}.bytes()), 0u);
}

TEST(Region, EmptyStreamsTakeEmptySteps) {
  const Layout empty{0, 16, nullptr, 0, true};
  Stream stream(Region{nullptr, 1000, &empty});
  EXPECT_EQ(stream.left(), 0u);
  stream.pack(nullptr, 0);
  stream.unpack(nullptr, 0);
  Stream none;
  none.pack(nullptr, 0);
  region_copy(Region{nullptr, 3, &empty}, Region{});
}

// MPI_BOTTOM: the base is null and the offset is the address.
TEST(Region, OffsetsMayBeAddresses) {
  char memory[8] = "bottom!";
  const Piece run{static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(memory)), 8};
  const Layout layout{8, 8, &run, 1, true};
  char seen[8];
  Stream(Region{nullptr, 1, &layout}).pack(seen, 8);
  EXPECT_STREQ(seen, "bottom!");
}

TEST(Stream, PacksAnyPieces) {
  Random random(1);
  for (int round = 0; round < 3000; ++round) {
    Arena arena;
    fill(arena, random);
    const Typemap map = random_typemap(random);
    const Region region = random_region(arena, map, random);
    const std::vector<char*> oracle = places(region);
    ASSERT_EQ(region.bytes(), oracle.size());
    Stream stream(region);
    std::size_t done = 0;
    std::vector<char> packed(oracle.size());
    while (stream.left() != 0) {
      const std::size_t piece = below(random, std::min<std::size_t>(stream.left(), 50) + 1);
      stream.pack(packed.data() + done, piece);
      done += piece;
      ASSERT_EQ(stream.left(), oracle.size() - done);
    }
    for (std::size_t i = 0; i < oracle.size(); ++i) {
      ASSERT_EQ(packed[i], *oracle[i]) << "round " << round << " byte " << i;
    }
  }
}

TEST(Stream, UnpacksAnyPiecesAndNothingElse) {
  Random random(2);
  for (int round = 0; round < 3000; ++round) {
    Arena arena;
    Arena expected;
    const Typemap map = random_typemap(random);
    const Region region = random_region(arena, map, random);
    const std::vector<char*> oracle = places(region);
    std::vector<char> data(oracle.size());
    for (char& byte : data) byte = static_cast<char>(random());
    const std::size_t total = below(random, oracle.size() + 1);  // it may stop anywhere
    Stream stream(region);
    for (std::size_t done = 0; done < total;) {
      const std::size_t piece = std::min(total - done, below(random, 60));
      stream.unpack(data.data() + done, piece);
      done += piece;
    }
    for (std::size_t i = 0; i < total; ++i) expected.bytes[offset_in(arena.bytes, oracle[i])] = data[i];
    ASSERT_EQ(arena.bytes, expected.bytes) << "round " << round;
  }
}

TEST(RegionCopy, JoinsDifferentTypemaps) {
  Random random(3);
  for (int round = 0; round < 3000; ++round) {
    Arena source;
    Arena target;
    Arena expected;
    fill(source, random);
    const Typemap from_map = random_typemap(random);
    const Typemap to_map = random_typemap(random);
    Region from = random_region(source, from_map, random);
    Region to = random_region(target, to_map, random);
    const std::vector<char*> from_places = places(from);
    const std::vector<char*> to_places = places(to);
    const std::size_t common = std::min(from_places.size(), to_places.size());
    for (std::size_t i = 0; i < common; ++i) {
      expected.bytes[offset_in(target.bytes, to_places[i])] = *from_places[i];
    }
    region_copy(to, from);
    ASSERT_EQ(target.bytes, expected.bytes) << "round " << round;
  }
}

// Longer than the bounce buffer of region_copy, with gaps on both sides.
TEST(RegionCopy, LongGappedRegions) {
  const Piece three{0, 3};
  const Piece pieces[] = {{8, 5}, {1, 2}};
  const Layout from_layout{3, 5, &three, 1, false};
  const Layout to_layout{7, 16, pieces, 2, false};
  std::vector<char> source(5 * 7000);
  std::vector<char> target(16 * 3000, '\x5a');
  std::vector<char> expected = target;
  Random random(4);
  for (char& byte : source) byte = static_cast<char>(random());
  const Region from{source.data(), 7000, &from_layout};
  const Region to{target.data(), 3000, &to_layout};
  const std::vector<char*> from_places = places(from);
  const std::vector<char*> to_places = places(to);
  ASSERT_EQ(from_places.size(), to_places.size());
  for (std::size_t i = 0; i < from_places.size(); ++i) expected[offset_in(target, to_places[i])] = *from_places[i];
  region_copy(to, from);
  EXPECT_EQ(target, expected);
}

TEST(Blocks, RegularBlocksFollowTheExtent) {
  const Piece run{0, 4};
  const Layout layout{4, 10, &run, 1, false};
  char memory[1];
  const Blocks blocks{memory, &layout, 7};
  EXPECT_EQ(blocks.at(0).base, memory);
  EXPECT_EQ(blocks.at(3).base, memory + 3 * 7 * 10);
  EXPECT_EQ(blocks.at(3).count, 7u);
  EXPECT_EQ(blocks.at(3).layout, &layout);
}

TEST(Blocks, RegularBlocksBeyondTheIntRange) {
  const Piece run{0, 8};
  const Layout layout{8, 8, &run, 1, true};
  const Blocks blocks{nullptr, &layout, 1u << 31};
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.at(3).base), 3ull << 34);
}

template <class Entry>
void expect_irregular(bool wide) {
  const Piece run{0, 4};
  const Layout layout{4, 6, &run, 1, false};
  const Entry counts[] = {3, 0, 5};
  const Entry displs[] = {-2, 100, 7};
  char memory[128];
  const Blocks blocks{memory + 64, &layout, 0, counts, displs, wide};
  for (int rank = 0; rank < 3; ++rank) {
    const auto base = reinterpret_cast<std::uintptr_t>(blocks.at(rank).base);
    EXPECT_EQ(base, reinterpret_cast<std::uintptr_t>(memory + 64) + static_cast<std::uintptr_t>(displs[rank] * 6));
    EXPECT_EQ(blocks.at(rank).count, static_cast<std::uint64_t>(counts[rank]));
  }
}

TEST(Blocks, IntEntries) { expect_irregular<std::int32_t>(false); }
TEST(Blocks, WideEntries) { expect_irregular<std::int64_t>(true); }

}  // namespace
}  // namespace stretto
