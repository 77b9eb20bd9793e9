// SPDX-License-Identifier: BSD-3-Clause
#include "engine/scheduler.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/demands.hpp"
#include "base/log.hpp"
#include "base/tuning.hpp"
#include "engine/explain.hpp"
#include "engine/policy.hpp"
#include "engine/process.hpp"
#include "engine/ranks.hpp"
#include "engine/stalled.hpp"
#include "sys/sys.hpp"

namespace stretto::engine {
namespace {

// What a schedule depends on, apart from the vectors of lengths: the call, and the choice for it.
struct Shape {
  Collective collective;
  bool in_place, commutative, in_order, leaders;
  int root;
  std::uint64_t count, unit_bytes;
  select::Choice by;
  bool operator==(const Shape&) const = default;
};

Shape shape_of(const Scheduled& call, const select::Choice& by) {
  const coll::Problem& p = call.problem;
  return {p.collective, p.in_place, p.commutative, p.in_order, call.leaders, p.root, p.count, call.unit_bytes, by};
}

// Of a communicator's calls by one choice, all have as many words, or none.
bool keep(Array<std::uint64_t>& kept, const std::uint64_t* words, std::size_t count) {
  kept.clear();
  if (words == nullptr) return true;
  if (!kept.resize(count, 0)) return false;
  std::memcpy(kept.data(), words, count * sizeof *words);
  return true;
}
bool is_kept(const Array<std::uint64_t>& kept, const std::uint64_t* words) {
  if (kept.empty() || !words) return kept.empty() && !words;
  return std::memcmp(kept.data(), words, kept.size() * sizeof *words) == 0;
}
std::size_t offsets(int parts) { return static_cast<std::size_t>(parts) + 1; }

// The bytes of the whole call, on which plans depend. 0 where not every rank knows all lengths.
std::uint64_t whole_bytes(const coll::Problem& p, std::uint64_t unit_bytes) {
  switch (p.collective) {
    case Collective::gatherv:
    case Collective::scatterv:
    case Collective::alltoallv:
    case Collective::alltoallw: return 0;
    default: break;
  }
  if (p.begins) return p.begins[p.size] * unit_bytes;
  switch (coll::regular_form(p.collective)) {
    case Collective::gather:
    case Collective::scatter:
    case Collective::allgather:
    case Collective::alltoall:
    case Collective::reduce_scatter: return p.count * static_cast<std::uint64_t>(p.size) * unit_bytes;
    default: return p.count * unit_bytes;
  }
}

std::uint64_t units_moved(const sched::Schedule& schedule) {
  std::uint64_t units = 0;
  for (const sched::Step& step : schedule.steps) units += step.is_message() ? step.length : 0;
  return units;
}

}  // namespace

shm::WaitPolicy schedule_policy(Process& process) {
  const sys::Cpus cpus = [&] {
    const Locked locked(process.lock);
    return system_facts(process).cpus;
  }();
  return wait_policy(process, exceed_processors(process.ranks_on_node, cpus, cpus.count < cpus.online));
}

std::uint64_t explained_after_ns(const Process& process) {
  return std::uint64_t{process.settings.watchdog_seconds} * 1'000'000'000;
}

struct CachedProgram {
  Shape shape;
  Array<std::uint64_t> begins, sent_begins, told;
  sched::Program program;
  sched::Execution execution;
  std::uint64_t units = 0;      // sent and received
  std::uint64_t last_call = 0;  // 0: it holds no program
};

bool Scheduler::open(int rank, const topo::Placement& placement, const topo::LevelChoice& levels,
                     const transport::Transport& transport, const shm::WaitPolicy& policy,
                     select::Selector&& selector) {
  rank_ = rank;
  selector_ = std::move(selector);
  stack_.start(transport);
  policy_ = policy;
  poke_ = std::exchange(policy_.poke, nullptr);
  if (!hierarchies_.build(placement, levels)) return false;
  selector_.place(hierarchies_);
  return true;
}

void Scheduler::join(Comm* node, const int* ranks) {
  node_ = node;
  // A few words a rank, and peers rely on this rank.
  if (!stack_.join(*node->team, ranks, size()) || !node_part_.join(*node, ranks)) std::abort();
  policy_.poke = poke_;  // a wait for the node alone does not drive the host, so the policy must
}

bool Scheduler::leads_node(int rank) const {
  const topo::Hierarchy& nodes = hierarchies_.nodes;
  for (int level = 0; level < nodes.levels(); ++level) {
    if (nodes.name(level).is("node")) return nodes.leader(nodes.group_over(rank, level)) == rank;
  }
  return false;
}

bool Scheduler::goes_by_carriers(const select::Selection& selection) const {
  const topo::Hierarchy& hierarchy = hierarchy_of(selection);
  return !apart_ && !selection.is_flat() && selection.form == coll::Form::carriers &&
         select::node_level(hierarchy) + 1 < hierarchy.levels();
}

void Scheduler::connect_at(std::uint64_t call, const transport::TcpTransport::Opening& opening) {
  opening_call_ = call;
  opening_ = opening;
  selector_.connect(opening_.has_all());
}

// Whether to open connections now. All members then wait for one another. So it is put off until a
// collective makes them wait anyway, unless no such collective comes for long.
bool Scheduler::opens_now(Collective as) const {
  if (calls_ < opening_call_) return false;
  return opening_.always || waits_for_all(as) || calls_ >= opening_call_ + kTuning.tcp_calls_of_any_kind;
}

void Scheduler::open_connections() {
  using Opened = transport::TcpTransport::Opened;
  opening_call_ = 0;
  if (opening_.address_count == 0) opening_.address_count = sys::host_addresses(opening_.addresses);
  const Opened opened = stack_.connect(opening_);
  selector_.connect(opened == Opened::yes && opening_.has_all());
  if (opened == Opened::yes) policy_.poke = poke_;  // as in join
  if (opened == Opened::unable) demand_refused(Option::tcp, size(), "members cannot connect");
  if (!explains_) return;
  const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) * 1e-3; };
  const transport::TcpTransport::Measured& measured = stack_.measured();
  if (opened == Opened::unable) {
    log_explain("short messages between nodes by the MPI: members cannot connect, or have found connections no use");
  } else if (measured.here_ns == 0) {
    log_explain("short messages between nodes by connections of our own");
  } else {
    log_explain(
        "short messages between nodes by %s: there and back %.1f us by connections of our own, %.1f us by the MPI",
        opened == Opened::yes ? "connections of our own" : "the MPI", us(measured.here_ns), us(measured.next_ns));
  }
}

