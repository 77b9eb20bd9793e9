// SPDX-License-Identifier: BSD-3-Clause
// What the definitions of an OTF2 archive say of an MPI job.
#pragma once
#include <otf2/otf2.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace stretto::modelling {

inline constexpr const char* kOtf2Creator = "Stretto";  // of the archives that we write

struct Otf2Region {
  std::string name;   // of an MPI function without brackets, as TAU writes them
  std::string place;  // "solve.c:33 in step", or its name alone
  bool is_mpi = false;
};

struct Otf2Comm {
  std::vector<std::uint64_t> members, remote;  // ranks in MPI_COMM_WORLD
  bool is_self = false;                        // each rank's own
  bool is_inter = false;
  bool names_world = false;  // its events name peers by their ranks in MPI_COMM_WORLD
};

struct Otf2Rank {
  OTF2_LocationRef location = 0;
  std::string host;
};

struct Otf2Job {
  std::string creator, program;
  bool sums_lengths = false;                // of collectives: those of all blocks (otf2_collectives.hpp)
  std::uint64_t resolution = 0, begin = 0;  // ticks a second; the first tick
  std::uint64_t real_ns = 0;                // the real-time clock then; 0: unknown
  std::vector<Otf2Rank> ranks;
  std::vector<OTF2_LocationRef> beside;  // threads and devices
  std::unordered_map<OTF2_RegionRef, Otf2Region> regions;
  std::unordered_map<OTF2_CommRef, Otf2Comm> comms;
  OTF2_CommRef world = OTF2_UNDEFINED_COMM;  // MPI_COMM_WORLD, if it is there
};

// Ends the program if definitions are damaged, or the archive is of no MPI program.
Otf2Job read_otf2_job(OTF2_Reader* reader, const std::string& name);

}  // namespace stretto::modelling
