// SPDX-License-Identifier: BSD-3-Clause
#include "job_replay.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>

#include "job_comms.hpp"
#include "job_messages.hpp"

namespace stretto::modelling {
namespace {

using record::Calls;
using record::Communicator;
using record::Recording;

constexpr std::int64_t kNeighborTag = std::int64_t{1} << 40;  // no program's tag is so high

// A collective of one communicator.
struct Meeting {
  struct Member {
    std::uint32_t operation;
    double came;
    double took;  // in the recording
    bool is_root;
    bool has_gone;  // it waits for nobody
    Cause cause;
  };
  std::vector<Member> members;
};

struct Slot {
  std::vector<std::uint32_t> operations;
  const Action* persistent = nullptr;
  const Action* wild = nullptr;  // a receive with wildcards that is posted
  double posted = 0;
};

struct Rank {
  const Recording* recording = nullptr;
  std::unique_ptr<Calls> calls;
  Calls::Call call;
  bool in_call = false, ended = false;
  double now = 0, compute_factor = 1;
  double computes_from = 0, called = 0;  // of the call
  RankSummary summary;
  std::vector<Slot> slots;
  std::vector<std::uint32_t> needs;  // operations, until the call ends
  OnPath on_path;
};

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

  bool next_call(std::uint32_t r);
  void begin_call(std::uint32_t r);
  bool end_call(std::uint32_t r);
  void post(std::uint32_t r, const Action& action, Slot& slot, double now);
  std::uint32_t send(std::uint32_t r, const Action& action, const Half& half, double now);
  std::uint32_t receive(std::uint32_t r, std::int64_t comm, const Half& half, double posted);
  void wait(std::uint32_t r, const Action& action);
  std::uint32_t meet(std::uint32_t r, const Action& action);
  void meet_neighbors(std::uint32_t r, const Action& action, std::vector<std::uint32_t>& operations);
  // What this rank waits for in a collective.
  void gather(std::uint32_t r, const Action& action, std::vector<std::uint32_t>& operations) {
    if (is_neighborhood(action.collective))
      meet_neighbors(r, action, operations);
    else
      operations.push_back(meet(r, action));
  }
  double factor(const Recording& recording, const Action& action, const Communicator* comm) const;
  void settle(const Meeting& meeting, Collective collective);
  [[nodiscard]] bool is_ideal() const { return options_.machine == nullptr; }
  CommState& comm_of(std::uint32_t r, std::int64_t id) { return comms_.of(r, *ranks_[r].recording, id); }
  Slot& slot_of(std::uint32_t r, std::int64_t slot);
  void say_stall();

  const Actions& actions_;
  const ReplayOptions& options_;
  std::vector<Rank> ranks_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> runnable_;
  Operations operations_;
  Messages messages_;
  std::unordered_map<std::uint64_t, Meeting> meetings_;
  Communicators comms_;
  Waits waits_;
  Replayed result_;
};

Replay::Replay(const JobFile& job, const Actions& actions, const ReplayOptions& options)
    : actions_(actions),
      options_(options),
      ranks_(static_cast<std::size_t>(job.ranks())),
      messages_(operations_, options.machine, ranks_.size(), options.eager_bytes),
      comms_(ranks_.size()),
      waits_(ranks_.size()) {
  const Replayed was = options.balance ? measured(job) : Replayed{};
  double mean = 0;
  for (const RankSummary& each : was.ranks) mean += each.compute / static_cast<double>(was.ranks.size());
  const std::vector<double> begin = job.starts();
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    rank.recording = &job.of(static_cast<int>(r));
    rank.calls = std::make_unique<Calls>(*rank.recording);
    rank.now = begin[r];
    rank.compute_factor = options.compute;
    if (options.balance && was.ranks[r].compute > 0) rank.compute_factor *= mean / was.ranks[r].compute;
    runnable_.emplace(rank.now, r);
  }
}

void Replay::watch(Path path) {
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    ranks_[r].on_path = OnPath(static_cast<int>(r), std::move(path[r]), ranks_[r].recording->terms());
}

Slot& Replay::slot_of(std::uint32_t r, std::int64_t slot) {
  std::vector<Slot>& slots = ranks_[r].slots;
  const auto place = static_cast<std::size_t>(std::max<std::int64_t>(0, slot));
  if (slots.size() <= place) slots.resize(place + 1);
  return slots[place];
}

// ---- Messages ----

// What goes to, or comes from, beyond what was recorded is done at once.
std::uint32_t Replay::send(std::uint32_t r, const Action& action, const Half& half, double now) {
  Rank& rank = ranks_[r];
  const int me = static_cast<int>(r), to = world_peer(*rank.recording, action.comm, half.peer);
  if (to < 0) return operations_.make(now);
  ++result_.messages;
  result_.bytes += half.bytes;
  const Messages::End end{comm_of(r, action.comm).name, me, to, half.tag};
  const double sent = now + messages_.send_time(end, half.bytes);
  rank.now = std::max(rank.now, sent);
  return messages_.send(end, half.bytes, action.synchronous, waits_.cause(r, sent));
}

