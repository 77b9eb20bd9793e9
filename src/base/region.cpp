// SPDX-License-Identifier: BSD-3-Clause
#include "base/region.hpp"

namespace stretto {

namespace {

// One piece between user memory and the stream. Short pieces of the common widths are copied without a call.
template <bool kUnpack>
inline void copy_piece(char* place, char* other, std::size_t bytes) {
  void* const to = kUnpack ? place : other;
  const void* const from = kUnpack ? other : place;
  switch (bytes) {
    case 4: std::memcpy(to, from, 4); break;
    case 8: std::memcpy(to, from, 8); break;
    case 16: std::memcpy(to, from, 16); break;
    default: std::memcpy(to, from, bytes);
  }
}

}  // namespace

template <bool kUnpack>
void Stream::walk(char* other, std::size_t bytes) {
  const Layout& layout = *region_.layout;
  char* element = address_at(region_.base, static_cast<std::ptrdiff_t>(element_) * layout.extent);
  left_ -= bytes;
  while (bytes != 0) {
    const Run& run = layout.runs[run_];
    const std::size_t rest = run.bytes - within_;
    const std::size_t piece = rest < bytes ? rest : bytes;
    copy_piece<kUnpack>(address_at(element, run.offset) + within_, other, piece);
    other += piece;
    bytes -= piece;
    if (piece != rest) {
      within_ += piece;
      return;
    }
    within_ = 0;
    if (++run_ == layout.run_count) {
      run_ = 0;
      ++element_;
      element = address_at(element, layout.extent);
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
