// SPDX-License-Identifier: BSD-3-Clause
#include "bound.hpp"

#include <algorithm>
#include <cstring>

#include "base/copy.hpp"

namespace bench {
namespace {

constexpr std::size_t kLanesBytes = std::size_t{64} << 20;  // slots of all lanes together, at most
constexpr std::size_t kMaxLaneBytes = std::size_t{1} << 20;
constexpr std::size_t kMinLaneBytes = std::size_t{64} << 10;
// Up to here every rank combines everything.
constexpr std::size_t kFlatBytes = std::size_t{4} << 10;

bool adds_words(std::size_t bytes) { return bytes % sizeof(std::uint32_t) == 0; }

// Enters the pages: the ways that are tried first must not be those that take the page faults.
void touch(const volatile char* memory, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  for (std::size_t at = 0; at < bytes; at += kPage) (void)memory[at];
}

// Slice `rank` of `bytes` bytes for `size` ranks. Slices begin at cache lines.
std::size_t slice_begin(std::size_t bytes, int rank, int size) {
  const std::size_t lines = (bytes + 63) / 64;
  return std::min(bytes, lines * static_cast<std::size_t>(rank) / static_cast<std::size_t>(size) * 64);
}

}  // namespace

Bound::Bound(Team& team, bool used) : team_(team), rank_(team.rank()), size_(team.size()) {
  if (!used) return;
  const auto size = static_cast<std::size_t>(size_);
  lane_bytes_ = std::clamp(kLanesBytes / (size * size), kMinLaneBytes, kMaxLaneBytes);
  lanes_.resize(size * size);
  for (Lane& l : lanes_) {
    l.flags = static_cast<FlagLine*>(team.allocate(sizeof(FlagLine) * kMaxSlots));
    l.done = static_cast<Flag*>(team.allocate(sizeof(Flag) * size));
    l.slots = static_cast<char*>(team.allocate(lane_bytes_));
    touch(l.slots, lane_bytes_);
  }
  set_way({lane_bytes_ / 4, false});
}

void Bound::set_way(const Way& way) {
  fragment_ = std::min((way.fragment + kLine - 1) / kLine * kLine, lane_bytes_ / 2);
  places_ = lane_bytes_ / fragment_;
  slots_ = std::min(kMaxSlots, places_);
  streaming_ = way.streaming;
}

// Waits until the slot of `sequence` is free. Reads the done lines only when the known ones do not
// suffice.
void Bound::await_room(Lane& to, int first_reader, int last_reader, std::uint64_t sequence) {
  if (sequence <= to.seen_done + slots_) return;
  std::uint64_t slowest = sequence;
  for (int reader = first_reader; reader <= last_reader; ++reader) {
    if (reader == rank_) continue;
    team_.wait_at_least(to.done[reader].value, sequence - slots_);
    slowest = std::min(slowest, to.done[reader].value.load(std::memory_order_acquire));
  }
  to.seen_done = slowest;
}

void Bound::push(Lane& to, int first_reader, int last_reader, const char* source, std::size_t bytes) {
  const std::uint64_t sequence = ++to.sequence;
  await_room(to, first_reader, last_reader, sequence);
  FlagLine& line = to.flags[sequence % slots_];
  const bool tiny = bytes <= kInlineBytes;
  char* const target = tiny ? line.payload : place(to, sequence);
  if (streaming_ && !tiny) {
    stretto::copy_past(target, source, bytes);
  } else {
    std::memcpy(target, source, bytes);
  }
  line.sequence.store(sequence, std::memory_order_release);
}

void Bound::pull(Lane& from, char* target, std::size_t bytes) {
  const std::uint64_t sequence = ++from.sequence;
  FlagLine& line = from.flags[sequence % slots_];
  team_.wait_at_least(line.sequence, sequence);
  std::memcpy(target, bytes <= kInlineBytes ? line.payload : place(from, sequence), bytes);
  from.done[rank_].value.store(sequence, std::memory_order_release);
}

void Bound::bcast(char* buffer, std::size_t bytes, int root) {
  Lane& l = lane_to_all(root);
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t length = piece(bytes - at);
    if (rank_ == root) {
      push(l, 0, size_ - 1, buffer + at, length);
    } else {
      pull(l, buffer + at, length);
    }
    at += length;
  }
}

