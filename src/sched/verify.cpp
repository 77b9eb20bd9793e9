// SPDX-License-Identifier: BSD-3-Clause
#include "sched/verify.hpp"

#include <algorithm>

namespace stretto::sched {
namespace {

const char* const kBufferNames[kBuffers] = {"send", "receive", "scratch", "check"};

bool overlap(const Slice& a, const Slice& b) {
  return a.buffer == b.buffer && a.offset < b.end() && b.offset < a.end();
}

}  // namespace

std::string text_of(const Slice& slice) {
  return std::string(kBufferNames[static_cast<int>(slice.buffer)]) + "[" + std::to_string(slice.offset) + ", " +
         std::to_string(slice.end()) + ")";
}

void Verifier::start(int ranks, bool commutative, bool signals) {
  ranks_ = ranks;
  signals_ = signals;
  failure_.clear();
  terms_.start(ranks, commutative);
  schedules_.clear();
  extents_.clear();
  base_.clear();
  total_ = 0;
  executed_ = 0;
  readers_.clear();
  const auto memories = static_cast<std::size_t>(kBuffers * ranks);
  if (memories_.size() < memories) memories_.resize(memories);
  for (std::size_t i = 0; i < memories; ++i) memories_[i].clear();
}

void Verifier::add(Schedule schedule, std::uint64_t send_units, std::uint64_t receive_units) {
  base_.push_back(static_cast<std::size_t>(total_));
  total_ += schedule.steps.size();
  schedules_.push_back(static_cast<Schedule&&>(schedule));
  extents_.push_back(send_units);
  extents_.push_back(receive_units);
}

void Verifier::hold(int rank, Slice slice, std::uint64_t origin) {
  if (slice.length == 0) return;
  memory(rank, slice.buffer).push_back({slice.offset, slice.end(), origin, Terms::of_rank(rank), kNone, kNone});
}

bool Verifier::fail(int rank, std::uint32_t step, const std::string& what) {
  if (!failure_.empty()) return false;
  failure_ = "rank " + std::to_string(rank);
  if (step != kNone) {
    const Step& s = schedules_[rank].steps[step];
    failure_ += ", step " + std::to_string(step) + " (" + kKindNames[static_cast<int>(s.kind)];
    if (s.peer >= 0) failure_ += std::string(s.receives() ? " from " : " to ") + std::to_string(s.peer);
    if (s.reads()) failure_ += " " + text_of(s.source_slice());
    if (s.writes()) failure_ += " -> " + text_of(s.target_slice());
    failure_ += ")";
  }
  failure_ += ": " + what;
  return false;
}

// ---- Before execution ----

bool Verifier::well_formed(int rank) {
  const Schedule& schedule = schedules_[rank];
  if (!schedule.complete) return fail(rank, kNone, "the schedule is not complete");
  const std::uint64_t limits[kBuffers] = {extents_[2 * rank], extents_[2 * rank + 1], schedule.scratch_units,
                                          schedule.check_units};
  const auto inside = [&](const Slice& s) {
    return s.end() >= s.offset && s.end() <= limits[static_cast<int>(s.buffer)];
  };
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    const Slice source = step.source_slice();
    const Slice target = step.target_slice();
    const bool signal = step.length == 0;
    if (step.reads() && !signal && !inside(source)) return fail(rank, i, "reads out of bounds");
    if (step.writes() && !signal && !inside(target)) return fail(rank, i, "writes out of bounds");
    if (step.writes() && !signal && target.buffer == Buffer::send) return fail(rank, i, "writes what is the caller's");
    if (step.reads() && step.writes() && overlap(source, target) && (source != target || step.kind == Kind::reduce)) {
      return fail(rank, i, "its slices overlap");
    }
    if (step.is_message() && (step.peer < 0 || step.peer >= ranks_ || step.peer == rank))
      return fail(rank, i, "no such peer");
    for (const std::uint32_t on : schedule.dependencies_of(step)) {
      if (on >= i) return fail(rank, i, "depends on a step that is not before it");
    }
  }
  return true;
}

