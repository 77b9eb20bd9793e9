// SPDX-License-Identifier: BSD-3-Clause
#include "job_meetings.hpp"

#include <algorithm>
#include <cmath>

namespace stretto::modelling {
namespace {

using record::Role;
using record::Values;

bool each_to_each(Collective collective) {
  return collective == Collective::alltoallv || collective == Collective::alltoallw;
}

}  // namespace

// Of collectives with parts of their own lengths, those of the mean. A root knows all lengths.
std::uint64_t Meetings::bytes_of(Collective collective, const std::vector<Member>& members) {
  std::uint64_t sum = 0, most = 0;
  for (const Member& each : members) {
    if (lengths_are_senders(collective) && each.is_root) return each.action->bytes;
    sum += each.action->bytes;
    most = std::max(most, each.action->bytes);
  }
  return each_to_each(collective) ? sum / members.size() : most;
}

// Empty: the recording does not have them all.
PartLengths Meetings::lengths_of(Collective collective, const std::vector<Member>& members) {
  PartLengths lengths;
  const auto add = [&](const Member& member, Role role) {
    const Values values = member.recording->values(member.action->term, role);
    if (values.size == members.size()) {
      for (const std::int64_t value : values)
        lengths.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(0, value)));
    }
  };
  if (each_to_each(collective)) {
    std::vector<const Member*> by_position(members.size());
    for (const Member& each : members) by_position[each.position] = &each;
    for (const Member* each : by_position) {
      if (each != nullptr) add(*each, Role::sends_each);
    }
    if (lengths.size() != members.size() * members.size()) lengths.clear();
    return lengths;
  }
  for (const Member& each : members) {
    const bool knows = lengths_are_senders(collective) ? each.is_root : lengths.empty();
    if (!knows) continue;
    if (collective == Collective::gatherv || collective == Collective::allgatherv) add(each, Role::receives_each);
    if (collective == Collective::scatterv) add(each, Role::sends_each);
  }
  return lengths;
}

CollectiveCall Meetings::call_of(const Coming& coming, const record::Communicator* known) {
  const Action& action = coming.action;
  CollectiveCall call{0, action.collective, action.bytes, static_cast<int>(action.root), action.commutes};
  if (times_ == nullptr) return call;
  const auto [place, is_new] = places_.try_emplace(coming.comm.name, 0);
  const bool has_one_group = known != nullptr && (known->flags & record::kInter) == 0;
  if (is_new) place->second = times_->place(has_one_group ? members_of(coming.recording, *known) : std::vector<int>{});
  call.place = place->second;
  if (!coming.blocking)
    call.calling = Calling::with_requests;
  else if (early_ && times_->is_early(call))
    call.calling = Calling::early;
  return call;
}

// How long a member takes that waits for nobody. Negative: it waits, or that is not known yet.
double Meetings::alone(const CollectiveCall& call, const Member& member) {
  if (!is_rooted(call.collective)) return -1;
  if (times_ == nullptr) return member.only_sends ? 0 : -1;
  if (times_->by_schedule(call)) return times_->alone(call, member.position);
  const bool is_open = lengths_are_senders(call.collective) && times_->may_run(call);
  return member.only_sends && !is_open ? member.took * times_->factor(call) : -1;
}

Meetings::Parts Meetings::meet(const Coming& coming) {
  const Action& action = coming.action;
  const record::Communicator* const known = coming.recording.communicator(action.comm);
  const std::size_t all = known == nullptr ? 1 : static_cast<std::size_t>(known->size + known->remote_size);
  const bool inter = known != nullptr && (known->flags & record::kInter) != 0;
  const CollectiveCall call = call_of(coming, known);
  Member member;
  member.position = known == nullptr || inter ? 0 : static_cast<std::size_t>(known->rank);
  member.rank = coming.rank;
  member.was = coming.was;
  member.took = coming.took;
  member.recording = &coming.recording;
  member.action = &action;
  member.is_root = known != nullptr && action.root == (inter ? record::kRootHere : known->rank);
  member.by = coming.by;
  member.only_sends = is_rooted(action.collective) && member.is_root != goes_to_root(action.collective);
  member.alone = alone(call, member);
  member.parts.call = operations_.make();
  if (times_ != nullptr && times_->returns_early(call, member.is_root)) member.parts.data = operations_.make();
  if (member.alone >= 0) finish(member, call, coming.by.time, coming.by.time + member.alone, {});
  const std::uint64_t name = std::uint64_t{coming.comm.name} << 32 | coming.comm.meetings++;
  std::vector<Member>& members = meetings_[name];
  members.push_back(member);
  if (members.size() == all) {
    settle(members, call);
    meetings_.erase(name);
  }
  return member.parts;
}

