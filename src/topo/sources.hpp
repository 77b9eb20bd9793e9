// SPDX-License-Identifier: BSD-3-Clause
// What the options say about places: the level string, the placement file and the network file, read and understood.
#pragma once
#include "base/options.hpp"
#include "topo/levels.hpp"
#include "topo/network.hpp"
#include "topo/placement_file.hpp"

namespace stretto::topo {

// All of a file of the user's; 0, or an errno value.
int file_text(const char* path, Array<char>* text);

struct Sources {
  LevelChoice levels;
  PlacementFile placement;  // empty: where ranks are is found out
  Network network;          // of no nodes: unknown

  // Mistakes go to the report.
  void read(const Options& options, OptionsReport& report);
  // The locality of this process, which has this rank in its job.
  [[nodiscard]] Locality locality(int rank) const;
};

}  // namespace stretto::topo
