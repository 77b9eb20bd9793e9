// SPDX-License-Identifier: BSD-3-Clause
// User memory as the engine sees it: elements of a layout, which are read or written as one stream
// of bytes.
//
// A Layout is the flattened typemap of one element. It says where the element's bytes lie, in the
// order in which MPI sends them. The mpi layer makes layouts from datatypes; tests make them by
// hand. Between ranks the type signatures must match, not the typemaps. A Region is `count`
// elements of a layout from a base address. A Stream walks a Region from front to back in pieces of
// any length. A fragment may therefore end anywhere, also inside an element or a run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/copy.hpp"
#include "base/signature.hpp"

namespace stretto {

// One contiguous piece of an element: `bytes` bytes at `offset` from the element's origin. Offsets
// may be negative.
struct Run {
  std::ptrdiff_t offset;
  std::size_t bytes;
};

struct Layout {
  std::size_t size;       // bytes of data in one element (MPI_Type_size)
  std::ptrdiff_t extent;  // distance of consecutive elements (MPI_Type_get_extent)
  const Run* runs;        // in send order; their bytes sum up to `size`
  std::size_t run_count;
  // True when an element is one run and elements follow each other without a gap. A Region is then
  // plain memory at base + runs[0].offset. A layout without runs (size 0) may say either.
  bool contiguous;
  // The number of bytes that every run has; 0 when runs differ or nobody has compared them. It only
  // makes short runs faster.
  std::size_t width = 0;
  Signature signature{};  // of one element
};

// Computes addresses as integers, because an element's origin need not lie inside memory
// (MPI_BOTTOM, negative offsets).
inline char* address_at(const char* base, std::ptrdiff_t offset) {
  return reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(offset));
}

struct Region {
  char* base = nullptr;
  std::uint64_t count = 0;
  const Layout* layout = nullptr;

  [[nodiscard]] std::uint64_t bytes() const { return layout ? count * layout->size : 0; }
  // What sender and receiver must agree on; 0 when nothing is known.
  [[nodiscard]] Stamp stamp() const { return layout ? layout->signature.stamp(count) : 0; }
  // Plain memory of bytes() bytes. nullptr if the bytes are not contiguous or there are none.
  [[nodiscard]] char* flat() const {
    if (!layout || count == 0 || layout->run_count != 1 || !(layout->contiguous || count == 1)) return nullptr;
    return address_at(base, layout->runs[0].offset);
  }
};

inline constexpr Region kNothing{};

// The layout of single bytes that follow one another.
inline constexpr Run kPlainByteRun{0, 1};
inline constexpr Layout kPlainByte{1, 1, &kPlainByteRun, 1, true};
inline Region plain(const char* base, std::uint64_t bytes) { return {const_cast<char*>(base), bytes, &kPlainByte}; }

// A position in a region's byte stream. A stream is either read (pack) or written (unpack), from
// front to back.
class Stream {
 public:
  Stream() {}  // NOLINT: start() sets what is used; clearing and copying streams costs a short call 20 ns
  explicit Stream(const Region& region) { start(region); }

  void start(const Region& region) {
    flat_ = region.flat();
    left_ = region.bytes();
    if (flat_) return;
    region_ = region;
    element_ = 0;
    run_ = within_ = 0;
  }

  [[nodiscard]] std::uint64_t left() const { return left_; }
  // The place of the next bytes if the region is plain memory. A caller that fills them in then
  // calls advance_flat().
  [[nodiscard]] char* flat() const { return flat_; }
  void advance_flat(std::uint64_t bytes) {
    flat_ += bytes;
    left_ -= bytes;
  }

  // Copies the next `bytes` bytes (at most left()) of the region to `target`.
  void pack(void* target, std::size_t bytes) {
    if (flat_) {
      copy(target, flat_, bytes);
      flat_ += bytes;
      left_ -= bytes;
    } else if (bytes != 0) {
      walk<false>(static_cast<char*>(target), bytes);
    }
  }

