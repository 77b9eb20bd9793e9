// SPDX-License-Identifier: BSD-3-Clause
#include "overlap/played_schedule.hpp"

namespace stretto::overlap {

using sched::Schedule;
using sched::Step;
using Place = PlacedParts::Place;

namespace {

std::uint32_t position(const Schedule& schedule, const Step& step) {
  return static_cast<std::uint32_t>(&step - schedule.steps.data());
}

}  // namespace

bool PlayedSchedule::play(const Schedule& schedule, int own, Exchange* call) {
  lay_out(call);
  for (const Step& step : schedule.steps) {
    received_.push(receives_.size());
    const bool played = step.kind == sched::Kind::copy   ? step.dependencies == 0
                        : step.kind == sched::Kind::send ? send(schedule, step)
                                                         : receive(schedule, step, *call);
    if (!played || received_.failed()) return false;
  }
  call->sends = {sends_.data(), sends_.size()};
  call->receives = {receives_.data(), receives_.size()};
  call->blocks = {blocks_.data(), blocks_.size()};
  if (own >= 0 && own < receive_.count() && !blocks_.failed()) call->own = blocks_[own];
  return schedule.complete && !sends_.failed() && !receives_.failed() && !blocks_.failed();
}

void PlayedSchedule::lay_out(Exchange* call) {
  char *begin = nullptr, *end = nullptr;
  for (int i = 0; i < receive_.count(); ++i) {
    if (receive_.bytes(i) == 0) continue;
    if (begin == nullptr || receive_.at(i) < begin) begin = receive_.at(i);
    end = std::max(end, receive_.at(i) + receive_.bytes(i));
  }
  for (int i = 0; i < receive_.count(); ++i)
    blocks_.push({receive_.bytes(i) != 0 ? static_cast<std::uint64_t>(receive_.at(i) - begin) : 0, receive_.bytes(i)});
  call->buffer = begin;
  call->buffer_bytes = static_cast<std::uint64_t>(end - begin);
}

Place PlayedSchedule::find(const sched::Slice& slice) const {
  if (slice.buffer == sched::Buffer::send) return send_.find(slice);
  return slice.buffer == sched::Buffer::receive ? receive_.find(slice) : Place{};
}

bool PlayedSchedule::send(const Schedule& schedule, const Step& step) {
  const int peer = job_ranks_[step.peer];
  for (const std::uint32_t dependency : schedule.dependencies_of(step)) {
    const Step& on = schedule.steps[dependency];
    if (!on.receives() || on.target_slice() != step.source_slice()) return false;
    MessageIn& what = receives_[received_[dependency]];
    if (what.forward_to >= 0) return false;
    what.forward_to = peer;
    what.forward_index = step.message_index;
    what.forward_position = position(schedule, step);
    what.block = MessageIn::kNoBlock;
    return true;
  }
  const char* const from = find(step.source_slice()).at;
  return from != nullptr && sends_.push({peer, from, step.length, step.message_index, position(schedule, step)});
}

// The ends of a part show that its source is in the call: they come first.
bool PlayedSchedule::receive(const Schedule& schedule, const Step& step, const Exchange& call) {
  const bool adds = step.kind == sched::Kind::recv_reduce;
  if (!step.receives() || (step.dependencies != 0 && call.fold.combine == nullptr)) return false;
  for (const std::uint32_t dependency : schedule.dependencies_of(step)) {
    // What it overwrites has been copied. What it reads, or adds to, must not be to come.
    const Step& on = schedule.steps[dependency];
    if (on.kind != sched::Kind::send && (on.kind != sched::Kind::recv_reduce || on.target != sched::Buffer::scratch))
      return false;
  }
  MessageIn what{job_ranks_[step.peer], {0, step.length}, step.message_index};
  Place place;
  what.to_buffer = step.target != sched::Buffer::scratch;
  if (what.to_buffer) {
    place = find(step.target_slice());
    if (place.at == nullptr) return false;
    what.range.offset = static_cast<std::uint64_t>(place.at - call.buffer);
    if (!adds && place.begins && place.ends) what.block = static_cast<std::uint32_t>(place.part);
  }
  if (adds) {
    place = find(step.source_slice());
    if (place.at == nullptr) return false;
    what.own = place.at;
    what.arriving = step.side;
  }
  what.shows_presence = place.begins || place.ends;
  return receives_.push(what);
}

}  // namespace stretto::overlap
