// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/data/flatten.hpp"

#include "mpi/data/operations.hpp"
#include "mpi/data/type_contents.hpp"
#include "mpi/host/host.hpp"

namespace stretto::mpi {

// ---- Run lists ----

bool RunList::grow() {
  const std::size_t capacity = capacity_ ? 2 * capacity_ : 8;
  void* bigger = std::realloc(runs_, capacity * sizeof(Run));
  if (!bigger) return false;
  runs_ = static_cast<Run*>(bigger);
  capacity_ = capacity;
  return true;
}

bool RunList::append_one(std::ptrdiff_t offset, std::size_t bytes) {
  if (count_ != 0) {
    Run& last = runs_[count_ - 1];
    if (last.offset + static_cast<std::ptrdiff_t>(last.bytes) == offset) {
      last.bytes += bytes;
      return true;
    }
  }
  if (count_ == limit_ || (count_ == capacity_ && !grow())) return false;
  runs_[count_++] = {offset, bytes};
  return true;
}

bool RunList::append(std::ptrdiff_t offset, std::size_t bytes, std::uint64_t count, std::ptrdiff_t stride) {
  if (bytes == 0 || count == 0) return true;
  if (stride == static_cast<std::ptrdiff_t>(bytes)) return append_one(offset, bytes * count);
  for (std::uint64_t i = 0; i < count; ++i, offset += stride) {
    if (!append_one(offset, bytes)) return false;
  }
  return true;
}

bool RunList::append(const RunList& element, std::ptrdiff_t offset, std::uint64_t count, std::ptrdiff_t stride) {
  if (element.count_ == 0) return true;
  signature_.append(element.signature_, count);
  if (element.count_ == 1) {
    return append(offset + element.runs_[0].offset, element.runs_[0].bytes, count, stride);
  }
  for (std::uint64_t i = 0; i < count; ++i, offset += stride) {
    for (std::size_t r = 0; r < element.count_; ++r) {
      if (!append_one(offset + element.runs_[r].offset, element.runs_[r].bytes)) return false;
    }
  }
  return true;
}

namespace {

std::ptrdiff_t extent_of(MPI_Datatype type) {
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  host().Type_get_extent_x(type, &lower, &extent);
  return extent;
}

// A named type is one run. The pair types of MPI_MINLOC with a gap are two: the int follows the
// value at its own alignment, which is at the end of the true extent.
bool append_named(MPI_Datatype type, RunList& out) {
  MPI_Count size = 0;
  MPI_Count lower = 0;
  MPI_Count span = 0;
  if (host().Type_size_x(type, &size) != MPI_SUCCESS) return false;
  if (size == 0) return true;  // MPI_LB, MPI_UB
  out.sign(signature_of(type, static_cast<std::size_t>(size)));
  if (host().Type_get_true_extent_x(type, &lower, &span) != MPI_SUCCESS) return false;
  if (size >= span) return out.append(lower, static_cast<std::size_t>(size));
  const MPI_Count index_bytes = sizeof(int);
  return out.append(lower, static_cast<std::size_t>(size - index_bytes)) &&
         out.append(lower + span - index_bytes, sizeof(int));
}

// ---- Index grids: subarray and darray ----

// The indices of one dimension that belong to the type: blocks of `block` indices. The first block
// begins at `first`, the next ones `step` further each. All end at `end`.
struct Axis {
  MPI_Count size, first, block, step, end;
  [[nodiscard]] bool whole() const { return first == 0 && block >= size && end == size; }
};

struct Grid {
  Axis* axes;  // slowest dimension first
  int dimensions;
  const RunList& element;
  std::ptrdiff_t extent;
  RunList& out;

  // Joins each dimension of which all indices belong with the next slower one: a whole
  // row is one long element.
  void fold() {
    while (dimensions > 1 && axes[dimensions - 1].whole()) {
      const MPI_Count width = axes[--dimensions].size;
      Axis& axis = axes[dimensions - 1];
      axis = {axis.size * width, axis.first * width, axis.block * width, axis.step * width, axis.end * width};
    }
  }

