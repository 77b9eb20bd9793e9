// SPDX-License-Identifier: BSD-3-Clause
// Finds the host MPI in a running process.
#pragma once
#include <cstdint>

namespace stretto::mpi {

// An object of the link map that is an MPI library.
struct HostLibrary {
  void* handle = nullptr;     // of dlopen; null if no loaded object has PMPI_ functions
  std::uintptr_t base = 0;    // load address, as dladdr reports it
  bool standard_abi = false;  // libmpi_abi: handles of MPI 5's standard ABI
  bool is_program = false;    // the program itself, linked statically to an MPI
};

// A path without its directory.
const char* base_name(const char* path);
// libmpi.so.12, libmpich.so.12, libmpi_cray.so.12, libmpi_gnu_91.so and others. The libraries of
// language bindings match too.
bool looks_like_mpi(const char* name);

// The MPI that a call from `caller` would reach without Stretto. It is looked for in this order:
//   1. in the global scope,
//   2. in the scope of the caller's object (Python loads libmpi locally),
//   3. by file name anywhere in the link map, unless 1 or 2 have an MPI_Init without PMPI_ names.
HostLibrary find_host(const void* caller);

// Whether the process has another MPI library as well, by file name. One that wraps it would call
// Stretto with the handles of that other library.
bool has_other_mpi(const HostLibrary& host);

// The function that `name` would mean to `caller` without Stretto, in scopes 1 and 2. Null if none.
void* next_definition(const char* name, const void* caller);

// The load address of the object that contains `address`, 0 if none. `*name` becomes the object's
// name without directory.
std::uintptr_t object_of(const void* address, const char** name);

// Whether the object that contains `address` is an MPI library, be it the host or another one.
bool is_in_mpi_library(const void* address);

}  // namespace stretto::mpi
