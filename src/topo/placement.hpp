// SPDX-License-Identifier: BSD-3-Clause
// Where the ranks of a communicator are. A placement has, for every level from the lowest up, the
// number of the domain that each rank is in. A domain is an L3 cache, a NUMA node, a package, a
// machine, a leaf switch and so on. Numbers need to be unique only within the domain above, because
// domains nest by their paths. Whatever the numbers say, groups of a level are parts of the groups
// above.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/array.hpp"
#include "sys/sys.hpp"

namespace stretto::topo {

inline constexpr int kMostLevels = 16;
inline constexpr std::size_t kLevelNameBytes = 16;

struct LevelName {
  char text[kLevelNameBytes] = {};
  [[nodiscard]] bool is(const char* name) const { return std::strcmp(text, name) == 0; }
};

struct Placement {
  static constexpr std::int32_t kNowhere = -1;  // in no domain of the level: bound to more than one, or unknown

  int ranks = 0;
  int levels = 0;
  LevelName names[kMostLevels];
  Array<std::int32_t> domains;  // [level * ranks + rank]
  Array<sys::NicPlace> nics;    // by rank; empty: no rank knows its cards

  // Starts without levels.
  void start(int rank_count) {
    ranks = rank_count;
    levels = 0;
    domains.clear();
    nics.clear();
  }
  // Adds a level above the existing ones, with all ranks nowhere. False: no memory, or too many
  // levels.
  bool add_level(const char* name) {
    if (levels == kMostLevels) return false;
    names[levels] = {};
    std::memcpy(names[levels].text, name, std::min(std::strlen(name), kLevelNameBytes - 1));
    return domains.resize(static_cast<std::size_t>(++levels) * static_cast<std::size_t>(ranks), kNowhere);
  }
  // The same, but consecutive ranks are in domains of `each` ranks.
  bool add_level_of(const char* name, std::int64_t each) {
    if (!add_level(name)) return false;
    for (int r = 0; r < ranks; ++r) at(levels - 1, r) = static_cast<std::int32_t>(r / each);
    return true;
  }
  [[nodiscard]] std::int32_t& at(int level, int rank) {
    return domains[static_cast<std::size_t>(level) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::int32_t at(int level, int rank) const {
    return domains[static_cast<std::size_t>(level) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank)];
  }
};

}  // namespace stretto::topo
