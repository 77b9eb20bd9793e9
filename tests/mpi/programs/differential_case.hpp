// SPDX-License-Identifier: BSD-3-Clause
// One case of the differential test: what every rank derives from (seed, index), the buffers that
// it makes of it, and the bytes that must be in them afterwards.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "datatype_builder.hpp"

namespace differential {

using model::Builder;
using model::Random;
using model::Type;
using model::Unit;

inline constexpr std::ptrdiff_t kGuardBytes = 64;
inline constexpr std::ptrdiff_t kReachLimit = 8 << 20;

struct Options {
  std::uint64_t seed = 1;
  int cases = 1000;
  std::int64_t ring_bytes = 8 << 10;  // slots * slot_bytes of the engine under test
  bool over_declare = false;          // only the engine under test allows it; hosts do not
  // What is asked only of the engine under test, since hosts differ from the standard here. There
  // are types that the host itself packs wrongly. There are element sizes that differ between
  // ranks: the tuned algorithms of Open MPI choose their way, and cut messages into segments, by
  // local counts and sizes, and hang. And there are pair types with gaps: the binomial scatter of
  // MPICH 4.0.2 says MPI_ERR_TRUNCATE.
  bool host_limits = false;
  bool verbose = false;
};

// The same on every member of the communicator, but for `rank`.
struct Case {
  const Options* options = nullptr;
  int index = 0;
  int pass = 0;
  int rank = 0;
  int size = 0;
  int root = 0;
  std::uint64_t key = 0;
  const Unit* unit = nullptr;
  std::int64_t element_units = 1;      // units of one element of the array side
  std::vector<std::int64_t> units;     // what each rank contributes, or is given
  std::vector<std::int64_t> declared;  // what the receiving side declares: at least as much
  bool in_place = false;
  bool null_when_empty = false;
  bool large = false;  // call the _c function
  int delayed_rank = -1;
  int delay_ns = 0;
  bool delay_spins = false;

  [[nodiscard]] std::size_t unit_bytes() const {
    std::size_t bytes = 0;
    for (const model::Piece& p : unit->pieces) bytes += p.bytes;
    return bytes;
  }
  // A generator of this rank's own for one of its buffers.
  [[nodiscard]] Random local(int purpose) const { return Random(key, rank, purpose); }
};

// ---- Counts ----

inline void choose_small_units(Case& c, Random& random) {
  static constexpr std::int64_t kElements[] = {1, 1, 2, 3, 4, 6, 12};
  c.element_units = kElements[random.below(7)];
  const std::int64_t most = random.chance(30) ? 60 : 5;
  for (std::int64_t& units : c.units) units = c.element_units * random.below(most + 1);
}

// Around the sizes at which the engine changes its ways: a slot, a ring, several.
inline void choose_boundary_units(Case& c, Random& random) {
  c.element_units = random.chance(50) ? 1 : 4;
  const auto unit = static_cast<std::int64_t>(c.unit_bytes()) * c.element_units;
  const std::int64_t ring = c.options->ring_bytes;
  const std::int64_t marks[] = {64, 128, ring / 8, ring / 2, ring, 2 * ring};
  for (std::int64_t& units : c.units) {
    const std::int64_t bytes = marks[random.below(6)] + random.between(-2, 2) * unit;
    units = c.element_units * std::max<std::int64_t>(bytes / unit, 0);
  }
}

inline void choose_ring_units(Case& c, const std::vector<Unit>& all, Random& random) {
  c.unit = &all[0];  // bytes
  c.element_units = 1;
  const std::int64_t pattern[] = {0, 1, 3 * c.options->ring_bytes, c.options->ring_bytes};
  const std::int64_t shift = random.below(4);
  for (std::size_t r = 0; r < c.units.size(); ++r) c.units[r] = pattern[(r + static_cast<std::size_t>(shift)) % 4];
}

// What the communicator's members agree on. `passes` is how often the counts are used, each time
// from another root.
inline Case make_case(const Options& options, int index, std::uint64_t color, int rank, int size,
                      const std::vector<Unit>& all, int* passes) {
  Random random(options.seed, index, color);
  Case c;
  c.options = &options;
  c.index = index;
  c.rank = rank;
  c.size = size;
  c.root = static_cast<int>(random.below(size));
  c.key = random.next();
  c.unit = &all[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(all.size())))];
  c.units.assign(static_cast<std::size_t>(size), 0);
  *passes = 1;
  const std::int64_t kind = random.below(100);
  if (kind < 60) {
    choose_small_units(c, random);
  } else if (kind < 85) {
    choose_boundary_units(c, random);
  } else if (kind < 95) {
    choose_ring_units(c, all, random);
    *passes = 2;
  }
  c.declared = c.units;
  if (options.over_declare && size > 1 && random.chance(20)) {  // a rank alone is left to the host
    for (std::int64_t& units : c.declared) units += c.element_units * random.below(9);
  }
  c.in_place = random.chance(25);
  c.null_when_empty = random.chance(50);
