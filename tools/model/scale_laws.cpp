// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <tuple>

#include "job_words.hpp"
#include "scale_plan.hpp"

namespace stretto::modelling {
namespace {

using record::PeerKind;
using record::Role;
using record::Values;

constexpr std::int64_t kManyTurns = 16;  // of so many, a few more or less are chance

constexpr Role kLengths[] = {Role::sends, Role::receives, Role::sends_each, Role::receives_each};
constexpr Role kSlots[] = {Role::made, Role::waited, Role::started, Role::named, Role::ended};

// A call's length: of lists their sum.
double length_of(const record::Recording& recording, std::uint32_t term) {
  double most = 0;
  for (const Role role : kLengths) {
    double sum = 0;
    for (const std::int64_t value : recording.values(term, role)) sum += static_cast<double>(value);
    most = std::max(most, sum);
  }
  return most;
}

std::string at_place(const ScaledCall& call) { return call.function + (call.place.empty() ? "" : " at " + call.place); }

}  // namespace

bool ClassLaws::Sample::operator<(const Sample& other) const {
  return std::tie(job, rank, turn, term) < std::tie(other.job, other.rank, other.turn, other.term);
}

ClassLaws::ClassLaws(const ScalePlan& plan, const std::vector<ScaledJob>& jobs, const RankClasses& classes,
                     int of_class)
    : plan_(plan), jobs_(jobs), classes_(classes), class_(of_class) {
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    for (int rank = 0; rank < jobs[j].file->ranks(); ++rank) {
      if (classes.of(jobs[j].file->ranks(), rank) != of_class) continue;
      std::size_t call = 0, loop = 0;
      came_.assign(calls_.size(), 0);
      add(j, rank, jobs[j].ranks[static_cast<std::size_t>(rank)].body, 0, call, loop);
    }
  }
}

// Every turn of a loop has the same calls, which have the same numbers.
void ClassLaws::add(std::size_t job, int rank, const LoopBody& body, int turn, std::size_t& call, std::size_t& loop) {
  for (const LoopNode& node : body) {
    if (node.is_loop() && plan_.unrolls(node)) {
      for (const LoopBody& each : node.turns) add(job, rank, each, turn, call, loop);
      continue;
    }
    if (node.is_loop()) {
      const std::size_t number = loop++;
      if (loops_.size() <= number) loops_.resize(number + 1);
      loops_[number].turns.resize(jobs_.size());
      ++loops_[number].turns[job][static_cast<std::int64_t>(node.turns.size())];
      // A loop over peers has no more turns. In another one, the number of the turn says nothing.
      const bool counts = node.turns.size() <= 2 * static_cast<std::size_t>(jobs_[job].file->ranks());
      std::size_t first_call = call, first_loop = loop;
      for (std::size_t i = 0; i < node.turns.size(); ++i) {
        call = first_call;
        loop = first_loop;
        add(job, rank, node.turns[i], counts ? static_cast<int>(i) : 0, call, loop);
      }
      continue;
    }
    const std::size_t number = call++;
    if (calls_.size() <= number) calls_.resize(number + 1);
    if (came_.size() <= number) came_.resize(number + 1, 0);
    CallSamples& samples = calls_[number];
    for (auto* const each : {&samples.gaps, &samples.counts, &samples.bytes}) each->resize(jobs_.size(), 0);
    samples.least.resize(jobs_.size());
    const ScaleStep& step = jobs_[job].ranks[static_cast<std::size_t>(rank)].steps[node.step];
    ++samples.named[{job, rank, turn, step.term}];
    samples.gaps[job] += step.gap;
    samples.counts[job] += 1;
    samples.bytes[job] += length_of(jobs_[job].file->of(rank), step.term);
    std::vector<double>& least = samples.least[job];
    const std::size_t came = came_[number]++;
    if (came < least.size())
      least[came] = std::min(least[came], step.duration);
    else
      least.push_back(step.duration);
  }
}

Values ClassLaws::values(const Sample& sample, Role role) const {
  return jobs_[sample.job].file->of(sample.rank).values(sample.term, role);
}
int ClassLaws::comm_size(const Sample& sample) const {
  return plan_.comm(values(sample, Role::comm).one()).size(jobs_[sample.job].file->ranks());
}
int ClassLaws::comm_rank(const Sample& sample) const {
  return plan_.comm(values(sample, Role::comm).one()).place(jobs_[sample.job].file->ranks(), sample.rank);
}

bool ClassLaws::find_peer(const CallSamples& samples, Role role, std::optional<PeerRule>& rule, std::string* why) {
  std::vector<NamedPeer> named;
  for (const auto& [sample, count] : samples.named) {
    const Values value = values(sample, role);
    if (!value) continue;
    const int me = comm_rank(sample);
    NamedPeer peer{comm_size(sample), me, sample.turn, kNoPeer};
    if (role == Role::root) {
      if (value.one() < 0) return *why = "is of two groups", false;
      peer.peer = static_cast<int>(value.one());
    } else if (record::peer_kind(value.one()) == PeerKind::any) {
      return *why = "receives from anybody", false;
    } else if (record::peer_kind(value.one()) == PeerKind::rank) {
      peer.peer = me + static_cast<int>(record::peer_relative(value.one()));
    }
    named.push_back(peer);
  }
  if (named.empty()) return true;
  rule.emplace();
  if (rule->find(named)) return true;
  *why = "names ranks that follow no rule";
  return false;
}

