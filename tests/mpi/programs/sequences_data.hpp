// SPDX-License-Identifier: BSD-3-Clause
// What random sequences send: datatypes with gaps, operations, and buffers of which every byte
// counts.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "datatype_model.hpp"

namespace sequences {

using model::Random;

// ---- Datatypes of ints ----

// An element of `units` ints. The null handle is an empty slot.
struct Element {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  int units = 1;
  MPI_Aint extent = sizeof(int), low = 0, high = sizeof(int);  // low and high: the bytes that it touches
  std::string name = "INT";
};

inline Element measured(MPI_Datatype handle, int units, std::string name) {
  Element e{handle, units, 0, 0, 0, std::move(name)};
  MPI_Aint lower = 0, length = 0;
  MPI_Type_get_extent(handle, &lower, &e.extent);
  MPI_Type_get_true_extent(handle, &e.low, &length);
  e.high = e.low + length;
  return e;
}

inline Element plain_int() { return {MPI_INT}; }

// No two elements in a row overlap in any of these shapes.
inline Element draw_element(Random& random) {
  MPI_Datatype t = MPI_DATATYPE_NULL, inner = MPI_DATATYPE_NULL;
  const int n = static_cast<int>(random.between(1, 6)), gap = static_cast<int>(random.between(1, 3));
  const int shape = static_cast<int>(random.below(8));
  const MPI_Aint wide = static_cast<MPI_Aint>(sizeof(int)) * (n + 1) * (gap + 1);
  std::vector<int> lengths(static_cast<std::size_t>(n), 1), places;
  for (int i = 0; i < n; ++i) places.push_back((n - 1 - i) * (gap + 1));
  switch (shape) {
    case 0: MPI_Type_contiguous(n, MPI_INT, &t); break;
    case 1: MPI_Type_vector(n, 1, gap + 1, MPI_INT, &t); break;
    case 2: MPI_Type_indexed(n, lengths.data(), places.data(), MPI_INT, &t); break;
    case 3: MPI_Type_create_indexed_block(n, 1, places.data(), MPI_INT, &t); break;
    case 4: {
      MPI_Type_contiguous(n, MPI_INT, &inner);
      MPI_Type_create_resized(inner, 0, wide, &t);
      break;
    }
    case 5: {  // begins below its address
      MPI_Aint below = -4 * static_cast<MPI_Aint>(sizeof(int));
      MPI_Type_create_hindexed(1, &n, &below, MPI_INT, &inner);
      MPI_Type_create_resized(inner, below, wide, &t);
      break;
    }
    case 6: {
      const int sizes[] = {n + gap, 3}, parts[] = {n, 1}, starts[] = {gap, 1};
      MPI_Type_create_subarray(2, sizes, parts, starts, random.chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, MPI_INT,
                               &t);
      break;
    }
    default: {
      int two[] = {1, n};
      MPI_Aint at[] = {static_cast<MPI_Aint>(sizeof(int)) * (n + gap), 0};
      MPI_Datatype types[] = {MPI_INT, MPI_INT};
      MPI_Type_create_struct(2, two, at, types, &inner);
      MPI_Type_dup(inner, &t);
    }
  }
  static const char* const names[] = {"contiguous", "vector",   "indexed",  "indexed_block",
                                      "resized",    "hindexed", "subarray", "struct"};
  MPI_Type_commit(&t);
  if (inner != MPI_DATATYPE_NULL) MPI_Type_free(&inner);
  const int units = shape == 7 ? n + 1 : n;
  return measured(t, units, names[shape] + std::string(" of ") + std::to_string(units));
}

// ---- Reductions ----

struct Affine {
  std::uint32_t factor, summand;
};

// x -> factor * x + summand, one after the other: the order of the ranks matters.
inline void compose(void* in, void* inout, int* n, MPI_Datatype* type) {
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(*type, &lower, &extent);
  for (int i = 0; i < *n; ++i) {
    Affine a, b;
    std::memcpy(&a, static_cast<char*>(in) + i * extent, sizeof a);
    std::memcpy(&b, static_cast<char*>(inout) + i * extent, sizeof b);
    const Affine both{a.factor * b.factor, a.summand * b.factor + b.summand};
    std::memcpy(static_cast<char*>(inout) + i * extent, &both, sizeof both);
  }
}

inline void add(void* in, void* inout, int* n, MPI_Datatype*) {
  for (int i = 0; i < *n; ++i) static_cast<std::uint32_t*>(inout)[i] += static_cast<std::uint32_t*>(in)[i];
}

// The program's own operations and their types. A sequence frees and makes them anew at any time.
struct OwnOperations {
  MPI_Op composed = MPI_OP_NULL, added = MPI_OP_NULL;
  MPI_Datatype pair = MPI_DATATYPE_NULL, apart = MPI_DATATYPE_NULL;