// What a member took in the recording since all had come for whom it waits.
double Meetings::rest(const Member& member, double others_came) {
  return std::clamp(member.was + member.took - others_came, 0.0, member.took);
}

// What members need where all wait for all, if they come in another order than in the recording, or
// at other times. The last to come took as long as all need since then: its time is the shortest,
// and they leave at about one time. By the clock a member may seem to need less, or more: sums of
// kept times may be off by more than a call takes, a single one by 30% (record/times.hpp). So it
// needs no less than the shortest, and no more than the mean of those that may have come last.
//
// Members that come as they did leave as they did: then such errors cancel in the end.
struct Meetings::Needs {
  static constexpr double kOff = 1.3, kAsBefore = 1;
  bool as_before = true;
  double least = 0, most = 0;
  Needs() = default;  // as by the clock
  explicit Needs(const std::vector<Member>& members) {
    double shortest = INFINITY, sum = 0, earliest = INFINITY, latest = -INFINITY;
    for (const Member& each : members) {
      shortest = std::min(shortest, each.took);
      earliest = std::min(earliest, each.by.time - each.was);
      latest = std::max(latest, each.by.time - each.was);
    }
    int alike = 0;
    for (const Member& each : members) {
      if (each.took > kOff * shortest) continue;
      sum += each.took;
      ++alike;
    }
    as_before = latest - earliest <= kAsBefore * shortest;
    least = shortest / kOff;
    most = sum / alike;
  }
  [[nodiscard]] double of(double by_clock) const { return as_before ? by_clock : std::clamp(by_clock, least, most); }
};

void Meetings::settle(const std::vector<Member>& members, CollectiveCall call) {
  Cause last = members.front().by;
  double last_was = members.front().was;
  const Member* root = nullptr;
  std::vector<double> starts(members.size()), ends;
  for (const Member& each : members) {
    if (each.by.time >= last.time) last = each.by;
    if (each.is_root) root = &each;
    last_was = std::max(last_was, each.was);
    starts[each.position] = each.by.time;
  }
  call.bytes = bytes_of(call.collective, members);
  const bool runs = times_ != nullptr && times_->may_run(call);
  const bool timed = runs && times_->run(call, lengths_of(call.collective, members), starts, &ends);
  const double factor = times_ == nullptr ? 0 : timed ? 1 : times_->factor(call);
  const bool from_root = root != nullptr && is_rooted(call.collective) && !goes_to_root(call.collective);
  const Needs needs = !timed && waits_for_all(call.collective) ? Needs(members) : Needs();
  for (const Member& each : members) {
    if (each.alone >= 0) continue;
    const Cause& waits_for = each.only_sends ? each.by : from_root ? root->by : last;
    const double from = std::max(each.by.time, waits_for.time);
    const double was = each.only_sends ? each.was : from_root ? root->was : last_was;
    finish(each, call, from, timed ? ends[each.position] : from + factor * needs.of(rest(each, was)), waits_for);
  }
}

// `sent`: since when all who send to this member have come.
void Meetings::finish(const Member& member, const CollectiveCall& call, double sent, double end, const Cause& cause) {
  if (times_ != nullptr) network_.use_ports(member.rank, times_->bytes_between_nodes(call), end);
  if (member.parts.data == Parts::kNone) return operations_.finish(member.parts.call, end, cause);
  const double ready = member.by.time + times_->copy(call, member.is_root);
  const double returns = sent > member.by.time || !member.only_sends ? sent + times_->first_word(call) : ready;
  operations_.finish(member.parts.call, std::min(end, std::max(ready, returns)), cause);
  operations_.finish(member.parts.data, end, cause);
}

}  // namespace stretto::modelling
