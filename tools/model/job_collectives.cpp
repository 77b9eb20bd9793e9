// SPDX-License-Identifier: BSD-3-Clause
#include "job_collectives.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/tuning.hpp"
#include "job_actions.hpp"
#include "job_host.hpp"
#include "job_places.hpp"

namespace stretto::modelling {
namespace {

constexpr double kNs = 1e-9;
constexpr double kSteps = 32;                    // into which a call's time is divided, for when ranks come
constexpr std::size_t kMostKnown = 4096;         // orders of coming that a call remembers
constexpr std::uint64_t kMostSteps = 1'000'000;  // of a schedule that is compared with others
// Calls with parts of their own lengths have few lengths, and are few.
constexpr std::size_t kMostLengths = 128 * 128, kMostPlans = 1000;

select::Shape shape_of(const CollectiveCall& call, int ranks) {
  select::Shape shape;
  shape.collective = scheduled_form(call.collective);
  shape.ranks = ranks;
  shape.bytes = call.bytes;
  shape.root = call.root >= 0 && call.root < ranks ? call.root : 0;
  shape.commutative = call.commutes;
  return shape;
}

// Of the vector, or of all parts together.
std::uint64_t whole_bytes(const CollectiveCall& call, int ranks) {
  switch (call.collective) {
    case Collective::barrier:
    case Collective::bcast:
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::scan:
    case Collective::exscan: return call.bytes;
    default: return call.bytes * static_cast<std::uint64_t>(ranks);
  }
}

// As rules count bytes. Of some collectives not all ranks know all lengths.
std::uint64_t ruled_bytes(const CollectiveCall& call, int ranks) {
  switch (call.collective) {
    case Collective::gatherv:
    case Collective::scatterv:
    case Collective::alltoallv:
    case Collective::alltoallw: return 0;
    default: return whole_bytes(call, ranks);
  }
}

// What serves calls that may return early (docs/overlap.md). Null: there are none of this
// collective.
const coll::Algorithm* find_early(Collective collective) {
  switch (collective) {
    case Collective::alltoall:
    case Collective::alltoallv:
    case Collective::alltoallw: return coll::find_algorithm(collective, "linear");
    case Collective::gather:
    case Collective::gatherv:
    case Collective::scatter:
    case Collective::scatterv: return coll::find_algorithm(collective, "flat");
    case Collective::bcast:
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block: return coll::find_algorithm(collective, "pipeline");
    case Collective::scan:
    case Collective::exscan: return coll::find_algorithm(Collective::scan, "pipeline");  // the same messages
    default: return nullptr;
  }
}

// Of schedules that are not too long; where all are, of a message.
double fastest(const select::Machine& machine, const select::Shape& shape) {
  const std::vector<select::Estimate> all = select::estimates(machine, shape, kMostSteps);
  if (!all.empty()) return all.front().time;
  const select::LogP message = select::logp_of(machine, shape);
  return 2 * message.o + message.L;
}

}  // namespace

// A communicator on both machines.
struct CollectiveTimes::Place {
  int ranks = 0, nodes = 1;
  topo::Hierarchies hierarchies, hierarchies_then;
  select::Machine machine, machine_then;
  select::Selector selector;

  [[nodiscard]] const sched::LogGP& outermost() const {
    return machine.costs.paths[hierarchies.all.levels() - 1].at(1);
  }
};

// What is known of a call.
struct CollectiveTimes::Plan {
  Place* place = nullptr;
  std::vector<std::uint64_t> begins, sent_begins;  // of each rank's parts; one row where all have the same
  double factor = -1;                              // negative: not known yet
  bool is_new = true;
  How how = How::as_recorded;
  // Of calls by schedule:
  std::function<sched::Schedule(sched::Builder&, int rank)> build;
  std::vector<double> ends;  // of ranks that come together, in ns
  std::vector<bool> waits;
  double longest = 0;
  std::uint64_t steps = 0;
  std::map<std::vector<std::int64_t>, std::vector<double>> known;  // by when ranks come