Scheduler::~Scheduler() {
  for (CachedProgram* entry : entries_) {
    if (entry) entry->~CachedProgram();
    std::free(entry);
  }
  std::free(scratch_);
  stack_.end();
  comm_free(node_);
}

CachedProgram* Scheduler::oldest() {
  CachedProgram** place = &entries_[0];
  for (CachedProgram*& entry : entries_) {
    if (!entry) {
      void* const memory = std::malloc(sizeof(CachedProgram));
      return memory ? entry = new (memory) CachedProgram : nullptr;
    }
    if (entry->last_call < (*place)->last_call) place = &entry;
  }
  return *place;
}

bool Scheduler::build(CachedProgram& entry, const Scheduled& call, const select::Choice& by) {
  const coll::Problem& problem = call.problem;
  entry.last_call = 0;
  entry.shape = shape_of(call, by);
  return keep(entry.begins, problem.begins, offsets(problem.parts())) &&
         keep(entry.sent_begins, problem.sent_begins, offsets(problem.sent_parts())) &&
         keep(entry.told, problem.told, problem.told_words) &&
         entry.program.prepare(select::schedule_of(builder_, *by.selection, hierarchies_, selector_.traits(), by.bytes,
                                                   problem, call.leaders),
                               call.unit_bytes) &&
         entry.execution.prepare(entry.program);
}

