// SPDX-License-Identifier: BSD-3-Clause
// Staging: data that the engine cannot or must not touch itself go through packed bytes that the host's MPI_Pack and
// MPI_Unpack read and write: types of too many runs, and memory of a CUDA or HIP device. A local matter: peers see the
// same bytes, so every rank decides for itself.
//
//   Staged staged;
//   if (must_stage(*layout, buffer)) code = stage(staged, region, type, comm, Staged::write);
//   ... the engine works on `region`, which now names packed bytes ...
//   code = unstage(staged);
//
// A written region is packed before the call too: what a call leaves alone (over-declared counts) stays as it was.
#pragma once
#include <mpi.h>

#include <atomic>

#include "base/region.hpp"
#include "mpi/datatype.hpp"

namespace stretto::mpi {

// Memory that was seen to be the host's, in 2 MiB chunks (the drivers reserve address space in such chunks or larger).
// Without drivers it spares most calls the question whether one has been loaded.
class HostChunks {
 public:
  [[nodiscard]] bool have(const void* buffer) const {
    const std::uintptr_t chunk = chunk_of(buffer);
    return slots_[slot_of(chunk)].load(std::memory_order_relaxed) == chunk;  // also the null buffer
  }
  void add(const void* buffer) { slots_[slot_of(chunk_of(buffer))].store(chunk_of(buffer), std::memory_order_relaxed); }

 private:
  static constexpr unsigned kChunkShift = 21;
  static constexpr std::size_t kSlots = 256;
  static std::uintptr_t chunk_of(const void* buffer) { return reinterpret_cast<std::uintptr_t>(buffer) >> kChunkShift; }
  static std::size_t slot_of(std::uintptr_t chunk) { return (chunk ^ (chunk >> 8)) % kSlots; }

  std::atomic<std::uintptr_t> slots_[kSlots] = {};
};
extern constinit HostChunks g_host_chunks;

// Whether `buffer` is memory of a device. Asks the driver only if its library is in the process already.
[[gnu::cold]] bool ask_for_device(const void* buffer);
inline bool is_device_memory(const void* buffer) { return !g_host_chunks.have(buffer) && ask_for_device(buffer); }

inline bool must_stage(const Layout& layout, const void* buffer) {
  if (layout.size == 0) return false;
  return layout_is_opaque(layout) || is_device_memory(buffer);
}

// One staged buffer of one call. Must stay where it is between stage and unstage: the region points into it.
struct Staged {
  enum Direction { read, write };
  char* packed = nullptr;  // null: nothing is staged
  std::int64_t* displs = nullptr;
  Layout layout{};
  Run run{};
  Blocks origin{};  // the user's blocks; a plain region is block 0 of one
  int blocks = 0;
  Direction direction = read;
  MPI_Datatype type{};
  MPI_Comm comm{};
};

// Packs the user's data and makes `region` (or each block of `blocks`, for ranks 0 to ranks - 1) name packed bytes.
// Returns MPI_SUCCESS or an error code of the host's; on failure nothing is staged and nothing is changed.
int stage(Staged& staged, Region& region, MPI_Datatype type, MPI_Comm comm, Staged::Direction direction);
int stage(Staged& staged, Blocks& blocks, int ranks, MPI_Datatype type, MPI_Comm comm, Staged::Direction direction);
// Unpacks what was written and gives the memory back. Harmless when nothing is staged.
int unstage(Staged& staged);

}  // namespace stretto::mpi
