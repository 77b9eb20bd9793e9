// SPDX-License-Identifier: BSD-3-Clause
// Finding the host MPI in a running process.
#pragma once
#include <cstdint>

namespace stretto::mpi {

// An object of the link map that is an MPI library.
struct HostLibrary {
  void* handle = nullptr;     // of dlopen, null: none is loaded that has PMPI_ functions
  std::uintptr_t base = 0;    // load address, as dladdr reports it
  bool standard_abi = false;  // libmpi_abi: handles of the MPI 5 ABI, which is not ours
  bool is_program = false;    // the program itself, to which an MPI was linked statically
};

// The MPI that a call from `caller` would reach without us: in the global scope, or in the scope of the caller's object
// (Python loads libmpi locally); or an MPI library of a known name anywhere in the link map, unless next_definition()
// knows better.
HostLibrary find_host(const void* caller);

// What `name` would mean to `caller` without us, in the same scopes; null: nothing.
void* next_definition(const char* name, const void* caller);

// Load address of the object that `address` lies in, 0 if none; `*name` becomes its name without directory.
std::uintptr_t object_of(const void* address, const char** name);

// Whether the object that `address` lies in is an MPI library itself (one that was not chosen, or the host).
bool is_in_mpi_library(const void* address);

}  // namespace stretto::mpi
