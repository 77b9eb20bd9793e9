// SPDX-License-Identifier: BSD-3-Clause
// Who calls an MPI function: the program, or the MPI itself (MPI-IO, topology set-up). The address
// range of the calling code tells.
//
//   lasting ranges   The program, the MPI and all libraries that these need. They stay loaded, so
//                    Stretto makes a table of them once.
//   other ranges     Libraries loaded by dlopen. Another library may take their place, so every
//                    call asks the dynamic linker.
//
// Cost of a call:
//   from the same lasting range as the thread's last call:  two comparisons
//   from another lasting range:                             a binary search of the table
//   from a library loaded by dlopen:                        one question to the linker, 15 to 30 ns
// No cost depends on a library's symbols. This file does not include mpi.h.
#pragma once
#include <cstdint>

namespace stretto::mpi {

// The code of one object. If `bytes` is 0, the answer is valid for this call alone.
struct CallerRange {
  std::uintptr_t begin;
  std::uintptr_t bytes;
  bool inside;  // belongs to the MPI
};

// An object that another one may replace at any time, as the dynamic linker knows it now.
struct LoadedObject {
  std::uintptr_t begin = 0, end = 0;
  std::uintptr_t base = 0;     // what the addresses in its file are relative to
  const char* name = nullptr;  // null: the address is in a lasting range, or in no object
};

// Whether calls from this object, which is not the MPI library itself, are the MPI's own.
// `name` has no directory.
using IsComponent = bool (*)(const char* name);
// _dl_find_object of glibc 2.35 and later. If it is null, Stretto uses dl_iterate_phdr, whose time
// grows with the number of loaded objects.
using FindObject = int (*)(void* address, void* result);

// Makes the table, once, before the first caller_range(). `host`: an address in the MPI library.
void callers_start(std::uintptr_t host, IsComponent is_component, FindObject find_object);

// The range that contains `address`. Any thread may ask. Code in no object counts as the program's.
// If `object` is given, it says in which object a range is that does not last.
CallerRange caller_range(std::uintptr_t address, LoadedObject* object = nullptr);

}  // namespace stretto::mpi
