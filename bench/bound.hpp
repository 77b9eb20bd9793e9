// SPDX-License-Identifier: BSD-3-Clause
// The physical bound: the least that two copies through shared memory can take between the same buffers.
//
// What a library must add is missing on purpose: no arguments are checked, no counts are sent (every rank knows them),
// no headers, no communicator, no statistics. A payload of up to kInlineBytes rides in the flag's own cache line; a
// longer one goes in fragments through a ring of slots, pipelined: the reader copies fragment k out while the writer
// copies k+1 in. The fragment's size and whether the writer stores past the caches are arguments; the caller tries out
// what is best for each operation and size.
//
//   lane        one writer, one reader (or, for a rank's lane to itself, all other ranks as readers)
//   flag line   of each slot: the sequence number of the fragment in it, with the payload beside it when that is tiny
//   done line   of each reader: the sequence number up to which it has copied out
//
// Ordering: a flag is stored with release after the payload and loaded with acquire before it; a done line is stored
// with release after the copy out and loaded with acquire before the slot is written again.
#pragma once
#include <vector>

#include "team.hpp"

namespace bench {

inline constexpr std::size_t kInlineBytes = 56;
inline constexpr std::size_t kMaxSlots = 16;

// The blocks of one operation at one size; known to every rank.
struct Shape {
  std::size_t bytes = 0;    // of one rank's block, or the mean of all when they differ
  std::vector<int> counts;  // bytes of rank r's block
  std::vector<int> displs;
  std::size_t total = 0;  // of all blocks
};

struct alignas(kLine) FlagLine {
  Sequence sequence;
  char payload[kInlineBytes];
};

// out = a op b: sums of 32-bit words, or else of bits. `out` may be `a`.
void combine(char* out, const char* a, const char* b, std::size_t bytes, bool words);

class Bound {
 public:
  explicit Bound(Team& team);

  struct Way {
    std::size_t fragment;  // bytes
    bool streaming;        // the writer's stores go past the caches
  };
  // Collective: between two barriers, because it changes where the slots lie.
  void set_way(const Way& way);
  [[nodiscard]] std::size_t fragment() const { return fragment_; }
  [[nodiscard]] std::size_t lane_bytes() const { return lane_bytes_; }

  void barrier() { team_.barrier(); }
  void bcast(char* buffer, std::size_t bytes, int root);
  void scatter(const char* send, char* receive, const Shape& shape, int root);
  void gather(const char* send, char* receive, const Shape& shape, int root);
  void allgather(const char* send, char* receive, const Shape& shape);
  // What rank r gets lies as `shape` says; every rank gives everybody a block of its own length.
  void alltoall(const char* send, char* receive, const Shape& shape);
  // Reductions of `bytes` bytes a rank: 32-bit sums, where the length is a multiple of 4.
  void reduce(const char* send, char* receive, std::size_t bytes, int root);
  void allreduce(const char* send, char* receive, std::size_t bytes);
  void reduce_scatter(const char* send, char* receive, std::size_t block_bytes);
  void scan(const char* send, char* receive, std::size_t bytes, bool exclusive);

 private:
  struct Lane {
    FlagLine* flags = nullptr;    // kMaxSlots
    Flag* done = nullptr;         // by reader
    char* slots = nullptr;        // lane_bytes_
    std::uint64_t sequence = 0;   // fragments that passed, as this rank counts them
    std::uint64_t seen_done = 0;  // what the writer knows its slowest reader to have copied out
  };

  Lane& lane(int writer, int reader) { return lanes_[static_cast<std::size_t>(writer * size_ + reader)]; }
  Lane& lane_to_all(int writer) { return lane(writer, writer); }
  // Where a fragment lies that is too long for its flag's line. There are more places than flags: a line that was just
  // read lies in its reader's own cache, and is slow to write.
  [[nodiscard]] char* place(const Lane& of, std::uint64_t sequence) const {
    return of.slots + sequence % places_ * fragment_;
  }
  [[nodiscard]] std::size_t piece(std::size_t left) const { return left < fragment_ ? left : fragment_; }

  // Slice r of everybody's data goes to rank r, which combines it into `target`, piece by piece; `combined` gets each
  // piece.
  template <class Slice, class Combined>
  void combine_slices(const char* send, char* target, std::size_t total, Slice slice, Combined combined);
  // Waits for the next fragment of the lane and lets `use` have it where it lies.
  template <class Use>
  void pull_with(Lane& from, std::size_t bytes, Use use);
  // Gives a fragment back unread.
  void skip(Lane& from) { from.done[rank_].value.store(++from.sequence, std::memory_order_release); }
  void scan_flat(const char* send, char* receive, std::size_t bytes, bool exclusive);
  void scan_chain(const char* send, char* receive, std::size_t bytes, bool exclusive);

  void push(Lane& to, int first_reader, int last_reader, const char* source, std::size_t bytes);
  void pull(Lane& from, char* target, std::size_t bytes);
  void await_room(Lane& to, int first_reader, int last_reader, std::uint64_t sequence);

  Team& team_;
  int rank_, size_;
  std::size_t fragment_ = 0, slots_ = 1, places_ = 1, lane_bytes_ = 0;
  bool streaming_ = false;
  std::vector<Lane> lanes_;
};

}  // namespace bench
