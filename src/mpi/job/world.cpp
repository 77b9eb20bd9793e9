// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/world.hpp"

#include <new>

#include "base/log.hpp"
#include "mpi/host/entry.hpp"

namespace stretto::mpi {

constinit World g_world = {};

namespace {

// Raw memory, because Options has a constructor and nothing may run before the first call.
alignas(Options) constinit unsigned char g_options[sizeof(Options)] = {};
constinit OptionsReport g_report = {};

}  // namespace

const Options& options() { return *reinterpret_cast<const Options*>(g_options); }
OptionsReport& options_report() { return g_report; }
bool options_have_error() { return g_report.errors != 0; }

const Options& options_read() {
  auto* const read = new (g_options) Options;
  (void)options_load(*read, g_report);  // the report keeps errors, and all ranks agree on them later
  return *read;
}

void options_abort(MPI_Comm comm, bool speak) {
  if (speak) {
    options_log(g_report);
    log_drain();
    host().Abort(comm, 1);
    log_end_process();
  }
  host().Barrier(comm);  // waits until the abort of the rank that speaks ends this process
}

std::uint32_t world_version() {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const char* c = STRETTO_VERSION; *c != 0; ++c) hash = (hash ^ static_cast<unsigned char>(*c)) * 16777619u;
  return hash & 0x7fffffffu;
}

bool allgather_bytes(void* communicator, const void* mine, void* all, std::size_t bytes) {
  const Inside inside;
  const MPI_Datatype byte = host().constants.byte;
  const int count = static_cast<int>(bytes);
  return host().Allgather(mine, count, byte, all, count, byte, *static_cast<MPI_Comm*>(communicator)) == MPI_SUCCESS;
}

}  // namespace stretto::mpi
