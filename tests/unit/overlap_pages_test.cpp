// SPDX-License-Identifier: BSD-3-Clause
// Blocks on pages, against a model that looks at each byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "overlap/pages.hpp"

using namespace stretto;
using namespace stretto::overlap;

namespace {

const char* at(std::uint64_t address) { return reinterpret_cast<const char*>(address); }

struct Case {
  std::uint64_t address = 0, bytes = 0, unit = 0;
  std::vector<Block> blocks;
};

Case any_case(std::mt19937& random) {
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  Case made;
  made.unit = std::uint64_t{1} << below(7);
  made.address = 4096 + below(3 * made.unit);
  std::uint64_t at = below(2) * below(3 * made.unit);
  for (std::uint64_t n = below(12); n > 0; --n) {
    const std::uint64_t bytes = below(4) == 0 ? 0 : below(5 * made.unit);
    made.blocks.push_back({at, bytes});
    at += bytes + (below(2) == 0 ? 0 : below(4 * made.unit));
  }
  made.bytes = at + below(2 * made.unit);
  if (below(3) != 0) std::shuffle(made.blocks.begin(), made.blocks.end(), random);
  return made;
}

// The block that each byte of the buffer belongs to, -1: a gap.
std::vector<int> owners(const Case& made) {
  std::vector<int> owner(made.bytes, -1);
  for (std::size_t i = 0; i < made.blocks.size(); ++i)
    for (std::uint64_t k = 0; k < made.blocks[i].bytes; ++k) owner[made.blocks[i].offset + k] = static_cast<int>(i);
  return owner;
}

// Units by address. The one block that fills a unit, or -1.
struct Model {
  const Case& made;
  std::vector<int> owner = owners(made);
  [[nodiscard]] bool inside(std::uint64_t address) const {
    return address >= made.address && address < made.address + made.bytes;
  }
  [[nodiscard]] int alone(std::uint64_t unit) const {
    int found = -2;
    for (std::uint64_t byte = unit * made.unit; byte < (unit + 1) * made.unit; ++byte) {
      const int here = inside(byte) ? owner[byte - made.address] : -1;
      if (found != -2 && found != here) return -1;
      found = here;
    }
    return found;
  }
  [[nodiscard]] std::uint64_t awaited(std::uint64_t unit) const {
    std::uint64_t count = 0;
    for (std::uint64_t byte = unit * made.unit; byte < (unit + 1) * made.unit; ++byte)
      count += inside(byte) && owner[byte - made.address] >= 0 ? 1 : 0;
    return count;
  }
};

// Units of which blocks have every byte, and what of each block lies there.
void expect_guarded(const Case& made, const PageLayout& layout, const Model& model, std::uint64_t first) {
  std::vector<std::uint64_t> guarded, told;
  for (std::uint64_t unit = first; unit < first + layout.units(); ++unit)
    if (model.awaited(unit) == made.unit) guarded.push_back(unit - first);
  for (const UnitRun& run : layout.guarded())
    for (std::uint64_t k = 0; k < run.count; ++k) told.push_back(run.first + k);
  EXPECT_EQ(told, guarded);
  for (const Block& block : made.blocks) {
    std::uint64_t bytes = 0, begin = 0;
    for (std::uint64_t k = block.bytes; k-- > 0;) {
      const std::uint64_t unit = (made.address + block.offset + k) / made.unit;
      if (!std::binary_search(guarded.begin(), guarded.end(), unit - first)) continue;
      ++bytes;
      begin = block.offset + k;
    }
    const Block part = layout.guarded_part(block);
    EXPECT_EQ(part.bytes, bytes);
    if (bytes != 0) EXPECT_EQ(part.offset, begin);
  }
}

void expect_as_model(const Case& made, const PageLayout& layout) {
  const Model model{made};
  std::vector<std::uint64_t> own;
  for (std::uint64_t unit = made.address / made.unit; unit * made.unit < made.address + made.bytes; ++unit)
    if (model.alone(unit) >= 0) own.push_back(unit);
  ASSERT_EQ(layout.units(), own.empty() ? 0 : own.back() - own.front() + 1);
  if (!own.empty()) {
    ASSERT_EQ(made.address + layout.offset(), own.front() * made.unit);
  }
  EXPECT_EQ(layout.head_bytes() + layout.bytes() + layout.tail_bytes(), made.bytes);
  const std::uint64_t first = own.empty() ? 0 : own.front();
  std::vector<SharedUnit> shared;
  std::vector<std::uint64_t> idle, told;
  for (std::uint64_t unit = first; unit < first + layout.units(); ++unit) {
    const std::uint64_t awaited = model.awaited(unit);
    if (awaited == 0) idle.push_back(unit - first);
    if (awaited != 0 && model.alone(unit) < 0) shared.push_back({unit - first, awaited});
  }
  for (const UnitRun& run : layout.idle())
    for (std::uint64_t k = 0; k < run.count; ++k) told.push_back(run.first + k);
  EXPECT_EQ(told, idle);
  ASSERT_EQ(layout.shared().size(), shared.size());
  for (std::size_t i = 0; i < shared.size(); ++i) {
    EXPECT_EQ(layout.shared()[i].unit, shared[i].unit);
    EXPECT_EQ(layout.shared()[i].awaited, shared[i].awaited);
  }
  expect_guarded(made, layout, model, first);
  std::uint64_t edges = 0;
  for (std::size_t i = 0; i < made.blocks.size(); ++i) {
    const BlockPlace& place = layout.places()[i];
    std::uint64_t count = 0;
    for (const std::uint64_t unit : own)
      if (model.alone(unit) == static_cast<int>(i)) {
        if (count++ == 0) {
          EXPECT_EQ(place.own.first, unit - first);
          EXPECT_EQ(made.address + made.blocks[i].offset + place.edge_before, unit * made.unit);
        }
      }
    EXPECT_EQ(place.own.count, count);
    EXPECT_EQ(place.edge_before + count * made.unit + place.edge_behind, made.blocks[i].bytes);
    edges += place.edge_before + place.edge_behind;
  }
  EXPECT_EQ(layout.edge_bytes(), edges);
}

// Pieces of blocks, in any order.
std::vector<Block> pieces_of(const Case& made, std::mt19937& random) {
  std::vector<Block> pieces;
  for (const Block& block : made.blocks)
    for (std::uint64_t done = 0; done < block.bytes;) {
      const std::uint64_t bytes = std::min<std::uint64_t>(block.bytes - done, 1 + random() % (3 * made.unit));
      pieces.push_back({block.offset + done, bytes});
      done += bytes;
    }
  std::shuffle(pieces.begin(), pieces.end(), random);
  return pieces;
}

void expect_arrival(const Case& made, const PageLayout& layout, std::mt19937& random) {
  const Model model{made};
  const std::uint64_t first = (made.address + layout.offset()) / made.unit;
  std::vector<std::uint64_t> missing;
  std::vector<bool> alone;
  for (std::uint64_t unit = first; unit < first + layout.units(); ++unit) {
    missing.push_back(model.awaited(unit));
    alone.push_back(model.alone(unit) >= 0);
  }
  std::uint64_t edges = layout.edge_bytes();
  Arrival arrival;
  ASSERT_TRUE(arrival.begin(layout));
  const std::vector<Block> pieces = pieces_of(made, random);
  EXPECT_EQ(arrival.all_is_here(), pieces.empty());
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    std::vector<std::uint64_t> complete, told;
    for (std::uint64_t k = 0; k < pieces[n].bytes; ++k) {
      const std::uint64_t unit = (made.address + pieces[n].offset + k) / made.unit - first;
      if (unit >= missing.size() || !alone[unit]) --edges;
      if (unit < missing.size() && --missing[unit] == 0) complete.push_back(unit);
    }
    const UnitRun run = arrival.arrived(pieces[n].offset, pieces[n].bytes);
    for (std::uint64_t k = 0; k < run.count; ++k) told.push_back(run.first + k);
    ASSERT_EQ(told, complete);
    ASSERT_EQ(arrival.edges_are_here(), edges == 0);
    ASSERT_EQ(arrival.all_is_here(), n + 1 == pieces.size());
  }
}

