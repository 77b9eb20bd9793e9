// SPDX-License-Identifier: BSD-3-Clause
// Combines the contributions of several ranks as they arrive, in rank order, whichever is first. So
// every run gives the same bits. One rank's contribution is its own memory; the others' are
// messages. They are folded where they lie, piece by piece, and the piece that grows stays in
// cache.
//
//   out = ((c[first] op c[first + 1]) op ... ) op c[last - 1]
#pragma once
#include <cstring>

#include "coll/shm/arguments.hpp"
#include "coll/shm/together.hpp"

namespace stretto::coll_shm {

// Combines pieces of `bytes` bytes: contribution(r) of ranks first to last - 1. `out` may be the
// memory of the contribution of rank `overwritten` (`first`, if of none). Until that one has been
// read, the result grows in `apart`, which has `bytes` bytes.
template <class Contribution>
void fold_ranks(const KernelOp& reduction, int first, int last, int overwritten, Contribution contribution, char* out,
                char* apart, std::size_t bytes) {
  const char* left = contribution(first);
  for (int r = first + 1; r < last; ++r) {
    char* const target = r < overwritten ? apart : out;
    reduction.fold(target, left, contribution(r), bytes / reduction.element_bytes);
    left = target;
  }
  if (left != out) std::memcpy(out, left, bytes);
}

class Combiner {
 public:
  // Ranks [first, last) contribute `bytes` bytes each. `own` is this rank's contribution if it is
  // among them. `out` may be the same memory.
  Combiner(shm::Team& team, From from, int first, int last, const char* own, char* out, std::uint64_t bytes,
           const KernelOp& reduction);

  // For contributions that `out` overwrites: own memory that also goes out to others may change
  // only up to here.
  void allow(std::uint64_t bytes) { allowed_ = bytes; }

  // Combines at most one piece. False: a message must come first.
  bool step(shm::Call& call);
  [[nodiscard]] bool done() const { return done_; }
  // So many bytes of `out` are final.
  [[nodiscard]] std::uint64_t combined() const { return combined_; }
  [[nodiscard]] bool misses(int rank) const;

 private:
  static constexpr std::size_t kPieceBytes = 16 << 10;
  static_assert(kPieceBytes <= shm::Team::kScratchBytes);

  [[nodiscard]] shm::InQueue& queue(int rank) const;
  [[nodiscard]] bool is_message(int rank) const { return rank != team_.rank(); }
  [[nodiscard]] const char* contribution(int rank) const;
  bool poll_all(shm::Call& call, std::size_t* piece);
  void fold(std::size_t bytes);
  void take(std::size_t bytes);

  shm::Team& team_;
  From from_;
  int first_;
  int last_;
  const char* own_;
  char* out_;
  std::uint64_t bytes_;
  KernelOp reduction_;
  std::uint64_t allowed_;
  std::uint64_t combined_ = 0;
  bool done_ = false;
};

}  // namespace stretto::coll_shm