  bool walk(int dimension, MPI_Count index) {
    const Axis& axis = axes[dimension];
    index *= axis.size;
    for (MPI_Count start = axis.first; start < axis.end; start += axis.step) {
      const MPI_Count stop = start + axis.block < axis.end ? start + axis.block : axis.end;
      if (dimension + 1 == dimensions) {
        const auto length = static_cast<std::uint64_t>(stop - start);
        if (!out.append(element, (index + start) * extent, length, extent)) return false;
        continue;
      }
      for (MPI_Count i = start; i < stop; ++i) {
        if (!walk(dimension + 1, index + i)) return false;
      }
    }
    return true;
  }
};

constexpr int kDimensionLimit = 64;

bool append_grid(Axis* axes, int dimensions, MPI_Count order, const RunList& element, std::ptrdiff_t extent,
                 RunList& out) {
  if (order == MPI_ORDER_FORTRAN) {
    for (int low = 0, high = dimensions - 1; low < high; ++low, --high) {
      const Axis axis = axes[low];
      axes[low] = axes[high];
      axes[high] = axis;
    }
  }
  Grid grid{axes, dimensions, element, extent, out};
  grid.fold();
  return grid.walk(0, 0);
}

// values: dimensions, sizes, subsizes, starts, order
bool append_subarray(const MPI_Count* values, const RunList& element, std::ptrdiff_t extent, RunList& out) {
  const int n = static_cast<int>(values[0]);
  if (n < 1 || n > kDimensionLimit) return false;
  Axis axes[kDimensionLimit];
  for (int i = 0; i < n; ++i) {
    const MPI_Count size = values[1 + i];
    const MPI_Count subsize = values[1 + n + i];
    const MPI_Count start = values[1 + 2 * n + i];
    axes[i] = {size, start, subsize, size, start + subsize};
  }
  return append_grid(axes, n, values[1 + 3 * n], element, extent, out);
}

Axis distributed_axis(MPI_Count size, MPI_Count distribution, MPI_Count argument, MPI_Count processes,
                      MPI_Count coordinate) {
  if (distribution == MPI_DISTRIBUTE_NONE || processes == 1) return {size, 0, size, size, size};
  const bool automatic = argument == MPI_DISTRIBUTE_DFLT_DARG;
  if (distribution == MPI_DISTRIBUTE_CYCLIC) {
    const MPI_Count block = automatic ? 1 : argument;
    return {size, coordinate * block, block, block * processes, size};
  }
  const MPI_Count block = automatic ? (size + processes - 1) / processes : argument;
  const MPI_Count first = coordinate * block;
  return {size, first, block, size, first + block < size ? first + block : size};
}

// values: processes, rank, dimensions, sizes, distributions, arguments, process grid, order
bool append_darray(const MPI_Count* values, const RunList& element, std::ptrdiff_t extent, RunList& out) {
  const int n = static_cast<int>(values[2]);
  if (n < 1 || n > kDimensionLimit) return false;
  MPI_Count processes = values[0];
  MPI_Count rank = values[1];
  const MPI_Count* sizes = values + 3;
  const MPI_Count* distributions = sizes + n;
  const MPI_Count* arguments = distributions + n;
  const MPI_Count* grid = arguments + n;
  Axis axes[kDimensionLimit];
  for (int i = 0; i < n; ++i) {  // ranks are numbered row by row, whatever the order of the array
    processes /= grid[i];
    axes[i] = distributed_axis(sizes[i], distributions[i], arguments[i], grid[i], rank / processes);
    rank %= processes;
  }
  return append_grid(axes, n, grid[n], element, extent, out);
}

// ---- The walk ----

// Appends the blocks of a constructor with one inner type, from the values in the standard's order.
bool append_blocks(int combiner, const MPI_Count* values, const RunList& element, std::ptrdiff_t extent, RunList& out) {
  const MPI_Count count = values[0];
  const MPI_Count* rest = values + 1;
  const auto block = [&](std::ptrdiff_t offset, MPI_Count length) {
    return length <= 0 || out.append(element, offset, static_cast<std::uint64_t>(length), extent);
  };
  bool good = true;
  switch (combiner) {
    case MPI_COMBINER_CONTIGUOUS: return block(0, count);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR: {
      const std::ptrdiff_t stride = combiner == MPI_COMBINER_VECTOR ? rest[1] * extent : rest[1];
      if (rest[0] == 1) return count <= 0 || out.append(element, 0, static_cast<std::uint64_t>(count), stride);
      if (count > 0 && rest[0] > 0 && stride == rest[0] * extent) {
        return out.append(element, 0, static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(rest[0]), extent);
      }
      for (MPI_Count i = 0; i < count && good; ++i) good = block(i * stride, rest[0]);
      return good;
    }
    case MPI_COMBINER_INDEXED:
      for (MPI_Count i = 0; i < count && good; ++i) good = block(rest[count + i] * extent, rest[i]);
      return good;
    case MPI_COMBINER_HINDEXED:
      for (MPI_Count i = 0; i < count && good; ++i) good = block(rest[count + i], rest[i]);
      return good;
    case MPI_COMBINER_INDEXED_BLOCK:
      for (MPI_Count i = 0; i < count && good; ++i) good = block(rest[1 + i] * extent, rest[0]);
      return good;
    case MPI_COMBINER_HINDEXED_BLOCK:
      for (MPI_Count i = 0; i < count && good; ++i) good = block(rest[1 + i], rest[0]);
      return good;
    case MPI_COMBINER_SUBARRAY: return append_subarray(values, element, extent, out);
    case MPI_COMBINER_DARRAY: return append_darray(values, element, extent, out);
    default: return false;
  }
}

class Walk {
 public:
  explicit Walk(bool* predefined) : predefined_(predefined) {}

