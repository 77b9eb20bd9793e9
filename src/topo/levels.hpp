// SPDX-License-Identifier: BSD-3-Clause
// Says which levels of a placement make groups, as users write it:
//
//   auto                 every level that splits something
//   l3,numa,node,leaf    these, in any order; names that the machine does not have are ignored
//   auto,-socket         all but these
//   numa:2               each NUMA node, and below it two halves of neighbouring ranks
//   ?8                   below everything, groups of at most 8 neighbouring ranks
//   none                 no groups
#pragma once
#include "topo/placement.hpp"

namespace stretto::topo {

struct LevelChoice {
  struct Entry {
    LevelName name;
    int parts = 1;  // 1: the level itself; more: also so many parts of it, below
    bool off = false;
  };
  bool all = true;  // whether levels that no entry names are on
  int at_most = 0;  // ranks of the lowest groups; 0: any number
  int count = 0;
  Entry entries[kMostLevels];

  [[nodiscard]] bool active(const LevelName& name, int* parts) const;
};

struct LevelError {
  unsigned column = 0;  // from 1
  const char* what = nullptr;
};
bool parse_levels(const char* text, LevelChoice* choice, LevelError* error);

}  // namespace stretto::topo
