// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a node tell its carriers before an Alltoallv by carriers: how long their blocks
// are (coll/hierarchy/nodes.hpp). For that the ranks of a node are neighbours, and no message
// leaves the node.
#pragma once
#include "base/array.hpp"
#include "base/status.hpp"
#include "coll/algorithm.hpp"
#include "coll/hierarchy/nodes.hpp"
#include "engine/begins.hpp"
#include "select/selector.hpp"

namespace stretto::engine {

class Scheduler;

class ToldLengths {
 public:
  // All members call it, whatever their lengths.
  Status exchange(Scheduler& scheduler, const select::Selection& selection, const Begins& sent, const Begins& received);
  void describe(coll::Problem& problem) const {
    problem.told = words_.data();
    problem.told_words = words_.size();
  }
  // The words of Buffer::check for the call. A carrier sends the first one of each pair, and has
  // the peer's in the second one afterwards.
  [[nodiscard]] char* check() { return reinterpret_cast<char*>(check_.data()); }
  // After the call. Returns `other_length` if the carrier of another node knows other lengths.
  [[nodiscard]] Status compare() const;

 private:
  void fill_check(const coll::Nodes& nodes);

  Array<std::uint64_t> words_, check_, expected_;
};

}  // namespace stretto::engine
