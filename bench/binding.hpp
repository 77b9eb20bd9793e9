// SPDX-License-Identifier: BSD-3-Clause
// Binds ranks to processors before MPI_Init, so that MPIs with different launchers run on the same
// processors, and know it. The ranks' launcher must not bind them itself.
#pragma once
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {

inline constexpr const char* kBindOption = "--cpus";

// The rank that a launcher gives a process; -1: it tells none.
inline int rank_before_init() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  return -1;
}

// `--cpus 0,4,8` means: rank 0 on processor 0, rank 1 on 4, rank 2 on 8.
inline void bind_as_asked(int argc, char** argv) {
  const char* at = nullptr;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], kBindOption) == 0) at = argv[i + 1];
  }
  const int rank = rank_before_init();
  if (!at || rank < 0) return;
  for (int i = 0; i < rank && at; ++i) at = std::strchr(at, ',') ? std::strchr(at, ',') + 1 : nullptr;
  if (!at) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(std::atoi(at), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) std::perror("collectives: cannot bind a rank");
}

}  // namespace bench