bool Verifier::match() {
  numbers_.clear();
  partner_.assign(total_, kNone);
  following_.assign(total_, kNone);
  // A pair and an index are one key, which stands for the message.
  const auto message_of = [&](int from, int to, std::uint32_t message_index) -> std::uint32_t& {
    bool fresh;
    const auto pair =
        static_cast<std::uint64_t>(from) * static_cast<std::uint64_t>(ranks_) + static_cast<std::uint64_t>(to);
    std::uint32_t& place = numbers_.at(pair << 24 | message_index, &fresh);
    if (fresh) place = kNone;
    return place;
  };
  for (int r = 0; r < ranks_; ++r) {
    const auto& steps = schedules_[r].steps;
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind != Kind::send) continue;
      std::uint32_t& place = message_of(r, steps[i].peer, steps[i].message_index);
      if (place != kNone) return fail(r, i, "two sends on one edge");
      place = static_cast<std::uint32_t>(global(r, i));
      if (steps[i].message_index == 0) continue;
      const std::uint32_t before = message_of(r, steps[i].peer, steps[i].message_index - 1);
      if (before == kNone) return fail(r, i, "is sent before the message before it");
      following_[before] = static_cast<std::uint32_t>(global(r, i));
    }
  }
  for (int r = 0; r < ranks_; ++r) {
    const auto& steps = schedules_[r].steps;
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      if (!steps[i].receives()) continue;
      const std::uint32_t sent = message_of(steps[i].peer, r, steps[i].message_index);
      if (sent == kNone) return fail(r, i, "nobody sends this");
      if (partner_[sent] != kNone) return fail(r, i, "two receives on one edge");
      const Step& send = schedules_[owner_[sent]].steps[sent - base_[owner_[sent]]];
      if (send.length != steps[i].length) {
        return fail(r, i,
                    std::to_string(send.length) + " units are sent, " + std::to_string(steps[i].length) + " expected");
      }
      partner_[sent] = static_cast<std::uint32_t>(global(r, i));
      partner_[global(r, i)] = sent;
      if (steps[i].message_index == 0) continue;
      const std::uint32_t before = message_of(steps[i].peer, r, steps[i].message_index - 1);
      if (before == kNone || partner_[before] == kNone) return fail(r, i, "is received before the message before it");
      following_[partner_[before]] = static_cast<std::uint32_t>(global(r, i));
    }
  }
  for (int r = 0; r < ranks_; ++r) {
    const auto& steps = schedules_[r].steps;
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind == Kind::send && partner_[global(r, i)] == kNone) return fail(r, i, "nobody receives this");
    }
  }
  return true;
}

void Verifier::count_successors() {
  pending_.assign(total_, 0);
  first_successor_.assign(total_ + 1, 0);
  for (int r = 0; r < ranks_; ++r) {
    const Schedule& schedule = schedules_[r];
    for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
      const auto dependencies = schedule.dependencies_of(schedule.steps[i]);
      const bool follows = schedule.steps[i].is_message() && schedule.steps[i].message_index != 0;
      pending_[global(r, i)] = static_cast<std::uint32_t>(dependencies.size()) + (follows ? 1 : 0);
      for (const std::uint32_t on : dependencies) ++first_successor_[global(r, on) + 1];
    }
  }
  for (std::size_t i = 0; i < total_; ++i) first_successor_[i + 1] += first_successor_[i];
  successors_.resize(first_successor_[total_]);
  stack_.assign(first_successor_.begin(), first_successor_.end() - 1);
  for (int r = 0; r < ranks_; ++r) {
    const Schedule& schedule = schedules_[r];
    for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
      for (const std::uint32_t on : schedule.dependencies_of(schedule.steps[i])) {
        successors_[stack_[global(r, on)]++] = static_cast<std::uint32_t>(global(r, i));
      }
    }
  }
}

// ---- Execution ----

bool Verifier::run() {
  owner_.resize(total_);
  for (int r = 0; r < ranks_; ++r) {
    if (!well_formed(r)) return false;
    std::fill_n(owner_.begin() + static_cast<std::ptrdiff_t>(base_[r]), schedules_[r].steps.size(),
                static_cast<std::uint32_t>(r));
  }
  for (int r = 0; r < ranks_; ++r) hold(r, {Buffer::check, 0, schedules_[r].check_units}, 0);
  if (!match()) return false;
  count_successors();
  if (stamp_.size() < total_) stamp_.resize(total_, 0);
  if (signals_) heard_.assign(total_, Terms::kUndefined);
  return execute();
}

bool Verifier::execute() {
  // A step is pushed when its dependencies are complete. It runs when its partner is as far.
  ready_.clear();
  stack_.clear();
  for (std::uint32_t i = 0; i < total_; ++i) {
    if (pending_[i] == 0) stack_.push_back(i);
  }
  for (const std::uint32_t first : stack_) make_ready(first);
  while (!ready_.empty()) {
    const std::uint32_t at = ready_.back();
    ready_.pop_back();
    const int rank = static_cast<int>(owner_[at]);
    const auto step = static_cast<std::uint32_t>(at - base_[rank]);
    const std::uint32_t partner = partner_[at];
    if (partner == kNone) {
      if (!perform(rank, step)) return false;
      complete(rank, step);
      continue;
    }
    if (pending_[partner] != 0 || pending_[at] == kNone) continue;
    const int other = static_cast<int>(owner_[partner]);
    const auto other_step = static_cast<std::uint32_t>(partner - base_[other]);
    const bool sends = schedules_[rank].steps[step].kind == Kind::send;
    if (!(sends ? deliver(rank, step, other, other_step) : deliver(other, other_step, rank, step))) return false;
    pending_[at] = pending_[partner] = kNone;  // the partner may still stand in the queue
    complete(rank, step);
    complete(other, other_step);
  }
  return executed_ == total_ || deadlock();
}

