// SPDX-License-Identifier: BSD-3-Clause
#include "shm/message.hpp"

namespace stretto::shm {

bool Outgoing::step(Call& call, OutQueue& queue) {
  Record* record = call.team().claim(queue);
  if (!record) return false;
  if (poisoned_) {
    fill_inline(record, RecordKind::poison);
  } else if (total_ <= kInlineBytes) {
    fill_inline(record, RecordKind::inlined);
    call.account(total_, Path::inlined);
  } else if (!fill_slot(call, queue, record)) {
    return false;
  }
  record->call = call.tag();
  record->message_bytes = total_;
  Team::publish(queue, record);
  done_ = stream_.left() == 0 || poisoned_;
  return true;
}

// Slot first, record last: readers poll the record's line, and its first store takes the line away from them.
bool Outgoing::fill_slot(Call& call, OutQueue& queue, Record* record) {
  Lane* lane = call.lane();
  if (!lane) {
    fill_inline(record, RecordKind::inlined);
    call.account(record->fragment_bytes, Path::cico);
    return true;
  }
  Slot slot;
  if (!lane->take(&slot)) return false;
  const std::size_t limit = call.fragment_bytes(total_);
  const std::size_t bytes = stream_.left() < limit ? static_cast<std::size_t>(stream_.left()) : limit;
  stream_.pack(slot.data, bytes);
  lane->lease(slot, &call.team(), queue);
  record->fragment_bytes = static_cast<std::uint32_t>(bytes);
  record->kind = RecordKind::slot;
  record->slot_offset = slot.offset;
  call.account(bytes, Path::cico);
  return true;
}

void Outgoing::fill_inline(Record* record, RecordKind kind) {
  std::size_t bytes = kind == RecordKind::poison ? 0 : kInlineBytes;
  if (stream_.left() < bytes) bytes = static_cast<std::size_t>(stream_.left());
  stream_.pack(record->payload, bytes);
  record->fragment_bytes = static_cast<std::uint32_t>(bytes);
  record->kind = kind;
}

// First record of a message: is it ours, and does it fit? False if it is not for this call.
bool Incoming::begin(Call& call, InQueue& queue, const Record* record) {
  if (record->call != call.tag()) {
    if (record->call >> 8 < call.tag() >> 8) {
      queue.consume();  // left over from a call that this rank could not take part in
    } else {
      call.fail(Status::mismatch);
      done_ = true;
    }
    return false;
  }
  if (record->kind == RecordKind::poison) {
    call.fail(Status::peer_failed);
    queue.consume();
    done_ = true;
    return false;
  }
  left_ = record->message_bytes;
  started_ = true;
  if (left_ > stream_.left() && !dropping_) call.fail(Status::truncated);
  return true;
}

bool Incoming::step(Call& call, InQueue& queue) {
  const Record* record = queue.peek();
  if (!record) return false;
  if (!started_ && !begin(call, queue, record)) return true;
  const std::size_t bytes = record->fragment_bytes;
  const std::size_t wanted = stream_.left() < bytes ? static_cast<std::size_t>(stream_.left()) : bytes;
  const bool in_slot = record->kind == RecordKind::slot;
  stream_.unpack(in_slot ? queue.segment + record->slot_offset : record->payload, wanted);
  call.account(bytes, in_slot ? Path::cico : Path::inlined);
  left_ -= bytes;
  done_ = left_ == 0;
  queue.consume();
  return true;
}

}  // namespace stretto::shm
