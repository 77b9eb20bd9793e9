// SPDX-License-Identifier: BSD-3-Clause
// What was measured between two hosts, in a file of the user's: later jobs there choose alike, also
// under another load. A file holds for a day, for one version of the MPI and of Stretto, and for
// one choice of networks. Without a place to write, each job measures.
//
// Files of hosts may differ. So one member reads, and tells the others.
#pragma once
#include <cstdint>

namespace stretto::mpi {

struct KeptTimes {
  std::uint64_t ours_ns = 0, host_ns = 0;
};

// `what` was measured between these ranks of the job. Returns false if no file says it.
bool kept_times_read(const char* what, int one, int other, KeptTimes* times);
void kept_times_write(const char* what, int one, int other, const KeptTimes& times);

}  // namespace stretto::mpi
