// SPDX-License-Identifier: BSD-3-Clause
#include "job_posting.hpp"

#include <algorithm>

namespace stretto::modelling {
namespace {

constexpr std::int64_t kNeighborTag = std::int64_t{1} << 40;  // no program's tag is so high

}  // namespace

Slot& Posting::slot_of(std::uint32_t r, std::int64_t slot) {
  std::vector<Slot>& slots = ranks_[r].slots;
  const auto place = static_cast<std::size_t>(std::max<std::int64_t>(0, slot));
  if (slots.size() <= place) slots.resize(place + 1);
  return slots[place];
}

// What goes to, or comes from, beyond what was recorded is done at once.
std::uint32_t Posting::send(std::uint32_t r, std::int64_t comm, const Half& half, bool synchronous, double now) {
  Rank& rank = ranks_[r];
  const int me = static_cast<int>(r), to = world_peer(*rank.recording, comm, half.peer);
  if (to < 0) return operations_.make(now);
  ++result_.messages;
  result_.bytes += half.bytes;
  const Messages::End end{comm_of(r, comm).name, me, to, half.tag};
  const double sent = now + messages_.send_time(end, half.bytes);
  rank.now = std::max(rank.now, sent);
  return messages_.send(end, half.bytes, synchronous, waits_.cause(r, sent));
}

std::uint32_t Posting::receive(std::uint32_t r, std::int64_t comm, const Half& half, double posted) {
  const int me = static_cast<int>(r), from = world_peer(*ranks_[r].recording, comm, half.peer);
  if (from < 0) return operations_.make(posted);
  return messages_.receive({comm_of(r, comm).name, from, me, half.tag}, waits_.cause(r, posted));
}

std::uint32_t Posting::fetch(std::uint32_t r, std::int64_t comm, const Half& half) {
  const Cause by = waits_.cause(r, ranks_[r].now);
  const int me = static_cast<int>(r), from = world_peer(*ranks_[r].recording, comm, half.peer);
  if (from < 0) return operations_.make(by.time);
  const Messages::End end{comm_of(r, comm).name, from, me, half.tag};
  const std::uint32_t made = messages_.receive(end, by);
  operations_.end(messages_.send(end, half.bytes, false, by));
  return made;
}

void Posting::message(std::uint32_t r, const Action& action) {
  Rank& rank = ranks_[r];
  const auto receives = [&](const Half& half) {
    rank.needs.push_back(is_beyond(r, action, half) ? as_recorded(r) : receive(r, action.comm, half, rank.now));
  };
  // As MPI_Sendrecv does: the receive first, so that the request for its data may come first.
  if (action.receive.there && !action.receive.any) receives(action.receive);
  for (const Got& got : action.got) receives(taken(action.receive, got));
  if (!action.send.there) return;
  rank.needs.push_back(is_beyond(r, action, action.send)
                           ? as_recorded(r)
                           : send(r, action.comm, action.send, action.synchronous, rank.now));
}

void Posting::post(std::uint32_t r, const Action& action, Slot& slot) {
  const double now = ranks_[r].now;
  slot.operations.clear();
  slot.wild = nullptr;
  slot.posted = now;
  slot.away = is_beyond(r, action, action.send) || (!action.receive.any && is_beyond(r, action, action.receive));
  if (action.send.there) slot.operations.push_back(send(r, action.comm, action.send, action.synchronous, now));
  if (!action.receive.there) return;
  if (action.receive.any)
    slot.wild = &action;
  else
    slot.operations.push_back(receive(r, action.comm, action.receive, now));
}

void Posting::wait(std::uint32_t r, const Action& action) {
  Rank& rank = ranks_[r];
  for (const std::int64_t number : action.ended) {
    if (number < 0) continue;
    Slot& slot = slot_of(r, number);
    if (slot.wild != nullptr) {
      for (const Got& got : action.got) {
        if (got.position >= action.waited.size() || action.waited[got.position] != number) continue;
        const Half half = taken(slot.wild->receive, got);
        slot.away = is_beyond(r, *slot.wild, half);
        rank.needs.push_back(receive(r, slot.wild->comm, half, slot.posted));
      }
      slot.wild = nullptr;
    }
    if (slot.away) rank.needs.push_back(as_recorded(r));
    slot.away = false;
    rank.needs.insert(rank.needs.end(), slot.operations.begin(), slot.operations.end());
    slot.operations.clear();
  }
}

void Posting::meet_neighbors(std::uint32_t r, const Action& action, std::vector<std::uint32_t>& operations) {
  const Rank& rank = ranks_[r];
  const record::Communicator* const known = rank.recording->communicator(action.comm);
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
    if (to >= 0) operations.push_back(send(r, action.comm, half, action.synchronous, now));
  }
  for (std::uint32_t i = 0; i < known->sources; ++i) {
    const std::int32_t from = members[known->first_neighbor + i];
    half.peer = static_cast<std::int32_t>(from - known->rank);
    if (from >= 0) operations.push_back(receive(r, action.comm, half, now));
  }
}

}  // namespace stretto::modelling
