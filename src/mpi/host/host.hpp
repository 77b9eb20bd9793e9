// SPDX-License-Identifier: BSD-3-Clause
// The host MPI as the mpi layer uses it: its PMPI_ functions by pointer and its
// handle constants by value.
//
// Stretto refers to no symbol of libmpi, for two reasons. An undefined PMPI_ name would kill a
// process without MPI. And Python loads libmpi where RTLD_NEXT does not look. So Stretto looks up
// everything once, in the object that discover.cpp has found in the link map.
//
// Open MPI's handle constants are addresses of symbols. Use `constants` or STRETTO_HANDLE, never
// MPI_COMM_WORLD, MPI_INT, MPI_COMM_NULL_COPY_FN and the like, which would be undefined references.
// Plain number constants (MPI_ERR_*, MPI_COMBINER_*, MPI_IN_PLACE, MPI_UNDEFINED) come from mpi.h.
#pragma once
#include <mpi.h>

// The files of the ABI for which this is compiled: src/mpi/vendor/<abi> is an include directory.
#include "abi.gen.hpp"
#include "handles.hpp"

namespace stretto::mpi {

// Functions that Stretto calls and that every host of the ABI has.
// clang-format off
#define STRETTO_HOST_REQUIRED(X)                                                                                       \
  X(Abort) X(Add_error_code) X(Add_error_string) X(Allgather) X(Allgatherv) X(Allreduce) X(Barrier) X(Bcast) X(Cancel) \
  X(Cart_shift) X(Cartdim_get) X(Comm_call_errhandler) X(Comm_create_keyval) X(Comm_dup) X(Comm_free)                  \
  X(Comm_free_keyval) X(Comm_get_attr) X(Comm_get_errhandler) X(Comm_get_name) X(Comm_get_parent) X(Comm_group)         \
  X(Comm_rank) X(Comm_remote_group) X(Comm_set_attr) X(Comm_set_errhandler) X(Comm_size) X(Comm_test_inter) X(Dist_graph_neighbors) \
  X(Dist_graph_neighbors_count) X(Errhandler_free) X(Error_class) X(File_get_group) X(Gather) X(Gatherv)               \
  X(Graph_neighbors) X(Graph_neighbors_count) X(Grequest_complete) X(Grequest_start) X(Group_free) X(Group_size)       \
  X(Group_translate_ranks) X(Improbe) X(Imrecv) X(Info_create) X(Info_free) X(Initialized) X(Iprobe) X(Irecv)          \
  X(Irsend) X(Isend) X(Issend) X(Op_commutative) X(Op_free) X(Pack) X(Pack_size) X(Query_thread) X(Recv) X(Recv_init)  \
  X(Reduce_local) X(Request_free) X(Request_get_status) X(Scatter) X(Start) X(Status_set_cancelled)                    \
  X(Status_set_elements) X(Test) X(Testall) X(Testany) X(Testsome) X(Topo_test) X(Type_create_keyval) X(Type_free)     \
  X(Type_free_keyval) X(Type_get_attr) X(Type_get_contents) X(Type_get_envelope) X(Type_get_extent_x)                  \
  X(Type_get_true_extent_x) X(Type_set_attr) X(Type_size_x) X(Unpack) X(Wait) X(Waitall) X(Win_get_group)              \
  X(Win_get_name) X(Win_test)
// clang-format on

// Functions of newer hosts. They are null where the host lacks them.
#if STRETTO_LARGE_COUNT
// clang-format off
#define STRETTO_HOST_OPTIONAL(X)                                      \
  X(Pack_c) X(Type_get_contents_c) X(Type_get_envelope_c) X(Unpack_c)
// clang-format on
#else
#define STRETTO_HOST_OPTIONAL(X)
#endif

struct Constants {
  MPI_Comm comm_null, comm_self, comm_world;
  MPI_Datatype datatype_null, byte, int_, packed;
  MPI_Info info_null;
  MPI_Errhandler errors_are_fatal, errors_return;
  MPI_Op op_null, min, band;
  MPI_Request request_null;
};

struct Host {
#define STRETTO_POINTER(name) decltype(&PMPI_##name) name;
  STRETTO_HOST_REQUIRED(STRETTO_POINTER)
  STRETTO_HOST_OPTIONAL(STRETTO_POINTER)
#undef STRETTO_POINTER
  Constants constants;
  void* library;  // dlopen handle of the host library, for dlsym
};

// The table. resolve() fills it before any wrapper leaves the entry (entry.cpp), so
// callers need no check.
extern constinit Host g_host;
inline const Host& host() { return g_host; }

// What the host says of its version: the first line; cut to `capacity`.
void host_version(char* text, std::size_t capacity);

// The address of a symbol in the host library, null if there is none.
void* host_symbol(const char* name);

}  // namespace stretto::mpi
