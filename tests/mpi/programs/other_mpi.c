/* SPDX-License-Identifier: BSD-3-Clause */
#include "other_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A handle that is not one of this library's ends the program, as it does elsewhere. */
static void must_be(int is_right, const char* function) {
  if (is_right) return;
  fprintf(stderr, "%s got a handle of another MPI\n", function);
  abort();
}

#if defined(OTHER_NUMBERS) || defined(OTHER_POINTERS)
#define NAME(name) PMPI_##name
#define ALSO_MPI(result, name, arguments) __attribute__((weak, alias("PMPI_" #name))) result MPI_##name arguments;
#else
#define NAME(name) MPI_##name
#define ALSO_MPI(result, name, arguments)
#endif

int NAME(Init)(int* argc, char*** argv) { return (void)argc, (void)argv, 0; }
ALSO_MPI(int, Init, (int* argc, char*** argv))
int NAME(Finalize)(void) { return 0; }
ALSO_MPI(int, Finalize, (void))
int NAME(Comm_rank)(MPI_Comm comm, int* rank) {
  must_be(comm == MPI_COMM_WORLD, "MPI_Comm_rank");
  *rank = 0;
  return 0;
}
ALSO_MPI(int, Comm_rank, (MPI_Comm comm, int* rank))
int NAME(Comm_size)(MPI_Comm comm, int* size) {
  must_be(comm == MPI_COMM_WORLD, "MPI_Comm_size");
  *size = 1;
  return 0;
}
ALSO_MPI(int, Comm_size, (MPI_Comm comm, int* size))
int NAME(Barrier)(MPI_Comm comm) { return must_be(comm == MPI_COMM_WORLD, "MPI_Barrier"), 0; }
ALSO_MPI(int, Barrier, (MPI_Comm comm))
int NAME(Bcast)(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  must_be(comm == MPI_COMM_WORLD && type == MPI_INT, "MPI_Bcast");
  return (void)buffer, (void)count, root;
}
ALSO_MPI(int, Bcast, (void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm))
int NAME(Allreduce)(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  must_be(comm == MPI_COMM_WORLD && type == MPI_INT && op == MPI_SUM, "MPI_Allreduce");
  memcpy(receive, send, (size_t)count * sizeof(int));
  return 0;
}
ALSO_MPI(int, Allreduce, (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm))

#if defined(OTHER_NUMBERS) || defined(OTHER_POINTERS)
int PMPI_Get_library_version(char* version, int* length) {
#ifdef OTHER_POINTERS
  strcpy(version, "MPIwrapper 2.11.1, using MPIABI 2.9.0, wrapping:\nMPICH Version:\t4.0.2");
#else
  strcpy(version, "MPICH Version:\t0.1, so it says");
#endif
  *length = (int)strlen(version);
  return 0;
}
int PMPI_Info_create(MPI_Info* info) {
  *info = OTHER_HANDLE(99);
  return 0;
}
int PMPI_Info_free(MPI_Info* info) {
  must_be(*info == OTHER_HANDLE(99), "MPI_Info_free");
  *info = MPI_INFO_NULL;
  return 0;
}
int PMPI_Initialized(int* flag) {
  *flag = 1;
  return 0;
}
/* Everything else that is looked for (REST: a list of UNUSED(name)) is there, and must not be
 * called.
 */
#define UNUSED(name) \
  int PMPI_##name(void) { return must_be(0, "PMPI_" #name), 1; }
REST
#endif
