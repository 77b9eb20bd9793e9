// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/data/staging.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <climits>
#include <cstdlib>

#include "mpi/host/host.hpp"

namespace stretto::mpi {
namespace {

// ---- Device memory ----

// The few parts of the drivers' interfaces that Stretto needs, with their documented numbers.
using CudaPointerGetAttribute = int (*)(void* data, int attribute, std::uintptr_t pointer);
constexpr int kCudaMemoryType = 2;         // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr unsigned kCudaMemoryDevice = 2;  // CU_MEMORYTYPE_DEVICE

// The part of hipPointerAttribute_t that is the same in all releases. The numbers of memory types
// differ, so Stretto reads none of them.
struct HipPointerAttributes {
  int type;
  int device;
  void* device_pointer;
  void* host_pointer;
  char later_fields[64];
};
using HipPointerGetAttributes = int (*)(HipPointerAttributes* attributes, const void* pointer);

constinit std::atomic<CudaPointerGetAttribute> g_cuda{nullptr};
constinit std::atomic<HipPointerGetAttributes> g_hip{nullptr};
constinit std::atomic<unsigned long long> g_objects_loaded{0};  // the loader's count at our last look

void* find_loaded(const char* const* libraries, const char* symbol) {
  for (; *libraries; ++libraries) {
    if (void* library = dlopen(*libraries, RTLD_LAZY | RTLD_NOLOAD)) return dlsym(library, symbol);
  }
  return nullptr;
}

// Looks for drivers again if objects have been loaded since the last look.
void look_for_drivers() {
  unsigned long long loaded = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* count) {
        *static_cast<unsigned long long*>(count) = info->dlpi_adds;
        return 1;
      },
      &loaded);
  if (loaded == g_objects_loaded.load(std::memory_order_relaxed)) return;
  static constexpr const char* kCuda[] = {"libcuda.so.1", "libcuda.so", nullptr};
  static constexpr const char* kHip[] = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                         nullptr};
  g_cuda.store(reinterpret_cast<CudaPointerGetAttribute>(find_loaded(kCuda, "cuPointerGetAttribute")));
  g_hip.store(reinterpret_cast<HipPointerGetAttributes>(find_loaded(kHip, "hipPointerGetAttributes")));
  g_objects_loaded.store(loaded, std::memory_order_relaxed);
}

bool drivers_say_device(const void* pointer) {
  if (const auto cuda = g_cuda.load(std::memory_order_relaxed)) {
    unsigned type = 0;
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    if (cuda(&type, kCudaMemoryType, address) == 0 && type == kCudaMemoryDevice) return true;
  }
  if (const auto hip = g_hip.load(std::memory_order_relaxed)) {
    HipPointerAttributes attributes{};
    if (hip(&attributes, pointer) == 0 && attributes.device_pointer && !attributes.host_pointer) return true;
  }
  return false;
}

// ---- Packing ----

// The elements of one call of the host have at most 1 GiB, so that int counts and positions fit.
// One element may have more.
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 30;

std::uint64_t piece_elements(const Layout& layout) {
  const std::uint64_t elements = kPieceBytes / layout.size;
  return elements == 0 ? 1 : elements;
}

int pack_piece(const Staged& staged, MPI_Comm comm, char* user, std::uint64_t elements, std::uint64_t bytes,
               char* packed) {
  if (bytes > INT_MAX) {
#if STRETTO_LARGE_COUNT
    MPI_Count position = 0;
    if (!host().Pack_c) return MPI_ERR_COUNT;
    return host().Pack_c(user, static_cast<MPI_Count>(elements), staged.type, packed, static_cast<MPI_Count>(bytes),
                         &position, comm);
#else
    return MPI_ERR_COUNT;  // such types are never opaque (run_limit), but this host cannot pack device memory of them
#endif
  }
  int position = 0;
  return host().Pack(user, static_cast<int>(elements), staged.type, packed, static_cast<int>(bytes), &position, comm);
}

int unpack_piece(const Staged& staged, MPI_Comm comm, char* user, std::uint64_t elements, std::uint64_t bytes,
                 char* packed) {
  if (bytes > INT_MAX) {
#if STRETTO_LARGE_COUNT
    MPI_Count position = 0;
    if (!host().Unpack_c) return MPI_ERR_COUNT;
    return host().Unpack_c(packed, static_cast<MPI_Count>(bytes), &position, user, static_cast<MPI_Count>(elements),
                           staged.type, comm);
#else
    return MPI_ERR_COUNT;
#endif
  }
  int position = 0;
  return host().Unpack(packed, static_cast<int>(bytes), &position, user, static_cast<int>(elements), staged.type, comm);
}

