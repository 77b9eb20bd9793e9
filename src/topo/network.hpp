// SPDX-License-Identifier: BSD-3-Clause
// The network as a file describes it: which switch each node hangs on, which switch that one hangs on, and so on. Read
// are
//
//   node lists          node-name switch [switch ...]          one node per line, lowest switch first (Kurnosov 2023)
//   Slurm, tree         SwitchName=s0 Nodes=tux[0-3,12]        topology.conf of the topology/tree plugin
//                       SwitchName=s4 Switches=s[0-3]
//   Slurm, block        BlockName=b1 Nodes=tux[01-04]          topology.conf of the topology/block plugin: sizes above
//   the
//                       BlockSizes=4,16                        first gather neighbouring blocks
//
// with # comments everywhere, and names as host lists (hostlist.hpp). A switch with several parents counts as below the
// first. No heap but the result's; no file is read here.
#pragma once
#include "base/array.hpp"
#include "base/options_file.hpp"
#include "topo/names.hpp"

namespace stretto::topo {

inline constexpr int kMostSwitchLevels = 12;

class Network {
 public:
  // False with `error` set: line, column and what is wrong there.
  bool parse(const char* text, std::size_t bytes, FileError* error);

  [[nodiscard]] int nodes() const { return nodes_.count(); }
  // Levels of switches: how many there are above the node that has most.
  [[nodiscard]] int levels() const { return levels_; }
  // -1: not in the file.
  [[nodiscard]] int node(const char* name) const { return nodes_.find(name); }
  // The switch over a node on a level (0: the leaf switch); where there is none, the highest one below. -1: none at
  // all.
  [[nodiscard]] int switch_over(int node, int level) const;
  [[nodiscard]] const char* switch_name(int number) const { return switches_.name(number); }
  [[nodiscard]] const char* node_name(int number) const { return nodes_.name(number); }

 private:
  friend class NetworkParser;
  void clear();
  // Finds the number of levels. False: there are too many, or some switch is above itself.
  bool finish();

  Names nodes_, switches_;
  Array<int> leaf_;    // of each node, -1: none
  Array<int> parent_;  // of each switch, -1: none
  int levels_ = 0;
};

}  // namespace stretto::topo
