// SPDX-License-Identifier: BSD-3-Clause
// Collectives of a replay: which members have come, and when each goes on.
//
// By the recording, each member takes as long as it took from when the last one had come, times a
// factor. A member that only sends goes on by itself. Otherwise members end as their schedules do
// (job_collectives.hpp). On an ideal network nothing but waiting takes time.
#pragma once
#include <unordered_map>

#include "job_actions.hpp"
#include "job_collectives.hpp"
#include "job_comms.hpp"
#include "job_messages.hpp"

namespace stretto::modelling {

class Meetings {
 public:
  // `times`: null on an ideal network. `early`: calls return early where they may.
  Meetings(Operations& operations, Network& network, CollectiveTimes* times, bool early)
      : operations_(operations), network_(network), times_(times), early_(early) {}

  struct Coming {
    const record::Recording& recording;
    CommState& comm;
    const Action& action;
    double was, took;  // when the recorded call began, and its time
    int rank;          // in MPI_COMM_WORLD
    Cause by;          // what it does, and when it comes
    bool blocking;
  };
  // Operations that end when the call does, and, of a call that returns early, when its data are
  // there.
  struct Parts {
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    std::uint32_t call = kNone, data = kNone;
  };
  Parts meet(const Coming& coming);

 private:
  struct Member {
    Parts parts;
    int rank = 0;              // in MPI_COMM_WORLD
    std::size_t position = 0;  // in the communicator
    double was = 0, took = 0;
    double alone = -1;  // how long it takes, waiting for nobody; negative: it waits
    const record::Recording* recording = nullptr;
    const Action* action = nullptr;
    bool is_root = false, only_sends = false;
    Cause by;
  };

  CollectiveCall call_of(const Coming& coming, const record::Communicator* known);
  static std::uint64_t bytes_of(Collective collective, const std::vector<Member>& members);
  static PartLengths lengths_of(Collective collective, const std::vector<Member>& members);
  double alone(const CollectiveCall& call, const Member& member);
  struct Needs;
  static double rest(const Member& member, double others_came);
  void settle(const std::vector<Member>& members, CollectiveCall call);
  void finish(const Member& member, const CollectiveCall& call, double sent, double end, const Cause& cause);

  Operations& operations_;
  Network& network_;
  CollectiveTimes* times_;
  bool early_;
  std::unordered_map<std::uint64_t, std::vector<Member>> meetings_;
  std::unordered_map<std::uint32_t, std::uint32_t> places_;  // of communicators by their names
};

}  // namespace stretto::modelling