CachedProgram* Scheduler::program_of(const Scheduled& call) {
  const coll::Problem& problem = call.problem;
  const select::Choice by = selector_.able(call.choice.selection ? call.choice : choose(call), problem);
  const Shape shape = shape_of(call, by);
  for (CachedProgram* entry : entries_) {
    if (!entry) break;
    const bool same = entry->last_call != 0 && entry->shape == shape && is_kept(entry->begins, problem.begins) &&
                      is_kept(entry->sent_begins, problem.sent_begins) && is_kept(entry->told, problem.told);
    if (same) return entry;
  }
  CachedProgram* const entry = oldest();
  if (!entry || !build(*entry, call, by)) return nullptr;
  entry->units = units_moved(entry->program.schedule());
  return entry;
}

char* Scheduler::scratch(std::uint64_t bytes) {
  if (bytes <= scratch_bytes_) return scratch_;
  std::free(scratch_);
  scratch_ = static_cast<char*>(std::malloc(bytes));
  scratch_bytes_ = scratch_ ? bytes : 0;
  return scratch_;
}

coll::Problem Scheduler::problem(Collective as, int root) const {
  coll::Problem problem;
  problem.collective = as;
  problem.size = size();
  problem.rank = rank_;
  problem.root = root;
  if (is_neighborhood(as)) problem.neighborhood = neighborhood_;
  return problem;
}

select::Choice Scheduler::choose(Collective as, std::uint64_t bytes, bool in_order, bool commutative) {
  const select::Choice choice = selector_.of(as, bytes, in_order, commutative);
  if (explains_) [[unlikely]]
    say(choice, as, bytes);
  return choice;
}

select::Choice Scheduler::choose(const Scheduled& call) {
  const coll::Problem& p = call.problem;
  return choose(p.collective, whole_bytes(p, call.unit_bytes), p.in_order,
                p.commutative || !is_reduction(p.collective));
}

void Scheduler::say(const select::Choice& choice, Collective as, std::uint64_t bytes) {
  for (const Said& said : said_) {
    if (said.selection == choice.selection && said.as == as) return;
  }
  said_.push({choice.selection, as});
  if (is_neighborhood(as) && choice.backend == select::Backend::schedule) {
    return log_explain("%s, %d ranks: ours, a message for each neighbour; not measured, asked for",
                       kCollectiveNames[static_cast<int>(as)], size());
  }
  log_explain("%s of %llu bytes, %d ranks: %s", kCollectiveNames[static_cast<int>(as)],
              static_cast<unsigned long long>(bytes), size(), selector_.words(choice).text);
}

// Tells the ranks that wait for this rank, on this node and on others. Writes a line
// if a member is gone.
void Scheduler::abort(Status status, const coll::Problem& problem) { tell_lost(status, problem, stack_.abort(status)); }

void Scheduler::tell_lost(Status status, const coll::Problem& problem, const transport::Lost& found) {
  const int lost = found.rank;
  if (lost < 0) return;
  char witness[48] = "";
  if (status == Status::peer_lost && found.witness != rank_)
    std::snprintf(witness, sizeof witness, ", says rank %d", found.witness);
  Ranks gone, own;
  gone.add(lost, watch_.host_of(lost));
  own.add(rank_, watch_.host_of(rank_));
  log_line(LogLevel::error,
           "communicator of %d ranks: rank %s has %s%s; rank %s waits for others in call %llu by schedule, %s", size(),
           gone.text(), status == Status::peer_lost ? "died, or the connection to it is gone" : "ended", witness,
           own.text(), static_cast<unsigned long long>(calls_),
           CallName(static_cast<std::uint64_t>(problem.collective)).text);
}

PendingCall Scheduler::start(const Scheduled& call) {
  PendingCall pending(call);
  ++calls_;
  if (opening_call_ != 0 && opens_now(call.problem.collective)) [[unlikely]]
    open_connections();
  CachedProgram* const entry = program_of(call);
  if (!entry) return pending;
  entry->last_call = calls_;
  const std::uint64_t needed = entry->program.scratch_units() * call.unit_bytes;
  char* const own = scratch(needed);
  if (needed != 0 && !own) return pending;
  const sched::Binding binding{{const_cast<char*>(call.send), call.receive, own, call.check},
                               call.unit_bytes,
                               call.combination,
                               stack_.transport()};
  stack_.begin(call.problem.collective);
  entry->execution.start(binding);
  pending.program_ = entry;
  return pending;
}

