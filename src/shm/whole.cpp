// SPDX-License-Identifier: BSD-3-Clause
#include "shm/whole.hpp"

namespace stretto::shm::whole {

namespace {

// A longer message goes in a slot, even if records could hold it.
unsigned most_records(const Team& team, const OutQueue& queue) {
  const bool board = queue.reader == OutQueue::kEverybody;
  if (team.members().is_tier()) return board ? kTuning.inline_records_tier : 1;
  if (board && team.size() > kTuning.inline_records_readers) return 1;
  return team.queues().is_far(queue) ? kTuning.inline_records_far : kTuning.inline_records;
}

bool send_slot(Call& call, OutQueue& queue, const char* source, std::size_t bytes, Stamp stamp) {
  Slot slot;
  Lane* const lane = call.lane();
  const bool far = call.team().queues().is_far(queue);
  if (!has_room(call.team(), queue, 1) || lane == nullptr || !lane->take(call.team(), bytes, !far, &slot)) return false;
  far ? copy_past(slot.data, source, bytes) : copy(slot.data, source, bytes);
  lane->lease(slot, &call.team(), queue, call.number());
  Record* const record = next_record(queue);
  record->slot_offset = slot.offset;
  record->describe(RecordKind::slot, stamp);
  publish(call, queue, record, bytes, bytes);
  call.account(bytes, Path::cico);
  return true;
}

}  // namespace

bool send_larger(Call& call, OutQueue& queue, const char* source, std::uint64_t total, Stamp stamp) {
  const auto length = static_cast<std::size_t>(total);
  const unsigned records = records_of(total);
  const bool in_slot = records == 0 || records > most_records(call.team(), queue);
  if (in_slot) return total <= call.fragment_bytes(total) && send_slot(call, queue, source, length, stamp);
  if (!has_room(call.team(), queue, records)) return false;
  for (std::size_t at = 0; at < length; at += kInlineBytes) {
    const std::size_t left = length - at;
    send_inline(call, queue, source + at, left < kInlineBytes ? left : kInlineBytes, length, at == 0 ? stamp : 0);
  }
  call.account(total, Path::inlined);
  return true;
}

}  // namespace stretto::shm::whole
