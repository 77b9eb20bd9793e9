// SPDX-License-Identifier: BSD-3-Clause
#include "base/region.hpp"

namespace stretto {

// Moves `runs` whole runs of kWidth bytes each. A fixed width needs neither a call nor a case
// distinction for each run.
template <bool kUnpack, std::size_t kWidth>
void Stream::walk_runs(char* other, std::size_t runs) {
  const Layout& layout = *region_.layout;
  while (runs != 0) {
    const char* element = address_at(region_.base, static_cast<std::ptrdiff_t>(element_) * layout.extent);
    const std::size_t rest = layout.run_count - run_;
    const std::size_t batch = rest < runs ? rest : runs;
    const Run* run = layout.runs + run_;
    for (const Run* end = run + batch; run != end; ++run, other += kWidth) {
      char* place = address_at(element, run->offset);
      std::memcpy(kUnpack ? place : other, kUnpack ? other : place, kWidth);
    }
    runs -= batch;
    run_ += batch;
    if (run_ == layout.run_count) {
      run_ = 0;
      ++element_;
    }
  }
}

// Moves all of `runs` whole runs if it knows their width, otherwise none. Returns the bytes moved.
template <bool kUnpack>
std::size_t Stream::walk_whole_runs(char* other, std::size_t runs) {
  const std::size_t width = region_.layout->width;
  switch (width) {
    case 1: walk_runs<kUnpack, 1>(other, runs); break;
    case 2: walk_runs<kUnpack, 2>(other, runs); break;
    case 4: walk_runs<kUnpack, 4>(other, runs); break;
    case 8: walk_runs<kUnpack, 8>(other, runs); break;
    case 12: walk_runs<kUnpack, 12>(other, runs); break;
    case 16: walk_runs<kUnpack, 16>(other, runs); break;
    case 24: walk_runs<kUnpack, 24>(other, runs); break;
    case 32: walk_runs<kUnpack, 32>(other, runs); break;
    case 64: walk_runs<kUnpack, 64>(other, runs); break;
    default: return 0;
  }
  return runs * width;
}

template <bool kUnpack>
void Stream::walk(char* other, std::size_t bytes) {
  const Layout& layout = *region_.layout;
  left_ -= bytes;
  while (bytes != 0) {
    if (within_ == 0 && layout.width != 0 && bytes >= layout.width) {
      const std::size_t done = walk_whole_runs<kUnpack>(other, bytes / layout.width);
      other += done;
      bytes -= done;
      if (bytes == 0) return;
    }
    const char* element = address_at(region_.base, static_cast<std::ptrdiff_t>(element_) * layout.extent);
    const Run& run = layout.runs[run_];
    const std::size_t rest = run.bytes - within_;
    const std::size_t piece = rest < bytes ? rest : bytes;
    char* place = address_at(element, run.offset) + within_;
    std::memcpy(kUnpack ? place : other, kUnpack ? other : place, piece);
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
  char piece[2048];
  while (left != 0) {
    const std::size_t bytes = left < sizeof piece ? static_cast<std::size_t>(left) : sizeof piece;
    source.pack(piece, bytes);
    target.unpack(piece, bytes);
    left -= bytes;
  }
}

}  // namespace stretto
