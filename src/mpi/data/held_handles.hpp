// SPDX-License-Identifier: BSD-3-Clause
// Operations and datatypes of the program that Stretto needs after a call has returned. MPI lets
// the program free them. The host then frees them when Stretto needs them no more.
#pragma once
#include "mpi/host/entry.hpp"

namespace stretto::mpi {

// A handle as a wrapper gets it. 0: none.
void held_add(Handle handle);
void held_release(Handle handle);

// What the wrappers of MPI_Op_free and MPI_Type_free call: if Stretto needs the handle, it is freed
// later. False: it is the host's turn.
bool op_free_served(int* code, void* op);
bool type_free_served(int* code, void* datatype);

}  // namespace stretto::mpi