std::uint32_t Replay::receive(std::uint32_t r, std::int64_t comm, const Half& half, double posted) {
  const int me = static_cast<int>(r), from = world_peer(*ranks_[r].recording, comm, half.peer);
  if (from < 0) return operations_.make(posted);
  return messages_.receive({comm_of(r, comm).name, from, me, half.tag}, waits_.cause(r, posted));
}

void Replay::post(std::uint32_t r, const Action& action, Slot& slot, double now) {
  slot.operations.clear();
  slot.wild = nullptr;
  slot.posted = now;
  if (action.send.there) slot.operations.push_back(send(r, action, action.send, now));
  if (!action.receive.there) return;
  if (action.receive.any)
    slot.wild = &action;
  else
    slot.operations.push_back(receive(r, action.comm, action.receive, now));
}

void Replay::wait(std::uint32_t r, const Action& action) {
  Rank& rank = ranks_[r];
  for (const std::int64_t number : action.ended) {
    if (number < 0) continue;
    Slot& slot = slot_of(r, number);
    if (slot.wild != nullptr) {
      for (const Got& got : action.got) {
        if (got.position < action.waited.size() && action.waited[got.position] == number)
          rank.needs.push_back(receive(r, slot.wild->comm, taken(slot.wild->receive, got), slot.posted));
      }
      slot.wild = nullptr;
    }
    rank.needs.insert(rank.needs.end(), slot.operations.begin(), slot.operations.end());
    slot.operations.clear();
  }
}

// ---- Collectives ----

std::uint32_t Replay::meet(std::uint32_t r, const Action& action) {
  Rank& rank = ranks_[r];
  CommState& comm = comm_of(r, action.comm);
  const Communicator* const known = rank.recording->communicator(action.comm);
  const std::uint64_t name = std::uint64_t{comm.name} << 32 | comm.meetings++;
  const std::uint32_t made = operations_.make();
  const std::size_t all = known == nullptr ? 1 : static_cast<std::size_t>(known->size + known->remote_size);
  const bool inter = known != nullptr && (known->flags & record::kInter) != 0;
  const bool is_root = known != nullptr && action.root == (inter ? record::kRootHere : known->rank);
  const double took = is_ideal() ? 0 : rank.call.duration * factor(*rank.recording, action, known);
  // Who only sends does not wait for the others.
  const bool only_sends = is_rooted(action.collective) && is_root != goes_to_root(action.collective);
  Meeting& meeting = meetings_[name];
  meeting.members.push_back({made, rank.now, took, is_root, only_sends, waits_.cause(r, rank.now)});
  if (only_sends) operations_.finish(made, rank.now + took, {});
  if (meeting.members.size() == all) {
    settle(meeting, action.collective);
    meetings_.erase(name);
  }
  return made;
}

double Replay::factor(const Recording& recording, const Action& action, const Communicator* comm) const {
  if (!options_.collectives || comm == nullptr) return 1;
  const std::vector<int> members = members_of(recording, *comm);
  const auto is_here = [&](int each) { return each >= 0 && each < static_cast<int>(ranks_.size()); };
  return std::all_of(members.begin(), members.end(), is_here) ? options_.collectives(action, members) : 1;
}

void Replay::settle(const Meeting& meeting, Collective collective) {
  double last = 0, least = -1;
  Cause last_cause;
  const Meeting::Member* root = nullptr;
  for (const Meeting::Member& each : meeting.members) {
    if (each.came >= last) last = each.came, last_cause = each.cause;
    if (each.is_root) root = &each;
    if (least < 0 || each.took < least) least = each.took;
  }
  const bool from_root = root != nullptr && is_rooted(collective) && !goes_to_root(collective);
  for (const Meeting::Member& each : meeting.members) {
    if (each.has_gone) continue;
    const double from = from_root ? std::max(each.came, root->came) : last;
    operations_.finish(each.operation, from + least, from_root ? root->cause : last_cause);
  }
}

// As messages between neighbours.
void Replay::meet_neighbors(std::uint32_t r, const Action& action, std::vector<std::uint32_t>& operations) {
  Rank& rank = ranks_[r];
  const Communicator* const known = rank.recording->communicator(action.comm);
  if (known == nullptr) return;
  const auto& members = rank.recording->members();
  const double now = rank.now;
  Half half;
  half.there = true;
  half.tag = kNeighborTag;
  half.bytes = action.bytes;
  for (std::uint32_t i = 0; i < known->destinations; ++i) {
    const std::int32_t to = members[known->first_neighbor + known->sources + i];
    half.peer = static_cast<std::int32_t>(to - known->rank);
    if (to >= 0) operations.push_back(send(r, action, half, now));
  }
  for (std::uint32_t i = 0; i < known->sources; ++i) {
    const std::int32_t from = members[known->first_neighbor + i];
    half.peer = static_cast<std::int32_t>(from - known->rank);
    if (from >= 0) operations.push_back(receive(r, action.comm, half, now));
  }
}

