// SPDX-License-Identifier: BSD-3-Clause
// A node in virtual time. Ranks are fibers, rank r on a core of its own. Each access of theirs to
// shared memory goes through the directory and costs what the machine says.
//
// Time. A load that misses does not hold its rank up at once: some misses are under way together,
// as in a core that runs ahead. A fence, a store that others must see, or a second look at the same
// flag waits for them. Stores leave the core in order and cost it nothing. Others see a store when
// all other caches have given the line up: `Line::visible_at`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "directory.hpp"
#include "fibers.hpp"

namespace stretto::node {

class Node {
 public:
  Node(const Machine& machine, std::vector<int> cores) : machine_(machine), directory_(machine), cores_(cores) {}

  // Runs `body(rank)` on all ranks. False: some rank waits for ever.
  bool run(const std::function<void(int)>& body);
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] Directory& directory() { return directory_; }
  [[nodiscard]] int ranks() const { return static_cast<int>(cores_.size()); }
  [[nodiscard]] int self() const { return fibers_.self(); }
  [[nodiscard]] int core_of(int rank) const { return cores_[rank]; }
  // The linker may take a template's instance from an instrumented object for the model as well. So
  // the model's own accesses, within `body`, do not count.
  template <class Body>
  void within_model(Body body) {
    if (within_model_ || self() == Fibers::kNobody) return;
    within_model_ = true;
    body();
    within_model_ = false;
  }

  // Memory at the core of this rank that others reach as well. What lay there before is forgotten.
  void share(const void* memory, std::size_t bytes);
  // From now on accesses cost time, or no longer.
  void play(bool on) { playing_ = on; }

  // ---- Of the rank that runs ----
  double now();
  void spend(double ns);
  void settle();    // loads under way are through
  void together();  // of all ranks, between calls
  void pass();      // all others have a turn

  enum class Kind : std::uint8_t { load, look, store, exchange };  // look, exchange: atomic
  void access(const void* address, std::size_t bytes, Kind kind);
  void fetch_to_write(const void* address);

 private:
  struct Range {
    std::uintptr_t begin, end;
    int home;
  };
  struct Core {
    std::vector<double> misses;  // when those under way are through
    double drained = 0;          // the last store is out
    std::uintptr_t looked_at = 0;
  };

  const Range* range_of(std::uintptr_t address);
  template <class Switch>
  void change_rank(Switch change);
  Core& core() { return state_[self()]; }
  void load(Line& line, std::size_t most_misses, bool look);
  void store(Line& line);
  void miss(double done, std::size_t most_misses);

  const Machine machine_;
  Directory directory_;
  Fibers fibers_;
  std::vector<int> cores_;
  std::vector<Core> state_;
  std::vector<Range> ranges_;
  const Range* last_range_ = nullptr;
  bool playing_ = false;
  bool within_model_ = false;
};

// The one that instrumented code runs on.
extern Node* played;
// An access by code that is not instrumented.
void touch(const void* address, std::size_t bytes, Node::Kind kind);

}  // namespace stretto::node
