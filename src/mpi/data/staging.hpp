// SPDX-License-Identifier: BSD-3-Clause
// Staging: data that the engine cannot or must not touch go through packed bytes, which the host's
// MPI_Pack and MPI_Unpack make and take. These are data of types with too many runs, and memory of
// a CUDA or HIP device. Each rank decides for itself, because its peers see the same bytes.
//
//   Staged staged;
//   if (must_stage(*layout, buffer)) code = stage(staged, region, type, comm, Staged::write);
//   ... the engine works on `region`, which now names packed bytes ...
//   code = unstage(staged);
//
// A region that the call writes is packed before the call, too. So the bytes that a call leaves
// alone, because a count is larger than the message, stay as they were.
#pragma once
#include <mpi.h>

#include <atomic>

#include "base/region.hpp"
#include "mpi/data/datatype.hpp"
#include "mpi/state/state.hpp"

namespace stretto::mpi {

// Chunks of 2 MiB that are known to be memory of the processor, not of a device. Drivers
// reserve address space in such chunks or larger ones. Without a driver most calls need not ask
// whether one has been loaded.
class HostChunks {
 public:
  [[nodiscard]] bool have(const void* buffer) const {
    const std::uintptr_t chunk = chunk_of(buffer);
    return slots_[slot_of(chunk)].load(std::memory_order_relaxed) == chunk;  // true for a null buffer at first
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

// Whether `buffer` is memory of a device. Asks a driver only if the driver's library is loaded.
[[gnu::cold]] bool ask_for_device(const void* buffer);
inline bool is_device_memory(const void* buffer) { return !g_host_chunks.have(buffer) && ask_for_device(buffer); }

inline bool must_stage(const Layout& layout, const void* buffer) {
  if (layout.size == 0) return false;
  return layout_is_opaque(layout) || is_device_memory(buffer);
}

// One staged buffer of one call. It must not move between stage and unstage, because the
// region points into it.
struct Staged {
  enum Direction { read, write };
  char* packed = nullptr;  // null: nothing is staged
  std::int64_t* displs = nullptr;
  Layout layout{};
  Run run{};
  Blocks origin{};  // the program's blocks; a plain region is one block
  int blocks = 0;
  Direction direction = read;
  MPI_Datatype type{};
  MPI_Comm comm{};           // of the call
  std::uint64_t serial = 0;  // of that communicator, which may be gone when the call ends
};

// Packs the program's data and makes `region`, or the blocks of ranks 0 to ranks - 1, name
// packed bytes. Returns MPI_SUCCESS or an error code of the host. If it fails, nothing is staged
// and nothing is changed.
int stage(Staged& staged, Region& region, MPI_Datatype type, const State& state, Staged::Direction direction);
int stage(Staged& staged, Blocks& blocks, int ranks, MPI_Datatype type, const State& state,
          Staged::Direction direction);
// Unpacks what was written and frees the memory. It does nothing if nothing is staged.
int unstage(Staged& staged);

}  // namespace stretto::mpi