  // `lengths` fit the call.
  void divide(const PartLengths& lengths) {
    const auto n = static_cast<std::size_t>(place->ranks);
    const auto add_row = [n](std::vector<std::uint64_t>& rows, const auto& length) {
      rows.push_back(0);
      for (std::size_t i = 0; i < n; ++i) rows.push_back(rows.back() + length(i));
    };
    for (std::size_t rank = 0; rank < lengths.size() / n; ++rank) {
      const bool each = lengths.size() > n;
      add_row(begins, [&](std::size_t from) { return lengths[each ? from * n + rank : from]; });
      if (each) add_row(sent_begins, [&](std::size_t to) { return lengths[rank * n + to]; });
    }
  }
  [[nodiscard]] coll::Problem problem(Collective collective, const select::Shape& shape, int rank) const {
    coll::Problem problem = select::problem_of(shape, rank);
    if (begins.empty()) return problem;
    problem.collective = collective;
    const std::size_t row = static_cast<std::size_t>(rank) * static_cast<std::size_t>(place->ranks + 1);
    problem.begins = begins.data() + (sent_begins.empty() ? 0 : row);
    if (!sent_begins.empty()) problem.sent_begins = sent_begins.data() + row;
    return problem;
  }
  bool run(sched::Timer& timer, const double* starts) const {
    const topo::Hierarchy* const levels = place->machine.hierarchies != nullptr ? &place->hierarchies.all : nullptr;
    return timer.run({.ranks = place->ranks, .hierarchy = levels, .starts = starts}, place->machine.costs, build);
  }
};

CollectiveTimes::CollectiveTimes(JobMachine now, JobMachine was, Options options)
    : now_(std::move(now)), was_(std::move(was)), options_(std::move(options)), steps_(options_.most_steps) {}

CollectiveTimes::~CollectiveTimes() = default;

std::uint32_t CollectiveTimes::place(const std::vector<int>& members) {
  const auto [found, is_new] = numbers_.try_emplace(members, static_cast<std::uint32_t>(places_.size()));
  if (is_new) places_.push_back(make_place(members));
  return found->second;
}

std::unique_ptr<CollectiveTimes::Place> CollectiveTimes::make_place(const std::vector<int>& members) const {
  auto place = std::make_unique<Place>();
  const auto is_here = [&](int each) { return each >= 0 && each < now_.places.ranks; };
  if (members.empty() || !std::all_of(members.begin(), members.end(), is_here)) return place;
  const topo::Placement places = part_of(now_.places, members);
  place->ranks = static_cast<int>(members.size());
  place->nodes = nodes_of(places);
  place->machine = make_machine(now_.request, places, place->hierarchies);
  if (!was_.request.costs.empty())
    place->machine_then = make_machine(was_.request, part_of(was_.places, members), place->hierarchies_then);
  const bool beyond = place->nodes > 1;
  const select::Circumstances at{.ranks = place->ranks,
                                 .nodes = place->nodes,
                                 .in_memory = beyond ? 0 : kNativeCollectives,
                                 .across_nodes = beyond};
  if (!place->selector.start(at, options_.rules)) stop("no memory");
  place->selector.place(place->hierarchies);
  place->selector.connect(beyond);
  return place;
}

CollectiveTimes::Plan& CollectiveTimes::plan_of(const CollectiveCall& call, const PartLengths& lengths) {
  std::unique_ptr<Plan>& plan = plans_[{call, lengths}];
  if (!plan) {
    plan = std::make_unique<Plan>();
    plan->place = places_[call.place].get();
    if (plan->place->ranks > 0) plan->divide(lengths);
  }
  return *plan;
}

CollectiveTimes::Plan& CollectiveTimes::scheduled(const CollectiveCall& call, const PartLengths& lengths) {
  const bool many = lengths.size() > kMostLengths || plans_.size() > kMostPlans;
  Plan& plan = plan_of(call, many ? PartLengths{} : lengths);
  if (plan.is_new) schedule(call, plan);
  plan.is_new = false;
  return plan;
}

double CollectiveTimes::factor(const CollectiveCall& call) {
  Plan& plan = plan_of(call);
  if (plan.factor >= 0) return plan.factor;
  plan.factor = 1;
  if (was_.request.costs.empty() || plan.place->ranks < 2) return 1;
  const select::Shape shape = shape_of(call, plan.place->ranks);
  const double was = fastest(plan.place->machine_then, shape), now = fastest(plan.place->machine, shape);
  if (was > 0) plan.factor = now / was;
  return plan.factor;
}

// ---- By schedule ----

void CollectiveTimes::schedule(const CollectiveCall& call, Plan& plan) {
  const Collective as = call.collective;
  const bool has_schedules = as != Collective::count_ && !is_neighborhood(as);
  if (!has_schedules || plan.place->ranks < 2) return;
  const Place& place = *plan.place;
  const select::Shape shape = shape_of(call, place.ranks);
  const auto by = [&](const coll::Algorithm& algorithm) {
    plan.build = [&plan, &algorithm, as, shape](sched::Builder& builder, int rank) {
      return coll::build(builder, algorithm, plan.problem(as, shape, rank), {});
    };
    time_together(plan);
  };
  if (call.calling == Calling::early) return by(*find_early(as));
  if (options_.by != By::rules) return by(host_algorithm(as, shape));
  select::Choice choice = place.selector.of(as, ruled_bytes(call, place.ranks), false, call.commutes);
  if (choice.backend != select::Backend::schedule) {
    if (call.calling == Calling::with_requests) return by(host_algorithm(as, shape));
    if (choice.backend == select::Backend::shared_memory) plan.how = How::in_memory;
    return;
  }
  choice = place.selector.able(choice, plan.problem(as, shape, 0));
  plan.build = [&plan, &place, choice, as, shape](sched::Builder& builder, int rank) {
    return select::schedule_of(builder, *choice.selection, place.hierarchies, place.selector.traits(), choice.bytes,
                               plan.problem(as, shape, rank));
  };
  time_together(plan);
}

void CollectiveTimes::time_together(Plan& plan) {
  const int ranks = plan.place->ranks;
  std::size_t most = 0;
  for (const int rank : {0, ranks / 2, ranks - 1}) {
    sched::Schedule schedule = plan.build(builder_, rank);
    most = std::max<std::size_t>(most, schedule.steps.size());
    builder_.recycle(std::move(schedule));
  }
  if (most * static_cast<std::size_t>(ranks) > options_.most_steps || !plan.run(timer_, nullptr)) return;
  plan.how = How::timed;
  plan.steps = timer_.steps();
  plan.longest = std::max(timer_.end(), 1.0);
  for (int rank = 0; rank < ranks; ++rank) {
    plan.ends.push_back(timer_.rank(rank).end);
    bool waits = false;
    for (std::uint32_t i = timer_.first_step(rank); i < timer_.last_step(rank); ++i) {
      const sched::Kind kind = timer_.step(i).kind;
      waits |= kind == sched::Kind::recv || kind == sched::Kind::recv_reduce;
    }
    plan.waits.push_back(waits);
  }
}

bool CollectiveTimes::by_schedule(const CollectiveCall& call) {
  return may_run(call) && !lengths_are_senders(call.collective) && scheduled(call).how == How::timed;
}

double CollectiveTimes::alone(const CollectiveCall& call, std::size_t member) {
  const Plan& plan = scheduled(call);
  return plan.waits[member] ? -1 : kNs * plan.ends[member];
}

bool CollectiveTimes::run(const CollectiveCall& call, const PartLengths& lengths, const std::vector<double>& starts,
                          std::vector<double>* ends) {
  if (starts.size() < 2) return false;
  Plan& plan = scheduled(call, lengths);
  if (plan.how != How::timed) {
    count(plan.how);
    return false;
  }
  // Where all wait for all, who is earlier than a call takes is early enough, and ranks leave
  // together: it is no matter when exactly they come. Elsewhere it is, to the nanosecond.
  const bool all_wait = waits_for_all(call.collective);
  const double last = *std::max_element(starts.begin(), starts.end());
  const double step = all_wait ? plan.longest / kSteps : 1, earliest = all_wait ? -kSteps - 1 : -INFINITY;
  std::vector<std::int64_t> when;
  for (const double start : starts)
    when.push_back(static_cast<std::int64_t>(std::max(earliest, std::round((start - last) / kNs / step))));
  const auto found = plan.known.find(when);
  ends->resize(starts.size());
  const auto tell = [&](const std::vector<double>& after) {  // the last one's start, in ns
    for (std::size_t i = 0; i < starts.size(); ++i) (*ends)[i] = std::max(starts[i], last + kNs * after[i]);
  };
  if (found != plan.known.end()) {
    count(How::repeated);
    tell(found->second);
    return true;
  }
  if (plan.steps > steps_) {
    count(How::together);
    tell(plan.ends);
    return true;
  }
  steps_ -= plan.steps;
  const double first = static_cast<double>(*std::min_element(when.begin(), when.end())) * step;
  std::vector<double> begins, after;
  for (const std::int64_t each : when) begins.push_back(static_cast<double>(each) * step - first);
  if (!plan.run(timer_, begins.data())) return false;
  count(How::timed);
  for (int rank = 0; rank < plan.place->ranks; ++rank)
    after.push_back(std::max(timer_.rank(rank).end, begins[static_cast<std::size_t>(rank)]) + first);
  tell(after);
  if (plan.known.size() < kMostKnown) plan.known.emplace(std::move(when), std::move(after));
  return true;
}

std::uint64_t CollectiveTimes::bytes_between_nodes(const CollectiveCall& call) {
  const Place& place = place_of(call);
  return place.nodes > 1 ? whole_bytes(call, place.ranks) : 0;
}

// ---- Calls that return early ----

bool may_return_early(const CollectiveCall& call, int ranks, int nodes) {
  const bool has_form = find_early(call.collective) != nullptr && (!is_reduction(call.collective) || call.commutes);
  return nodes > 1 && has_form && whole_bytes(call, ranks) >= kTuning.overlap_bytes;
}

bool returns_early_here(const CollectiveCall& call, int ranks, bool is_root) {
  const Collective form = scheduled_form(call.collective);
  const bool has_one_part = (form == Collective::gather || form == Collective::scatter) && !is_root;
  return (has_one_part ? call.bytes : whole_bytes(call, ranks)) >= kTuning.overlap_bytes;
}

bool CollectiveTimes::is_early(const CollectiveCall& call) {
  return may_return_early(call, place_of(call).ranks, place_of(call).nodes);
}

bool CollectiveTimes::returns_early(const CollectiveCall& call, bool is_root) {
  return call.calling == Calling::early && returns_early_here(call, place_of(call).ranks, is_root);
}

double CollectiveTimes::first_word(const CollectiveCall& call) { return kNs * place_of(call).outermost().latency; }

double CollectiveTimes::copy(const CollectiveCall& call, bool is_root) {
  const Place& place = place_of(call);
  const Collective form = scheduled_form(call.collective);
  const bool all = form == Collective::alltoall || (form == Collective::scatter && is_root);
  const bool sends = is_root ? !goes_to_root(form) : form != Collective::bcast && form != Collective::scatter;
  const std::uint64_t bytes = !sends ? 0 : call.bytes * static_cast<std::uint64_t>(all ? place.ranks : 1);
  return kNs * place.machine.costs.copy.at(bytes).over(bytes);
}

}  // namespace stretto::modelling
