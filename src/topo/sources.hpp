// SPDX-License-Identifier: BSD-3-Clause
// Reads what the options say about places: the level string, the placement file and the network
// file.
#pragma once
#include "base/options.hpp"
#include "topo/levels.hpp"
#include "topo/network.hpp"
#include "topo/placement_file.hpp"

namespace stretto::topo {

// Reads all of a file of the user's. Returns 0 or an errno value.
int file_text(const char* path, Array<char>* text);

struct Sources {
  LevelChoice levels;
  PlacementFile placement;  // empty: Stretto finds out where ranks are
  Network network;          // without nodes: unknown

  // Adds mistakes to the report.
  void read(const Options& options, OptionsReport& report);
  // The locality of this process, whose rank in its job is `rank`.
  [[nodiscard]] Locality locality(int rank) const;
};

}  // namespace stretto::topo
