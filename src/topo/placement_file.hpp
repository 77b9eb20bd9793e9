// SPDX-License-Identifier: BSD-3-Clause
// A file that says where the ranks of a job are. It is for machines that do not tell, and for
// trying hierarchies that do not exist.
//
//   all: node:2 socket:2 numa:2 core:4
//       Levels stand from the outermost to the innermost. Rank 0 is on the first core of the first
//       node, and so on. After the last core comes the first again.
//   0-3,8: node=0 socket=1 nic=0
//       These ranks are in the domains with these numbers, and nearest to this network card of
//       their node. Several `nic=` mean that they are equally near to these cards.
//
// A # begins a comment. A later line wins over an earlier one. On a level that no line names for
// it, a rank is in no domain.
#pragma once
#include "base/array.hpp"
#include "base/options_file.hpp"
#include "topo/locality.hpp"

namespace stretto::topo {

class PlacementFile {
 public:
  // Returns false with `error` set: line, column and what is wrong there.
  bool parse(const char* text, std::size_t bytes, FileError* error);
  [[nodiscard]] bool empty() const { return rules_.empty(); }
  [[nodiscard]] Locality locality(int rank) const;
  // Places ranks 0 to `ranks` - 1 on all levels that some line names, and near the cards. False: no
  // memory.
  bool place(int ranks, Placement* placement) const;

 private:
  friend class PlacementParser;
  static constexpr int kNics = kLocalityLevelCount;  // takes the place of a level: `domain` has a bit for each card
  // Ranks [first, last] are in `domain`. If `domains` is not 0, the ranks are dealt out: each is in
  // domain (rank / each) % domains.
  struct Rule {
    int first, last;
    int level;
    std::uint64_t domain;
    std::uint64_t each, domains;  // domains 0: `domain` counts
  };
  Array<Rule> rules_;
};

}  // namespace stretto::topo
