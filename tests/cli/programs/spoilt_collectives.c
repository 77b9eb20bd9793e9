/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded, it spoils one byte of what the last rank receives of data in Alltoall, Alltoallv and Bcast,
 * and by Allreduce of single floating-point numbers. Whole numbers of 4 bytes, which say how much data
 * will come, stay as they are. */
#include <mpi.h>

static void spoil_byte(void* received, int count, int byte) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == size - 1 && count > 0) ((unsigned char*)received)[byte] ^= 0x40;
}

static void spoil(void* received, int count) { spoil_byte(received, count, 6); }

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  int status = PMPI_Bcast(buffer, count, type, root, comm);
  if (type == MPI_DOUBLE) spoil_byte(buffer, count, 7);
  return status;
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  int status = PMPI_Allreduce(send, receive, count, type, op, comm);
  if (type == MPI_FLOAT) spoil_byte(receive, count, 2);
  return status;
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
