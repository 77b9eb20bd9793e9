/* SPDX-License-Identifier: BSD-3-Clause
 * How much of its stack a thread needs for its first collectives, without and with derived types,
 * over 2 or more ranks.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK = 1 << 20, MOST = 60000 };
static int rank, size, wrong;

static void try_lengths(MPI_Comm comm) {
  static const int lengths[] = {1, 100, 1000, MOST};
  double* const in = malloc(sizeof(double) * 2 * MOST);
  double* const out = malloc(sizeof(double) * 2 * MOST * (size_t)size);
  MPI_Datatype strided;
  MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &strided);
  MPI_Type_commit(&strided);
  for (int l = 0; l < 4; l++) {
    const int n = lengths[l];
    for (int i = 0; i < 2 * MOST; i++) in[i] = rank + i % 7;
    MPI_Barrier(comm);
    MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, comm);
    if (out[n - 1] != size * (size - 1) / 2.0 + size * ((n - 1) % 7)) wrong++;
    MPI_Allgather(in, n, MPI_DOUBLE, out, n, MPI_DOUBLE, comm);
    for (int r = 0; r < size; r++) wrong += out[(size_t)(r + 1) * n - 1] != r + (n - 1) % 7;
    MPI_Bcast(in, n / 2, strided, 0, comm);
    MPI_Reduce(in, out, n, MPI_DOUBLE, MPI_MAX, size - 1, comm);
    MPI_Alltoall(in, n / size, MPI_DOUBLE, out, n / size, MPI_DOUBLE, comm);
    MPI_Allreduce(MPI_IN_PLACE, in, n, MPI_DOUBLE, MPI_MIN, comm);
  }
  MPI_Type_free(&strided);
  free(in);
  free(out);
}

static void* use(void* unused) {
  (void)unused;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  try_lengths(comm);
  MPI_Comm_free(&comm);
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  unsigned char* const stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(stack, 0xa5, STACK);
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, STACK);
  pthread_create(&thread, &attributes, use, NULL);
  pthread_join(thread, NULL);
  int used = STACK;
  while (used > 0 && stack[STACK - used] == 0xa5) used--;
  int most = 0, all_wrong = 0;
  MPI_Reduce(&used, &most, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("RESULT {\"bytes\": %d, \"wrong\": %d}\n", most, all_wrong);
  MPI_Finalize();
  return 0;
}
