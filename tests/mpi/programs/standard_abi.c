// SPDX-License-Identifier: BSD-3-Clause
// A program of the standard ABI that runs on any MPI that has it. Each rank prints a digest of all
// that it received, and how many of its calls Stretto served. It names no constant in which drafts
// of the ABI differ.
#include "robust.h"

static uint64_t digest = 14695981039346656037u;  // FNV-1a
static int calls = 0, served = 0;

static void take(const void* data, size_t bytes) {
  const unsigned char* b = data;
  for (size_t i = 0; i < bytes; i++) digest = (digest ^ b[i]) * 1099511628211u;
  calls++;
  served += path_is_ours(last_path());
}

// Not commutative: (a, b) o (c, d) = (a * c, b * c + d), modulo 2^32.
static void affine(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  const uint32_t* left = in;
  uint32_t* right = inout;
  for (int i = 0; i < *count; i++, left += 2, right += 2) {
    right[1] += left[1] * right[0];
    right[0] *= left[0];
  }
}

static int last_error = MPI_SUCCESS;
static void remember(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  MPI_Error_class(*code, &last_error);
}

enum { kMost = 30000 };
static int sent[kMost], got[8 * kMost];

static void everything(MPI_Comm comm, int count) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < count; i++) sent[i] = 1 + (i * 7 + rank * 13) % 101;
  const size_t bytes = sizeof(int) * (size_t)count;
  const int last = size - 1;
  memcpy(got, sent, bytes);
  MPI_Bcast(got, count, MPI_INT, last, comm);
  take(got, bytes);
  MPI_Gather(sent, count, MPI_INT, got, count, MPI_INT, last, comm);
  take(got, rank == last ? bytes * (size_t)size : 0);
  MPI_Scatter(got, count, MPI_INT, rank == last ? MPI_IN_PLACE : got, count, MPI_INT, last, comm);
  take(got, rank == last ? 0 : bytes);
  MPI_Allgather(sent, count, MPI_INT, got, count, MPI_INT, comm);
  take(got, bytes * (size_t)size);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, count, MPI_INT, comm);
  take(got, bytes * (size_t)size);
  MPI_Reduce(sent, got, count, MPI_INT, MPI_BXOR, 0, comm);
  take(got, rank == 0 ? bytes : 0);
  MPI_Allreduce(sent, got, count, MPI_UNSIGNED, MPI_MAX, comm);
  take(got, bytes);
  MPI_Allreduce_c(sent, got, count, MPI_INT32_T, MPI_SUM, comm);
  take(got, bytes);
  MPI_Scan(sent, got, count, MPI_INT, MPI_PROD, comm);
  take(got, bytes);
  MPI_Reduce_scatter_block(got, sent, count / size, MPI_INT, MPI_SUM, comm);
  take(sent, bytes / (size_t)size / sizeof(int) * sizeof(int));
  MPI_Allreduce(MPI_IN_PLACE, got, count / 2, MPI_2INT, MPI_MINLOC, comm);
  take(got, bytes / 2);
  MPI_Barrier(comm);
  take(got, 0);
}

static void own_operation(MPI_Comm comm, int count) {
  MPI_Datatype pair;
  MPI_Op op;
  MPI_Type_contiguous(2, MPI_UINT32_T, &pair);
  MPI_Type_commit(&pair);
  MPI_Op_create(affine, 0, &op);
  for (int i = 0; i < 2 * count; i++) sent[i] = world_rank + i % 17 + 2;
  MPI_Allreduce(sent, got, count, pair, op, comm);
  take(got, 2 * sizeof(int) * (size_t)count);
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
}

static void derived_types(MPI_Comm comm) {
  MPI_Datatype column, both;
  MPI_Type_vector(50, 1, 3, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, 4, &both);
  MPI_Type_commit(&both);
  for (int i = 0; i < 150; i++) sent[i] = got[i] = i * (world_rank + 1);
  MPI_Bcast(got, 2, both, 1, comm);
  take(got, 150 * sizeof(int));
  MPI_Scatter(sent, 1, both, got, 50, MPI_INT, 0, comm);  // Intel MPI 2021.18's Allgather has wrong results here
  take(got, 50 * sizeof(int));
  MPI_Type_free(&column);
  MPI_Type_free(&both);
}

static void errors(MPI_Comm comm) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(remember, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  int value = world_rank;
  if (world_rank == 1) MPI_Bcast(&value, -1, MPI_INT, 0, comm);
  CHECK(last_error == (world_rank == 1 ? MPI_ERR_COUNT : MPI_SUCCESS), "class %d", last_error);
  last_error = MPI_SUCCESS;
  if (world_rank == 1) MPI_Bcast(&value, 1, MPI_DATATYPE_NULL, 0, comm);
  CHECK(last_error == (world_rank == 1 ? MPI_ERR_TYPE : MPI_SUCCESS), "class %d", last_error);
  MPI_Bcast(&value, 1, MPI_INT, 0, comm);
  CHECK(value == 0, "the communicator is broken");
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  for (int count = 2 * world_size; count < kMost; count *= 13) {
    everything(MPI_COMM_WORLD, count);
    own_operation(MPI_COMM_WORLD, count / 2);
  }
  derived_types(MPI_COMM_WORLD);
  for (int round = 0; round < 20; round++) {
    MPI_Comm copy, part;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(copy, world_size > 3 ? world_rank % 2 : 0, -world_rank, &part);  // of several ranks each
    everything(part, 12);
    if (round == 0) errors(copy);
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
  }
  printf("RESULT {\"rank\": %d, \"digest\": \"%016llx\", \"calls\": %d, \"served\": %d}\n", world_rank,
         (unsigned long long)digest, calls, served);
  MPI_Finalize();
  return 0;
}
