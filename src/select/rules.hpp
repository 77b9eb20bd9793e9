// SPDX-License-Identifier: BSD-3-Clause
// Rules: what a file says about calls. It takes precedence over what is built in. Usually `stretto
// tune` has written it:
//
//   allreduce ranks=8 nodes=4 bytes=64K-1M: ring segment=64K
//   bcast nodes=1 bytes=0-4K: mpi
//   allreduce nodes=1 bytes=0-1K: shm:slices
//
// # begins a comment. The left side names the calls: a collective and, optionally, three ranges.
// `ranks` counts those of the communicator, and `nodes` the nodes that they are on. `bytes` is the
// length of the whole call: a vector's, or of all parts together. It is 0 where not all ranks know
// all lengths. A range is N, N-M or N-.
//
// The right side says what serves the calls: `mpi`, `builtin` (as if there were no rule), an
// algorithm over shared memory (coll/shm/manifest.hpp), or a schedule. Where ranks share no memory,
// shm:NAME is as `builtin`.
//
// A schedule is an algorithm on all ranks, with k=N and segment=BYTES where it has them. Or it is a
// composition over the levels, with by=NAME: the algorithm on each level that has one of this name.
// All collectives have hierarchy and hierarchy:nodes; the latter leaves out all levels but nodes.
// An allreduce also has hierarchy:reduce_bcast, hierarchy:rails and hierarchy:chain_and_back. An
// allreduce, a bcast and a reduce have hierarchy:stripes and hierarchy:chain. Of several lines that
// fit, the last counts.
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
  enum class Backend : std::uint8_t { host, builtin, schedule, shared_memory };
  Selection selection;  // the collective and the line; for what is ours, also how
  Backend backend = Backend::builtin;
  Range ranks, nodes, bytes;
  // Whether it is about communicators of so many ranks on so many nodes.
  [[nodiscard]] bool fits(int of_ranks, int on_nodes) const {
    return ranks.has(static_cast<std::uint64_t>(of_ranks)) && nodes.has(static_cast<std::uint64_t>(on_nodes));
  }
};

class Rules {
 public:
  // False: `error` has line, column and what is wrong there. There are no rules then.
  bool parse(const char* text, std::size_t bytes, FileError* error);
  [[nodiscard]] bool empty() const { return rules_.empty(); }
  [[nodiscard]] std::size_t size() const { return rules_.size(); }
  [[nodiscard]] const Rule* begin() const { return rules_.begin(); }
  [[nodiscard]] const Rule* end() const { return rules_.end(); }
  // Whether some rule is about calls among ranks of so many nodes.
  [[nodiscard]] bool speak_of_nodes(int nodes) const;

 private:
  Array<Rule> rules_;
};

}  // namespace stretto::select