  // The same past the caches, see copy_past().
  void pack_past(void* target, std::size_t bytes) {
    if (flat_) {
      copy_past(target, flat_, bytes);
      return advance_flat(bytes);
    }
    char part[2048];
    for (auto* at = static_cast<char*>(target); bytes != 0;) {
      const std::size_t now = bytes < sizeof part ? bytes : sizeof part;
      walk<false>(part, now);
      copy_past(at, part, now);
      at += now;
      bytes -= now;
    }
  }

  // Copies `bytes` bytes (at most left()) from `source` to the next place of the region.
  void unpack(const void* source, std::size_t bytes) {
    if (flat_) {
      copy(flat_, source, bytes);
      flat_ += bytes;
      left_ -= bytes;
    } else if (bytes != 0) {
      walk<true>(const_cast<char*>(static_cast<const char*>(source)), bytes);
    }
  }

  // The same past the caches where the region is plain memory.
  void unpack_past(const void* source, std::size_t bytes) {
    if (!flat_) return unpack(source, bytes);
    copy_past_to_any(flat_, source, bytes);
    advance_flat(bytes);
  }

 private:
  template <bool kUnpack>
  void walk(char* other, std::size_t bytes);
  template <bool kUnpack>
  std::size_t walk_whole_runs(char* other, std::size_t runs);
  template <bool kUnpack, std::size_t kWidth>
  void walk_runs(char* other, std::size_t runs);

  char* flat_ = nullptr;  // the next byte when the region is plain memory
  std::uint64_t left_ = 0;
  Region region_;  // otherwise: the region, and element, run and byte within the run
  std::uint64_t element_;
  std::size_t run_;
  std::size_t within_;
};

// Copies min(from.bytes(), to.bytes()) bytes from one region to another of the same process.
void region_copy(const Region& to, const Region& from);

// The blocks of a v-collective, or of its regular form, in one rank's memory. Block r belongs to
// rank r.
// - Regular: every block has `count` elements and block r starts r * count elements from base.
// - Irregular: counts and displacements (in elements) come from arrays of 4-byte int or 8-byte
//   MPI_Count/MPI_Aint.
// - Several layouts: every block has its own layout, and displacements are in bytes
//   (MPI_Alltoallw).
struct Blocks {
  char* base = nullptr;
  const Layout* layout = nullptr;
  std::uint64_t count = 0;
  const void* counts = nullptr;  // null: regular
  const void* displs = nullptr;
  bool wide = false;  // 8-byte entries (the _c functions)
  const Layout* const* layouts = nullptr;

  [[nodiscard, gnu::always_inline]] Region at(int rank) const {
    if (!counts) {
      return {address_at(base, static_cast<std::ptrdiff_t>(static_cast<std::uint64_t>(rank) * count) * layout->extent),
              count, layout};
    }
    if (layouts) {
      return {address_at(base, entry(displs, rank)), static_cast<std::uint64_t>(entry(counts, rank)), layouts[rank]};
    }
    return {address_at(base, entry(displs, rank) * layout->extent), static_cast<std::uint64_t>(entry(counts, rank)),
            layout};
  }

 private:
  [[nodiscard]] std::ptrdiff_t entry(const void* array, int rank) const {
    return wide ? static_cast<const std::int64_t*>(array)[rank] : static_cast<const std::int32_t*>(array)[rank];
  }
};

// What a rank sends in several messages: a block in each, or the same data in all.
class SentBlocks {
 public:
  SentBlocks(const Blocks& blocks) : blocks_(blocks) {}              // NOLINT: either is what it sends
  SentBlocks(const Region& region) : same_(region), alike_(true) {}  // NOLINT
  [[nodiscard]] bool alike() const { return alike_; }
  [[nodiscard]] Region at(int message) const { return alike_ ? same_ : blocks_.at(message); }
  [[nodiscard]] const Blocks& blocks() const { return blocks_; }  // unless alike()

 private:
  Blocks blocks_{};
  Region same_{};
  bool alike_ = false;
};

}  // namespace stretto
