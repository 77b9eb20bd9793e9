// SPDX-License-Identifier: BSD-3-Clause
#include "shm/message.hpp"

namespace stretto::shm {

bool Outgoing::publish(Call& call, OutQueue& queue, bool in_slot) {
  const std::size_t cut = fragment_bytes_ != 0 ? fragment_bytes_ : call.team().fragment_bytes(total_);
  const std::size_t limit = in_slot ? cut : kInlineBytes;
  const std::uint64_t wanted = stream_.left() < limit ? stream_.left() : limit;
  if (written() + wanted > allowed_) return false;
  Record* record = call.team().claim(queue);
  if (!record) return false;
  const auto bytes = static_cast<std::size_t>(wanted);
  if (in_slot) {
    if (!fill_slot(call, queue, record, bytes)) return false;
  } else {
    fill_inline(record, poisoned_ ? RecordKind::poison : RecordKind::inlined, poisoned_ ? 0 : bytes);
  }
  call.account(bytes, in_slot ? Path::cico : Path::inlined);
  record->fragment_bytes = static_cast<std::uint32_t>(bytes);
  record->call = call.tag();
  record->message_bytes = total_;
  Team::publish(queue, record);
  done_ = stream_.left() == 0 || poisoned_;
  return true;
}

// Slot first, record last: readers poll the record's line, and its first store takes the line away from them.
bool Outgoing::fill_slot(Call& call, OutQueue& queue, Record* record, std::size_t bytes) {
  Slot slot;
  if (!call.lane()->take(call.team(), bytes, &slot)) return false;
  stream_.pack(slot.data, bytes);
  call.lane()->lease(slot, &call.team(), queue);
  record->kind = RecordKind::slot;
  record->slot_offset = slot.offset;
  return true;
}

void Outgoing::fill_inline(Record* record, RecordKind kind, std::size_t bytes) {
  stream_.pack(record->payload, bytes);
  record->kind = kind;
}

// Whether a record belongs to this call. If not, it is left over from a call that this rank could not take part in, or
// the writer is in another call than we are, or it tells that the writer's arguments were wrong.
bool Reader::is_ours(Call& call, InQueue& queue, const Record* record) {
  if (record->call == call.tag() && record->kind != RecordKind::poison) [[likely]] return true;
  if (record->call >> 8 < call.tag() >> 8) {
    queue.consume();
    return false;
  }
  const bool poisoned = record->call == call.tag();
  call.fail(poisoned ? Status::peer_failed : Status::mismatch);
  if (poisoned) queue.consume();
  done_ = failed_ = true;
  return false;
}

bool Reader::look(Call& call, InQueue& queue) {
  const Record* record = queue.peek();
  if (!record) return false;
  if (!is_ours(call, queue, record)) return done_;
  if (!begun_) {
    begun_ = true;
    message_bytes_ = left_ = record->message_bytes;
  }
  const bool in_slot = record->kind == RecordKind::slot;
  data_ = in_slot ? queue.segment + record->slot_offset : record->payload;
  bytes_ = record->fragment_bytes;
  call.account(bytes_, in_slot ? Path::cico : Path::inlined);
  if (bytes_ == 0) take(queue, 0);
  return true;
}

bool Incoming::step(Call& call, InQueue& queue) {
  if (!reader_.poll(call, queue)) return false;
  if (reader_.bytes() != 0) {
    // The part of this fragment that fits; more than fits is an error of this rank alone.
    const std::size_t bytes = reader_.bytes();
    const bool fits = bytes <= stream_.left();
    if (!fits && !dropping_) call.fail(Status::truncated);
    stream_.unpack(reader_.data(), fits ? bytes : static_cast<std::size_t>(stream_.left()));
    reader_.take(queue, bytes);
  }
  done_ = reader_.done();
  return true;
}

}  // namespace stretto::shm