TEST(OverlapPages, AnyBlocksLieAsTheModelSays) {
  std::mt19937 random(7);
  for (int n = 0; n < 5000 && !testing::Test::HasFailure(); ++n) {
    const Case made = any_case(random);
    SCOPED_TRACE("case " + std::to_string(n));
    PageLayout layout;
    ASSERT_EQ(layout.make(at(made.address), made.bytes, made.blocks.data(), made.blocks.size(), made.unit),
              LayoutError::none);
    expect_as_model(made, layout);
    expect_arrival(made, layout, random);
  }
}

TEST(OverlapPages, WrongBlocksAreRefused) {
  PageLayout layout;
  const Block shared[] = {{100, 50}, {0, 101}}, outside[] = {{100, 50}}, far[] = {{~std::uint64_t{0}, 2}};
  EXPECT_EQ(layout.make(at(4096), 200, shared, 2, 64), LayoutError::overlaps);
  EXPECT_EQ(layout.make(at(4096), 149, outside, 1, 64), LayoutError::outside);
  EXPECT_EQ(layout.make(at(4096), 149, far, 1, 64), LayoutError::outside);
  EXPECT_EQ(layout.make(at(4096), 150, outside, 1, 64), LayoutError::none);
  EXPECT_EQ(layout.make(at(4096), 0, nullptr, 0, 64), LayoutError::none);
  EXPECT_EQ(layout.units(), 0u);
}

TEST(OverlapPages, ATerabyteIsCountedAsAnyOther) {
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 40, kHalf = kBytes / 2;
  const Block blocks[] = {{kHalf, kHalf}, {0, kHalf}};
  for (const std::uint64_t unit : {std::uint64_t{4096}, std::uint64_t{2} << 20}) {
    PageLayout layout;
    Arrival arrival;
    ASSERT_EQ(layout.make(at(4096 * 512 + 16), kBytes, blocks, 2, unit), LayoutError::none);
    EXPECT_EQ(layout.units(), kBytes / unit - 1);
    EXPECT_EQ(layout.head_bytes(), unit - 16);
    ASSERT_EQ(layout.shared().size(), 1u);
    if (!arrival.begin(layout)) GTEST_SKIP() << "no gibibyte of address space";
    EXPECT_EQ(arrival.arrived(0, kHalf), (UnitRun{0, kHalf / unit - 1}));
    EXPECT_EQ(arrival.arrived(kHalf, kHalf), (UnitRun{kHalf / unit - 1, kHalf / unit}));
    EXPECT_TRUE(arrival.all_is_here() && arrival.edges_are_here());
  }
}

}  // namespace
