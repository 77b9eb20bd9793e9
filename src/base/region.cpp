// SPDX-License-Identifier: BSD-3-Clause
#include "base/region.hpp"

namespace stretto {

template <bool kUnpack>
void Stream::walk(char* other, std::size_t bytes) {
  const Layout& layout = *region_.layout;
  left_ -= bytes;
  while (bytes != 0) {
    const Run& run = layout.runs[run_];
    char* place = region_.base + static_cast<std::ptrdiff_t>(element_) * layout.extent + run.offset + within_;
    const std::size_t piece = run.bytes - within_ < bytes ? run.bytes - within_ : bytes;
    if constexpr (kUnpack) {
      std::memcpy(place, other, piece);
    } else {
      std::memcpy(other, place, piece);
    }
    other += piece;
    bytes -= piece;
    within_ += piece;
    if (within_ == run.bytes) {
      within_ = 0;
      if (++run_ == layout.run_count) {
        run_ = 0;
        ++element_;
      }
    }
  }
}

template void Stream::walk<true>(char*, std::size_t);
template void Stream::walk<false>(char*, std::size_t);

void region_copy(const Region& to, const Region& from) {
  Stream source(from);
  Stream target(to);
  std::uint64_t left = source.left() < target.left() ? source.left() : target.left();
  if (char* flat = to.flat()) {
    source.pack(flat, left);
    return;
  }
  if (const char* flat = from.flat()) {
    target.unpack(flat, left);
    return;
  }
  char piece[4096];
  while (left != 0) {
    const std::size_t bytes = left < sizeof piece ? static_cast<std::size_t>(left) : sizeof piece;
    source.pack(piece, bytes);
    target.unpack(piece, bytes);
    left -= bytes;
  }
}

}  // namespace stretto
