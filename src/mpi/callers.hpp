// SPDX-License-Identifier: BSD-3-Clause
// Who calls: the program, or the MPI itself (MPI-IO, topology set-up). The address range of the calling code tells.
//
//   lasting ranges   the program, the MPI and all libraries that they need. They stay loaded, so a table is made once.
//   other ranges     libraries loaded by dlopen. Another library may take their place, so every call asks the dynamic
//   linker.
//
// Costs: two compares where a thread calls from the same lasting range again; a binary search of the table for another
// one; for a library loaded by dlopen one look-up of the dynamic linker, 15 to 30 ns. No cost depends on a library's
// symbols. No mpi.h here.
#pragma once
#include <cstdint>

namespace stretto::mpi {

// Code of one object. Zero `bytes`: the answer holds for this call alone.
struct CallerRange {
  std::uintptr_t begin;
  std::uintptr_t bytes;
  bool inside;  // of the MPI
};

// An object besides the MPI library itself whose calls are the MPI's own; `name` without directory.
using IsComponent = bool (*)(const char* name);
// _dl_find_object of glibc 2.35 and later; null: dl_iterate_phdr serves, whose time grows with the number of loaded
// objects.
using FindObject = int (*)(void* address, void* result);

// Makes the table, once, before the first caller_range(). `host`: an address in the MPI library.
void callers_start(std::uintptr_t host, IsComponent is_component, FindObject find_object);

// The range that `address` lies in. Any thread. Code in no object counts as the program's.
CallerRange caller_range(std::uintptr_t address);

}  // namespace stretto::mpi
