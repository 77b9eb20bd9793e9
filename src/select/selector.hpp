// SPDX-License-Identifier: BSD-3-Clause
// What serves the calls of one communicator: options first, then what a file of rules says, then what is built in:
// shared memory where all ranks share it, between nodes the table of across_nodes.hpp. A function of what all ranks
// know, so they all choose the same; found once for a communicator, as far as it does not depend on a call's length.
#pragma once
#include "select/rules.hpp"

namespace stretto::select {

// Bit sets by Collective; all this is the same on all members.
struct Circumstances {
  int ranks = 1;
  int nodes = 1;
  std::uint32_t wanted = kNativeCollectives;  // not left to the host by an option
  std::uint32_t forced = 0;                   // always by schedule, by an option
  std::uint32_t in_memory = 0;                // shared memory serves them
  bool across_nodes = false;  // whether the built-in table holds: its selections were measured between nodes
};

enum class Backend : std::uint8_t { schedule, shared_memory, host };

// What was chosen for one call. Together with the call it says all that a schedule depends on; of CommTraits it needs
// what never changes.
struct Choice {
  const Selection* selection = nullptr;  // how, if it is a schedule; and why
  Backend backend = Backend::host;
  std::uint64_t bytes = 0;  // that the call was chosen by
  bool operator==(const Choice&) const = default;
};

class Selector {
 public:
  // `rules` stay. False: no memory.
  bool start(const Circumstances& at, const Rules& rules);
  // Reductions that depend on the order of combining go in rank order: by memory, or by schedules that combine from
  // left to right.
  void keep_order() { keeps_order_ = true; }
  [[nodiscard]] bool keeps_order() const { return keeps_order_; }
  // Where the ranks are, for what is built in.
  void place(const topo::Hierarchies& hierarchies);
  // Whether short messages go by connections of our own, as far as all ranks know.
  void connect(bool connected) { traits_.connected = connected; }
  // The collectives of which some calls may go by schedule or depend on rules. Of all others memory or the host serves
  // every call.
  [[nodiscard]] std::uint32_t open() const {
    return at_.forced | (at_.wanted & (automatic_ | ruled_ | (keeps_order_ ? kReductions & ~at_.in_memory : 0)));
  }
  [[nodiscard]] std::uint32_t ruled() const { return at_.wanted & ruled_; }
  // Of a call of so many bytes, as rules count them; `in_order`: it depends on the order, which is kept.
  [[nodiscard]] Choice of(Collective collective, std::uint64_t bytes, bool in_order = false) const;
  [[nodiscard]] const CommTraits& traits() const { return traits_; }
  // The same choice, or what is built in where its selection cannot serve this problem, or nothing was chosen that goes
  // by schedule.
  [[nodiscard]] Choice able(const Choice& choice, const coll::Problem& problem) const;
  // A choice in words, and the reason.
  [[nodiscard]] SelectionWords words(const Choice& choice) const;

 private:
  [[nodiscard]] const Rule* rule(Collective collective, std::uint64_t bytes) const;

  Circumstances at_;
  CommTraits traits_;
  bool keeps_order_ = false;
  std::uint32_t automatic_ = 0, ruled_ = 0;
  Array<const Rule*> rules_;  // of communicators like this one
};

}  // namespace stretto::select
