// SPDX-License-Identifier: BSD-3-Clause
// What launchers tell their processes by environment variables.
#include <cstdlib>

#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi::vendor {
namespace {

// The first of the variables that holds a number from `least` on.
template <std::size_t n>
long first_number(const char* const (&names)[n], long least) {
  for (const char* name : names) {
    const char* const text = std::getenv(name);
    if (text == nullptr || *text == 0) continue;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end != text && *end == 0 && value >= least) return value;
  }
  return -1;
}

// Open MPI's mpirun and prterun; Hydra (MPICH, Intel); Slurm; PALS and ALPS (Cray); Flux; PMIx servers.
constexpr const char* kRank[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "PALS_RANKID",
                                 "ALPS_APP_PE", "FLUX_TASK_RANK"};
// SLURM_TASKS_PER_NODE is a list over nodes ("4(x2)"), SLURM_NTASKS_PER_NODE only what was asked for.
constexpr const char* kRanksOnNode[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PALS_LOCAL_SIZE",
                                        "SLURM_NTASKS_PER_NODE"};

}  // namespace

int launcher_rank() { return static_cast<int>(first_number(kRank, 0)); }

unsigned launcher_ranks_on_node() {
  const long ranks = first_number(kRanksOnNode, 1);
  return ranks > 0 ? static_cast<unsigned>(ranks) : 0;
}

}  // namespace stretto::mpi::vendor