// ---- Calls ----

void Replay::begin_call(std::uint32_t r) {
  Rank& rank = ranks_[r];
  const Action& action = actions_[r][rank.call.term];
  switch (action.act) {
    case Act::local:
      if (action.made_comm >= 0) comms_.make(r, *rank.recording, action.comm, action.made_comm);
      if (!is_ideal()) rank.now += rank.call.duration;
      break;
    case Act::test: break;
    case Act::message:
      if (action.send.there) rank.needs.push_back(send(r, action, action.send, rank.now));
      if (action.receive.there && !action.receive.any)
        rank.needs.push_back(receive(r, action.comm, action.receive, rank.now));
      for (const Got& got : action.got)
        rank.needs.push_back(receive(r, action.comm, taken(action.receive, got), rank.now));
      break;
    case Act::post:
      for (const std::int64_t slot : action.made) post(r, action, slot_of(r, slot), rank.now);
      break;
    case Act::init:
    case Act::init_collective:
      for (const std::int64_t slot : action.made) slot_of(r, slot) = {.persistent = &action};
      break;
    case Act::start:
      for (const std::int64_t number : action.named) {
        Slot& slot = slot_of(r, number);
        if (number < 0 || slot.persistent == nullptr) continue;
        if (slot.persistent->act == Act::init)
          post(r, *slot.persistent, slot, rank.now);
        else
          gather(r, *slot.persistent, slot.operations);
      }
      break;
    case Act::wait: wait(r, action); break;
    case Act::collective:
      gather(r, action, rank.needs);
      if (action.collective == Collective::count_) comms_.make(r, *rank.recording, action.comm, action.made_comm);
      break;
    case Act::post_collective:
      for (const std::int64_t slot : action.made) {
        Slot& place = slot_of(r, slot);
        place = {};
        gather(r, action, place.operations);
      }
      break;
  }
}

// False: it waits.
bool Replay::end_call(std::uint32_t r) {
  Rank& rank = ranks_[r];
  for (const std::uint32_t each : rank.needs) {
    if (operations_[each].done >= 0) continue;
    operations_[each].waiter = r;
    return false;
  }
  for (const std::uint32_t each : rank.needs) {
    const Operation& done = operations_[each];
    if (done.done > rank.now) waits_.ended(r, done.cause);
    rank.now = std::max(rank.now, done.done) + done.overhead;
    operations_.end(each);
  }
  rank.needs.clear();
  return true;
}

// Computes, and begins the call behind it. False: there are no more calls.
bool Replay::next_call(std::uint32_t r) {
  Rank& rank = ranks_[r];
  if (!rank.calls->next(&rank.call)) return false;
  ++result_.calls;
  double gap = rank.call.gap;
  if (options_.by_processor && rank.call.processor >= 0) gap = std::min(gap, rank.call.processor);
  gap *= rank.compute_factor;
  rank.computes_from = rank.now;
  rank.now = rank.called = rank.now + gap;
  rank.summary.compute += gap;
  begin_call(r);
  for (const Operations::Woken& woken : operations_.woken())
    runnable_.emplace(std::max(woken.time, ranks_[woken.rank].now), woken.rank);
  operations_.woken().clear();
  return true;
}

Replayed Replay::run() {
  while (!runnable_.empty()) {
    const std::uint32_t r = runnable_.top().second;
    runnable_.pop();
    Rank& rank = ranks_[r];
    if (!rank.in_call) {
      rank.ended = !next_call(r);
      if (rank.ended) continue;
    }
    rank.in_call = !end_call(r);
    if (rank.in_call) continue;
    rank.on_path.add(rank.call.term, rank.computes_from, rank.called, rank.now);
    runnable_.emplace(rank.now, r);
  }
  for (const Rank& rank : ranks_) {
    if (!rank.ended && result_.failure.empty()) say_stall();
    result_.ranks.push_back(rank.summary);
    result_.ranks.back().end = rank.now;
    result_.ranks.back().wait = rank.now - rank.summary.compute;
    result_.seconds = std::max(result_.seconds, rank.now);
  }
  for (const Rank& rank : ranks_) rank.on_path.tell(result_.critical);
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
    if (!ranks_[r].ended) ++waiting["MPI_" + actions_[r][ranks_[r].call.term].function];
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
  const std::vector<double> begin = job.starts();
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
