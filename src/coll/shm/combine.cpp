// SPDX-License-Identifier: BSD-3-Clause
#include "coll/shm/combine.hpp"

namespace stretto::coll_shm {

Combiner::Combiner(shm::Team& team, From from, int first, int last, const char* own, char* out, std::uint64_t bytes,
                   const KernelOp& reduction)
    : team_(team),
      from_(from),
      first_(first),
      last_(last),
      own_(own),
      out_(out),
      bytes_(bytes),
      reduction_(reduction),
      allowed_(bytes) {
  for (int r = first; r < last; ++r) team.states()[r].reader.start();
}

shm::InQueue& Combiner::queue(int rank) const { return queue_of(team_, from_, rank); }

const char* Combiner::contribution(int rank) const {
  return is_message(rank) ? team_.states()[rank].reader.data() : own_ + combined_;
}

bool Combiner::misses(int rank) const {
  return rank >= first_ && rank < last_ && coll_shm::misses(team_.states()[rank].reader, queue(rank));
}

// True if every message has bytes at hand, or the call has failed. `piece` becomes the number that
// all have.
bool Combiner::poll_all(shm::Call& call, std::size_t* piece) {
  for (int r = first_; r < last_; ++r) {
    if (!is_message(r)) continue;
    shm::Reader& reader = team_.states()[r].reader;
    if (!reader.poll(call, queue(r))) return false;
    if (reader.failed()) return true;
    if (reader.message_bytes() != bytes_) {
      call.report_length(r, reader.message_bytes(), bytes_);
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

void Combiner::fold(std::size_t bytes) {
  char few[1 << 10];
  char* const scratch = team_.scratch();
  const std::size_t room = scratch ? kPieceBytes : sizeof few;
  const int overwritten = own_ == out_ && team_.rank() < last_ ? team_.rank() : first_;
  for (std::size_t at = 0; at < bytes; at += room) {
    fold_ranks(
        reduction_, first_, last_, overwritten, [&](int rank) { return contribution(rank) + at; },
        out_ + combined_ + at, scratch ? scratch : few, bytes - at < room ? bytes - at : room);
  }
}

bool Combiner::step(shm::Call& call) {
  const std::uint64_t left = (allowed_ < bytes_ ? allowed_ : bytes_) - combined_;
  if (left == 0 && combined_ != bytes_) return false;
  std::size_t piece = left < kPieceBytes ? static_cast<std::size_t>(left) : kPieceBytes;
  if (!poll_all(call, &piece)) return false;
  if (call.status() != Status::ok) return true;
  if (piece != 0) fold(piece);
  take(piece);
  done_ = combined_ == bytes_;
  return true;
}

}  // namespace stretto::coll_shm
