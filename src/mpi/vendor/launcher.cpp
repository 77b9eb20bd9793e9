// SPDX-License-Identifier: BSD-3-Clause
// What launchers tell their processes by environment variables.
#include <cstdlib>
#include <cstring>

#include "mpi/vendor/vendor.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi::vendor {
namespace {

// The variable's number. -1 if it is not set, is no number, or is less than `least`.
long number(const char* name, long least) {
  const char* const text = name != nullptr ? std::getenv(name) : nullptr;
  if (text == nullptr || *text == 0) return -1;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  return *end == 0 && value >= least ? value : -1;
}

// The number of the first variable that has one of at least `least`, -1 if none has.
template <std::size_t n>
long first_number(const char* const (&names)[n], long least) {
  for (const char* name : names) {
    const long value = number(name, least);
    if (value >= 0) return value;
  }
  return -1;
}

// Launchers: Open MPI's mpirun and prterun, Hydra (MPICH, Intel), Slurm, PALS and ALPS (Cray),
// Flux, and PMIx servers.
constexpr const char* kRank[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",    "PMIX_RANK",     "SLURM_PROCID",
                                 "PALS_RANKID",          "ALPS_APP_PE", "FLUX_TASK_RANK"};
// SLURM_TASKS_PER_NODE is a list over nodes ("4(x2)"). SLURM_NTASKS_PER_NODE says only what
// the user has asked for.
constexpr const char* kRanksOnNode[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PALS_LOCAL_SIZE",
                                        "SLURM_NTASKS_PER_NODE"};

// A launcher by the variables that it sets.
struct Launcher {
  const char *rank, *size, *local_rank, *local_size;
  // The values of these variables name the job: all its ranks on a node have the same. Either the
  // first of them must be set, or `descriptor`.
  const char* job[6];
  const char* descriptor;  // its value is the number of a socket that these ranks have inherited
  bool slurm;
};
// Hydra gives ranks its control socket (MPICH) or a number of the job (Intel). Slurm comes last,
// because it may start the other launchers.
constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "PMIX_SERVER_URI2", "PMIX_SERVER_URI3", "PMIX_SERVER_URI41", "PMIX_HOSTNAME"},
     nullptr,
     false},
    {"PMI_RANK",
     "PMI_SIZE",
     "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS",
     {"I_MPI_HYDRA_UUID", "HYDRA_BSTRAP_PGID", "HYDRA_BSTRAP_PROXY_ID", "HYDRA_BSTRAP_NODE_ID", "PMI_SIZE",
      "PMI_SPAWNED"},
     "HYDI_CONTROL_FD",
     false},
    {"SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     "SLURM_LOCALID",
     nullptr,
     {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_NODEID", "SLURMD_NODENAME"},
     nullptr,
     true},
};

void mix(std::uint64_t& hash, const void* data, std::size_t bytes) {
  const auto* const byte = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ byte[i]) * 0x100000001b3u;  // FNV-1a
}

// A number of the job, 0 if it is unknown. The user is part of it, because the jobs of two
// users may have equal names.
std::uint64_t job_id(const Launcher& launcher) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const std::uint64_t user = sys::user_id();
  mix(hash, &user, sizeof user);
  const long descriptor = number(launcher.descriptor, 0);
  sys::FileId socket;
  if (descriptor >= 0) socket = sys::file_id(static_cast<int>(descriptor));
  const char* const first = std::getenv(launcher.job[0]);
  if ((first == nullptr || *first == 0) && socket.inode == 0) return 0;
  mix(hash, &socket.device, sizeof socket.device);
  mix(hash, &socket.inode, sizeof socket.inode);
  for (const char* name : launcher.job) {
    const char* const value = name != nullptr ? std::getenv(name) : nullptr;
    if (value != nullptr) mix(hash, value, std::strlen(value) + 1);
  }
  return hash != 0 ? hash : 1;
}

// The number of tasks on this node, by Slurm's list over nodes, "4(x2),3". It is 0 if unknown:
// parts of a heterogeneous step have lists of their own.
unsigned slurm_tasks_here() {
  const char* at = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  long node = number("SLURM_NODEID", 0);
  if (at == nullptr || node < 0 || std::getenv("SLURM_HET_SIZE") != nullptr) return 0;
  for (;;) {
    char* end = nullptr;
    const long tasks = std::strtol(at, &end, 10);
    if (end == at || tasks <= 0) return 0;
    long nodes = 1;
    if (std::strncmp(end, "(x", 2) == 0) nodes = std::strtol(end + 2, &end, 10);
    if (node < nodes) return static_cast<unsigned>(tasks);
    node -= nodes;
    at = std::strchr(end, ',');
    if (at == nullptr || nodes <= 0) return 0;
    ++at;
  }
}

}  // namespace

Launched launched() {
  Launched first;
  for (const Launcher& launcher : kLaunchers) {
    const long rank = number(launcher.rank, 0), size = number(launcher.size, 1);
    if (rank < 0 || size < 0) continue;
    Launched is{.rank = static_cast<int>(rank), .size = static_cast<int>(size), .slurm = launcher.slurm};
    const long slot = number(launcher.local_rank, 0);
    const long slots = launcher.slurm ? slurm_tasks_here() : number(launcher.local_size, 1);
    if (slot >= 0 && slot < slots) {
      is.job = job_id(launcher);
      is.slot = static_cast<unsigned>(slot);
      is.slots = static_cast<unsigned>(slots);
    }
    if (is.job != 0) return is;  // this launcher tells all
    if (first.size == 0) first = is;
  }
  return first;
}

int launcher_rank() { return static_cast<int>(first_number(kRank, 0)); }

unsigned launcher_ranks_on_node() {
  const long ranks = first_number(kRanksOnNode, 1);
  return ranks > 0 ? static_cast<unsigned>(ranks) : 0;
}

}  // namespace stretto::mpi::vendor
