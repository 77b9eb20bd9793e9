// SPDX-License-Identifier: BSD-3-Clause
// Blocks of one length, packed one after the other in an order of ranks, so that those which go the
// same way are one message.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/array.hpp"
#include "base/region.hpp"

namespace stretto::coll_shm {

// The layout of such a block. So messages say what elements they have, as they do unpacked.
class PackedBlock {
 public:
  explicit PackedBlock(const Region& block) : run_{0, block.bytes()}, layout_{block.bytes(), 0, &run_, 1, true} {
    layout_.extent = static_cast<std::ptrdiff_t>(layout_.size);
    if (block.layout != nullptr) layout_.signature.append(block.layout->signature, block.count);
  }
  PackedBlock(const PackedBlock&) = delete;
  PackedBlock& operator=(const PackedBlock&) = delete;
  [[nodiscard]] std::uint64_t bytes() const { return layout_.size; }
  [[nodiscard]] Region region(char* at, int blocks) const { return {at, static_cast<std::uint64_t>(blocks), &layout_}; }

 private:
  Run run_;
  Layout layout_;
};

// Calls body(bytes), unless that is 0. Few bytes are copied without a call, so their number is told
// at compile time.
template <class Body>
void with_length(std::uint64_t bytes, const Body& body) {
  switch (bytes) {
    case 0: return;
    case 4: return body(std::integral_constant<std::size_t, 4>());
    case 8: return body(std::integral_constant<std::size_t, 8>());
    case 16: return body(std::integral_constant<std::size_t, 16>());
    default: return body(static_cast<std::size_t>(bytes));
  }
}

// Block i of packed memory is that of rank order[i].
inline void pack_blocks(char* to, const Blocks& from, const Array<int>& order, std::uint64_t bytes) {
  const int* const ranks = order.data();
  const std::size_t count = order.size();
  if (const char* const first = from.at(0).flat()) {
    const auto stride = static_cast<std::ptrdiff_t>(from.count) * from.layout->extent;
    return with_length(bytes, [=](auto each) {
      for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * each, first + ranks[i] * stride, each);
    });
  }
  for (std::size_t i = 0; i < count; ++i) region_copy(plain(to + i * bytes, bytes), from.at(ranks[i]));
}
// Blocks may have room for more.
inline void unpack_blocks(const Blocks& to, const char* from, const Array<int>& order, std::uint64_t bytes) {
  const int* const ranks = order.data();
  const std::size_t count = order.size();
  if (char* const first = to.at(0).flat(); first != nullptr && to.at(0).bytes() >= bytes) {
    const auto stride = static_cast<std::ptrdiff_t>(to.count) * to.layout->extent;
    return with_length(bytes, [=](auto each) {
      for (std::size_t i = 0; i < count; ++i) std::memcpy(first + ranks[i] * stride, from + i * each, each);
    });
  }
  for (std::size_t i = 0; i < count; ++i) region_copy(to.at(ranks[i]), plain(from + i * bytes, bytes));
}

}  // namespace stretto::coll_shm
