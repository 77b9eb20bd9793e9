// SPDX-License-Identifier: BSD-3-Clause
// What a file says of calls, usually one that `stretto tune` has written, in the place of what is built in:
//
//   allreduce ranks=8 nodes=4 bytes=64K-1M: ring segment=64K
//   bcast nodes=1 bytes=0-4K: mpi
//
// with # comments. First the calls: a collective, and where they are given the communicator's ranks, the nodes that
// these are on, and the bytes of the whole call (a vector's, or of all parts together; 0 where not all ranks know all
// lengths). A range is N, N-M or N-. Then what serves them: `mpi`; `builtin`, as if nothing were said; or a schedule,
// which is an algorithm on all ranks with k=N and segment=BYTES where it has them, or a composition over the levels
// (hierarchy; of an allreduce hierarchy:reduce_bcast and hierarchy:rails; of that, a bcast and a reduce
// hierarchy:stripes; hierarchy:nodes leaves out all levels but nodes) with by=NAME, the algorithm on each level where
// there is one by this name. Of several lines that fit, the last counts.
#pragma once
#include "base/array.hpp"
#include "base/options_file.hpp"
#include "select/across_nodes.hpp"

namespace stretto::select {

struct Range {
  std::uint64_t least = 0, most = ~std::uint64_t{0};
  [[nodiscard]] bool has(std::uint64_t value) const { return value >= least && value <= most; }
};

struct Rule {
  enum class Backend : std::uint8_t { host, builtin, schedule };
  Selection selection;  // of what collective, on which line; how, if it is a schedule
  Backend backend = Backend::builtin;
  Range ranks, nodes, bytes;
};

class Rules {
 public:
  // False with `error` set: line, column and what is wrong there; then there are no rules.
  bool parse(const char* text, std::size_t bytes, FileError* error);
  [[nodiscard]] bool empty() const { return rules_.empty(); }
  [[nodiscard]] std::size_t size() const { return rules_.size(); }
  [[nodiscard]] const Rule* begin() const { return rules_.begin(); }
  [[nodiscard]] const Rule* end() const { return rules_.end(); }
  // Whether some rule is of calls among ranks of so many nodes.
  [[nodiscard]] bool speak_of_nodes(int nodes) const;

 private:
  Array<Rule> rules_;
};

}  // namespace stretto::select
