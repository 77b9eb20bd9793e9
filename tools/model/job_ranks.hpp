// SPDX-License-Identifier: BSD-3-Clause
// A rank in the midst of a replay: where it is in its recording, when, and what it waits for.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "job_actions.hpp"
#include "job_critical.hpp"
#include "job_gaps.hpp"
#include "job_replay.hpp"
#include "record/reader.hpp"

namespace stretto::modelling {

// A request.
struct Slot {
  std::vector<std::uint32_t> operations;
  const Action* persistent = nullptr;
  const Action* wild = nullptr;  // a receive with wildcards that is posted
  double posted = 0;
  bool away = false;  // it is about another world: a wait for it takes what it took
};

// What a rank does next: it computes until it calls, waits for data of a call that has returned
// early, begins the call, waits for its end.
enum class Phase : std::uint8_t { computes, needs_data, calls, waits, ended };

// Data that come behind a call which has returned.
struct Late {
  std::uint32_t data;  // an operation
  std::uint32_t term;
  double returned;
};

struct Rank {
  const record::Recording* recording = nullptr;
  std::unique_ptr<record::Calls> calls;
  record::Calls::Call call;
  Phase phase = Phase::computes;
  bool has_call = true;
  double now = 0, was = 0;  // in the replay; when the call began in the recording
  std::unique_ptr<Gaps> gaps;
  double computes_from = 0, called = 0;  // of the call
  RankSummary summary;
  std::vector<Slot> slots;
  std::vector<std::uint32_t> needs;  // operations, until the call ends
  std::vector<Late> late;            // data, until the next call
  std::vector<SiteSummary> sites;    // by term
  OnPath on_path;
};

}  // namespace stretto::modelling
