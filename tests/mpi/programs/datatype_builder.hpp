// SPDX-License-Identifier: BSD-3-Clause
// Random nests of every datatype constructor. Beside each call to the host is the same constructor,
// written out from the standard's definition. So the typemap is known without asking the host.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "datatype_model.hpp"

namespace model {

class Builder {
 public:
  Builder(Random& random, const Unit& unit) : random_(random), unit_(unit) {}

  // A committed type of exactly `units` units.
  Type make(std::int64_t units, int depth) {
    Type type = build(units, depth);
    if (type.owned) MPI_Type_commit(&type.handle);
    return type;
  }

  // The unit by itself, or `units` of it in a row.
  Type plain(std::int64_t units) {
    Type unit = leaf();
    if (units == 1) return unit;
    Type type = contiguous(units, unit);
    MPI_Type_commit(&type.handle);
    return type;
  }

 private:
  // Byte offset and length in elements.
  using Blocks = std::vector<std::pair<std::ptrdiff_t, std::int64_t>>;

  Type leaf() {
    Type type;
    type.handle = unit_.handle;
    type.text = unit_.name;
    return finish(type, unit_.pieces, false);
  }

  Type finish(Type type, std::vector<Piece> pieces, bool owned = true) {
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    MPI_Type_get_extent(type.handle, &lower, &extent);
    type.pieces = std::move(pieces);
    type.extent = extent;
    type.owned = owned;
    for (const Piece& p : type.pieces) type.size += p.bytes;
    return type;
  }

  // The typemap of blocks of `inner`, which is not needed any more.
  Type finish(MPI_Datatype handle, std::string text, Type& inner, const Blocks& blocks) {
    std::vector<Piece> pieces;
    for (const auto& [offset, length] : blocks) {
      for (std::int64_t i = 0; i < length; ++i) {
        for (const Piece& p : inner.pieces) pieces.push_back({offset + i * inner.extent + p.offset, p.bytes});
      }
    }
    Type type;
    type.handle = handle;
    type.text = std::move(text) + "(" + inner.text + ")";
    free_type(inner);
    return finish(type, std::move(pieces));
  }

  Type build(std::int64_t units, int depth) {
    if (units == 0) return empty();
    if (depth == 0) return plain_or_dup(units);
    switch (random_.below(12)) {
      case 0: return plain_or_dup(units);
      case 1: return contiguous_of(units, depth);
      case 2:
      case 3: return vector_of(units, depth);
      case 4:
      case 5: return indexed_of(units, depth);
      case 6: return indexed_block_of(units, depth);
      case 7: return struct_of(units, depth);
      case 8:
      case 9: return resized_of(units, depth);
      case 10: return subarray_of(units, depth);
      default: return darray_of(units, depth);
    }
  }

