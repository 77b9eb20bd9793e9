// SPDX-License-Identifier: BSD-3-Clause
#include "job_replay.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <unordered_map>

#include "job_actions.hpp"

namespace stretto::modelling {
namespace {

using record::Calls;
using record::Communicator;
using record::Recording;

constexpr double kUnknown = -1;
constexpr double kNs = 1e-9;
constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr std::int64_t kWorldId = 0, kSelfId = 1;             // as the recorder numbers them
constexpr std::int64_t kNeighborTag = std::int64_t{1} << 40;  // no program's tag is so high

// What another rank did, so that a wait ends: when, and how many waits of its own it had behind it.
struct Cause {
  int rank = -1;
  double time = 0;
  std::size_t waits = 0;
};

// What a rank may wait for: its end of a message, or its part of a collective.
struct Operation {
  double done = kUnknown;
  double overhead = 0;           // the processor's, behind it
  std::uint32_t waiter = kNone;  // a rank
  Cause cause;
};

// A part of a rank's time that is on the critical path.
struct Stretch {
  double begin, end;
};

struct Message {
  std::uint32_t send = kNone, receive = kNone;  // operations
  int from = 0, to = 0;
  std::uint64_t bytes = 0;
  bool waits = false;  // for its receive
  double sent = kUnknown, posted = kUnknown;
  Cause sender, receiver;
};

// Messages between two ranks with one tag in one communicator, in order.
struct Channel {
  std::deque<std::uint32_t> sends, receives;  // messages that lack the other end
};
struct ChannelName {
  std::uint32_t comm;
  std::int32_t from, to;
  std::int64_t tag;
  bool operator==(const ChannelName&) const = default;
};
struct ChannelHash {
  std::size_t operator()(const ChannelName& name) const {
    std::uint64_t hash = name.comm;
    for (const std::uint64_t word : {static_cast<std::uint64_t>(name.from), static_cast<std::uint64_t>(name.to),
                                     static_cast<std::uint64_t>(name.tag)})
      hash = (hash ^ word) * 0x9E3779B97F4A7C15u ^ hash >> 31;
    return hash;
  }
};

// A collective of one communicator.
struct Meeting {
  struct Member {
    std::uint32_t operation;
    double came;
    double took;  // in the recording
    bool is_root;
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

struct CommState {
  std::uint32_t instance = kNone;
  std::uint32_t meetings = 0, children = 0;
};

struct Rank {
  const Recording* recording = nullptr;
  std::unique_ptr<Calls> calls;
  std::vector<Action> actions;
  Calls::Call call;
  bool in_call = false, ended = false;
  double now = 0, compute_factor = 1;
  RankSummary summary;
  std::vector<Slot> slots;
  std::vector<CommState> comms;
  std::vector<std::uint32_t> needs;  // operations, until the call ends
  double next_send = 0, next_receive = 0;
  double called = 0;          // when the call began
  std::vector<Cause> waits;   // of each wait that another rank has ended
  std::vector<Stretch> path;  // that is watched
  std::size_t next_stretch = 0;
  std::vector<Critical> critical;  // by term
};

class Replay {
 public:
  Replay(const JobFile& job, const ReplayOptions& options);
  Replayed run();
  // The critical path of a run, of which a second run then says what is on it.
  std::vector<std::vector<Stretch>> critical_path() const;
  void watch(std::vector<std::vector<Stretch>> path);

 private:
  using Entry = std::pair<double, std::uint32_t>;  // when a rank goes on

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
  double factor(std::uint32_t r, const Action& action, const Communicator* comm) const;
  void settle(Meeting& meeting, const Action& action);
  void deliver(Message& message);
  void finish(std::uint32_t operation, double done, const Cause& cause);
  Cause cause_of(std::uint32_t r, double time) const { return {static_cast<int>(r), time, ranks_[r].waits.size()}; }
  double on_path(std::uint32_t r, double begin, double end);
  void make_comm(std::uint32_t r, const Action& action);
  CommState& comm_of(std::uint32_t r, std::int64_t id);
  std::uint32_t instance(const std::vector<std::int64_t>& name);
  int world_rank(std::uint32_t r, std::int64_t comm, std::int32_t peer) const;
  std::uint32_t operation(double done = kUnknown);
  Slot& slot_of(std::uint32_t r, std::int64_t slot);
  const sched::LogGP& path(int from, int to, std::uint64_t bytes, int* level) const;
  void say_stall();
  [[nodiscard]] bool ideal() const { return options_.network == Network::ideal; }

