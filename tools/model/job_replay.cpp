// SPDX-License-Identifier: BSD-3-Clause
#include "job_replay.hpp"

#include <algorithm>
#include <map>
#include <queue>

#include "job_clocks.hpp"
#include "job_comms.hpp"
#include "job_meetings.hpp"
#include "job_messages.hpp"
#include "job_posting.hpp"
#include "job_ranks.hpp"
#include "job_windows.hpp"

namespace stretto::modelling {
namespace {

using record::Calls;
using record::Communicator;
using record::Recording;

using Actions = std::vector<std::vector<Action>>;  // by rank and term

class Replay {
 public:
  Replay(const JobFile& job, const Actions& actions, const ReplayOptions& options);
  // Says what is on the path, too.
  void watch(Path path);
  Replayed run();
  [[nodiscard]] Path critical_path() const;

 private:
  using Entry = std::pair<double, std::uint32_t>;  // when a rank goes on

  bool go_on(std::uint32_t r);
  void compute(std::uint32_t r);
  bool take_late_data(std::uint32_t r);
  void begin_call(std::uint32_t r);
  bool end_call(std::uint32_t r);
  void wake();
  void start(std::uint32_t r, const Action& action);
  void meet(std::uint32_t r, const Action& action, std::vector<std::uint32_t>& operations);
  // What this rank waits for in a collective.
  void gather(std::uint32_t r, const Action& action, std::vector<std::uint32_t>& operations) {
    if (is_neighborhood(action.collective))
      posting_.meet_neighbors(r, action, operations);
    else
      meet(r, action, operations);
  }
  [[nodiscard]] bool is_ideal() const { return options_.machine == nullptr; }
  void say_stall();

