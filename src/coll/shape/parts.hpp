// SPDX-License-Identifier: BSD-3-Clause
// A buffer as one part for each member of a group, in the members' order and without gaps. The
// parts are equal, or given, or a vector dealt out evenly. A view may show one segment of every
// part. So algorithms that move single parts are segmented without knowing it.
#pragma once
#include <algorithm>
#include <cstdint>

#include "sched/schedule.hpp"

namespace stretto::coll {

using sched::Buffer;
using sched::Slice;

// The i-th of n pieces of a whole. Their sizes differ by at most one.
inline std::uint64_t piece_begin(std::uint64_t whole, std::uint64_t n, std::uint64_t i) {
  const std::uint64_t rest = whole % n;
  return whole / n * i + (i < rest ? i : rest);
}
inline Slice piece(const Slice& whole, std::uint64_t n, std::uint64_t i) {
  const std::uint64_t begin = piece_begin(whole.length, n, i);
  return whole.part(begin, piece_begin(whole.length, n, i + 1) - begin);
}

struct Parts {
  Buffer buffer = Buffer::receive;
  std::uint64_t offset = 0;
  int count = 1;
  std::uint64_t each = 0;                 // equal parts of so many units,
  const std::uint64_t* begins = nullptr;  // or given parts: count + 1 offsets,
  std::uint64_t dealt = 0;                // or a vector of so many units, dealt out
  std::uint64_t grain = 1;                // in multiples of this (the last part takes what is left),
  int among = 1;                          // to the first so many members
  int segment = 0;
  int segments = 1;

  static Parts equal(Buffer buffer, int count, std::uint64_t each) {
    return {.buffer = buffer, .count = count, .each = each};
  }
  static Parts given(Buffer buffer, int count, const std::uint64_t* begins) {
    return {.buffer = buffer, .count = count, .begins = begins};
  }
  static Parts deal(const Slice& vector, int count) { return deal(vector, count, count); }
  static Parts deal(const Slice& vector, int count, int among, std::uint64_t grain = 1) {
    return {.buffer = vector.buffer,
            .offset = vector.offset,
            .count = count,
            .dealt = vector.length,
            .grain = grain,
            .among = among};
  }
  [[nodiscard]] Parts moved_to(const Slice& where) const {
    Parts parts = *this;
    parts.buffer = where.buffer;
    parts.offset = where.offset;
    return parts;
  }

  // Of the whole part, whatever the segment.
  [[nodiscard]] std::uint64_t begin(int i) const {
    if (begins) return begins[i];
    if (dealt) {
      const std::uint64_t grains = (dealt + grain - 1) / grain, of = static_cast<std::uint64_t>(among);
      return i < among ? std::min(dealt, grain * piece_begin(grains, of, static_cast<std::uint64_t>(i))) : dealt;
    }
    return each * static_cast<std::uint64_t>(i);
  }
  [[nodiscard]] std::uint64_t total() const { return begin(count); }

  [[nodiscard]] Slice at(int i) const {
    const Slice whole{buffer, offset + begin(i), begin(i + 1) - begin(i)};
    return segments == 1 ? whole
                         : piece(whole, static_cast<std::uint64_t>(segments), static_cast<std::uint64_t>(segment));
  }
  // Several neighbouring parts. Segments are ignored, unless it is one part.
  [[nodiscard]] Slice range(int first, int last) const {
    if (last == first + 1) return at(first);
    return {buffer, offset + begin(first), begin(last) - begin(first)};
  }
  [[nodiscard]] Slice all() const { return range(0, count); }
  [[nodiscard]] std::uint64_t longest() const {
    if (!begins) return at(0).length;
    std::uint64_t most = 0;
    for (int i = 0; i < count; ++i) most = at(i).length > most ? at(i).length : most;
    return most;
  }
};

// The same parts counted from a member on: place 0 is that member's part; the others follow around
// the ring.
struct Ring {
  const Parts& parts;
  int from;

  [[nodiscard]] int member(int place) const {
    return place + from < parts.count ? place + from : place + from - parts.count;
  }
  // Units of places [0, place).
  [[nodiscard]] std::uint64_t before(int place) const {
    const int end = from + place;
    if (end <= parts.count) return parts.begin(end) - parts.begin(from);
    return parts.total() - parts.begin(from) + parts.begin(end - parts.count);
  }
  // Visits the parts of places [first, last). They lie in one piece, or in two where the ring
  // closes: after the last member. Two ranks that count from different members cut the same message
  // alike, because the cut depends on members.
  template <class Visit>
  void each_piece(int first, int last, Visit visit) const {
    const int zero = parts.count - from;  // place of member 0
    const int seam = first < zero && zero < last ? zero : last;
    visit(parts.range(member(first), member(first) + seam - first));
    if (seam < last) visit(parts.range(0, last - seam));
  }
};

}  // namespace stretto::coll