// The root deals out fragments in turn, so that all readers work at once. Meanwhile, and last, it
// copies its own block.
void Bound::scatter(const char* send, char* receive, const Shape& shape, int root) {
  const std::size_t own = static_cast<std::size_t>(shape.counts[static_cast<std::size_t>(rank_)]);
  if (rank_ != root) {
    for (std::size_t at = 0; at < own;) {
      const std::size_t length = piece(own - at);
      pull(lane(root, rank_), receive + at, length);
      at += length;
    }
    return;
  }
  const auto longest = static_cast<std::size_t>(*std::max_element(shape.counts.begin(), shape.counts.end()));
  for (std::size_t at = 0; at < longest; at += fragment_) {
    for (int peer = 0; peer < size_; ++peer) {
      const auto count = static_cast<std::size_t>(shape.counts[static_cast<std::size_t>(peer)]);
      if (peer == rank_ || at >= count) continue;
      push(lane(rank_, peer), peer, peer, send + shape.displs[static_cast<std::size_t>(peer)] + at, piece(count - at));
    }
  }
  std::memcpy(receive, send + shape.displs[static_cast<std::size_t>(rank_)], own);
}

// The root copies a fragment of its own block, then one of each rank's, while the ranks fill their
// next.
void Bound::gather(const char* send, char* receive, const Shape& shape, int root) {
  const std::size_t own = static_cast<std::size_t>(shape.counts[static_cast<std::size_t>(rank_)]);
  if (rank_ != root) {
    for (std::size_t at = 0; at < own;) {
      const std::size_t length = piece(own - at);
      push(lane(rank_, root), root, root, send + at, length);
      at += length;
    }
    return;
  }
  const auto longest = static_cast<std::size_t>(*std::max_element(shape.counts.begin(), shape.counts.end()));
  for (std::size_t at = 0; at < longest; at += fragment_) {
    char* mine = receive + shape.displs[static_cast<std::size_t>(rank_)];
    if (at < own) std::memcpy(mine + at, send + at, piece(own - at));
    for (int peer = 0; peer < size_; ++peer) {
      const auto count = static_cast<std::size_t>(shape.counts[static_cast<std::size_t>(peer)]);
      if (peer == rank_ || at >= count) continue;
      pull(lane(peer, rank_), receive + shape.displs[static_cast<std::size_t>(peer)] + at, piece(count - at));
    }
  }
}

// Every rank writes a fragment once, for all. It copies the fragment to its own place while that is
// in the cache. Then it reads the others' fragments, one behind what it has written, so that it
// need not wait for them.
void Bound::allgather(const char* send, char* receive, const Shape& shape) {
  const std::size_t own = static_cast<std::size_t>(shape.counts[static_cast<std::size_t>(rank_)]);
  const auto longest = static_cast<std::size_t>(*std::max_element(shape.counts.begin(), shape.counts.end()));
  char* mine = receive + shape.displs[static_cast<std::size_t>(rank_)];
  const auto give = [&](std::size_t at) {
    if (at >= own) return;
    push(lane_to_all(rank_), 0, size_ - 1, send + at, piece(own - at));
    std::memcpy(mine + at, send + at, piece(own - at));
  };
  give(0);
  for (std::size_t at = 0; at < longest; at += fragment_) {
    give(at + fragment_);
    for (int step = 1; step < size_; ++step) {
      const int peer = (rank_ + step) % size_;
      const auto count = static_cast<std::size_t>(shape.counts[static_cast<std::size_t>(peer)]);
      if (at >= count) continue;
      pull(lane_to_all(peer), receive + shape.displs[static_cast<std::size_t>(peer)] + at, piece(count - at));
    }
  }
}

namespace {

// Whatever the flags of this build are: the bound is what vectors do.
#if defined(__x86_64__)
#define BENCH_VECTORS __attribute__((optimize("O3"), target_clones("arch=haswell", "default")))
#else
#define BENCH_VECTORS __attribute__((optimize("O3")))
#endif
using Word = std::uint32_t __attribute__((may_alias, aligned(1)));

BENCH_VECTORS void add(Word* __restrict out, const Word* __restrict a, const Word* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}
BENCH_VECTORS void add_to(Word* __restrict out, const Word* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] += b[i];
}

}  // namespace