  const Actions& actions_;
  const ReplayOptions& options_;
  std::vector<Rank> ranks_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> runnable_;
  Operations operations_;
  Messages messages_;
  Meetings meetings_;
  Communicators comms_;
  Waits waits_;
  Replayed result_;
  Posting posting_;
  Windows windows_;
};

Replay::Replay(const JobFile& job, const Actions& actions, const ReplayOptions& options)
    : actions_(actions),
      options_(options),
      ranks_(static_cast<std::size_t>(job.ranks())),
      messages_(operations_, options.machine, ranks_.size(), options.eager_bytes),
      meetings_(operations_, messages_.network(), options.machine == nullptr ? nullptr : options.collectives,
                options.overlap),
      comms_(ranks_.size()),
      waits_(ranks_.size()),
      posting_(ranks_, operations_, messages_, comms_, waits_, result_),
      windows_(ranks_, posting_) {
  const Replayed was = options.balance ? measured(job) : Replayed{};
  double mean = 0;
  for (const RankSummary& each : was.ranks) mean += each.compute / static_cast<double>(was.ranks.size());
  const std::vector<double> begin = starts_of(job);
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    rank.recording = &job.of(static_cast<int>(r));
    rank.calls = std::make_unique<Calls>(*rank.recording);
    rank.now = rank.was = begin[r];
    const bool balances = options.balance && was.ranks[r].compute > 0;
    rank.gaps = std::make_unique<Gaps>(options.gaps, *rank.recording, balances ? mean / was.ranks[r].compute : 1);
    if (options.overlap) rank.sites.resize(rank.recording->terms());
    runnable_.emplace(rank.now, r);
  }
}

void Replay::watch(Path path) {
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    ranks_[r].on_path = OnPath(static_cast<int>(r), std::move(path[r]), ranks_[r].recording->terms());
}

// ---- Collectives ----

void Replay::meet(std::uint32_t r, const Action& action, std::vector<std::uint32_t>& operations) {
  Rank& rank = ranks_[r];
  const Meetings::Parts parts =
      meetings_.meet({*rank.recording, posting_.comm_of(r, action.comm), action, rank.was, rank.call.duration,
                      static_cast<int>(r), waits_.cause(r, rank.now), action.act == Act::collective});
  operations.push_back(parts.call);
  if (parts.data != Meetings::Parts::kNone) rank.late.push_back({parts.data, rank.call.term, -1});
}

// ---- Calls ----

void Replay::start(std::uint32_t r, const Action& action) {
  for (const std::int64_t number : action.named) {
    Slot& slot = posting_.slot_of(r, number);
    if (number < 0 || slot.persistent == nullptr) continue;
    if (slot.persistent->act == Act::init)
      posting_.post(r, *slot.persistent, slot);
    else if (slot.persistent->away)
      slot.away = true;
    else
      gather(r, *slot.persistent, slot.operations);
  }
}

void Replay::begin_call(std::uint32_t r) {
  Rank& rank = ranks_[r];
  const Action& action = actions_[r][rank.call.term];
  switch (action.act) {
    case Act::local:
      if (action.made_comm >= 0) comms_.make(r, *rank.recording, action.comm, action.made_comm);
      if (!is_ideal() || action.away) rank.now += rank.call.duration;
      break;
    case Act::test: break;
    case Act::message: posting_.message(r, action); break;
    case Act::post:
      for (const std::int64_t slot : action.made) posting_.post(r, action, posting_.slot_of(r, slot));
      break;
    case Act::init:
    case Act::init_collective:
      for (const std::int64_t slot : action.made) posting_.slot_of(r, slot) = {.operations = {}, .persistent = &action};
      break;
    case Act::start: start(r, action); break;
    case Act::wait: posting_.wait(r, action); break;
    case Act::collective:
      if (action.away)
        rank.needs.push_back(posting_.as_recorded(r));
      else
        gather(r, action, rank.needs);
      if (action.collective == Collective::count_) comms_.make(r, *rank.recording, action.comm, action.made_comm);
      break;
    case Act::post_collective:
      for (const std::int64_t slot : action.made) {
        Slot& place = posting_.slot_of(r, slot);
        place = {.operations = {}, .away = action.away};
        if (!action.away) gather(r, action, place.operations);
      }
      break;
    case Act::transfer:
      windows_.transfer(r, action);
      if (!is_ideal()) rank.now += rank.call.duration;
      break;
    case Act::expose: windows_.expose(r, action); break;
    case Act::access: windows_.access(r, action); break;
    case Act::complete: windows_.complete(r, action); break;
    case Act::unexpose: windows_.unexpose(r, action); break;
  }
}

// False: it waits.
bool Replay::end_call(std::uint32_t r) {
  Rank& rank = ranks_[r];
  if (!operations_.have_ended(rank.needs, r)) return false;
  for (const std::uint32_t each : rank.needs) {
    const Operation& done = operations_[each];
    if (done.done > rank.now) waits_.ended(r, done.cause);
    rank.now = std::max(rank.now, done.done) + done.overhead;
    operations_.end(each);
  }
  rank.needs.clear();
  for (Late& each : rank.late) each.returned = rank.now;
  return true;
}

void Replay::compute(std::uint32_t r) {
  Rank& rank = ranks_[r];
  rank.computes_from = rank.now;
  rank.was += rank.call.duration;
  rank.has_call = rank.calls->next(&rank.call);
  if (!rank.has_call) return;
  rank.was += rank.call.gap;
  ++result_.calls;
  const double gap = rank.gaps->next(rank.call);
  rank.now += gap;
  rank.called = rank.now;
  rank.summary.compute += gap;
}

// The program needs its data at the end of what it computes behind the call. False: it waits.
bool Replay::take_late_data(std::uint32_t r) {
  Rank& rank = ranks_[r];
  std::vector<std::uint32_t> data;
  for (const Late& each : rank.late) data.push_back(each.data);
  if (!operations_.have_ended(data, r)) return false;
  const double touched = rank.now;
  for (const Late& each : rank.late) {
    const Operation& done = operations_[each.data];
    SiteSummary& site = rank.sites[each.term];
    ++site.calls;
    site.hidden += std::max(0.0, std::min(done.done, touched) - each.returned);
    if (done.done > rank.now) waits_.ended(r, done.cause);
    rank.now = std::max(rank.now, done.done);
    operations_.end(each.data);
  }
  rank.late.clear();
  return true;
}

// Ranks whose operations have ended.
void Replay::wake() {
  for (const Operations::Woken& woken : operations_.woken())
    runnable_.emplace(std::max(woken.time, ranks_[woken.rank].now), woken.rank);
  operations_.woken().clear();
}

// One phase of a rank that is the earliest of those that can go on. False: it waits, or has ended.
bool Replay::go_on(std::uint32_t r) {
  Rank& rank = ranks_[r];
  switch (rank.phase) {
    case Phase::computes:
      compute(r);
      rank.phase = rank.late.empty() ? Phase::calls : Phase::needs_data;
      return true;
    case Phase::needs_data:
      if (!take_late_data(r)) return false;
      rank.phase = Phase::calls;
      return true;
    case Phase::calls:
      rank.phase = rank.has_call ? Phase::waits : Phase::ended;
      if (!rank.has_call) return false;
      begin_call(r);
      wake();
      return true;
    case Phase::waits:
      if (!end_call(r)) return false;
      rank.on_path.add(rank.call.term, rank.computes_from, rank.called, rank.now);
      rank.phase = Phase::computes;
      return true;
    case Phase::ended: break;
  }
  return false;
}

Replayed Replay::run() {
  while (!runnable_.empty()) {
    const std::uint32_t r = runnable_.top().second;
    runnable_.pop();
    while (go_on(r)) {
      const Entry own{ranks_[r].now, r};
      if (runnable_.empty() || own < runnable_.top()) continue;
      runnable_.push(own);
      break;
    }
  }
  for (const Rank& rank : ranks_) {
    if (rank.phase != Phase::ended && result_.failure.empty()) say_stall();
    result_.ranks.push_back(rank.summary);
    result_.ranks.back().end = rank.now;
    result_.ranks.back().wait = rank.now - rank.summary.compute;
    result_.seconds = std::max(result_.seconds, rank.now);
  }
  for (const Rank& rank : ranks_) {
    rank.on_path.tell(result_.critical);
    result_.sites.push_back(rank.sites);
  }
  std::sort(result_.critical.begin(), result_.critical.end(),
            [](const Critical& a, const Critical& b) { return a.compute + a.in_call > b.compute + b.in_call; });
  return result_;
}

Path Replay::critical_path() const {
  std::size_t last = 0;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].now > ranks_[last].now) last = r;
  }
  return waits_.path_to(last, ranks_[last].now);
}