  const ReplayOptions& options_;
  std::vector<Rank> ranks_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> runnable_;
  std::vector<Operation> operations_;
  std::vector<std::uint32_t> free_operations_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::unordered_map<ChannelName, Channel, ChannelHash> channels_;
  std::unordered_map<std::uint64_t, Meeting> meetings_;
  std::map<std::vector<std::int64_t>, std::uint32_t> instances_;
  std::vector<std::vector<double>> ports_out_, ports_in_;  // by level and domain: when they are free
  Replayed result_;
};

// ---- The begin ----

bool one_host(const JobFile& job) {
  for (int r = 1; r < job.ranks(); ++r) {
    if (std::string(job.of(r).header().host) != job.of(0).header().host) return false;
  }
  return true;
}

Replay::Replay(const JobFile& job, const ReplayOptions& options)
    : options_(options), ranks_(static_cast<std::size_t>(job.ranks())) {
  const Replayed was = options.balance ? measured(job) : Replayed{};
  double mean = 0;
  for (const RankSummary& each : was.ranks) mean += each.compute / static_cast<double>(was.ranks.size());
  const std::vector<double> begin = starts(job);
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    rank.recording = &job.of(static_cast<int>(r));
    rank.calls = std::make_unique<Calls>(*rank.recording);
    rank.actions = actions_of(*rank.recording);
    rank.now = begin[r];
    rank.compute_factor = options.compute;
    if (options.balance && was.ranks[r].compute > 0) rank.compute_factor *= mean / was.ranks[r].compute;
    runnable_.emplace(rank.now, r);
  }
  if (options.machine == nullptr) return;
  ports_out_.assign(topo::kMostLevels + 1, {});
  for (int i = 0; i <= topo::kMostLevels; ++i) {
    if (options.machine->costs.ports[i].there) ports_out_[static_cast<std::size_t>(i)].assign(ranks_.size(), 0);
  }
  ports_in_ = ports_out_;
}

// ---- Names ----

std::uint32_t Replay::instance(const std::vector<std::int64_t>& name) {
  return instances_.emplace(name, static_cast<std::uint32_t>(instances_.size())).first->second;
}

// A communicator that the rank has not made in a call is known by its members.
CommState& Replay::comm_of(std::uint32_t r, std::int64_t id) {
  Rank& rank = ranks_[r];
  const auto place = static_cast<std::size_t>(std::max<std::int64_t>(0, id));
  if (rank.comms.size() <= place) rank.comms.resize(place + 1);
  CommState& state = rank.comms[place];
  if (state.instance != kNone) return state;
  std::vector<std::int64_t> name{-1, id == kWorldId || id == kSelfId ? id : 2};
  const Communicator* const known = rank.recording->communicator(id);
  if (id != kWorldId && known != nullptr) {
    for (std::int64_t i = 0; i < known->size + known->remote_size; ++i)
      name.push_back(rank.recording->members()[known->first_member + static_cast<std::size_t>(i)]);
  }
  state.instance = instance(name);
  return state;
}

// All ranks that make a communicator make it of the same one, in the same order. Those that get
// different ones have different first members.
void Replay::make_comm(std::uint32_t r, const Action& action) {
  CommState& parent = comm_of(r, action.comm);
  const std::uint32_t serial = parent.children++;
  const std::uint32_t of = parent.instance;
  if (action.made_comm < 0) return;
  Rank& rank = ranks_[r];
  const Communicator* const known = rank.recording->communicator(action.made_comm);
  std::int64_t first = 0;
  if (known != nullptr && known->size > 0) {
    first = rank.recording->members()[known->first_member];
    if (known->remote_size > 0) {
      first = std::min<std::int64_t>(
          first, rank.recording->members()[known->first_member + static_cast<std::size_t>(known->size)]);
    }
  }
  const auto place = static_cast<std::size_t>(action.made_comm);
  if (rank.comms.size() <= place) rank.comms.resize(place + 1);
  rank.comms[place] = {instance({of, serial, first}), 0, 0};
}

int Replay::world_rank(std::uint32_t r, std::int64_t comm, std::int32_t relative) const {
  const Recording& recording = *ranks_[r].recording;
  const Communicator* const known = recording.communicator(comm);
  if (known == nullptr) return -1;
  const bool inter = (known->flags & record::kInter) != 0;
  const std::int64_t peer = known->rank + relative;
  if (peer < 0 || peer >= (inter ? known->remote_size : known->size)) return -1;
  const int there =
      recording.members()[known->first_member + static_cast<std::size_t>(peer + (inter ? known->size : 0))];
  return there < static_cast<int>(ranks_.size()) ? there : -1;
}

Slot& Replay::slot_of(std::uint32_t r, std::int64_t slot) {
  std::vector<Slot>& slots = ranks_[r].slots;
  const auto place = static_cast<std::size_t>(std::max<std::int64_t>(0, slot));
  if (slots.size() <= place) slots.resize(place + 1);
  return slots[place];
}

// ---- Operations ----

std::uint32_t Replay::operation(double done) {
  std::uint32_t made = 0;
  if (free_operations_.empty()) {
    made = static_cast<std::uint32_t>(operations_.size());
    operations_.emplace_back();
  } else {
    made = free_operations_.back();
    free_operations_.pop_back();
  }
  operations_[made] = {};
  operations_[made].done = done;
  return made;
}

void Replay::finish(std::uint32_t operation, double done, const Cause& cause) {
  Operation& finished = operations_[operation];
  finished.done = done;
  finished.cause = cause;
  if (finished.waiter == kNone) return;
  const std::uint32_t waiter = finished.waiter;
  finished.waiter = kNone;
  runnable_.emplace(std::max(done, ranks_[waiter].now), waiter);
}

// ---- Messages ----

const sched::LogGP& Replay::path(int from, int to, std::uint64_t bytes, int* level) const {
  *level = 0;
  if (options_.machine->hierarchies != nullptr) {
    const topo::Hierarchy& all = options_.machine->hierarchies->all;
    while (all.group_over(from, *level) != all.group_over(to, *level)) ++*level;
  }
  return options_.machine->costs.paths[*level].at(bytes);
}

std::uint32_t Replay::send(std::uint32_t r, const Action& action, const Half& half, double now) {
  const std::uint32_t made = operation();
  const int to = world_rank(r, action.comm, half.peer);
  if (to < 0) {  // beyond what was recorded
    operations_[made].done = now;
    return made;
  }
  ++result_.messages;
  result_.bytes += half.bytes;
  Channel& channel = channels_[{comm_of(r, action.comm).instance, static_cast<std::int32_t>(r), to, half.tag}];
  std::uint32_t m = 0;
  if (channel.receives.empty()) {
    if (free_messages_.empty()) {
      m = static_cast<std::uint32_t>(messages_.size());
      messages_.emplace_back();
    } else {
      m = free_messages_.back();
      free_messages_.pop_back();
    }
    messages_[m] = {};
    channel.sends.push_back(m);
  } else {
    m = channel.receives.front();
    channel.receives.pop_front();
  }
  Message& message = messages_[m];
  message.send = made;
  message.from = static_cast<int>(r);
  message.to = to;
  message.bytes = half.bytes;
  message.waits = half.bytes > options_.eager_bytes || action.synchronous;
  message.sent = now;
  if (!ideal()) {
    int level = 0;
    const sched::LogGP& costs = path(message.from, to, half.bytes, &level);
    message.sent += kNs * (costs.send_overhead + costs.send_byte * static_cast<double>(half.bytes));
    ranks_[r].now = std::max(ranks_[r].now, message.sent);
  }
  message.sender = cause_of(r, message.sent);
  if (!message.waits) operations_[made].done = message.sent;
  if (!message.waits || message.receive != kNone) deliver(message);
  if (message.receive != kNone) free_messages_.push_back(m);
  return made;
}

std::uint32_t Replay::receive(std::uint32_t r, std::int64_t comm, const Half& half, double posted) {
  const std::uint32_t made = operation();
  const int from = world_rank(r, comm, half.peer);
  if (from < 0) {
    operations_[made].done = posted;
    return made;
  }
  Channel& channel = channels_[{comm_of(r, comm).instance, from, static_cast<std::int32_t>(r), half.tag}];
  std::uint32_t m = 0;
  if (channel.sends.empty()) {
    if (free_messages_.empty()) {
      m = static_cast<std::uint32_t>(messages_.size());
      messages_.emplace_back();
    } else {
      m = free_messages_.back();
      free_messages_.pop_back();
    }
    messages_[m] = {};
    messages_[m].receive = made;
    messages_[m].posted = posted;
    messages_[m].receiver = cause_of(r, posted);
    channel.receives.push_back(m);
    return made;
  }
  m = channel.sends.front();
  channel.sends.pop_front();
  Message& message = messages_[m];
  message.receive = made;
  const double arrived = message.posted;  // of a message that did not wait: deliver() has left it here
  message.posted = posted;
  message.receiver = cause_of(r, posted);
  if (message.waits) {
    deliver(message);
  } else {
    if (!ideal()) {
      int level = 0;
      const sched::LogGP& costs = path(message.from, message.to, message.bytes, &level);
      operations_[made].overhead =
          kNs * (costs.receive_overhead + costs.receive_byte * static_cast<double>(message.bytes));
    }
    finish(made, std::max(arrived, posted), message.sender);
  }
  free_messages_.push_back(m);
  return made;
}

// When the message's last byte is there.
void Replay::deliver(Message& message) {
  const double start = message.waits ? std::max(message.sent, message.posted) : message.sent;
  double departs = start, last = start, leaves = start, overhead = 0;
  if (!ideal()) {
    int level = 0;
    const sched::LogGP& costs = path(message.from, message.to, message.bytes, &level);
    const double bytes = message.bytes > 1 ? kNs * costs.byte_gap * static_cast<double>(message.bytes - 1) : 0;
    Rank &from = ranks_[static_cast<std::size_t>(message.from)], &to = ranks_[static_cast<std::size_t>(message.to)];
    if (message.waits) departs += kNs * costs.latency;  // the word that the receive is posted
    departs = std::max(departs, from.next_send);
    const auto each_port = [&](std::vector<std::vector<double>>& ports, int rank, const auto& with) {
      for (std::size_t i = 0; i <= static_cast<std::size_t>(level); ++i) {
        if (ports[i].empty()) continue;
        const int domain = i == 0 ? rank : options_.machine->hierarchies->all.group_over(rank, static_cast<int>(i) - 1);
        with(ports[i][static_cast<std::size_t>(domain)], options_.machine->costs.ports[i]);
      }
    };
    each_port(ports_out_, message.from, [&](double& free, const sched::Port&) { departs = std::max(departs, free); });
    each_port(ports_out_, message.from,
              [&](double& free, const sched::Port& port) { free = departs + kNs * port.interval(message.bytes); });
    from.next_send = departs + kNs * costs.gap + bytes;
    leaves = departs + bytes;
    const double first = departs + kNs * costs.latency;
    const double begins = std::max(first, to.next_receive);
    last = begins + bytes;
    to.next_receive = last;
    each_port(ports_in_, message.to, [&](double& free, const sched::Port& port) {
      const double enters = std::max(first, free);
      free = enters + kNs * port.interval(message.bytes);
      last = std::max(last, enters + kNs * port.bytes_time(message.bytes));
    });
    overhead = kNs * (costs.receive_overhead + costs.receive_byte * static_cast<double>(message.bytes));
  }
  if (message.waits) finish(message.send, leaves, message.receiver);
  if (message.receive == kNone) {
    message.posted = last;
    return;
  }
  operations_[message.receive].overhead = overhead;
  finish(message.receive, std::max(last, message.posted), message.sender);
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
        if (got.position >= action.waited.size() || action.waited[got.position] != number) continue;
        Half half = slot.wild->receive;
        half.peer = got.peer;
        half.tag = got.tag;
        rank.needs.push_back(receive(r, slot.wild->comm, half, slot.posted));
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
  const std::uint64_t name = std::uint64_t{comm.instance} << 32 | comm.meetings++;
  const std::uint32_t made = operation();
  const std::size_t all = known == nullptr ? 1 : static_cast<std::size_t>(known->size + known->remote_size);
  const bool is_root = known != nullptr && action.root == known->rank;
  Meeting& meeting = meetings_[name];
  const double took = ideal() ? 0 : rank.call.duration * factor(r, action, known);
  meeting.members.push_back({made, rank.now, took, is_root, cause_of(r, rank.now)});
  const bool runs_ahead = action.collective != Collective::count_ && stretto::runs_ahead(action.collective);
  // Who only sends does not wait for the others.
  if (runs_ahead && is_root != goes_to_root(action.collective)) finish(made, rank.now + took, {});
  if (meeting.members.size() == all) {
    settle(meeting, action);
    meetings_.erase(name);
  }
  return made;
}

double Replay::factor(std::uint32_t r, const Action& action, const Communicator* comm) const {
  if (!options_.collectives || comm == nullptr) return 1;
  const std::int32_t* const first = ranks_[r].recording->members().data() + comm->first_member;
  const std::vector<int> members(first, first + comm->size + comm->remote_size);
  for (const int each : members) {
    if (each < 0 || each >= static_cast<int>(ranks_.size())) return 1;
  }
  return options_.collectives(action, members);
}

void Replay::settle(Meeting& meeting, const Action& action) {
  double last = 0, root = kUnknown, least = -1;
  Cause last_cause, root_cause;
  for (const Meeting::Member& each : meeting.members) {
    if (each.came >= last) last = each.came, last_cause = each.cause;
    if (each.is_root) root = each.came, root_cause = each.cause;
    if (least < 0 || each.took < least) least = each.took;
  }
  const bool rooted = action.collective != Collective::count_ && stretto::runs_ahead(action.collective) && root >= 0;
  const bool to_root = rooted && goes_to_root(action.collective);
  for (const Meeting::Member& each : meeting.members) {
    if (rooted && each.is_root != to_root) continue;  // it has gone on
    const bool for_root = rooted && !to_root;
    const double from = for_root ? std::max(each.came, root) : last;
    finish(each.operation, from + least, for_root ? root_cause : last_cause);
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
  const Action& action = rank.actions[rank.call.term];
  switch (action.act) {
    case Act::local:
      if (action.made_comm >= 0) make_comm(r, action);
      if (!ideal()) rank.now += rank.call.duration;
      break;
    case Act::test: break;
    case Act::message:
      if (action.send.there) rank.needs.push_back(send(r, action, action.send, rank.now));
      if (action.receive.there && !action.receive.any)
        rank.needs.push_back(receive(r, action.comm, action.receive, rank.now));
      for (const Got& got : action.got) {
        Half half = action.receive;
        half.peer = got.peer;
        half.tag = got.tag;
        rank.needs.push_back(receive(r, action.comm, half, rank.now));
      }
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
      if (action.collective == Collective::count_) make_comm(r, action);
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
    if (done.done > rank.now && done.cause.rank >= 0 && done.cause.rank != static_cast<int>(r))
      rank.waits.push_back(done.cause);
    rank.now = std::max(rank.now, done.done) + done.overhead;
    free_operations_.push_back(each);
  }
  rank.needs.clear();
  return true;
}

Replayed Replay::run() {
  while (!runnable_.empty()) {
    const std::uint32_t r = runnable_.top().second;
    runnable_.pop();
    Rank& rank = ranks_[r];
    if (!rank.in_call) {
      if (!rank.calls->next(&rank.call)) {
        rank.ended = true;
        continue;
      }
      ++result_.calls;
      double gap = rank.call.gap;
      if (options_.by_processor && rank.call.processor >= 0) gap = std::min(gap, rank.call.processor);
      gap *= rank.compute_factor;
      rank.called = rank.now + gap;
      if (!rank.path.empty()) rank.critical[rank.call.term].compute += on_path(r, rank.now, rank.called);
      rank.now = rank.called;
      rank.summary.compute += gap;
      rank.in_call = true;
      begin_call(r);
    }
    if (!end_call(r)) continue;
    rank.in_call = false;
    if (!rank.path.empty()) rank.critical[rank.call.term].in_call += on_path(r, rank.called, rank.now);
    runnable_.emplace(rank.now, r);
  }
  for (const Rank& rank : ranks_) {
    if (!rank.ended && result_.failure.empty()) say_stall();
    result_.ranks.push_back(rank.summary);
    result_.ranks.back().end = rank.now;
    result_.ranks.back().wait = rank.now - rank.summary.compute;
    result_.seconds = std::max(result_.seconds, rank.now);
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    for (std::uint32_t term = 0; term < ranks_[r].critical.size(); ++term) {
      Critical found = ranks_[r].critical[term];
      found.rank = static_cast<int>(r);
      found.term = term;
      if (found.compute + found.in_call > 0) result_.critical.push_back(found);
    }
  }
  std::sort(result_.critical.begin(), result_.critical.end(),
            [](const Critical& a, const Critical& b) { return a.compute + a.in_call > b.compute + b.in_call; });
  return result_;
}

// From the rank that ends last back to what it waited for, and so on.
std::vector<std::vector<Stretch>> Replay::critical_path() const {
  std::vector<std::vector<Stretch>> path(ranks_.size());
  std::size_t r = 0;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].now > ranks_[r].now) r = i;
  }
  double now = ranks_[r].now;
  for (std::size_t waits = ranks_[r].waits.size(); waits > 0;) {
    const Cause& cause = ranks_[r].waits[waits - 1];
    path[r].push_back({cause.time, now});  // a message's own time is that of the rank that waits
    now = cause.time;
    r = static_cast<std::size_t>(cause.rank);
    waits = cause.waits;
  }
  path[r].push_back({0, now});
  for (std::vector<Stretch>& each : path) std::reverse(each.begin(), each.end());
  return path;
}

void Replay::watch(std::vector<std::vector<Stretch>> path) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].path = std::move(path[r]);
    ranks_[r].critical.resize(ranks_[r].recording->terms());
  }
}

