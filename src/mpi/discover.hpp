// SPDX-License-Identifier: BSD-3-Clause
// Finding the host MPI in a running process.
#pragma once
#include <cstdint>

namespace stretto::mpi {

// An object of the link map that is an MPI library.
struct HostLibrary {
  void* handle = nullptr;       // of dlopen, null: none is loaded
  std::uintptr_t base = 0;      // load address, as dladdr reports it
  bool standard_abi = false;    // libmpi_abi: handles of the MPI 5 ABI, which is not ours
};

// Walks the link map. Python loads libmpi locally, so a search by symbol would not find it; nor would RTLD_NEXT.
HostLibrary find_host();

// Load address of the object that `address` lies in, 0 if none; `*name` becomes its name without directory.
std::uintptr_t object_of(const void* address, const char** name);

// Whether the object that `address` lies in is an MPI library itself (one that was not chosen, or the host).
bool is_in_mpi_library(const void* address);

}  // namespace stretto::mpi