  // Splits units into (outer, inner) with outer * inner == units.
  std::int64_t split(std::int64_t units) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d * d <= units; ++d) {
      if (units % d != 0) continue;
      divisors.push_back(d);
      divisors.push_back(units / d);
    }
    return divisors[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(divisors.size())))];
  }

  Type plain_or_dup(std::int64_t units) {
    Type unit = leaf();
    if (units == 1 && random_.chance(50)) return unit;
    if (units == 1) {
      MPI_Datatype handle;
      MPI_Type_dup(unit.handle, &handle);
      return finish(handle, "dup", unit, {{0, 1}});
    }
    return contiguous(units, unit);
  }

  Type empty() {
    Type unit = leaf();
    MPI_Datatype handle;
    switch (random_.below(4)) {
      case 0: MPI_Type_contiguous(0, unit.handle, &handle); break;
      case 1: MPI_Type_vector(0, 3, 5, unit.handle, &handle); break;
      case 2: MPI_Type_indexed(0, nullptr, nullptr, unit.handle, &handle); break;
      default: {
        const int lengths[] = {0, 0};
        const int displs[] = {3, -7};
        MPI_Type_indexed(2, lengths, displs, unit.handle, &handle);
      }
    }
    return finish(handle, "empty", unit, {});
  }

  Type contiguous(std::int64_t count, Type& inner) {
    MPI_Datatype handle;
    const std::string text = "contiguous " + std::to_string(count);
#if MPI_VERSION >= 4
    if (random_.chance(30)) {
      MPI_Type_contiguous_c(count, inner.handle, &handle);
      return finish(handle, text + "_c", inner, {{0, count}});
    }
#endif
    MPI_Type_contiguous(static_cast<int>(count), inner.handle, &handle);
    return finish(handle, text, inner, {{0, count}});
  }

  Type contiguous_of(std::int64_t units, int depth) {
    const std::int64_t outer = split(units);
    Type inner = build(units / outer, depth - 1);
    return contiguous(outer, inner);
  }

  Type vector_of(std::int64_t units, int depth) {
    const std::int64_t outer = split(units);
    Type inner = build(units / outer, depth - 1);
    const auto count = static_cast<int>(split(outer));
    const auto length = static_cast<int>(outer) / count;
    std::int64_t stride = length + random_.below(4);
    if (random_.chance(30)) stride = -stride;
    std::ptrdiff_t step = stride * inner.extent;
    const bool bytes = random_.chance(50);
    if (bytes && random_.chance(50)) step += random_.below(5) * unit_.alignment;
    MPI_Datatype handle;
    const std::string text = (bytes ? "hvector " : "vector ") + std::to_string(count) + "x" + std::to_string(length) +
                             "/" + std::to_string(bytes ? step : stride);
    Blocks blocks;
    for (int i = 0; i < count; ++i) blocks.push_back({i * step, length});
#if MPI_VERSION >= 4
    if (random_.chance(30)) {
      if (bytes) {
        MPI_Type_create_hvector_c(count, length, step, inner.handle, &handle);
      } else {
        MPI_Type_vector_c(count, length, stride, inner.handle, &handle);
      }
      return finish(handle, text + "_c", inner, blocks);
    }
#endif
    if (bytes) {
      MPI_Type_create_hvector(count, length, step, inner.handle, &handle);
    } else {
      MPI_Type_vector(count, length, static_cast<int>(stride), inner.handle, &handle);
    }
    return finish(handle, text, inner, blocks);
  }

  // `total` elements in blocks of random lengths (some empty), placed apart in a random order.
  // Offsets are in `step` bytes.
  void scatter_blocks(std::int64_t total, std::ptrdiff_t step, std::vector<std::int64_t>& lengths,
                      std::vector<std::int64_t>& places, std::ptrdiff_t width) {
    while (total > 0) {
      const std::int64_t length =
          lengths.size() > 40 ? total : random_.between(random_.chance(15) ? 0 : 1, std::min<std::int64_t>(total, 7));
      lengths.push_back(length);
      total -= length;
    }
    std::vector<std::size_t> order(lengths.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    random_.shuffle(order);
    places.assign(lengths.size(), 0);
    std::int64_t at = random_.between(-10, 10);
    for (const std::size_t i : order) {
      places[i] = at;
      const std::int64_t used = step == 0 ? 1 : (lengths[i] * std::abs(width) + std::abs(step) - 1) / std::abs(step);
      at += used + random_.below(4);
    }
  }

  Type indexed_of(std::int64_t units, int depth) {
    const std::int64_t outer = split(units);
    Type inner = build(units / outer, depth - 1);
    const bool bytes = random_.chance(50);
    const std::ptrdiff_t step = bytes ? unit_.alignment : inner.extent;
    std::vector<std::int64_t> lengths;
    std::vector<std::int64_t> places;
    scatter_blocks(outer, step, lengths, places, inner.extent);
    Blocks blocks;
    std::vector<int> small_lengths;
    std::vector<int> small_places;
    std::vector<MPI_Aint> addresses;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      blocks.push_back({places[i] * step, lengths[i]});
      small_lengths.push_back(static_cast<int>(lengths[i]));
      small_places.push_back(static_cast<int>(places[i]));
      addresses.push_back(places[i] * step);
    }
    MPI_Datatype handle;
    const auto n = static_cast<int>(lengths.size());
    const std::string text = (bytes ? "hindexed " : "indexed ") + std::to_string(n);
#if MPI_VERSION >= 4
    if (random_.chance(30)) {
      std::vector<MPI_Count> c_lengths(lengths.begin(), lengths.end());
      std::vector<MPI_Count> c_places;
      for (const std::int64_t place : places) c_places.push_back(bytes ? place * step : place);
      (bytes ? MPI_Type_create_hindexed_c : MPI_Type_indexed_c)(n, c_lengths.data(), c_places.data(), inner.handle,
                                                                &handle);
      return finish(handle, text + "_c", inner, blocks);
    }
#endif
    if (bytes) {
      MPI_Type_create_hindexed(n, small_lengths.data(), addresses.data(), inner.handle, &handle);
    } else {
      MPI_Type_indexed(n, small_lengths.data(), small_places.data(), inner.handle, &handle);
    }
    return finish(handle, text, inner, blocks);
  }

  Type indexed_block_of(std::int64_t units, int depth) {
    const std::int64_t outer = split(units);
    Type inner = build(units / outer, depth - 1);
    const std::int64_t length = split(outer);
    const auto n = static_cast<int>(outer / length);
    const bool bytes = random_.chance(50);
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = i;
    random_.shuffle(order);
    Blocks blocks;
    std::vector<int> places;
    std::vector<MPI_Aint> addresses;
    const std::int64_t apart = length + random_.below(3);
    const std::int64_t start = random_.between(-5, 5);
    for (const std::int64_t i : order) {
      const std::int64_t place = start + i * apart;
      places.push_back(static_cast<int>(place));
      addresses.push_back(place * inner.extent + (bytes ? i * unit_.alignment : 0));
      blocks.push_back({addresses.back(), length});
    }
    MPI_Datatype handle;
    const std::string text = (bytes ? "hindexed_block " : "indexed_block ") + std::to_string(n);
#if MPI_VERSION >= 4
    if (random_.chance(30)) {
      std::vector<MPI_Count> c_places(places.begin(), places.end());
      if (bytes) c_places.assign(addresses.begin(), addresses.end());
      (bytes ? MPI_Type_create_hindexed_block_c : MPI_Type_create_indexed_block_c)(n, length, c_places.data(),
                                                                                   inner.handle, &handle);
      return finish(handle, text + "_c", inner, blocks);
    }
#endif
    if (bytes) {
      MPI_Type_create_hindexed_block(n, static_cast<int>(length), addresses.data(), inner.handle, &handle);
    } else {
      MPI_Type_create_indexed_block(n, static_cast<int>(length), places.data(), inner.handle, &handle);
    }
    return finish(handle, text, inner, blocks);
  }

  Type struct_of(std::int64_t units, int depth) {
    std::vector<Type> members;
    std::vector<int> lengths;
    std::vector<MPI_Aint> offsets;
    std::vector<Piece> pieces;
    std::string text = "struct(";
    std::ptrdiff_t at = random_.between(-4, 4) * unit_.alignment;
    while (units > 0) {
      const std::int64_t share = members.size() == 4 ? units : random_.between(1, units);
      units -= share;
      const std::int64_t length = split(share);
      Type member = build(share / length, depth - 1);
      // Room on both sides for the member's own reach.
      const std::ptrdiff_t reach = std::abs(member.extent) * length + std::abs(member.low()) + std::abs(member.high());
      at += (reach + unit_.alignment - 1) / unit_.alignment * unit_.alignment;
      for (std::int64_t i = 0; i < length; ++i) {
        for (const Piece& p : member.pieces) pieces.push_back({at + i * member.extent + p.offset, p.bytes});
      }
      lengths.push_back(static_cast<int>(length));
      offsets.push_back(at);
      text += std::to_string(length) + "*" + member.text + "@" + std::to_string(at) + " ";
      at += (reach + unit_.alignment - 1) / unit_.alignment * unit_.alignment + random_.below(3) * unit_.alignment;
      members.push_back(std::move(member));
    }
    std::vector<MPI_Datatype> handles;
    for (const Type& member : members) handles.push_back(member.handle);
    Type type;
    const auto n = static_cast<int>(members.size());
#if MPI_VERSION >= 4
    if (random_.chance(30)) {
      const std::vector<MPI_Count> c_lengths(lengths.begin(), lengths.end());
      const std::vector<MPI_Count> c_offsets(offsets.begin(), offsets.end());
      MPI_Type_create_struct_c(n, c_lengths.data(), c_offsets.data(), handles.data(), &type.handle);
      text += "_c";
    } else
#endif
      MPI_Type_create_struct(n, lengths.data(), offsets.data(), handles.data(), &type.handle);
    for (Type& member : members) free_type(member);
    type.text = text + ")";
    return finish(type, std::move(pieces));
  }

  Type resized_of(std::int64_t units, int depth) {
    Type inner = build(units, depth - 1);
    const std::ptrdiff_t low = inner.low() + random_.between(-3, 3) * unit_.alignment;
    std::ptrdiff_t extent = inner.extent + random_.between(-2, 6) * unit_.alignment;
    if (random_.chance(30)) extent = unit_.alignment * random_.between(1, 4);
    if (extent <= 0) extent = unit_.alignment;
    MPI_Datatype handle;
    const std::string text = "resized " + std::to_string(low) + "+" + std::to_string(extent);
#if MPI_VERSION >= 4
    if (random_.chance(30)) {
      MPI_Type_create_resized_c(inner.handle, low, extent, &handle);
      return finish(handle, text + "_c", inner, {{0, 1}});
    }
#endif
    MPI_Type_create_resized(inner.handle, low, extent, &handle);
    return finish(handle, text, inner, {{0, 1}});
  }

  Type subarray_of(std::int64_t units, int depth) {
    const std::int64_t outer = split(units);
    Type inner = build(units / outer, depth - 1);
    const auto n = static_cast<std::size_t>(random_.between(1, 3));
    std::vector<int> sizes(n), subsizes(n, 1), starts(n);
    std::int64_t left = outer;
    for (std::size_t d = 0; d < n; ++d) {
      subsizes[d] = static_cast<int>(d + 1 == n ? left : split(left));
      left /= subsizes[d];
      starts[d] = static_cast<int>(random_.below(3));
      sizes[d] = subsizes[d] + starts[d] + static_cast<int>(random_.below(3));
    }
    const bool fortran = random_.chance(50);
    std::vector<std::vector<std::int64_t>> owned(n);
    for (std::size_t d = 0; d < n; ++d) {
      for (int i = 0; i < subsizes[d]; ++i) owned[d].push_back(starts[d] + i);
    }
    const Blocks blocks = grid_blocks({sizes.begin(), sizes.end()}, owned, fortran, inner.extent);
    const int order = fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
    MPI_Datatype handle;
    const std::string text = "subarray " + std::to_string(n);
#if MPI_VERSION >= 4
    if (random_.chance(30)) {
      const std::vector<MPI_Count> a(sizes.begin(), sizes.end()), b(subsizes.begin(), subsizes.end()),
          c(starts.begin(), starts.end());
      MPI_Type_create_subarray_c(static_cast<int>(n), a.data(), b.data(), c.data(), order, inner.handle, &handle);
      return finish(handle, text + "_c", inner, blocks);
    }
#endif
    MPI_Type_create_subarray(static_cast<int>(n), sizes.data(), subsizes.data(), starts.data(), order, inner.handle,
                             &handle);
    return finish(handle, text, inner, blocks);
  }

  // One block of one element per index of the grid, the fastest dimension innermost.
  static Blocks grid_blocks(const std::vector<std::int64_t>& sizes, const std::vector<std::vector<std::int64_t>>& owned,
                            bool fortran, std::ptrdiff_t extent) {
    std::vector<std::int64_t> places{0};
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const std::size_t d = fortran ? sizes.size() - 1 - k : k;  // slowest first
      std::vector<std::int64_t> finer;
      for (const std::int64_t place : places) {
        for (const std::int64_t i : owned[d]) finer.push_back(place * sizes[d] + i);
      }
      places = std::move(finer);
    }
    Blocks blocks;
    for (const std::int64_t place : places) blocks.push_back({place * extent, 1});
    return blocks;
  }

  // A rank's share of an array. The array is spread so evenly that the share has the wanted number
  // of elements.
  Type darray_of(std::int64_t units, int depth) {
    const std::int64_t outer = split(units);
    Type inner = build(units / outer, depth - 1);
    const auto n = static_cast<std::size_t>(random_.between(1, 3));
    std::vector<int> sizes(n), kinds(n), arguments(n), grid(n);
    int processes = 1;
    std::int64_t left = outer;
    std::vector<std::int64_t> shares(n);
    for (std::size_t d = 0; d < n; ++d) {
      shares[d] = d + 1 == n ? left : split(left);
      left /= shares[d];
      grid[d] = static_cast<int>(random_.between(1, 3));
      const std::int64_t kind = random_.below(3);
      if (kind == 0) grid[d] = 1;
      kinds[d] = kind == 0 ? MPI_DISTRIBUTE_NONE : kind == 1 ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
      arguments[d] = MPI_DISTRIBUTE_DFLT_DARG;
      if (kind == 2 && random_.chance(60)) arguments[d] = static_cast<int>(split(shares[d]));
      sizes[d] = static_cast<int>(shares[d]) * grid[d];
      processes *= grid[d];
    }
    const int rank = static_cast<int>(random_.below(processes));
    std::vector<std::vector<std::int64_t>> owned(n);
    int rest = rank;
    int below_here = processes;
    for (std::size_t d = 0; d < n; ++d) {
      below_here /= grid[d];
      const int coordinate = rest / below_here;
      rest %= below_here;
      const std::int64_t block =
          kinds[d] == MPI_DISTRIBUTE_CYCLIC ? (arguments[d] != MPI_DISTRIBUTE_DFLT_DARG ? arguments[d] : 1) : shares[d];
      for (std::int64_t i = 0; i < sizes[d]; ++i) {
        if (i / block % grid[d] == coordinate) owned[d].push_back(i);
      }
    }
    const bool fortran = random_.chance(50);
    const Blocks blocks = grid_blocks({sizes.begin(), sizes.end()}, owned, fortran, inner.extent);
    const int order = fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
    MPI_Datatype handle;
    const std::string text = "darray " + std::to_string(n);
#if MPI_VERSION >= 4
    if (random_.chance(30)) {
      const std::vector<MPI_Count> c_sizes(sizes.begin(), sizes.end());
      MPI_Type_create_darray_c(processes, rank, static_cast<int>(n), c_sizes.data(), kinds.data(), arguments.data(),
                               grid.data(), order, inner.handle, &handle);
      return finish(handle, text + "_c", inner, blocks);
    }
#endif
    MPI_Type_create_darray(processes, rank, static_cast<int>(n), sizes.data(), kinds.data(), arguments.data(),
                           grid.data(), order, inner.handle, &handle);
    return finish(handle, text, inner, blocks);
  }

  Random& random_;
  const Unit& unit_;
};

}  // namespace model