#if MPI_VERSION >= 4
  c.large = random.chance(20);
#endif
  if (random.chance(15)) {
    c.delayed_rank = static_cast<int>(random.below(size));
    c.delay_ns = static_cast<int>(random.below(200000));
    c.delay_spins = random.chance(50);
  }
  return c;
}

// Regular collectives have one count for all.
inline void make_regular(Case& c) {
  c.units.assign(c.units.size(), c.units[static_cast<std::size_t>(c.root)]);
  c.declared.assign(c.declared.size(), c.declared[static_cast<std::size_t>(c.root)]);
}

// ---- Types ----

inline std::ptrdiff_t span_of(const Type& type, std::int64_t count) {
  return type.high() - type.low() + std::abs(type.extent) * std::max<std::int64_t>(count - 1, 0);
}

// Some hosts pack some nests of constructors wrongly. Their collectives cannot be right about them
// either.
inline bool host_agrees(const Type& type) {
  const model::Reach reach = model::reach_of(type, 2);
  std::vector<char> memory(static_cast<std::size_t>(reach.high - reach.low) + 1);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<char>(model::mix(i));
  char* origin = memory.data() - reach.low;
  std::vector<char> expected(type.size * 2);
  model::for_each_piece(type, 2, [&](std::ptrdiff_t offset, std::size_t position, std::size_t bytes) {
    std::memcpy(expected.data() + position, origin + offset, bytes);
  });
  std::vector<char> packed(expected.size() + kGuardBytes);
  int position = 0;
  MPI_Pack(origin, 2, type.handle, packed.data(), static_cast<int>(packed.size()), &position, MPI_COMM_SELF);
  packed.resize(static_cast<std::size_t>(position));
  if (packed != expected) return false;
  std::vector<char> cleared(memory.size(), 1);
  std::vector<char> by_model = cleared;
  model::for_each_piece(type, 2, [&](std::ptrdiff_t offset, std::size_t at, std::size_t bytes) {
    std::memcpy(by_model.data() - reach.low + offset, expected.data() + at, bytes);
  });
  position = 0;
  MPI_Unpack(expected.data(), static_cast<int>(expected.size()), &position, cleared.data() - reach.low, 2, type.handle,
             MPI_COMM_SELF);
  return cleared == by_model;
}

inline bool usable(const Case& c, const Type& type, std::int64_t count) {
  if (span_of(type, std::max<std::int64_t>(count, 2)) > kReachLimit) return false;
  if (model::reach_of(type, count).overlaps) return false;
  return !c.options->host_limits || type.pieces.empty() || host_agrees(type);
}

// A type of `units` units. `count` of its elements in a row touch no byte twice.
inline Type random_type(const Case& c, Random& random, std::int64_t units, std::int64_t count, bool forward) {
  Builder builder(random, *c.unit);
  // A rank alone is left to the host, whose local copies are not our concern.
  const int attempts = c.size == 1 ? 0 : 4;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    Type type = builder.make(units, static_cast<int>(random.below(4)));
    if ((!forward || type.extent > 0) && usable(c, type, count)) {
      if (c.options->verbose)
        std::fprintf(stderr, "  [%d] %lld x %s\n", c.rank, static_cast<long long>(count), type.text.c_str());
      return type;
    }
    model::free_type(type);
  }
  return builder.plain(std::max<std::int64_t>(units, 1));
}

// ---- Buffers ----

// Memory with canaries: every byte in it that is no test datum has a known value.
struct Memory {
  std::vector<char> bytes;
  std::ptrdiff_t low = 0;
  bool none = false;  // passed as a null pointer

  void reserve(std::ptrdiff_t from, std::ptrdiff_t to, std::uint64_t key) {
    low = from;
    bytes.resize(static_cast<std::size_t>(to - from + 2 * kGuardBytes));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(key * 31 + i * 7);
  }
  [[nodiscard]] char* origin() {
    if (none) return nullptr;
    const auto start = reinterpret_cast<std::uintptr_t>(bytes.data()) + kGuardBytes;
    return reinterpret_cast<char*>(start - static_cast<std::uintptr_t>(low));
  }
  // Writes a message as the first bytes of elements of `type` from `displacement` bytes.
  void write(const Type& type, std::ptrdiff_t displacement, const std::vector<char>& message) {
    if (message.empty()) return;
    const auto count = static_cast<std::int64_t>((message.size() + type.size - 1) / type.size);
    char* base = bytes.data() + kGuardBytes - low;
    model::for_each_piece(type, count, [&](std::ptrdiff_t offset, std::size_t position, std::size_t length) {
      if (position >= message.size()) return;
      std::memcpy(base + displacement + offset, message.data() + position, std::min(length, message.size() - position));
    });
  }
};