// How much of an interval is on the path. Intervals come in order.
double Replay::on_path(std::uint32_t r, double begin, double end) {
  Rank& rank = ranks_[r];
  double sum = 0;
  while (rank.next_stretch < rank.path.size() && rank.path[rank.next_stretch].end <= begin) ++rank.next_stretch;
  for (std::size_t i = rank.next_stretch; i < rank.path.size() && rank.path[i].begin < end; ++i)
    sum += std::max(0.0, std::min(end, rank.path[i].end) - std::max(begin, rank.path[i].begin));
  return sum;
}

// Ranks wait for calls that nobody has made: of a job that was killed, or of calls that a replay
// does not know.
void Replay::say_stall() {
  std::map<std::string, int> waiting;
  for (const Rank& rank : ranks_) {
    if (!rank.ended) ++waiting["MPI_" + rank.actions[rank.call.term].function];
  }
  result_.failure = "ranks wait for calls that the recording does not have:";
  for (const auto& [name, count] : waiting) result_.failure += " " + std::to_string(count) + " in " + name;
}

}  // namespace

std::vector<double> starts(const JobFile& job) {
  std::vector<double> found(static_cast<std::size_t>(job.ranks()), 0);
  if (!one_host(job)) return found;
  std::uint64_t first = ~std::uint64_t{0};
  for (int r = 0; r < job.ranks(); ++r) first = std::min(first, job.of(r).header().first_ns);
  for (int r = 0; r < job.ranks(); ++r)
    found[static_cast<std::size_t>(r)] = static_cast<double>(job.of(r).header().first_ns - first) * kNs;
  return found;
}

Replayed replay(const JobFile& job, const ReplayOptions& options) {
  Replay first(job, options);
  Replayed result = first.run();
  if (!options.critical || !result.failure.empty()) return result;
  Replay second(job, options);
  second.watch(first.critical_path());
  return second.run();
}

Replayed measured(const JobFile& job) {
  Replayed result;
  const std::vector<double> begin = starts(job);
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
