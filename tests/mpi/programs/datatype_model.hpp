// SPDX-License-Identifier: BSD-3-Clause
// Datatypes together with what they mean: their typemaps as pieces of bytes, in order. Only extents
// come from the host. This is a serial oracle. datatype_builder.hpp makes random ones.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace model {

inline std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A small generator that every rank can start from the same words.
class Random {
 public:
  template <class... Words>
  explicit Random(Words... words) {
    ((state_ = mix(state_ ^ static_cast<std::uint64_t>(words))), ...);
  }
  std::uint64_t next() { return mix(state_++); }
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(bound));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1], items[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
  }

 private:
  std::uint64_t state_ = 0x5354524554544fu;
};

struct Piece {
  std::ptrdiff_t offset;
  std::size_t bytes;
};

struct Type {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  bool owned = false;         // to be freed
  std::vector<Piece> pieces;  // in the order of the typemap
  std::ptrdiff_t extent = 0;  // the host's
  std::size_t size = 0;
  std::string text;

  [[nodiscard]] std::ptrdiff_t low() const {
    std::ptrdiff_t result = 0;
    bool first = true;
    for (const Piece& p : pieces) {
      result = first ? p.offset : std::min(result, p.offset);
      first = false;
    }
    return result;
  }
  [[nodiscard]] std::ptrdiff_t high() const {
    std::ptrdiff_t result = 0;
    bool first = true;
    for (const Piece& p : pieces) {
      const std::ptrdiff_t end = p.offset + static_cast<std::ptrdiff_t>(p.bytes);
      result = first ? end : std::max(result, end);
      first = false;
    }
    return result;
  }
};

inline void free_type(Type& type) {
  if (type.owned) MPI_Type_free(&type.handle);
  type.owned = false;
}

// ---- The units of a signature: predefined types ----

struct Unit {
  MPI_Datatype handle;
  std::vector<Piece> pieces;
  std::ptrdiff_t alignment;
  const char* name;

  // Without gaps, inside or at the end (some pair types have one).
  [[nodiscard]] bool dense() const {
    std::ptrdiff_t end = 0;
    for (const Piece& p : pieces) {
      if (p.offset != end) return false;
      end += static_cast<std::ptrdiff_t>(p.bytes);
    }
    return end % alignment == 0;
  }
};

template <class Value>
Unit pair_unit(MPI_Datatype handle, const char* name) {
  struct Pair {
    Value value;
    int index;
  };
  const auto at = static_cast<std::ptrdiff_t>(offsetof(Pair, index));
  return {handle, {{0, sizeof(Value)}, {at, sizeof(int)}}, alignof(Pair), name};
}

// Without MPI_LONG_DOUBLE: some hosts copy its value and leave the padding, so its bytes cannot be
// compared.
inline std::vector<Unit> all_units() {
  return {
      {MPI_BYTE, {{0, 1}}, 1, "BYTE"},
      {MPI_CHAR, {{0, 1}}, 1, "CHAR"},
      {MPI_SHORT, {{0, 2}}, 2, "SHORT"},
      {MPI_INT, {{0, 4}}, 4, "INT"},
      {MPI_FLOAT, {{0, 4}}, 4, "FLOAT"},
      {MPI_DOUBLE, {{0, 8}}, 8, "DOUBLE"},
      {MPI_INT64_T, {{0, 8}}, 8, "INT64_T"},
      {MPI_C_DOUBLE_COMPLEX, {{0, 16}}, 8, "C_DOUBLE_COMPLEX"},
      pair_unit<int>(MPI_2INT, "2INT"),
      pair_unit<short>(MPI_SHORT_INT, "SHORT_INT"),
      pair_unit<double>(MPI_DOUBLE_INT, "DOUBLE_INT"),
  };
}

// ---- Bytes in memory ----

// Calls visit(offset, stream position, bytes) for the pieces of `count` elements.
template <class Visit>
void for_each_piece(const Type& type, std::int64_t count, Visit visit) {
  std::size_t position = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    for (const Piece& p : type.pieces) {
      visit(i * type.extent + p.offset, position, p.bytes);
      position += p.bytes;
    }
  }
}

// The bytes that `count` elements touch: [low, high), and whether some byte is touched twice.
struct Reach {
  std::ptrdiff_t low = 0;
  std::ptrdiff_t high = 0;
  bool overlaps = false;
};

inline Reach reach_of(const Type& type, std::int64_t count) {
  Reach reach;
  if (count <= 0 || type.pieces.empty()) return reach;
  const std::ptrdiff_t last = (count - 1) * type.extent;
  reach.low = type.low() + std::min<std::ptrdiff_t>(last, 0);
  reach.high = type.high() + std::max<std::ptrdiff_t>(last, 0);
  std::vector<bool> touched(static_cast<std::size_t>(reach.high - reach.low));
  for_each_piece(type, count, [&](std::ptrdiff_t offset, std::size_t, std::size_t bytes) {
    for (std::size_t b = 0; b < bytes; ++b) {
      auto bit = touched[static_cast<std::size_t>(offset - reach.low) + b];
      if (bit) reach.overlaps = true;
      bit = true;
    }
  });
  return reach;
}

}  // namespace model
