// SPDX-License-Identifier: BSD-3-Clause
// Which messages each collective sends, and which parts of the buffer it fills.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "mpi/overlap/overlap.hpp"

namespace stretto::mpi {
namespace {

using overlap::Block;
using overlap::Exchange;
using overlap::MessageIn;

Blocks one(const Region& region) {
  return {region.base, region.layout != nullptr ? region.layout : &kPlainByte, region.count};
}

bool all_flat(const Blocks& blocks, int ranks) {
  for (int r = 0; r < ranks; ++r) {
    const Region block = blocks.at(r);
    if (block.bytes() != 0 && block.flat() == nullptr) return false;
  }
  return true;
}

// Blocks as places in plain memory: in the program's, or packed one after the other in a copy.
class Places {
 public:
  Places() = default;
  ~Places() { std::free(copy_); }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // False: no memory.
  bool start(const Blocks& blocks, int count, bool copies = false) {
    blocks_ = blocks;
    count_ = count;
    if (!begins_.resize(static_cast<std::size_t>(count) + 1, 0)) return false;
    for (int i = 0; i < count; ++i) begins_[i + 1] = begins_[i] + blocks.at(i).bytes();
    if (!copies && all_flat(blocks, count)) return true;
    copy_ = static_cast<char*>(std::malloc(begins_[count] + 1));
    for (int i = 0; i < count && copy_ != nullptr; ++i) {
      const Region block = blocks.at(i);
      Stream(block).pack(copy_ + begins_[i], block.bytes());
    }
    return copy_ != nullptr;
  }
  [[nodiscard]] bool is_copy() const { return copy_ != nullptr; }
  [[nodiscard]] std::uint64_t bytes(int i) const { return begins_[i + 1] - begins_[i]; }
  [[nodiscard]] std::uint64_t all_bytes() const { return begins_[count_]; }
  [[nodiscard]] char* at(int i) const { return copy_ != nullptr ? copy_ + begins_[i] : blocks_.at(i).flat(); }
  // Puts what came into a copy to where the program wants it.
  void unpack() const {
    for (int i = 0; i < count_ && copy_ != nullptr; ++i) {
      const Region block = blocks_.at(i);
      Stream(block).unpack(copy_ + begins_[i], block.bytes());
    }
  }

 private:
  Blocks blocks_{};
  int count_ = 0;
  Array<std::uint64_t> begins_;
  char* copy_ = nullptr;
};

// The messages of one call.
class Messages {
 public:
  // What the call fills: `places`, each a block. That at `own` this rank fills itself (-1: none).
  void fill(const Places& places, int count, int own) {
    const auto lies = [&](int i) { return places.bytes(i) != 0; };
    char* end = nullptr;
    for (int i = 0; i < count; ++i) {
      if (!lies(i)) continue;
      char* const at = places.at(i);
      if (buffer_ == nullptr || at < buffer_) buffer_ = at;
      end = std::max(end, at + places.bytes(i));
    }
    buffer_bytes_ = static_cast<std::uint64_t>(end - buffer_);
    for (int i = 0; i < count; ++i)
      blocks_.push({lies(i) ? static_cast<std::uint64_t>(places.at(i) - buffer_) : 0, places.bytes(i)});
    if (own >= 0 && !blocks_.failed()) own_ = blocks_[own];
  }
  void send(int peer, const char* data, std::uint64_t bytes) {
    if (bytes != 0) sends_.push({peer, data, bytes, 0});
  }
  void receive_block(int peer, int block) {
    if (blocks_.failed() || blocks_[block].bytes == 0) return;
    MessageIn what{peer, blocks_[block]};
    what.block = static_cast<std::uint32_t>(block);
    receives_.push(what);
  }
  // A block that goes from rank to rank: its ends first, which may lie on pages with other data,
  // then segments. No element is split.
  template <class Visit>
  static void each_piece(std::uint64_t bytes, std::uint32_t block, const Visit& visit) {
    constexpr std::uint64_t kWhole = 16 << 10, kEnd = 4 << 10, kLeast = 64 << 10, kMost = 512 << 10;
    constexpr std::uint32_t kPieces = 1 << 12;
    std::uint32_t index = block * kPieces;
    if (bytes <= kWhole) {
      if (bytes != 0) visit(index, 0, bytes, true);
      return;
    }
    const std::uint64_t segment =
        (std::max(std::clamp(bytes / 32, kLeast, kMost), bytes / (kPieces - 3)) + 63) & ~std::uint64_t{63};
    visit(index++, bytes - kEnd, kEnd, true);
    visit(index++, 0, kEnd, true);
    for (std::uint64_t at = kEnd; at < bytes - kEnd; at += segment)
      visit(index++, at, std::min(segment, bytes - kEnd - at), false);
  }
  void send_in_pieces(int peer, const char* data, std::uint64_t bytes, std::uint32_t block) {
    each_piece(bytes, block, [&](std::uint32_t index, std::uint64_t at, std::uint64_t length, bool) {
      sends_.push({peer, data + at, length, index});
    });
  }
  void receive_in_pieces(int peer, std::uint32_t block, int forward_to) {
    if (blocks_.failed()) return;
    const Block& whole = blocks_[block];
    each_piece(whole.bytes, block, [&](std::uint32_t index, std::uint64_t at, std::uint64_t length, bool first) {
      receives_.push({peer, {whole.offset + at, length}, index, forward_to, MessageIn::kNoBlock, first});
    });
  }

