// SPDX-License-Identifier: BSD-3-Clause
#include "coll/direct/combine.hpp"

#include <cstring>

namespace stretto::coll::direct {

Combiner::Combiner(shm::Team& team, From from, int first, int last, const char* own, char* out, std::uint64_t bytes,
                   const Reduction& reduction, bool good)
    : team_(team), from_(from), first_(first), last_(last), own_(own), out_(out), bytes_(bytes), reduction_(reduction),
      allowed_(bytes), failed_(!good) {
  for (int r = first; r < last; ++r) team.states()[r].reader.start();
}

shm::InQueue& Combiner::queue(int rank) const {
  shm::Member& member = team_.member(rank);
  return from_ == From::boards ? member.board : member.channel;
}

const char* Combiner::contribution(int rank) const {
  return is_message(rank) ? team_.states()[rank].reader.data() : own_ + combined_;
}

// True if every message has bytes at hand (or the call has failed); `piece` becomes what all of them have.
bool Combiner::poll_all(shm::Call& call, std::size_t* piece) {
  for (int r = first_; r < last_; ++r) {
    if (!is_message(r)) continue;
    shm::Reader& reader = team_.states()[r].reader;
    if (!reader.poll(call, queue(r))) return false;
    if (reader.failed() || reader.message_bytes() != bytes_) {
      if (!reader.failed()) call.meet({r, call.tag(), reader.message_bytes(), bytes_});
      failed_ = true;
      return true;
    }
    if (reader.bytes() < *piece) *piece = reader.bytes();
  }
  return true;
}

void Combiner::take(std::size_t bytes) {
  for (int r = first_; r < last_; ++r) {
    if (is_message(r) && bytes != 0) team_.states()[r].reader.take(queue(r), bytes);
  }
  combined_ += bytes;
}

// After a failure messages are read to their ends, so that the next call finds queues in order.
bool Combiner::drop(shm::Call& call) {
  bool moved = false;
  bool left = false;
  for (int r = first_; r < last_; ++r) {
    if (!is_message(r)) continue;
    shm::Reader& reader = team_.states()[r].reader;
    if (!reader.done() && reader.poll(call, queue(r))) {
      if (reader.bytes() != 0) reader.take(queue(r), reader.bytes());
      moved = true;
    }
    left = left || !reader.done();
  }
  if (!left) {
    combined_ = bytes_;
    done_ = true;
  }
  return moved || done_;
}

// Own memory that is also `out` must not be written before it has been read: until then the growing piece lives apart.
void Combiner::fold(std::size_t bytes) {
  char apart[kPieceBytes];
  char* const out = out_ + combined_;
  const bool own_is_out = own_ == out_ && first_ <= team_.rank() && team_.rank() < last_;
  const char* right = contribution(last_ - 1);
  for (int r = last_ - 2; r >= first_; --r) {
    char* target = own_is_out && r > team_.rank() ? apart : out;
    reduction_.fold(target, contribution(r), right, bytes / reduction_.element_bytes);
    right = target;
  }
  if (right != out) std::memcpy(out, right, bytes);
}

bool Combiner::step(shm::Call& call) {
  if (failed_) return drop(call);
  const std::uint64_t left = (allowed_ < bytes_ ? allowed_ : bytes_) - combined_;
  if (left == 0 && combined_ != bytes_) return false;
  std::size_t piece = left < kPieceBytes ? static_cast<std::size_t>(left) : kPieceBytes;
  if (!poll_all(call, &piece)) return false;
  if (failed_) return drop(call);
  if (piece != 0) fold(piece);
  take(piece);
  done_ = combined_ == bytes_;
  return true;
}

}  // namespace stretto::coll::direct
