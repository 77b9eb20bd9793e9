// SPDX-License-Identifier: BSD-3-Clause
#include "shm/message.hpp"

#include "shm/call_check.hpp"

namespace stretto::shm {

namespace {

// A reader that gave this call up leaves us its slots. It acks our records all the same when it
// drops them in a later call. It stored its reason before both, in the same line. If that reader
// had an error of its own, this rank has none.
void heed_leavers(Call& call, const OutQueue& queue) {
  const Team& team = call.team();
  for (int r = 0; r < team.size(); ++r) {
    const bool reads = r != team.rank() && (queue.reader == OutQueue::kEverybody || queue.reader == r);
    if (reads && team.calls().given_up(r, call.number()) != Status::ok &&
        CallCheck(call).finds_mismatch(team.rank_of(r))) [[unlikely]]
      return;
  }
}

// The record to fill next. Null: readers have not left it.
Record* claim(Call& call, OutQueue& queue) {
  const std::uint64_t acked = queue.acked;
  Record* const record = call.team().queues().claim(queue);
  if (queue.acked != acked) heed_leavers(call, queue);
  return record;
}

// There is no memory for the queue. The message is dropped, and its readers told.
bool drop(Call& call) {
  call.fail(Status::no_memory);
  call.team().members().tell_no_memory(call.number());
  return true;
}

}  // namespace

// Length of the next fragment if it is not the last.
std::size_t Outgoing::slot_bytes(const Call& call) const {
  const std::size_t bytes = cut_.fragment_bytes != 0 ? cut_.fragment_bytes : call.fragment_bytes(total_);
  if (cut_.period_bytes == 0) [[likely]]
    return bytes;
  const std::uint64_t left = cut_.period_bytes - written() % cut_.period_bytes;
  return left < bytes ? static_cast<std::size_t>(left) : bytes;
}

bool Outgoing::publish(Call& call, OutQueue& queue, bool in_slot) {
  const std::size_t limit = in_slot ? slot_bytes(call) : kInlineBytes;
  const std::uint64_t wanted = stream_.left() < limit ? stream_.left() : limit;
  if (written() + wanted > allowed_) return false;
  Record* record = claim(call, queue);
  if (!record) {
    done_ = queue.records == 0 && drop(call);
    if (total_ <= kMostInlineBytes && call.runs_ahead()) queue.wanted = records_ahead(total_);
    return false;
  }
  const auto bytes = static_cast<std::size_t>(wanted);
  const Stamp stamp = this->stamp(call);
  if (in_slot) {
    if (!fill_slot(call, queue, record, bytes)) return false;
  } else {
    stream_.pack(record->payload, bytes);
  }
  record->describe(poisoned_ ? RecordKind::poison : in_slot ? RecordKind::slot : RecordKind::inlined, stamp);
  call.account(bytes, in_slot ? Path::cico : Path::inlined);
  record->fragment_bytes = static_cast<std::uint32_t>(bytes);
  record->call = call.mark();
  record->message_bytes = total_;
  Queues::publish(queue, record);
  done_ = stream_.left() == 0 || poisoned_;
  return true;
}

// Publishes one record that names the whole message. This rank's memory is its slot.
bool Outgoing::publish_single_copy(Call& call, OutQueue& queue) {
  Record* record = claim(call, queue);
  done_ = queue.records == 0 && drop(call);
  if (!record) return false;
  record->describe(RecordKind::single_copy, stamp(call));
  record->address = reinterpret_cast<std::uintptr_t>(source_);
  record->fragment_bytes = 0;
  record->call = call.mark();
  record->message_bytes = total_;
  position_ = queue.written;
  reader_ = queue.reader;
  refuser_ = -1;
  Queues::publish(queue, record);
  call.account(total_, Path::single);
  stage_ = Stage::single_copy;
  return true;
}

bool Outgoing::await_readers(Call& call, OutQueue& queue) {
  if (queue.acked <= position_ && call.team().queues().refresh(queue) <= position_) return false;
  heed_leavers(call, queue);
  next_refuser(call);
  return true;
}

// The rank has seen acks, so it also sees refusals.
void Outgoing::next_refuser(Call& call) {
  const Team& team = call.team();
  const int last = reader_ == OutQueue::kEverybody ? team.size() - 1 : reader_;
  int reader = reader_ == OutQueue::kEverybody || refuser_ >= 0 ? refuser_ + 1 : reader_;
  while (reader <= last && (reader == team.rank() || !team.single_copy().has_refused(reader, call.tag()))) ++reader;
  done_ = reader > last;
  if (done_) return;
  call.stop_single_copy();
  call.team().single_copy().note_refusal({reader, team.single_copy().error_of(reader), call.number()});
  refuser_ = reader;
  stage_ = Stage::repeating;
  stream_.start(Region{const_cast<char*>(source_), total_, &kPlainByte});
}

bool Outgoing::repeat(Call& call) {
  const bool moved = publish(call, call.team().to(refuser_), lane(call) != nullptr);
  if (done_) next_refuser(call);
  return moved;
}

// Slot first, record last. Readers poll the record's line, and the first store to the record takes
// the line away from them.
bool Outgoing::fill_slot(Call& call, OutQueue& queue, Record* record, std::size_t bytes) {
  Slot slot;
  Lane& lane = *this->lane(call);
  const bool far = call.team().queues().is_far(queue), last = stream_.left() == bytes;
  if (!lane.take(call.team(), bytes, last && !far, &slot)) return false;
  if (slot.asked) heed_leavers(call, queue);
  far ? stream_.pack_past(slot.data, bytes) : stream_.pack(slot.data, bytes);
  lane.lease(slot, &call.team(), queue, call.number());
  record->slot_offset = slot.offset;
  return true;
}

// Whether a record belongs to this call. If not, there are three cases. It is left over from an
// earlier call, or the writer is in another call than we are. Or it tells that the writer's
// arguments were wrong. If nothing went wrong here in the earlier call, the record was meant for a
// rank that did not expect it: the writer had another root, say.
bool Reader::is_ours(Call& call, InQueue& queue, const Record* record) {
  if (record->call == call.mark() && record->kind() != RecordKind::poison) [[likely]]
    return true;
  if (record->call >> 8 < call.number()) {
    if (call.checked() && call.team().calls().is_odd(queue.writer, *record))
      call.report_mismatch({call.team().rank_of(queue.writer), record->tag()});
    queue.consume();
    return false;
  }
  const bool poisoned = record->call == call.mark();
  if (poisoned) {
    call.fail(Status::peer_failed);
    queue.consume();
  } else {
    CallCheck(call).report_record(queue.writer, *record);
  }
  done_ = failed_ = true;
  return false;
}

// Messages of a reduction say which one it is. With another operation or other elements, the result
// cannot be right.
void Reader::begin(Call& call, const InQueue& queue, const Record* record) {
  begun_ = true;
  message_bytes_ = left_ = record->message_bytes;
  stamp_ = record->stamp();
  if (call.stamp() == stamp_ || call.stamp() == 0 || stamp_ == 0) [[likely]]
    return;
  const auto theirs = static_cast<ElementCode>(stamp_ >> 8);
  const bool same_op = (stamp_ & 0xff) == call.descriptor().op;
  if (!same_op || elements_differ(theirs, call.descriptor().element))
    call.report_mismatch({call.team().rank_of(queue.writer), record->call});
}

// Whether the writer had no memory for the queue, or this rank has none to read it.
bool Reader::will_not_come(Call& call, const InQueue& queue) {
  Members& members = call.team().members();
  if (!members.lacks_memory() && !members.lacks_memory(queue.writer, call.number())) return false;
  call.fail(members.lacks_memory() ? Status::no_memory : Status::peer_failed);
  if (members.lacks_memory()) members.tell_no_memory(call.number());
  return done_ = failed_ = true;
}

bool Reader::look(Call& call, InQueue& queue) {
  const Record* record = queue.peek();
  if (!record) return queue.records == 1 && will_not_come(call, queue);
  if (!is_ours(call, queue, record)) return done_;
  if (!begun_) begin(call, queue, record);
  single_copy_ = record->kind() == RecordKind::single_copy;
  if (single_copy_) [[unlikely]] {
    address_ = record->address;
    bytes_ = left_;
    call.account(bytes_, Path::single);
    return true;
  }
  const bool in_slot = record->kind() == RecordKind::slot;
  data_ = in_slot ? queue.slot(record) : record->payload;
  bytes_ = record->fragment_bytes;
  call.account(bytes_, in_slot ? Path::cico : Path::inlined);
  if (bytes_ == 0) take(queue, 0);
  return true;
}

bool Incoming::step(Call& call, InQueue& queue) {
  InQueue& from = refused_ ? call.team().channel(queue.writer) : queue;
  const bool begins = !reader_.begun() && known_ == 0;
  if (!reader_.poll(call, from)) return false;
  if (begins && call.lengths_expected() && reader_.begun() && reader_.message_bytes() != stream_.left())
    call.report_length(queue.writer, reader_.message_bytes(), stream_.left());
  if (expected_ != 0) compare(call, from);
  if (reader_.is_single_copy()) [[unlikely]]
    return pull(call, from);
  if (reader_.bytes() != 0) take(call, from);
  done_ = reader_.done();
  return true;
}

// A message of another length than expected is either shorter, as it may be, or truncated.
void Incoming::compare(Call& call, const InQueue& queue) {
  const Stamp theirs = reader_.stamp();
  const bool same =
      theirs == expected_ || theirs == 0 || call.stamp() != 0 || stream_.left() != reader_.message_bytes();
  if (!same) [[unlikely]]
    call.report_type_mismatch(queue.writer, has_bytes(expected_) || has_bytes(theirs));
  expected_ = 0;
}

// Takes as many of the bytes at hand as fit. More than fits is an error of this rank alone.
void Incoming::take(Call& call, InQueue& queue) {
  std::size_t bytes = reader_.bytes();
  if (known_ != 0) [[unlikely]] {
    bytes = known_ < bytes ? static_cast<std::size_t>(known_) : bytes;
    known_ -= bytes;
    return reader_.take(queue, bytes);
  }
  const bool fits = bytes <= stream_.left();
  if (!fits && !dropping_) call.fail(Status::truncated);
  const std::size_t wanted = fits ? bytes : static_cast<std::size_t>(stream_.left());
  const bool past = call.team().stores_past(reader_.message_bytes());
  past ? stream_.unpack_past(reader_.data(), wanted) : stream_.unpack(reader_.data(), wanted);
  reader_.take(queue, bytes);
}

// Copies the next piece of a single-copy message out of its writer's memory. False: enough others
// do so now.
bool Incoming::pull(Call& call, InQueue& queue) {
  char few[1 << 10];
  char* const flat = stream_.flat();
  char* const scratch = flat ? nullptr : call.team().scratch();
  char* const apart = scratch ? scratch : few;
  std::size_t bytes = reader_.bytes();
  const std::size_t most = flat ? kTuning.single_copy_piece_bytes : scratch ? Team::kScratchBytes : sizeof few;
  if (bytes > most) bytes = most;
  const bool fits = bytes <= stream_.left();
  if (!fits && !dropping_) call.fail(Status::truncated);
  const std::size_t wanted = fits ? bytes : static_cast<std::size_t>(stream_.left());
  if (wanted == 0) {
    bytes = reader_.bytes();  // nothing of the rest is for us
  } else {
    Team& team = call.team();
    const bool crowded = team.single_copy().readers_of(queue.writer) >= kTuning.single_copy_readers;
    if (crowded && ++looks_ < kTuning.single_copy_looks) return false;
    team.single_copy().start_reading(queue.writer);
    const int error =
        sys::peer_memory_read(team.peer(queue.writer).pid(), reader_.address(), flat ? flat : apart, wanted);
    team.single_copy().stop_reading();
    if (error != 0) {
      refuse(call, queue, error);
      return true;
    }
    if (flat) {
      stream_.advance_flat(wanted);
    } else {
      stream_.unpack(apart, wanted);
    }
  }
  reader_.take(queue, bytes);
  done_ = reader_.done();
  return true;
}

void Incoming::refuse(Call& call, InQueue& queue, int error) {
  known_ = reader_.message_bytes() - reader_.bytes();
  refused_ = true;
  reader_.start();
  call.team().single_copy().refuse(call.team().member(queue.writer), error, call.tag());
  queue.consume();
}

}  // namespace stretto::shm
