// SPDX-License-Identifier: BSD-3-Clause
// The physical bound: the least time that two copies through shared memory can take between the
// same buffers.
//
// It leaves out what a library must add. It checks no arguments and sends no counts (every rank
// knows them). It has no headers, no communicator and no statistics. A payload of up to
// kInlineBytes travels in the flag's own cache line. A longer one goes in fragments through a ring
// of slots: the reader copies fragment k out while the writer copies k+1 in. The caller chooses the
// fragment's size, and whether the writer stores past the caches. It tries out what is best for
// each operation and size.
//
//   lane        one writer, one reader (of a rank's lane to itself, all other ranks are readers)
//   flag line   of each slot: the sequence number of its fragment, and the payload if that is tiny
//   done line   of each reader: the sequence number up to which it has copied out
//
// Ordering: a writer stores a flag with release after the payload; a reader loads it with acquire
// before the payload. The reader stores its done line with release after the copy out. The writer
// loads it with acquire before it writes to the slot again.
#pragma once
#include <vector>

#include "team.hpp"

namespace bench {

inline constexpr std::size_t kInlineBytes = 56;
inline constexpr std::size_t kMaxSlots = 16;

// The blocks of one operation at one size. Every rank knows them.
struct Shape {
  std::size_t bytes = 0;    // of one rank's block, or the mean of all if they differ
  std::vector<int> counts;  // bytes of rank r's block
  std::vector<int> displs;
  std::size_t total = 0;  // of all blocks
};

struct alignas(kLine) FlagLine {
  Sequence sequence;
  char payload[kInlineBytes];
};

// out = a op b: sums of 32-bit words, or else a bitwise operation. `out` may be `a`.
void combine(char* out, const char* a, const char* b, std::size_t bytes, bool words);

class Bound {
 public:
  // Without `used` it takes no memory, and no operation may be called.
  Bound(Team& team, bool used);

  struct Way {
    std::size_t fragment;  // bytes
    bool streaming;        // the writer's stores go past the caches
  };
  // Collective. Call it between two barriers, because it changes where the slots lie.
  void set_way(const Way& way);
  [[nodiscard]] std::size_t fragment() const { return fragment_; }
  [[nodiscard]] std::size_t lane_bytes() const { return lane_bytes_; }

  void barrier() { team_.barrier(); }
  void bcast(char* buffer, std::size_t bytes, int root);
  void scatter(const char* send, char* receive, const Shape& shape, int root);
  void gather(const char* send, char* receive, const Shape& shape, int root);
  void allgather(const char* send, char* receive, const Shape& shape);
  // What rank r gets lies as `shape` says. Every rank gives each rank a block of its own length.
  void alltoall(const char* send, char* receive, const Shape& shape);
  // Reductions of `bytes` bytes a rank: 32-bit sums, if the length is a multiple of 4.
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
    std::uint64_t seen_done = 0;  // how far the slowest reader has copied out, as the writer knows
  };

  Lane& lane(int writer, int reader) { return lanes_[static_cast<std::size_t>(writer * size_ + reader)]; }
  Lane& lane_to_all(int writer) { return lane(writer, writer); }
  // Where a fragment lies that is too long for its flag's line. There are more places than flags: a
  // line that was just read lies in its reader's own cache, and is slow to write.
  [[nodiscard]] char* place(const Lane& of, std::uint64_t sequence) const {
    return of.slots + sequence % places_ * fragment_;
  }
  [[nodiscard]] std::size_t piece(std::size_t left) const { return left < fragment_ ? left : fragment_; }

  // Slice r of each rank's data goes to rank r, which combines the slices into `target`, piece by
  // piece. `combined` gets each piece.
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