void combine(char* out, const char* a, const char* b, std::size_t bytes, bool words) {
  auto* const target = reinterpret_cast<Word*>(out);
  const std::size_t count = bytes / sizeof(Word);
  if (words && out == a) {
    add_to(target, reinterpret_cast<const Word*>(b), count);
  } else if (words) {
    add(target, reinterpret_cast<const Word*>(a), reinterpret_cast<const Word*>(b), count);
  } else {
    for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(a[i] ^ b[i]);
  }
}

template <class Use>
void Bound::pull_with(Lane& from, std::size_t bytes, Use use) {
  const std::uint64_t sequence = ++from.sequence;
  FlagLine& line = from.flags[sequence % slots_];
  team_.wait_at_least(line.sequence, sequence);
  use(bytes <= kInlineBytes ? line.payload : place(from, sequence));
  from.done[rank_].value.store(sequence, std::memory_order_release);
}

// Every rank deals a fragment to each of the others in turn, one ahead of what it reads.
void Bound::alltoall(const char* send, char* receive, const Shape& shape) {
  const auto own = static_cast<std::size_t>(shape.counts[static_cast<std::size_t>(rank_)]);
  const auto longest = static_cast<std::size_t>(*std::max_element(shape.counts.begin(), shape.counts.end()));
  const auto give = [&](std::size_t at) {
    for (int step = 1; step < size_ && at < own; ++step) {
      const int peer = (rank_ + step) % size_;
      push(lane(rank_, peer), peer, peer, send + static_cast<std::size_t>(peer) * own + at, piece(own - at));
    }
  };
  give(0);
  std::memcpy(receive + shape.displs[static_cast<std::size_t>(rank_)], send + static_cast<std::size_t>(rank_) * own,
              own);
  for (std::size_t at = 0; at < longest; at += fragment_) {
    give(at + fragment_);
    for (int step = 1; step < size_; ++step) {
      const int peer = (rank_ + step) % size_;
      const auto count = static_cast<std::size_t>(shape.counts[static_cast<std::size_t>(peer)]);
      if (at >= count) continue;
      pull(lane(peer, rank_), receive + shape.displs[static_cast<std::size_t>(peer)] + at, piece(count - at));
    }
  }
}

template <class Slice, class Combined>
void Bound::combine_slices(const char* send, char* target, std::size_t total, Slice slice, Combined combined) {
  const bool words = adds_words(total);
  const auto length = [&](int rank) { return slice(rank + 1) - slice(rank); };
  std::size_t longest = 0;
  for (int r = 0; r < size_; ++r) longest = std::max(longest, length(r));
  const auto give = [&](std::size_t at) {
    for (int step = 1; step < size_; ++step) {
      const int peer = (rank_ + step) % size_;
      if (at < length(peer)) push(lane(rank_, peer), peer, peer, send + slice(peer) + at, piece(length(peer) - at));
    }
  };
  for (std::size_t at = 0; at < longest; at += fragment_) {
    give(at);
    if (at < length(rank_)) {
      const std::size_t bytes = piece(length(rank_) - at);
      const char* left = send + slice(rank_) + at;
      for (int step = 1; step < size_; ++step) {
        pull_with(lane((rank_ + step) % size_, rank_), bytes,
                  [&](const char* right) { combine(target + at, left, right, bytes, words); });
        left = target + at;
      }
    }
    combined(at);
  }
}

void Bound::reduce_scatter(const char* send, char* receive, std::size_t block_bytes) {
  const auto slice = [&](int rank) { return static_cast<std::size_t>(rank) * block_bytes; };
  combine_slices(send, receive, block_bytes, slice, [](std::size_t) {});
}

void Bound::allreduce(const char* send, char* receive, std::size_t bytes) {
  if (bytes <= kFlatBytes) {
    const bool words = adds_words(bytes);
    for (std::size_t at = 0; at < bytes; at += fragment_) {
      const std::size_t length = piece(bytes - at);
      push(lane_to_all(rank_), 0, size_ - 1, send + at, length);
      const char* left = send + at;
      for (int step = 1; step < size_; ++step) {
        pull_with(lane_to_all((rank_ + step) % size_), length,
                  [&](const char* right) { combine(receive + at, left, right, length, words); });
        left = receive + at;
      }
    }
    return;
  }
  const auto slice = [&](int rank) { return slice_begin(bytes, rank, size_); };
  const auto length = [&](int rank) { return slice(rank + 1) - slice(rank); };
  combine_slices(send, receive + slice(rank_), bytes, slice, [&](std::size_t at) {
    if (at < length(rank_))
      push(lane_to_all(rank_), 0, size_ - 1, receive + slice(rank_) + at, piece(length(rank_) - at));
    for (int step = 1; step < size_; ++step) {
      const int peer = (rank_ + step) % size_;
      if (at < length(peer)) pull(lane_to_all(peer), receive + slice(peer) + at, piece(length(peer) - at));
    }
  });
}