bool Scheduler::advance(PendingCall& pending, bool* moved) {
  if (pending.program_ == nullptr) return false;
  if (pending.program_->execution.advance() && moved != nullptr) *moved = true;
  return !pending.program_->execution.done();
}

void Scheduler::wait(PendingCall& pending) {
  if (pending.program_ == nullptr) return;
  Stalled stalled(pending.call_, calls_, watch_, stack_);
  (void)pending.program_->execution.wait(policy_, stalled.look());
}

Outcome Scheduler::finish(PendingCall& pending) {
  if (pending.program_ == nullptr) return outcome_of(Status::no_memory);
  Outcome outcome = outcome_of(pending.program_->execution.status());
  if (outcome.status != Status::ok) [[unlikely]]
    abort(outcome.status, pending.call_.problem);
  stack_.end();
  outcome.bytes = pending.program_->units * pending.call_.unit_bytes;
  if (scratch_bytes_ > kTuning.scratch_kept_bytes) {
    std::free(scratch_);
    scratch_ = nullptr;
    scratch_bytes_ = 0;
  }
  return outcome;
}

void Scheduler::refuse(const Scheduled& call, Status why) {
  ++calls_;
  stack_.begin(call.problem.collective);
  (void)stack_.abort(why);
  stack_.end();
}

Outcome Scheduler::run_whole(const Scheduled& call) {
  PendingCall pending = start(call);
  wait(pending);
  return finish(pending);
}

Outcome Scheduler::run(const Scheduled& call) {
  if (!node_part_.able()) return run_whole(call);
  Scheduled chosen = call;
  chosen.choice = selector_.able(call.choice.selection ? call.choice : choose(call), call.problem);
  return goes_by_node(chosen) ? run_by_node(chosen) : run_whole(chosen);
}

// All ranks of a node find the same.
bool Scheduler::goes_by_node(const Scheduled& call) const {
  const select::Selection& selection = *call.choice.selection;
  const topo::Hierarchy& hierarchy = hierarchy_of(selection);
  if (apart_ || call.problem.neighborhood != nullptr || !node_part_.serves(call)) return false;
  if (!select::splits_at_nodes(selection, hierarchy, selector_.traits(), call.problem.collective, call.choice.bytes))
    return false;
  const int level = select::node_level(hierarchy);
  return hierarchy.under(hierarchy.group_over(rank_, level)) == node_part_.size();
}

// See node_part.hpp. Each call begins one schedule, as if it had not been split.
Outcome Scheduler::run_by_node(const Scheduled& call) {
  const coll::Problem& problem = call.problem;
  const topo::Hierarchy& hierarchy = hierarchy_of(*call.choice.selection);
  const int node = hierarchy.group_over(rank_, select::node_level(hierarchy));
  const bool rooted = coll::has_root(problem.collective);
  const bool is_home = rooted && hierarchy.has(node, problem.root);
  NodePart::Part part{call, is_home ? problem.root : hierarchy.leader(node)};
  const bool bcast = problem.collective == Collective::bcast;
  if (!bcast) node_part_.up(part);
  if (bcast && is_home) node_part_.down(part);
  if (part.status == Status::ok) {
    Scheduled leaders = call;
    leaders.leaders = true;
    if (is_reduction(problem.collective)) {
      leaders.problem.in_place = !rooted || rank_ == problem.root;
      leaders.send = node_part_.sum();
    }
    const Outcome outcome = run_whole(leaders);
    part.status = outcome.status;
    part.bytes += outcome.bytes;
  } else {
    refuse(call, part.status);
    tell_lost(part.status, problem, {part.lost, -1});
  }
  if (!(bcast && is_home) && problem.collective != Collective::reduce) node_part_.down(part);
  Outcome outcome = outcome_of(part.status);
  outcome.bytes = part.bytes;
  return outcome;
}

}  // namespace stretto::engine