// A step may start. If it is a message, it is posted, and so the next one of the pair may start.
void Verifier::make_ready(std::uint32_t at) {
  for (;;) {
    ready_.push_back(at);
    at = following_[at];
    if (at == kNone || --pending_[at] != 0) return;
  }
}

void Verifier::complete(int rank, std::uint32_t step) {
  ++executed_;
  const std::size_t at = global(rank, step);
  pending_[at] = kNone;
  for (std::uint32_t s = first_successor_[at]; s < first_successor_[at + 1]; ++s) {
    if (--pending_[successors_[s]] == 0) make_ready(successors_[s]);
  }
}

bool Verifier::deadlock() {
  for (int r = 0; r < ranks_; ++r) {
    for (std::uint32_t i = 0; i < schedules_[r].steps.size(); ++i) {
      if (pending_[global(r, i)] == 0) return fail(r, i, "deadlock: its partner never gets there");
    }
  }
  return fail(0, kNone, "deadlock: no step can start");
}

bool Verifier::perform(int rank, std::uint32_t step) {
  const Step& s = schedules_[rank].steps[step];
  hear(rank, step, Terms::kUndefined);
  if (!load(rank, step, s.source_slice(), own_)) return false;
  if (s.kind == Kind::copy) return store(rank, step, s.target_slice(), own_);
  if (!load(rank, step, s.target_slice(), arriving_)) return false;
  const bool source_left = s.side == Side::left;
  return combine(rank, step, source_left ? own_ : arriving_, source_left ? arriving_ : own_) &&
         store(rank, step, s.target_slice(), result_);
}

bool Verifier::deliver(int from, std::uint32_t sent, int to, std::uint32_t received) {
  hear(from, sent, Terms::kUndefined);
  if (signals_) hear(to, received, heard_[global(from, sent)]);
  const Step& r = schedules_[to].steps[received];
  if (r.length == 0) return true;
  if (!load(from, sent, schedules_[from].steps[sent].source_slice(), arriving_)) return false;
  if (r.kind == Kind::recv) return store(to, received, r.target_slice(), arriving_);
  if (!load(to, received, r.source_slice(), own_)) return false;
  const bool arriving_left = r.side == Side::left;
  return combine(to, received, arriving_left ? arriving_ : own_, arriving_left ? own_ : arriving_) &&
         store(to, received, r.target_slice(), result_);
}

void Verifier::hear(int rank, std::uint32_t step, Terms::Id of) {
  if (!signals_) return;
  Terms::Id all = terms_.unite(Terms::of_rank(rank), of);
  const Schedule& schedule = schedules_[rank];
  for (const std::uint32_t on : schedule.dependencies_of(schedule.steps[step]))
    all = terms_.unite(all, heard_[global(rank, on)]);
  heard_[global(rank, step)] = all;
}

// ---- After execution ----

bool Verifier::expect(int rank, Slice slice, int first, int last, std::uint64_t origin) {
  const Memory& cells = memory(rank, slice.buffer);
  std::uint64_t at = slice.offset;
  for (std::size_t i = find(cells, at); at < slice.end(); ++i) {
    const std::string where = text_of({slice.buffer, at, 1});
    if (i == cells.size() || cells[i].begin > at) return fail(rank, kNone, where + " was never written");
    const Cell& cell = cells[i];
    if (!terms_.is_exactly(cell.term, first, last)) {
      const auto [low, high] = terms_.bounds(cell.term);
      return fail(rank, kNone,
                  where + " holds contributions of ranks " + std::to_string(low) + " to " + std::to_string(high - 1) +
                      ", not all of " + std::to_string(first) + " to " + std::to_string(last - 1));
    }
    if (cell.origin + (at - cell.begin) != origin + (at - slice.offset)) {
      return fail(rank, kNone,
                  where + " holds position " + std::to_string(cell.origin + (at - cell.begin)) + " instead of " +
                      std::to_string(origin + (at - slice.offset)));
    }
    at = std::min(cell.end, slice.end());
  }
  return true;
}

bool Verifier::expect_same(int rank, int other, Slice slice) {
  const Memory& a = memory(rank, slice.buffer);
  const Memory& b = memory(other, slice.buffer);
  std::uint64_t at = slice.offset;
  std::size_t i = find(a, at);
  std::size_t j = find(b, at);
  while (at < slice.end()) {
    if (a[i].term != b[j].term) {
      return fail(
          rank, kNone,
          text_of({slice.buffer, at, 1}) + " was combined in another way than on rank " + std::to_string(other));
    }
    at = std::min(a[i].end, b[j].end);
    i += a[i].end == at ? 1 : 0;
    j += b[j].end == at ? 1 : 0;
  }
  return true;
}

bool Verifier::expect_heard_all(int rank) {
  Terms::Id all = Terms::of_rank(rank);
  for (std::uint32_t i = 0; i < schedules_[rank].steps.size(); ++i) all = terms_.unite(all, heard_[global(rank, i)]);
  return terms_.is_exactly(all, 0, ranks_) || fail(rank, kNone, "has not heard from all ranks");
}

}  // namespace stretto::sched