  // A vector to which each rank of a chain adds its part, this one `own`. It comes from `peer` and
  // goes on to `forward_to` (-1: it ends here). `to_buffer`: the sum fills the block.
  void combine_in_pieces(int peer, const char* own, std::uint64_t bytes, int forward_to, bool to_buffer) {
    each_piece(bytes, 0, [&](std::uint32_t index, std::uint64_t at, std::uint64_t length, bool first) {
      receives_.push({peer, {at, length}, index, forward_to, MessageIn::kNoBlock, first, own + at, to_buffer});
    });
  }

  // False: no memory.
  bool finish(Exchange& call, const char* name, bool may_return_early) const {
    call.name = name;
    call.sends = sends_.data();
    call.send_count = sends_.size();
    call.receives = receives_.data();
    call.receive_count = receives_.size();
    call.buffer = buffer_;
    call.buffer_bytes = buffer_bytes_;
    call.blocks = blocks_.data();
    call.block_count = blocks_.size();
    call.own = own_;
    call.may_return_early = may_return_early;
    return !sends_.failed() && !receives_.failed() && !blocks_.failed();
  }

 private:
  char* buffer_ = nullptr;
  std::uint64_t buffer_bytes_ = 0;
  Block own_;
  Array<Block> blocks_;
  Array<overlap::MessageOut> sends_;
  Array<MessageIn> receives_;
};

void copy_own(const Places& from, int from_index, const Places& to, int to_index) {
  const std::uint64_t bytes = std::min(from.bytes(from_index), to.bytes(to_index));
  if (bytes != 0) std::memmove(to.at(to_index), from.at(from_index), bytes);
}

}  // namespace

engine::Outcome Overlap::bcast(const Region& buffer, int root, bool may_defer) {
  const int ranks = state_->size, behind_root = (place_[state_->rank] - place_[root] + ranks) % ranks;
  const bool is_last = behind_root == ranks - 1;
  Places data;
  Messages messages;
  Exchange call;
  if (!data.start(one(buffer), 1)) return give_up();
  if (behind_root == 0) {
    if (!is_last) messages.send_in_pieces(ring_peer(1), data.at(0), data.bytes(0), 0);
  } else {
    messages.fill(data, 1, -1);
    messages.receive_in_pieces(ring_peer(-1), 0, is_last ? -1 : ring_peer(1));
  }
  if (!messages.finish(call, "Bcast", may_defer && (behind_root == 0 || !data.is_copy()))) return give_up();
  const engine::Outcome outcome = run(call, data.all_bytes());
  if (outcome.path != Path::deferred && behind_root != 0) data.unpack();
  return outcome;
}

// A chain of all ranks that ends at the root. Each adds its own part to what passes.
engine::Outcome Overlap::reduce(const engine::KernelArgs& vector, const engine::KernelOp& reduction, int root,
                                bool may_defer) {
  const int ranks = state_->size, behind_root = (place_[state_->rank] - place_[root] + ranks) % ranks;
  const bool is_root = behind_root == 0;
  const int next = is_root ? -1 : ring_peer(-1);
  Places out;
  Messages messages;
  Exchange call;
  if (is_root && !out.start(one(plain(vector.out, vector.bytes)), 1)) return give_up();
  if (is_root) messages.fill(out, 1, -1);
  if (behind_root == ranks - 1)
    messages.send_in_pieces(next, vector.own, vector.bytes, 0);
  else
    messages.combine_in_pieces(ring_peer(1), vector.own, vector.bytes, next, is_root);
  call.fold = {reduction.fold, reduction.element_bytes};
  if (!messages.finish(call, "Reduce", may_defer)) return give_up();
  return run(call, vector.bytes);
}

// A chain of all ranks up, in which each adds its own part, and down again with the sum.
engine::Outcome Overlap::allreduce(const engine::KernelArgs& vector, const engine::KernelOp& reduction,
                                   bool may_defer) {
  const int place = place_[state_->rank];
  const bool is_top = place == 0, is_end = place == state_->size - 1;
  Places out;
  Messages messages;
  Exchange call;
  if (!out.start(one(plain(vector.out, vector.bytes)), 1)) return give_up();
  messages.fill(out, 1, -1);
  if (is_end)
    messages.send_in_pieces(ring_peer(-1), vector.own, vector.bytes, 0);
  else
    messages.combine_in_pieces(ring_peer(1), vector.own, vector.bytes, ring_peer(is_top ? 1 : -1), is_top);
  if (!is_top) messages.receive_in_pieces(ring_peer(-1), 0, is_end ? -1 : ring_peer(1));
  call.fold = {reduction.fold, reduction.element_bytes};
  if (!messages.finish(call, "Allreduce", may_defer)) return give_up();
  return run(call, vector.bytes);
}

engine::Outcome Overlap::gather(const Region& send, const Blocks& receive, int root, bool in_place, bool may_defer) {
  const int ranks = state_->size, me = state_->rank;
  Places from, to;
  Messages messages;
  Exchange call;
  if (!in_place && !from.start(one(send), 1)) return give_up();
  if (me == root) {
    if (!to.start(receive, ranks)) return give_up();
    if (!in_place) copy_own(from, 0, to, me);
    messages.fill(to, ranks, me);
    for (int r = 0; r < ranks; ++r) {
      if (r != me) messages.receive_block(job_ranks_[r], r);
    }
  } else {
    messages.send(job_ranks_[root], from.at(0), from.bytes(0));
  }
  if (!messages.finish(call, "Gather", may_defer && !to.is_copy())) return give_up();
  const engine::Outcome outcome = run(call, me == root ? to.all_bytes() : from.all_bytes());
  if (me == root && outcome.path != Path::deferred) to.unpack();
  return outcome;
}

engine::Outcome Overlap::scatter(const Blocks& send, const Region& receive, int root, bool in_place, bool may_defer) {
  const int ranks = state_->size, me = state_->rank;
  Places from, to;
  Messages messages;
  Exchange call;
  if (!in_place && !to.start(one(receive), 1)) return give_up();
  if (me == root) {
    if (!from.start(send, ranks)) return give_up();
    for (int step = 1; step < ranks; ++step) {
      const int r = (me + step) % ranks;
      messages.send(job_ranks_[r], from.at(r), from.bytes(r));
    }
    if (!in_place) {
      copy_own(from, me, to, 0);
      to.unpack();
    }
  } else {
    messages.fill(to, 1, -1);
    messages.receive_block(job_ranks_[root], 0);
  }
  const bool is_plain = me == root || !to.is_copy();
  if (!messages.finish(call, "Scatter", may_defer && is_plain)) return give_up();
  const engine::Outcome outcome = run(call, me == root ? from.all_bytes() : to.all_bytes());
  if (me != root && outcome.path != Path::deferred) to.unpack();
  return outcome;
}

// Each rank passes on what its neighbour in the ring gives it, but for the block of the one behind.
engine::Outcome Overlap::allgather(const Region& send, const Blocks& receive, bool in_place, bool may_defer) {
  const int ranks = state_->size, me = state_->rank;
  Places from, to;
  Messages messages;
  Exchange call;
  if (!to.start(receive, ranks) || (!in_place && !from.start(one(send), 1))) return give_up();
  if (!in_place) copy_own(from, 0, to, me);
  messages.fill(to, ranks, me);
  if (ranks > 1) messages.send_in_pieces(ring_peer(1), to.at(me), to.bytes(me), static_cast<std::uint32_t>(me));
  for (int step = 1; step < ranks; ++step) {
    const int origin = ring_[(place_[me] - step + ranks) % ranks];
    const bool goes_on = step < ranks - 1;
    messages.receive_in_pieces(ring_peer(-1), static_cast<std::uint32_t>(origin), goes_on ? ring_peer(1) : -1);
  }
  if (!messages.finish(call, "Allgather", may_defer && !to.is_copy())) return give_up();
  const engine::Outcome outcome = run(call, to.all_bytes());
  if (outcome.path != Path::deferred) to.unpack();
  return outcome;
}

engine::Outcome Overlap::alltoall(const Blocks& send, const Blocks& receive, bool in_place, bool may_defer) {
  const int ranks = state_->size, me = state_->rank;
  Places from, to;
  Messages messages;
  Exchange call;
  // In place, what comes would overwrite what is to be sent.
  if (!to.start(receive, ranks) || !from.start(in_place ? receive : send, ranks, in_place)) return give_up();
  if (!in_place) copy_own(from, me, to, me);
  messages.fill(to, ranks, me);
  // Each rank begins with the one before it, so that no rank has to send to all at once.
  for (int step = 1; step < ranks; ++step) {
    const int source = (me - step + ranks) % ranks, target = (me + step) % ranks;
    messages.receive_block(job_ranks_[source], source);
    messages.send(job_ranks_[target], from.at(target), from.bytes(target));
  }
  if (!messages.finish(call, "Alltoall", may_defer && !to.is_copy())) return give_up();
  const engine::Outcome outcome = run(call, to.all_bytes());
  if (outcome.path != Path::deferred) to.unpack();
  return outcome;
}

}  // namespace stretto::mpi
