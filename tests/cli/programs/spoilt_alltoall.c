/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded, it spoils one byte of what the last rank receives in Alltoall and Alltoallv of data.
 * Whole numbers of 4 bytes, which say how much data will come, stay as they are. */
#include <mpi.h>

static void spoil(void* received, int count) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == size - 1 && count > 0) ((unsigned char*)received)[6] ^= 0x40;
}

int MPI_Alltoall(const void* send, int count, MPI_Datatype type, void* receive, int receive_count,
                 MPI_Datatype receive_type, MPI_Comm comm) {
  int status = PMPI_Alltoall(send, count, type, receive, receive_count, receive_type, comm);
  if (receive_type != MPI_INT) spoil(receive, receive_count);
  return status;
}

int MPI_Alltoallv(const void* send, const int* counts, const int* starts, MPI_Datatype type, void* receive,
                  const int* receive_counts, const int* receive_starts, MPI_Datatype receive_type, MPI_Comm comm) {
  int status = PMPI_Alltoallv(send, counts, starts, type, receive, receive_counts, receive_starts, receive_type, comm);
  spoil(receive, receive_counts[0]);
  return status;
}