using PieceMover = int (*)(const Staged&, MPI_Comm comm, char* user, std::uint64_t elements, std::uint64_t bytes,
                           char* packed);

// Moves every block between the program's memory and the packed bytes.
int move_blocks(const Staged& staged, PieceMover mover) {
  const MPI_Comm comm = communicator_to_pack(staged.comm, staged.serial);
  char* packed = staged.packed;
  for (int rank = 0; rank < staged.blocks; ++rank) {
    const Region block = staged.origin.at(rank);
    const Layout& layout = *block.layout;
    if (block.bytes() == 0) continue;
    const std::uint64_t step = piece_elements(layout);
    for (std::uint64_t done = 0; done < block.count; done += step) {
      const std::uint64_t elements = block.count - done < step ? block.count - done : step;
      const std::uint64_t bytes = elements * layout.size;
      char* user = address_at(block.base, static_cast<std::ptrdiff_t>(done) * layout.extent);
      const int code = mover(staged, comm, user, elements, bytes, packed);
      if (code != MPI_SUCCESS) return code;
      packed += bytes;
    }
  }
  return MPI_SUCCESS;
}

void discard(Staged& staged) {
  std::free(staged.packed);
  std::free(staged.displs);
  staged.packed = nullptr;
  staged.displs = nullptr;
}

// Packs the data and describes one packed element. The caller has set `staged.origin`,
// `blocks` and `displs`.
int fetch(Staged& staged, MPI_Datatype type, const State& state, Staged::Direction direction,
          std::uint64_t total_bytes) {
  staged.type = type;
  staged.comm = state.handle;
  staged.serial = state.serial;
  staged.direction = direction;
  staged.packed = static_cast<char*>(std::malloc(total_bytes ? total_bytes : 1));
  int code = staged.packed ? move_blocks(staged, pack_piece) : MPI_ERR_NO_MEM;
  if (code != MPI_SUCCESS) {
    discard(staged);
    return code;
  }
  const std::size_t size = staged.origin.layout->size;
  staged.run = {0, size};
  staged.layout = {size, static_cast<std::ptrdiff_t>(size), &staged.run, size ? std::size_t{1} : 0, true};
  return MPI_SUCCESS;
}

}  // namespace

constinit HostChunks g_host_chunks;

bool ask_for_device(const void* buffer) {
  look_for_drivers();
  if (g_cuda.load(std::memory_order_relaxed) || g_hip.load(std::memory_order_relaxed))
    return drivers_say_device(buffer);
  g_host_chunks.add(buffer);
  return false;
}

int stage(Staged& staged, Region& region, MPI_Datatype type, const State& state, Staged::Direction direction) {
  staged.origin = {region.base, region.layout, region.count};
  staged.blocks = 1;
  const int code = fetch(staged, type, state, direction, region.bytes());
  if (code == MPI_SUCCESS) region = {staged.packed, region.count, &staged.layout};
  return code;
}

int stage(Staged& staged, Blocks& blocks, int ranks, MPI_Datatype type, const State& state,
          Staged::Direction direction) {
  staged.origin = blocks;
  staged.blocks = ranks;
  const bool regular = !blocks.counts;
  if (!regular) {
    const std::size_t entries = 2 * static_cast<std::size_t>(ranks) + 1;
    staged.displs = static_cast<std::int64_t*>(std::malloc(entries * sizeof(std::int64_t)));
    if (!staged.displs) return MPI_ERR_NO_MEM;
  }
  std::int64_t elements = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto count = static_cast<std::int64_t>(blocks.at(rank).count);
    if (!regular) {
      staged.displs[rank] = elements;
      staged.displs[ranks + rank] = count;
    }
    elements += count;
  }
  const int code = fetch(staged, type, state, direction, static_cast<std::uint64_t>(elements) * blocks.layout->size);
  if (code != MPI_SUCCESS) return code;
  blocks = {staged.packed, &staged.layout, blocks.count};
  if (!regular) {
    blocks.counts = staged.displs + ranks;
    blocks.displs = staged.displs;
    blocks.wide = true;
  }
  return MPI_SUCCESS;
}

int unstage(Staged& staged) {
  if (!staged.packed) return MPI_SUCCESS;
  const int code = staged.direction == Staged::write ? move_blocks(staged, unpack_piece) : MPI_SUCCESS;
  discard(staged);
  return code;
}

}  // namespace stretto::mpi