bool ClassLaws::find_tag(const CallSamples& samples, Role role, Role peer, TagRule& rule) {
  for (const TagRule::Form form :
       {TagRule::Form::constant, TagRule::Form::turn, TagRule::Form::me, TagRule::Form::peer}) {
    rule.form = form;
    bool is_first = true, good = true;
    for (const auto& [sample, count] : samples.named) {
      const Values value = values(sample, role);
      if (!value) continue;
      const std::int64_t me = comm_rank(sample);
      const std::int64_t base = form == TagRule::Form::constant ? 0
                                : form == TagRule::Form::turn   ? sample.turn
                                : form == TagRule::Form::me ? me
                                                            : me + record::peer_relative(values(sample, peer).one());
      if (is_first) rule.beside = value.one() - base;
      is_first = false;
      good = good && value.one() == base + rule.beside;
    }
    if (good) return true;
  }
  return false;
}

bool ClassLaws::find_slots(const CallSamples& samples, Role role, SlotRule& rule) {
  const Values first = values(samples.named.begin()->first, role);
  bool same = true, by_turn = true, range = true;
  std::vector<std::pair<int, std::int64_t>> lengths, begins, turns;
  for (const auto& [sample, count] : samples.named) {
    const Values its = values(sample, role);
    same = same && std::equal(its.begin(), its.end(), first.begin(), first.end());
    by_turn = by_turn && its.size == 1;
    const int ranks = jobs_[sample.job].file->ranks();
    lengths.emplace_back(ranks, static_cast<std::int64_t>(its.size));
    if (its.size > 0) begins.emplace_back(ranks, its.data[0]);
    if (its.size == 1) turns.emplace_back(ranks, its.data[0] - sample.turn);
    for (std::size_t i = 1; i < its.size; ++i)
      range = range && its.data[i] == its.data[0] + static_cast<std::int64_t>(i);
  }
  if (same) return true;
  if (by_turn && rule.first.find(turns)) {
    rule.form = SlotRule::Form::turn;
    return true;
  }
  rule.form = SlotRule::Form::range;
  return range && !begins.empty() && rule.first.find(begins) && rule.length.find(lengths);
}

bool ClassLaws::find_call(std::size_t number, ScaledCall& call, std::string* why) {
  const CallSamples& samples = calls_[number];
  const Sample& last = samples.named.rbegin()->first;  // of the recording of most ranks
  const record::Recording& recording = jobs_[last.job].file->of(last.rank);
  call.function = text_of(recording.function(last.term));
  call.place = text_of(recording.place(last.term));
  const auto fail = [&](const std::string& what) {
    *why = at_place(call) + " " + what;
    return false;
  };
  if (call.function.find("eighbor_") != std::string::npos) return fail("goes to neighbours");
  for (const auto& [sample, count] : samples.named) {
    if (values(sample, Role::got)) return fail("receives from anybody");
    for (int role = 0; role < record::kRoles; ++role) {
      const auto its = static_cast<Role>(role);
      if (its != Role::code &&
          static_cast<bool>(values(sample, its)) != static_cast<bool>(recording.values(last.term, its)))
        return fail("has other arguments on other ranks");
    }
  }
  std::string what;
  if (!find_peer(samples, Role::destination, call.destination, &what) ||
      !find_peer(samples, Role::source, call.source, &what) || !find_peer(samples, Role::root, call.root, &what))
    return fail(what);
  if (!find_tag(samples, Role::send_tag, Role::destination, call.send_tag) ||
      !find_tag(samples, Role::receive_tag, Role::source, call.receive_tag))
    return fail("has tags that follow no rule");
  for (const Role role : kSlots) {
    if (!recording.values(last.term, role)) continue;
    if (!find_slots(samples, role, call.slots[role])) return fail("has requests that follow no rule");
  }
  std::vector<Measured> gaps, durations, bytes;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const int ranks = jobs_[j].file->ranks();
    double sum = 0;
    for (const double each : samples.least[j]) sum += each;
    gaps.push_back({ranks, samples.gaps[j] / samples.counts[j]});
    bytes.push_back({ranks, samples.bytes[j] / samples.counts[j]});
    durations.push_back({ranks, sum / static_cast<double>(samples.least[j].size())});
  }
  call.gap = Law::fitted(gaps);
  call.duration = Law::fitted(durations);
  call.bytes = Law::fitted(bytes);
  call.seconds = samples.gaps.back();
  return true;
}

bool ClassLaws::find_loop(std::size_t number, ScaledLoop& loop, std::string* why) {
  std::vector<std::pair<int, std::int64_t>> counts;
  std::vector<Measured> means;
  std::int64_t least = kManyTurns;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    double sum = 0, times = 0;
    for (const auto& [turns, often] : loops_[number].turns[j]) {
      counts.emplace_back(jobs_[j].file->ranks(), turns);
      least = std::min(least, turns);
      sum += static_cast<double>(turns) * static_cast<double>(often);
      times += static_cast<double>(often);
    }
    means.push_back({jobs_[j].file->ranks(), sum / times});
  }
  loop.turns.emplace();
  if (loop.turns->find(counts)) return true;
  loop.turns.reset();
  const auto same_keys = [&](const auto& its) {
    const auto& first = loops_[number].turns.front();
    return std::equal(its.begin(), its.end(), first.begin(), first.end(),
                      [](const auto& a, const auto& b) { return a.first == b.first; });
  };
  loop.as_recorded = std::all_of(loops_[number].turns.begin(), loops_[number].turns.end(), same_keys);
  loop.about = Law::fitted(means);
  if (loop.as_recorded || least >= kManyTurns) return true;
  *why = "a loop has turns that follow no rule of the number of ranks";
  return false;
}

bool ClassLaws::find(ScaledClass& found, std::string* why) {
  found.calls.resize(calls_.size());
  found.loops.resize(loops_.size());
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    if (!find_loop(i, found.loops[i], why)) return false;
  }
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (!find_call(i, found.calls[i], why)) return false;
  }
  return true;
}

}  // namespace stretto::modelling
