// SPDX-License-Identifier: BSD-3-Clause
#include "engine/packed_buffer.hpp"

namespace stretto::engine {
namespace {

std::uint64_t length(const std::uint64_t* begins, int r) { return begins[r + 1] - begins[r]; }
std::uint64_t less(std::uint64_t a, std::uint64_t b) { return a < b ? a : b; }

// A region as blocks of one rank.
Blocks one(const Region& region) { return {region.base, region.layout ? region.layout : &kPlainByte, region.count}; }

}  // namespace

char* PackedBuffer::copy(std::uint64_t bytes) {
  copy_ = static_cast<char*>(std::calloc(bytes, 1));
  failed_ = !copy_;
  return copy_;
}

// Whether the blocks are one piece of memory with the parts at `begins`. Declared
// lengths may be longer.
bool PackedBuffer::lies_flat(const Blocks& blocks, const std::uint64_t* begins, int ranks, char** base) const {
  *base = nullptr;
  for (int r = 0; r < ranks; ++r) {
    if (length(begins, r) == 0) continue;
    const Region block = blocks.at(r);
    char* const flat = block.flat();
    if (!flat || block.bytes() < length(begins, r)) return false;
    if (!*base) *base = address_at(flat, -static_cast<std::ptrdiff_t>(begins[r]));
    if (flat != *base + begins[r]) return false;
  }
  return true;
}

void PackedBuffer::compare(const Blocks& blocks, const std::uint64_t* begins, int ranks) {
  for (int r = 0; r < ranks; ++r) {
    const std::uint64_t declared = blocks.at(r).bytes();
    differs_ = differs_ || (receives_ ? declared < length(begins, r) : declared != length(begins, r));
  }
}

char* PackedBuffer::from(const Blocks& blocks, const std::uint64_t* begins, int ranks) {
  compare(blocks, begins, ranks);
  char* base;
  if (lies_flat(blocks, begins, ranks, &base)) return base;
  if (!copy(begins[ranks])) return nullptr;
  for (int r = 0; r < ranks; ++r) {
    const Region block = blocks.at(r);
    Stream(block).pack(copy_ + begins[r], less(block.bytes(), length(begins, r)));
  }
  return copy_;
}

char* PackedBuffer::to(const Blocks& blocks, const std::uint64_t* begins, int ranks, int first, int last) {
  receives_ = true;
  compare(blocks, begins, ranks);
  char* base;
  if (lies_flat(blocks, begins, ranks, &base)) return base;
  if (!copy(begins[ranks])) return nullptr;
  for (int r = first; r < last; ++r) {
    const Region block = blocks.at(r);
    Stream(block).pack(copy_ + begins[r], less(block.bytes(), length(begins, r)));
  }
  blocks_ = blocks;
  begins_ = begins;
  ranks_ = ranks;
  return copy_;
}

char* PackedBuffer::from(const Region& region, std::uint64_t bytes) {
  whole_[1] = bytes;
  return from(one(region), whole_, 1);
}

char* PackedBuffer::to(const Region& region, std::uint64_t bytes, bool may_come_short) {
  whole_[1] = bytes;
  return to(one(region), whole_, 1, 0, may_come_short ? 1 : 0);
}

Status PackedBuffer::finish() {
  for (int r = 0; r < ranks_; ++r) {
    const Region block = blocks_.at(r);
    Stream(block).unpack(copy_ + begins_[r], less(block.bytes(), length(begins_, r)));
  }
  return !differs_ ? Status::ok : receives_ ? Status::truncated : Status::other_length;
}

}  // namespace stretto::engine
