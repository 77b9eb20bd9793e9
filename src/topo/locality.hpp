// SPDX-License-Identifier: BSD-3-Clause
// A locality says where one process of a job is. Each process tells it to the others once. The
// placement of the job follows from all localities. Each process tells only what it knows about
// itself, so files and machines may differ: all ranks compute from the same table.
#pragma once
#include <cstdint>

#include "sys/sys.hpp"
#include "topo/network.hpp"
#include "topo/placement.hpp"

namespace stretto::topo {

// All levels, lowest first: those of the machine, the machine itself, switches.
inline constexpr const char* kLocalityLevels[] = {"core",    "l2",      "l3",      "numa",    "socket",
                                                  "node",    "leaf",    "switch2", "switch3", "switch4",
                                                  "switch5", "switch6", "switch7", "switch8"};
inline constexpr int kLocalityLevelCount = static_cast<int>(sizeof kLocalityLevels / sizeof *kLocalityLevels);
inline constexpr int kNodeLevel = 5;
static_assert(kLocalityLevelCount <= kMostLevels);
// -1: no level has this name.
int locality_level(const char* name, std::size_t length);

struct Locality {
  // The domain on every level; 0: in none, or unknown. Domains of different parents may have the
  // same number.
  std::uint64_t domains[kLocalityLevelCount] = {};
  sys::NicPlace nics;
};

// The locality of a process on `host` (sys::host_id), which has the name `host_name`, and whose
// processors are at `place`. `network` is null if none is known.
Locality find_locality(const sys::CpuPlace& place, std::uint64_t host, const char* host_name, const Network* network);

// What is known of each rank of a job.
struct Localities {
  void* context = nullptr;
  std::uint64_t (*domain)(void* context, int rank, int level) = nullptr;
  sys::NicPlace (*nics)(void* context, int rank) = nullptr;
};

// What a job's placements have: the levels on which its ranks are in different domains (bits), and
// network cards if one rank knows some.
struct Known {
  std::uint32_t levels = 0;
  bool cards = false;
};
Known known_of(int ranks, const Localities& localities);

// The placement of `count` ranks of a job: of `members`, in this order, or of the first ones where
// this is null. False: no memory.
bool place(Placement* placement, const Localities& localities, const Known& known, const int* members, int count);

}  // namespace stretto::topo