// Ranks wait for calls that nobody has made: of a job that was killed, or of calls that a replay
// does not know.
void Replay::say_stall() {
  std::map<std::string, int> waiting;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].phase != Phase::ended) ++waiting["MPI_" + actions_[r][ranks_[r].call.term].function];
  }
  result_.failure = "ranks wait for calls that the recording does not have:";
  for (const auto& [name, count] : waiting) result_.failure += " " + std::to_string(count) + " in " + name;
}

}  // namespace

Replayed replay(const JobFile& job, const ReplayOptions& options) {
  Actions actions;
  for (int r = 0; r < job.ranks(); ++r) actions.push_back(actions_of(job.of(r)));
  Replay first(job, actions, options);
  Replayed result = first.run();
  if (!options.critical || !result.failure.empty()) return result;
  Replay second(job, actions, options);
  second.watch(first.critical_path());
  return second.run();
}

Replayed measured(const JobFile& job) {
  Replayed result;
  const std::vector<double> begin = starts_of(job);
  for (int r = 0; r < job.ranks(); ++r) {
    RankSummary rank;
    rank.end = begin[static_cast<std::size_t>(r)];
    Calls calls(job.of(r));
    for (Calls::Call call; calls.next(&call);) {
      ++result.calls;
      rank.compute += call.gap;
      rank.wait += call.duration;
    }
    rank.end += rank.compute + rank.wait;
    result.seconds = std::max(result.seconds, rank.end);
    result.ranks.push_back(rank);
  }
  return result;
}

}  // namespace stretto::modelling