  Flattened visit(MPI_Datatype type, RunList& out) {
    if (++visits_ > kVisitLimit || depth_ == kDepthLimit) return Flattened::opaque;
    const Deeper deeper(depth_);
    TypeContents contents;
    if (!contents.read(type)) return Flattened::invalid;
    if (visits_ == 1) *predefined_ = contents.named();
    if (contents.named() || contents.fortran()) return append_named(type, out) ? Flattened::ok : Flattened::opaque;
    if (contents.combiner == MPI_COMBINER_STRUCT) return visit_members(contents, out);
    if (contents.type_count != 1) return Flattened::opaque;
    return visit_inner(contents, out);
  }

 private:
  // A type that holds the same inner type several times can double the work at each level.
  static constexpr unsigned kVisitLimit = 1u << 20;
  // Each level of types within types is a call on the stack.
  static constexpr unsigned kDepthLimit = 1000;
  struct Deeper {
    explicit Deeper(unsigned& depth) : depth_(depth) { ++depth_; }
    ~Deeper() { --depth_; }
    unsigned& depth_;
  };

  Flattened visit_inner(const TypeContents& contents, RunList& out) {
    const MPI_Datatype inner = contents.types[0];
    if (contents.combiner == MPI_COMBINER_DUP || contents.combiner == MPI_COMBINER_RESIZED) return visit(inner, out);
    RunList element(out.limit());
    const Flattened how = visit(inner, element);
    if (how != Flattened::ok || element.count() == 0) return how;
    return append_blocks(contents.combiner, contents.values, element, extent_of(inner), out) ? Flattened::ok
                                                                                             : Flattened::opaque;
  }

  Flattened visit_members(const TypeContents& contents, RunList& out) {
    const MPI_Count count = contents.values[0];
    const MPI_Count* lengths = contents.values + 1;
    const MPI_Count* offsets = lengths + count;
    RunList element(out.limit());
    std::ptrdiff_t extent = 0;
    for (MPI_Count i = 0; i < count; ++i) {
      if (lengths[i] <= 0) continue;
      // The type of this member is flattened already if the member before has the same.
      if (i == 0 || contents.types[i] != contents.types[i - 1] || lengths[i - 1] <= 0) {
        element.clear();
        const Flattened how = visit(contents.types[i], element);
        if (how != Flattened::ok) return how;
        extent = extent_of(contents.types[i]);
      }
      if (!out.append(element, offsets[i], static_cast<std::uint64_t>(lengths[i]), extent)) return Flattened::opaque;
    }
    return Flattened::ok;
  }

  bool* predefined_;
  unsigned visits_ = 0;
  unsigned depth_ = 0;
};

}  // namespace

Flattened flatten(MPI_Datatype type, RunList& runs, bool* predefined) { return Walk(predefined).visit(type, runs); }

}  // namespace stretto::mpi
