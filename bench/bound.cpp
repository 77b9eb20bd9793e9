// SPDX-License-Identifier: BSD-3-Clause
#include "bound.hpp"

#include <algorithm>
#include <cstring>

namespace bench {
namespace {

constexpr std::size_t kLanesBytes = std::size_t{64} << 20;  // slots of all lanes together, at most
constexpr std::size_t kMaxLaneBytes = std::size_t{1} << 20;
constexpr std::size_t kMinLaneBytes = std::size_t{64} << 10;

}  // namespace

Bound::Bound(Team& team) : team_(team), rank_(team.rank()), size_(team.size()) {
  const auto size = static_cast<std::size_t>(size_);
  lane_bytes_ = std::clamp(kLanesBytes / (size * size), kMinLaneBytes, kMaxLaneBytes);
  lanes_.resize(size * size);
  for (Lane& l : lanes_) {
    l.flags = static_cast<FlagLine*>(team.allocate(sizeof(FlagLine) * kMaxSlots));
    l.done = static_cast<Flag*>(team.allocate(sizeof(Flag) * size));
    l.slots = static_cast<char*>(team.allocate(lane_bytes_));
  }
  set_fragment(lane_bytes_ / 4);
}

void Bound::set_fragment(std::size_t bytes) {
  fragment_ = std::min(bytes, lane_bytes_ / 2);
  slots_ = std::min(kMaxSlots, lane_bytes_ / fragment_);
}

// Waits until the slot of `sequence` is free. The done lines are read only when what is known of them runs out.
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
  const std::size_t slot = sequence % slots_;
  FlagLine& line = to.flags[slot];
  std::memcpy(bytes <= kInlineBytes ? line.payload : to.slots + slot * fragment_, source, bytes);
  line.sequence.store(sequence, std::memory_order_release);
}

void Bound::pull(Lane& from, char* target, std::size_t bytes) {
  const std::uint64_t sequence = ++from.sequence;
  const std::size_t slot = sequence % slots_;
  FlagLine& line = from.flags[slot];
  team_.wait_at_least(line.sequence, sequence);
  std::memcpy(target, bytes <= kInlineBytes ? line.payload : from.slots + slot * fragment_, bytes);
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

// The root deals out fragments in turn, so that all readers work at once, and copies its own block last, while they do.
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

// The root copies a fragment of its own block, then one of each rank's, while they fill their next.
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

// Every rank writes a fragment once, for all; copies it to its own place while it is in the cache; then reads the others',
// one fragment behind what it has written, so that they need not be waited for.
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

}  // namespace bench
