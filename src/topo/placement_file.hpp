// SPDX-License-Identifier: BSD-3-Clause
// Where the ranks of a job are, as a file says it: for machines that do not tell, and for trying hierarchies that are
// not there.
//
//   all: node:2 socket:2 numa:2 core:4    rank 0 on the first core of the first node, and so on, from the outermost
//   level in;
//                                         behind the last core comes the first again
//   0-3,8: node=0 socket=1 nic=0          these ranks, in domains with these numbers, and nearest to this network card
//   of their node;
//                                         several `nic=` mean that they are as near to one as to the other
//
// with # comments. Later lines count where they contradict earlier ones; a level that no line names, a rank is nowhere
// on.
#pragma once
#include "base/array.hpp"
#include "base/options_file.hpp"
#include "topo/locality.hpp"

namespace stretto::topo {

class PlacementFile {
 public:
  // False with `error` set: line, column and what is wrong there.
  bool parse(const char* text, std::size_t bytes, FileError* error);
  [[nodiscard]] bool empty() const { return rules_.empty(); }
  [[nodiscard]] Locality locality(int rank) const;
  // Ranks 0 to `ranks` - 1, on all levels that some line names, and near the cards. False: no memory.
  bool place(int ranks, Placement* placement) const;

 private:
  friend class PlacementParser;
  static constexpr int kNics = kLocalityLevelCount;  // as a level: `domain` has a bit for each card
  // Ranks [first, last] are in this domain; or, dealt out, every rank in (rank / each) % domains.
  struct Rule {
    int first, last;
    int level;
    std::uint64_t domain;
    std::uint64_t each, domains;  // domains 0: as `domain` says
  };
  Array<Rule> rules_;
};

}  // namespace stretto::topo
