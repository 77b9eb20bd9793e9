// SPDX-License-Identifier: BSD-3-Clause
// What serves the calls of one communicator. Options come first, then a file of rules, then what is
// built in. Built in are shared memory where all ranks share it, and the table of across_nodes.hpp
// between nodes. The choice depends only on what all ranks know, so all choose the same. What does
// not depend on a call's length is found once for a communicator.
#pragma once
#include "select/rules.hpp"

namespace stretto::select {

// Bit sets are by Collective. All this is the same on all members.
struct Circumstances {
  int ranks = 1;
  int nodes = 1;
  std::uint32_t wanted = kNativeCollectives;  // no option leaves these to the host
  std::uint32_t forced = 0;                   // an option says: always by schedule
  std::uint32_t in_memory = 0;                // shared memory serves them
  // Whether the built-in table holds: its selections were measured between nodes.
  bool across_nodes = false;
};

enum class Backend : std::uint8_t { schedule, shared_memory, host };

// What was chosen for one call. A schedule depends on the call and on this only. Of CommTraits, it
// needs only what never changes.
struct Choice {
  const Selection* selection = nullptr;  // for a schedule: how; and why
  Backend backend = Backend::host;
  std::uint64_t bytes = 0;  // the length that the choice was made by
  bool operator==(const Choice&) const = default;
};

class Selector {
 public:
  // `rules` must outlive the selector. False: no memory.
  bool start(const Circumstances& at, const Rules& rules);
  // From now on, reductions that depend on the order of combining go in rank order. They go over
  // shared memory, or by schedules that combine from left to right.
  void keep_order() { keeps_order_ = true; }
  [[nodiscard]] bool keeps_order() const { return keeps_order_; }
  // Tells where the ranks are, for what is built in.
  void place(const topo::Hierarchies& hierarchies) { traits_.place(hierarchies); }
  // Tells whether short messages go by connections of our own, as far as all ranks know.
  void connect(bool connected) { traits_.connected = connected; }
  // The collectives of which some calls may go by schedule, or go to the host by a rule. For all
  // others, shared memory or the host serves every call. Rules that name algorithms over shared
  // memory are the engine's (shm_rules.hpp).
  [[nodiscard]] std::uint32_t open() const {
    return at_.forced | (at_.wanted & (automatic_ | ruled_ | (keeps_order_ ? kReductions & ~at_.in_memory : 0)));
  }
  [[nodiscard]] std::uint32_t ruled() const { return at_.wanted & ruled_; }
  // The choice for a call of so many bytes, as rules count them. `in_order`: its result depends on
  // the order, which is kept. `commutative`: of reductions, as in coll::Problem.
  [[nodiscard]] Choice of(Collective collective, std::uint64_t bytes, bool in_order = false,
                          bool commutative = true) const;
  [[nodiscard]] const CommTraits& traits() const { return traits_; }
  // The same choice if it is a schedule that can serve this problem, or else what is built in.
  [[nodiscard]] Choice able(const Choice& choice, const coll::Problem& problem) const;
  // A choice in words, and the reason.
  [[nodiscard]] SelectionWords words(const Choice& choice) const;

 private:
  [[nodiscard]] const Rule* rule(Collective collective, std::uint64_t bytes) const;

  Circumstances at_;
  CommTraits traits_;
  bool keeps_order_ = false;
  std::uint32_t automatic_ = 0, ruled_ = 0;
  Array<const Rule*> rules_;  // those that fit this communicator
};

}  // namespace stretto::select