void Bound::reduce(const char* send, char* receive, std::size_t bytes, int root) {
  const bool words = adds_words(bytes);
  if (size_ == 2 || bytes <= kFlatBytes) {
    for (std::size_t at = 0; at < bytes; at += fragment_) {
      const std::size_t length = piece(bytes - at);
      if (rank_ != root) {
        push(lane(rank_, root), root, root, send + at, length);
        continue;
      }
      const char* left = send + at;
      for (int step = 1; step < size_; ++step) {
        pull_with(lane((rank_ + step) % size_, rank_), length,
                  [&](const char* right) { combine(receive + at, left, right, length, words); });
        left = receive + at;
      }
    }
    return;
  }
  const auto slice = [&](int rank) { return slice_begin(bytes, rank, size_); };
  const auto length = [&](int rank) { return slice(rank + 1) - slice(rank); };
  static std::vector<char> aside;
  if (aside.size() < bytes) aside.resize(bytes);
  char* const target = (rank_ == root ? receive : aside.data()) + slice(rank_);
  combine_slices(send, target, bytes, slice, [&](std::size_t at) {
    if (rank_ != root) {
      if (at < length(rank_)) push(lane(rank_, root), root, root, target + at, piece(length(rank_) - at));
      return;
    }
    for (int step = 1; step < size_; ++step) {
      const int peer = (rank_ + step) % size_;
      if (at < length(peer)) pull(lane(peer, root), receive + slice(peer) + at, piece(length(peer) - at));
    }
  });
}

void Bound::scan(const char* send, char* receive, std::size_t bytes, bool exclusive) {
  if (bytes <= kFlatBytes) {
    scan_flat(send, receive, bytes, exclusive);
  } else {
    scan_chain(send, receive, bytes, exclusive);
  }
}

void Bound::scan_flat(const char* send, char* receive, std::size_t bytes, bool exclusive) {
  const bool words = adds_words(bytes);
  for (std::size_t at = 0; at < bytes; at += fragment_) {
    const std::size_t length = piece(bytes - at);
    if (rank_ + 1 < size_) push(lane_to_all(rank_), rank_ + 1, size_ - 1, send + at, length);
    const char* left = exclusive ? nullptr : send + at;
    for (int peer = rank_ - 1; peer >= 0; --peer) {
      pull_with(lane_to_all(peer), length, [&](const char* right) {
        if (left != nullptr) {
          combine(receive + at, left, right, length, words);
        } else {
          std::memcpy(receive + at, right, length);
        }
      });
      left = receive + at;
    }
    if (rank_ == 0 && !exclusive) std::memcpy(receive + at, send + at, length);
    for (int peer = rank_ + 1; peer < size_; ++peer) skip(lane_to_all(peer));
  }
}

void Bound::scan_chain(const char* send, char* receive, std::size_t bytes, bool exclusive) {
  const bool words = adds_words(bytes);
  const int next = rank_ + 1;
  static std::vector<char> aside;
  if (aside.size() < fragment_) aside.resize(fragment_);
  for (std::size_t at = 0; at < bytes; at += fragment_) {
    const std::size_t length = piece(bytes - at);
    const char* forward = send + at;
    if (rank_ == 0) {
      if (!exclusive) std::memcpy(receive + at, send + at, length);
    } else {
      char* const target = exclusive ? aside.data() : receive + at;
      pull_with(lane(rank_ - 1, rank_), length, [&](const char* prefix) {
        if (exclusive) std::memcpy(receive + at, prefix, length);
        if (!exclusive || next < size_) combine(target, prefix, send + at, length, words);
      });
      forward = target;
    }
    if (next < size_) push(lane(rank_, next), next, next, forward, length);
  }
}

}  // namespace bench