  void make() {
    MPI_Op_create(compose, 0, &composed);
    MPI_Op_create(add, 1, &added);
    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
    MPI_Type_create_resized(pair, 0, 3 * sizeof(int), &apart);
    MPI_Type_commit(&pair);
    MPI_Type_commit(&apart);
  }
  void free() {
    MPI_Op_free(&composed);
    MPI_Op_free(&added);
    MPI_Type_free(&pair);
    MPI_Type_free(&apart);
  }
};

enum class Values { bytes, doubles, floats };  // doubles, floats: small integers, so sums are exact

struct Reduction {
  MPI_Op op = MPI_OP_NULL;
  Element element;
  Values values = Values::bytes;
  std::string name;
};

inline Reduction draw_reduction(Random& random, const OwnOperations& own, bool gaps) {
  const auto of = [](MPI_Op op, MPI_Datatype type, Values values, const char* name) {
    return Reduction{op, measured(type, 1, name), values, name};
  };
  switch (random.below(12)) {
    case 0: return of(MPI_SUM, MPI_UNSIGNED, Values::bytes, "sum of UNSIGNED");
    case 1: return of(MPI_BXOR, MPI_INT, Values::bytes, "bxor of INT");
    case 2: return of(MPI_MAX, MPI_INT64_T, Values::bytes, "max of INT64_T");
    case 3: return of(MPI_SUM, MPI_DOUBLE, Values::doubles, "sum of DOUBLE");
    case 4: return of(MPI_MIN, MPI_FLOAT, Values::floats, "min of FLOAT");
    case 5: return of(MPI_MAXLOC, MPI_2INT, Values::bytes, "maxloc of 2INT");
    case 6: return of(MPI_BAND, MPI_BYTE, Values::bytes, "band of BYTE");
    case 7: return of(MPI_PROD, MPI_UNSIGNED_SHORT, Values::bytes, "prod of UNSIGNED_SHORT");
    case 8: return of(own.composed, gaps ? own.apart : own.pair, Values::bytes, "own order of pairs, maybe with gaps");
    case 9: return of(own.added, MPI_UNSIGNED, Values::bytes, "own sum of UNSIGNED");
    default: return of(own.composed, own.pair, Values::bytes, "own order of pairs");
  }
}

// ---- Buffers ----

struct Bytes {
  static constexpr std::size_t kLead = 64;  // no element begins further below its address
  std::vector<unsigned char> bytes;

  // Room for `count` elements, and some bytes that nobody may touch.
  void make(const Element& e, std::int64_t count) { bytes.resize(reach(e, count) + 32); }
  // Where the last of `count` elements ends.
  static std::size_t reach(const Element& e, std::int64_t count) {
    return kLead + (count == 0 ? 0 : static_cast<std::size_t>((count - 1) * e.extent + e.high));
  }
  [[nodiscard]] void* at() { return bytes.data() + kLead; }

  void fill(Random random, Values values) {
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      std::uint64_t word = random.next();
      if (values == Values::doubles) {
        const auto value = static_cast<double>(word % 1000);
        std::memcpy(&word, &value, 8);
      } else if (values == Values::floats) {
        const float two[] = {static_cast<float>(word % 1000), static_cast<float>(word / 1000 % 1000)};
        std::memcpy(&word, two, 8);
      }
      std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, bytes.size() - i));
    }
  }
  [[nodiscard]] std::string digest(std::size_t most = SIZE_MAX) const {
    std::uint64_t h = 14695981039346656037u;
    for (std::size_t i = 0; i < std::min(bytes.size(), most); ++i) h = (h ^ bytes[i]) * 1099511628211u;
    char text[20];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(h));
    return text;
  }
};

// Lengths in ints. They lie around records, eager messages, slots, and what goes by single copy.
inline std::int64_t draw_length(Random& random, bool short_ones) {
  static const int lengths[] = {0,    1,    2,    3,    7,    23,    24,    25,    31,    64,
                                95,   96,   97,   200,  500,  1000,  1023,  1024,  1025,  2000,
                                4096, 8191, 8192, 8193, 9000, 12288, 16384, 16385, 30000, 50000};
  const int small = 20, all = static_cast<int>(sizeof lengths / sizeof lengths[0]);
  const bool is_long = random.chance(12);
  return lengths[random.below(is_long ? (short_ones ? 24 : all) : small)];
}

}  // namespace sequences
