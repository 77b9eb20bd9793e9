// SPDX-License-Identifier: BSD-3-Clause
#include "sched/builder.hpp"

#include <algorithm>

namespace stretto::sched {

// piece(at, units) adds one. Returns the last one.
template <class Piece>
StepId Builder::add_message(std::uint64_t length, const Piece& piece) {
  constexpr std::uint64_t kWhole = 16 << 10, kEnd = 4 << 10, kLeast = 32 << 10, kMost = 512 << 10, kPieces = 1 << 12;
  if (length == 0) return skip();
  if (!cuts_ || length <= kWhole) return piece(0, length);
  const std::uint64_t wanted = std::max(std::clamp(length / 32, kLeast, kMost), length / (kPieces - 3));
  const std::uint64_t each = (wanted + kGrain - 1) / kGrain * kGrain;
  piece(length - kEnd, kEnd);
  StepId last = piece(0, kEnd);
  for (std::uint64_t at = kEnd; at < length - kEnd; at += each) last = piece(at, std::min(each, length - kEnd - at));
  return last;
}

StepId Builder::send(int peer, Slice from) {
  return add_message(from.length, [&](std::uint64_t at, std::uint64_t units) {
    return add(Kind::send, peer, from.part(at, units), {}, Side::right);
  });
}
StepId Builder::recv(int peer, Slice to) {
  return add_message(to.length, [&](std::uint64_t at, std::uint64_t units) {
    return add(Kind::recv, peer, {}, to.part(at, units), Side::right);
  });
}
StepId Builder::recv_reduce(int peer, Slice with, Slice to, Side arriving) {
  return add_message(to.length, [&](std::uint64_t at, std::uint64_t units) {
    return add(Kind::recv_reduce, peer, with.part(at, units), to.part(at, units), arriving);
  });
}
StepId Builder::copy(Slice from, Slice to) {
  return from.length == 0 || from == to ? skip() : add(Kind::copy, -1, from, to, Side::right);
}
StepId Builder::reduce(Slice from, Slice to, Side side) {
  return from.length == 0 ? skip() : add(Kind::reduce, -1, from, to, side);
}
StepId Builder::skip() {
  extra_.clear();
  return kNoStep;
}
StepId Builder::signal(int peer) { return add(Kind::send, peer, {}, {}, Side::right); }
StepId Builder::await(int peer) { return add(Kind::recv, peer, {}, {}, Side::right); }

StepId Builder::add(Kind kind, int peer, Slice source, Slice target, Side side) {
  const auto self = static_cast<StepId>(schedule_.steps.size());
  Step step{};
  step.kind = kind;
  step.side = side;
  step.source = source.buffer;
  step.target = target.buffer;
  step.segment = segment_;
  step.priority = priority_;
  step.peer = peer;
  step.first_dependency = static_cast<std::uint32_t>(schedule_.dependencies.size());
  step.source_offset = source.offset;
  step.target_offset = target.offset;
  step.length = step.writes() ? target.length : source.length;
  if (step.is_message()) step.message_index = next_message_index(peer, step.receives());

  const auto follow = [&](StepId on) { depend(self, on); };
  for (const StepId on : extra_) follow(on);
  for (StepId on = fence_begin_; on < fence_end_; ++on) follow(on);
  extra_.clear();
  if (step.reads()) hazards_[static_cast<int>(source.buffer)].read(self, source.offset, source.end(), follow);
  if (kind == Kind::reduce) hazards_[static_cast<int>(target.buffer)].read(self, target.offset, target.end(), follow);
  if (step.writes()) hazards_[static_cast<int>(target.buffer)].write(self, target.offset, target.end(), follow);

  step.dependencies = static_cast<std::uint32_t>(schedule_.dependencies.size()) - step.first_dependency;
  seen_by_.push(kNoStep);
  schedule_.steps.push(step);
  return self;
}

void Builder::fence() {
  const auto now = static_cast<StepId>(schedule_.steps.size());
  // Nothing came since the last fence: later steps must still follow the steps that it holds back.
  if (now == fence_end_) return;
  fence_begin_ = fence_end_;
  fence_end_ = now;
}

std::uint64_t Builder::work() const {
  std::uint64_t work = work_;
  for (const Hazards& buffer : hazards_) work += buffer.work();
  return work;
}

void Builder::depend(StepId self, StepId on) {
  ++work_;
  if (on == self || on >= seen_by_.size() || seen_by_[on] == self) return;
  seen_by_[on] = self;
  schedule_.dependencies.push(on);
}

std::uint32_t Builder::next_message_index(int peer, bool incoming) {
  if (2 * (used_counters_ + 1) > counters_.size()) grow_counters();
  if (counters_.failed()) return 0;
  const std::uint64_t key = (static_cast<std::uint64_t>(peer) << 1 | (incoming ? 1 : 0)) + 1;
  const std::size_t mask = counters_.size() - 1;
  std::size_t i = key * 0x9e3779b97f4a7c15u >> 32 & mask;
  while (counters_[i].key != 0 && counters_[i].key != key) i = (i + 1) & mask;
  if (counters_[i].key == 0) {
    counters_[i] = {key, 0};
    ++used_counters_;
  }
  return counters_[i].count++;
}

void Builder::grow_counters() {
  Array<PairCounter> old;
  old.swap(counters_);
  if (!counters_.resize(old.empty() ? 64 : 2 * old.size(), {0, 0})) return;
  const std::size_t mask = counters_.size() - 1;
  for (const PairCounter& message_index : old) {
    if (message_index.key == 0) continue;
    std::size_t i = message_index.key * 0x9e3779b97f4a7c15u >> 32 & mask;
    while (counters_[i].key != 0) i = (i + 1) & mask;
    counters_[i] = message_index;
  }
}

Schedule Builder::finish() {
  bool failed = failed_ || schedule_.steps.failed() || schedule_.dependencies.failed() || extra_.failed() ||
                seen_by_.failed() || counters_.failed();
  for (Hazards& buffer : hazards_) {
    failed = failed || buffer.failed();
    buffer.clear();
  }
  Schedule done = static_cast<Schedule&&>(schedule_);
  done.complete = !failed;
  schedule_ = Schedule{};
  extra_.clear();
  seen_by_.clear();
  for (PairCounter& message_index : counters_) message_index.key = 0;
  used_counters_ = 0;
  segment_ = priority_ = 0;
  segments_ = 1;
  fence_begin_ = fence_end_ = 0;
  failed_ = false;
  return done;
}

void Builder::recycle(Schedule schedule) {
  if (!schedule_.steps.empty()) return;
  schedule_.steps.swap(schedule.steps);
  schedule_.dependencies.swap(schedule.dependencies);
  schedule_.steps.clear();
  schedule_.dependencies.clear();
}

}  // namespace stretto::sched
