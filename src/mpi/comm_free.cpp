// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/comm_free.hpp"

#include "mpi/comm/communicator.hpp"
#include "mpi/state/freeing.hpp"
#include "mpi/waits/noted.hpp"

namespace stretto::mpi {
namespace {

int freed(Entry entry, void* comm) {
  const auto host_function = reinterpret_cast<int (*)(void*)>(host_entry(entry));
  if (comm == nullptr) return host_function(comm);
  const MPI_Comm handle = *static_cast<const MPI_Comm*>(comm);
  const Freeing freeing(handle);
  communicator_being_freed(handle);
  const int code = host_function(comm);
  noted_comm_freed();
  return code;
}

}  // namespace

int comm_free(void* comm) { return freed(Entry::comm_free, comm); }
int comm_disconnect(void* comm) { return freed(Entry::comm_disconnect, comm); }

}  // namespace stretto::mpi
