// SPDX-License-Identifier: BSD-3-Clause
// The network as a file describes it: the switch above each node, the switch above that switch, and
// so on. Three forms are understood:
//
//   node lists     node-name switch [switch ...]    one node per line, lowest switch first
//                                                   (Kurnosov 2023)
//   Slurm, tree    SwitchName=s0 Nodes=tux[0-3,12]  topology.conf of the topology/tree plugin
//                  SwitchName=s4 Switches=s[0-3]       and what `scontrol show topology` prints
//   Slurm, block   BlockName=b1 Nodes=tux[01-04]    topology.conf of the topology/block plugin:
//                  BlockSizes=4,16                  sizes after the first gather neighbours
//
// A # begins a comment in all of them. Names may be host lists (hostlist.hpp). In Slurm's form a
// switch with several parents counts as below the first. Only the result uses the heap. The caller
// reads the file.
#pragma once
#include "base/array.hpp"
#include "base/options_file.hpp"
#include "topo/names.hpp"

namespace stretto::topo {

inline constexpr int kMostSwitchLevels = 12;

class Network {
 public:
  // Returns false with `error` set: line, column and what is wrong there.
  bool parse(const char* text, std::size_t bytes, FileError* error);

  [[nodiscard]] int nodes() const { return nodes_.count(); }
  // Levels of switches: the largest number of switches above any node.
  [[nodiscard]] int levels() const { return levels_; }
  // -1: the file does not name it.
  [[nodiscard]] int node(const char* name) const { return nodes_.find(name); }
  // The switch above a node on a level (0: the leaf switch). Where the level has none, it is the
  // highest one below. -1: the node has no switch.
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
