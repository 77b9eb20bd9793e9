// SPDX-License-Identifier: BSD-3-Clause
// The engine's ranks as fibers: processes and communicators. This file and those that include it
// are instrumented.
#pragma once
#include <memory>
#include <vector>

#include "engine/engine.hpp"
#include "node.hpp"
#include "topo/groups.hpp"

namespace stretto::node {

// A communicator of all ranks of the node, as each of them sees it.
class Job {
 public:
  explicit Job(Node& node);
  ~Job();
  // Each rank calls it once. Null: they declined, and `why` says so.
  engine::Comm* join(engine::Decline& why);

 private:
  struct Member {
    Job* job;
    int rank;
    topo::Binding binding;  // where the machine has this rank's core
  };
  bool allgather(int rank, const void* mine, void* all, std::size_t bytes);
  void meet();

  Node& node_;
  std::vector<engine::Process*> processes_;
  std::vector<Member> members_;
  std::vector<char> words_;
  int arrived_ = 0;
  std::uint64_t meetings_ = 0;
};

}  // namespace stretto::node
