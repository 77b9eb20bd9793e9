// SPDX-License-Identifier: BSD-3-Clause
// Short messages between plain pieces of memory, without a message object. An object (Outgoing,
// Incoming) can stop at any byte and go on later. What it keeps for that costs a short call half of
// its instructions. A message that goes in one piece needs no such state. The records are the same:
// one end may use these functions while the other end has an object.
//
// A function returns false if it cannot move the message. It has then changed nothing, and the
// caller moves the message by an object.
#pragma once
#include "shm/call_check.hpp"
#include "shm/message.hpp"

namespace stretto::shm {

namespace whole {

// What sender and reader of these data must agree on.
inline Stamp stamp_of(const Call& call, const Region& region) {
  if (!call.checked() || region.layout == nullptr) return 0;
  return call.stamp() != 0 ? call.stamp() : region.layout->signature.stamp(region.count);
}

// How many records hold so many bytes. 0: they go through a slot.
inline unsigned records_of(std::uint64_t bytes) {
  if (bytes > kMostInlineBytes) return 0;
  return bytes <= kInlineBytes ? 1 : static_cast<unsigned>((bytes + kInlineBytes - 1) / kInlineBytes);
}

inline Record* next_record(const OutQueue& queue) { return queue.ring + (queue.written & (queue.records - 1)); }

inline void publish(const Call& call, OutQueue& queue, Record* record, std::size_t bytes, std::uint64_t message_bytes) {
  record->fragment_bytes = static_cast<std::uint32_t>(bytes);
  record->call = call.mark();
  record->message_bytes = message_bytes;
  Queues::publish(queue, record);
}

inline bool has_room(Team& team, OutQueue& queue, unsigned records) {
  const auto taken = [&] { return queue.written - queue.acked + records > queue.records; };
  if (!taken()) [[likely]]
    return true;
  team.queues().refresh(queue);
  return !taken();
}

// Copies a record's payload. Most are full where a message takes several.
inline void copy_payload(char* to, const char* from, std::size_t bytes) {
  if (bytes == kInlineBytes) {
    copy_vectors<kInlineBytes>(to, from);
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

[[gnu::always_inline]] inline void send_inline(const Call& call, OutQueue& queue, const char* source, std::size_t bytes,
                                               std::size_t total, Stamp stamp) {
  Record* const record = next_record(queue);
  copy_payload(record->payload, source, bytes);
  record->describe(RecordKind::inlined, stamp);
  publish(call, queue, record, bytes, total);
  // Others read the next record's line last, so a store to it waits until it comes back. In a
  // reduction, or from far away, that takes longer than the processor looks ahead. So the rank asks
  // for the line now, while it waits anyway.
  if (bytes <= kFirstLineBytes && (call.descriptor().op != 0 || call.team().queues().is_far(queue)))
    sys::fetch_to_write(next_record(queue));
}

// Sends what one record does not hold, through a slot or a few records.
bool send_larger(Call& call, OutQueue& queue, const char* source, std::uint64_t total, Stamp stamp);

}  // namespace whole

// Publishes a message that goes in one slot or a few records, if there is room now.
[[gnu::always_inline]] inline bool send_whole(Call& call, OutQueue& queue, const Region& region) {
  const std::uint64_t bytes = region.bytes();
  const char* const source = region.flat();
  if ((source == nullptr && bytes != 0) || bytes >= call.single_copy_from_bytes()) [[unlikely]]
    return false;
  const Stamp stamp = whole::stamp_of(call, region);
  if (bytes > kInlineBytes) return whole::send_larger(call, queue, source, bytes, stamp);
  if (!whole::has_room(call.team(), queue, 1)) [[unlikely]]
    return false;
  const auto length = static_cast<std::size_t>(bytes);
  whole::send_inline(call, queue, source, length, length, stamp);
  call.account(bytes, Path::inlined);
  return true;
}

namespace whole {

// The record after `ahead` others. `in_lines`: the message goes on in the lines after the record's
// first. Null: the rank need not wait any more. Then the record cannot come, or the wait is long
// and `patient` is false.
inline const Record* await(Call& call, InQueue& queue, Waiter& waiter, bool patient, bool in_lines,
                           unsigned ahead = 0) {
  for (;;) {
    if (const Record* const record = queue.peek(ahead)) return record;
    if (in_lines) queue.fetch(ahead);
    if (waiter.is_long() &&
        (!patient || (queue.records == 1 && (call.team().members().lacks_memory() ||
                                             call.team().members().lacks_memory(queue.writer, call.number())))))
      return nullptr;
    if (waiter.step() && !CallCheck(call).check_peers(waiter.waited_ns())) return nullptr;
  }
}

// Whether the message that begins here is sound and goes to `region` as it is.
template <bool kExactly>
inline bool fits(const Call& call, const Record* record, const Region& region) {
  const std::uint64_t total = record->message_bytes;
  const bool plain = record->kind() == RecordKind::inlined || record->kind() == RecordKind::slot;
  if (!plain || record->call != call.mark() || (kExactly ? total != region.bytes() : total > region.bytes()))
    return false;
  const Stamp theirs = record->stamp();
  if (theirs == 0 || (call.stamp() == 0 && total != region.bytes())) return true;
  return theirs == stamp_of(call, region);
}

}  // namespace whole

// Reads a message that is on its way. It waits as long as waits are short. With `alone` (this rank
// has no other message to move) it waits without limit, and the message may have any number of
// fragments. `kExactly`: it must have the length of `region` (Call::expect_lengths).
template <bool kExactly = false>
inline bool receive_whole(Call& call, InQueue& queue, const Region& region, Waiter& waiter, bool alone) {
  const bool in_lines = region.bytes() <= kMostInlineBytes && region.bytes() > kFirstLineBytes;
  char* target = region.flat();
  if (region.bytes() > kMostInlineBytes && queue.peek() == nullptr) fetch_target(target, region.bytes());
  const Record* record = whole::await(call, queue, waiter, alone, in_lines);
  if (record == nullptr || !whole::fits<kExactly>(call, record, region)) return call.status() != Status::ok;
  std::uint64_t left = record->message_bytes;
  if (left != 0 && target == nullptr) return false;
  if (!alone && record->kind() == RecordKind::slot && record->fragment_bytes != left) return false;
  for (;;) {
    const std::size_t bytes = record->fragment_bytes;
    const bool in_slot = record->kind() == RecordKind::slot;
    if (in_slot) {
      copy(target, queue.slot(record), bytes);
    } else {
      whole::copy_payload(target, record->payload, bytes);
    }
    queue.consume();
    call.account(bytes, in_slot ? Path::cico : Path::inlined);
    left -= bytes;
    if (left == 0) return true;
    target += bytes;
    waiter.moved();
    if (queue.peek() == nullptr) fetch_target(target, left);
    record = whole::await(call, queue, waiter, true, in_lines);
    if (record == nullptr) return true;
    if (record->call != call.mark()) [[unlikely]] {  // the writer gave the call up
      CallCheck(call).report_record(queue.writer, *record);
      return true;
    }
  }
}

// Where a message of `bytes` bytes lies, to be combined there without a copy. It comes in one
// piece, or in a few records. In the second case the result is a copy in `aside`, of at most
// kMostInlineBytes; null: the message must come in one piece. The message stays in its queue until
// take_whole(). Null: this way is not open.
inline const char* peek_whole(Call& call, InQueue& queue, std::uint64_t bytes, Waiter& waiter, char* aside) {
  const bool in_records = bytes <= kMostInlineBytes;
  const bool in_lines = in_records && bytes > kFirstLineBytes;
  const Record* record = whole::await(call, queue, waiter, false, in_lines);
  if (record == nullptr || record->call != call.mark() || record->message_bytes != bytes) return nullptr;
  if (record->stamp() != call.stamp() && record->stamp() != 0 && call.stamp() != 0) return nullptr;
  const bool is_inline = record->kind() == RecordKind::inlined;
  if (record->fragment_bytes == bytes) {
    if (is_inline) return record->payload;
    return record->kind() == RecordKind::slot ? queue.slot(record) : nullptr;
  }
  if (!is_inline || !in_records || aside == nullptr) return nullptr;
  std::uint64_t at = 0;
  for (unsigned ahead = 1;; ++ahead) {
    whole::copy_payload(aside + at, record->payload, record->fragment_bytes);
    at += record->fragment_bytes;
    if (at == bytes) return aside;
    record = whole::await(call, queue, waiter, false, in_lines, ahead);
    if (record == nullptr || record->call != call.mark()) return nullptr;
  }
}
inline void take_whole(Call& call, InQueue& queue, std::uint64_t bytes) {
  const Record* const record = queue.peek();
  call.account(bytes, record->kind() == RecordKind::slot ? Path::cico : Path::inlined);
  queue.consume(record->fragment_bytes == bytes ? 1 : whole::records_of(bytes));
}

}  // namespace stretto::shm