// The bytes that `source` sends to `target` (or to all: target -1).
inline std::vector<char> message(const Case& c, int source, int target, std::int64_t units) {
  std::vector<char> bytes(static_cast<std::size_t>(units) * c.unit_bytes());
  const std::uint64_t key =
      model::mix(c.key + static_cast<std::uint64_t>(source) * 1000003 + static_cast<std::uint64_t>(target + 1));
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t word = model::mix(key + i);
    std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, bytes.size() - i));
  }
  return bytes;
}

// A single buffer argument: count elements of one type.
struct Part {
  Type type;
  std::int64_t count = 0;
  Memory memory;

  ~Part() { model::free_type(type); }
};

inline void make_part(Part& part, const Case& c, std::int64_t units, int purpose) {
  Random random = c.local(purpose);
  std::int64_t element = 1;
  if (c.options->host_limits) {
    element = c.element_units;
  } else if (units == 0) {  // nothing: zero elements of something, or some of nothing
    element = random.chance(30) ? 0 : random.between(1, 5);
  } else if (random.chance(60)) {
    element = random.between(1, std::min<std::int64_t>(units, 600));
    while (units % element != 0) --element;
  }
  part.count = element == 0 ? random.below(4) : units / element;
  part.type = random_type(c, random, element, part.count, false);
  if (element == 0 && part.type.size != 0) part.count = 0;
  const model::Reach reach = model::reach_of(part.type, part.count);
  part.memory.reserve(reach.low, reach.high, random.next());
  part.memory.none = units == 0 && c.null_when_empty;
}

// The array side: a block per rank.
struct Array {
  Type type;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> displs;
  Memory memory;

  ~Array() { model::free_type(type); }
  [[nodiscard]] std::ptrdiff_t place(int rank) const { return displs[static_cast<std::size_t>(rank)] * type.extent; }
};

// Blocks in a random order with random gaps. Each begins where the one before has ended.
inline void place_irregularly(Array& array, Random& random) {
  std::vector<std::size_t> order(array.counts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  random.shuffle(order);
  const std::ptrdiff_t extent = array.type.extent;
  std::ptrdiff_t cursor = random.between(-3, 3) * extent;
  for (const std::size_t r : order) {
    const model::Reach reach = model::reach_of(array.type, array.counts[r]);
    std::ptrdiff_t displ = (cursor - reach.low) / extent;
    while (displ * extent + reach.low < cursor) ++displ;
    array.displs[r] = displ;
    if (array.counts[r] != 0) cursor = displ * extent + reach.high + random.below(3) * extent;
  }
}

inline void make_array(Array& array, const Case& c, bool regular, int purpose) {
  Random random = c.local(purpose);
  std::int64_t most = 0;
  for (const std::int64_t units : c.declared) {
    array.counts.push_back(units / c.element_units);
    most = std::max(most, array.counts.back());
  }
  array.displs.assign(array.counts.size(), 0);
  array.type = random_type(c, random, c.element_units, regular ? most * c.size : most, true);
  if (regular) {
    for (std::size_t r = 0; r < array.counts.size(); ++r)
      array.displs[r] = static_cast<std::int64_t>(r) * array.counts[r];
  } else if (c.size > 1) {  // MPICH 4.0.2 forgets the displacement of a rank alone
    place_irregularly(array, random);
  }
  std::ptrdiff_t low = 0;
  std::ptrdiff_t high = 0;
  for (int r = 0; r < c.size; ++r) {
    const model::Reach reach = model::reach_of(array.type, array.counts[static_cast<std::size_t>(r)]);
    low = std::min(low, array.place(r) + reach.low);
    high = std::max(high, array.place(r) + reach.high);
  }
  array.memory.reserve(low, high, random.next());
  array.memory.none = most == 0 && c.null_when_empty;
}

// The array side of an Alltoallw: a block and a type per rank.
struct TypedArray {
  std::vector<Type> types;
  std::vector<MPI_Datatype> handles;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> displs;  // in bytes
  Memory memory;

  ~TypedArray() {
    for (Type& type : types) model::free_type(type);
  }
};

inline void make_typed_array(TypedArray& array, const Case& c, int purpose) {
  Random random = c.local(purpose);
  // Open MPI takes the displacement of a rank alone for elements.
  std::ptrdiff_t cursor = c.size == 1 ? 0 : random.below(32) * 8;
  for (const std::int64_t units : c.declared) {
    const std::int64_t count = units / c.element_units;
    array.counts.push_back(count);
    array.types.push_back(random_type(c, random, c.element_units, count, true));
    // A block of nothing may have any type.
    array.handles.push_back(count == 0 && c.size > 1 && !c.options->host_limits ? MPI_DATATYPE_NULL
                                                                                : array.types.back().handle);
    const model::Reach reach = model::reach_of(array.types.back(), count);
    const std::ptrdiff_t place = (cursor - reach.low + 15) / 16 * 16;
    array.displs.push_back(place);
    if (count != 0) cursor = place + reach.high + random.below(3) * 8;
  }
  array.memory.reserve(0, cursor, random.next());
}

}  // namespace differential
