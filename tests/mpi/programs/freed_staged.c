// SPDX-License-Identifier: BSD-3-Clause
// Calls with requests whose data the MPI packs and unpacks, because the type has more runs than the
// library keeps. Their communicator is freed before the wait, and before the starts of a persistent
// request.
//   freed_staged nonblocking|persistent
// RESULT {"rank": 0, "bad": 0, "told": 0}
#include "robust.h"

enum { RUNS = (1 << 22) + 3, kStarts = 3 };  // src/mpi/datatype.hpp: kRunLimit is 1 << 22

static unsigned char* memory;
static int bad, told, told_of;

static void hear(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  told++;
  MPI_Error_class(*code, &told_of);
}

static void prepare(uint64_t seed) {
  memset(memory, 0xee, 2 * (size_t)RUNS);
  for (size_t i = 0; i < RUNS && world_rank == 0; i++) memory[2 * i] = pattern(seed, i);
}

static void check(int code, uint64_t seed) {
  CHECK(code == MPI_SUCCESS, "code %d", code);
  for (size_t i = 0; i < RUNS; i++) bad += memory[2 * i] != pattern(seed, i);
}

// The root comes late, so that nobody has the data before the communicator is freed.
static void nonblocking(MPI_Comm comm, MPI_Datatype* type) {
  MPI_Request request;
  prepare(1);
  if (world_rank == 0) sleep_ms(200);
  MPI_Ibcast(memory, 1, *type, 0, comm, &request);
  MPI_Comm_free(&comm);
  MPI_Type_free(type);
  check(MPI_Wait(&request, MPI_STATUS_IGNORE), 1);
}

#if MPI_VERSION >= 4
static void persistent(MPI_Comm comm, MPI_Datatype* type) {
  MPI_Request request;
  MPI_Bcast_init(memory, 1, *type, 0, comm, MPI_INFO_NULL, &request);
  MPI_Comm_free(&comm);
  MPI_Type_free(type);
  for (uint64_t k = 0; k < kStarts; k++) {
    prepare(k);
    CHECK(MPI_Start(&request) == MPI_SUCCESS, "start");
    if (k == 0) {
      const int code = MPI_Start(&request);  // it is active
      CHECK(code != MPI_SUCCESS && told == 1 && told_of == MPI_ERR_REQUEST, "told %d of %d", told, told_of);
    }
    check(MPI_Wait(&request, MPI_STATUS_IGNORE), k);
  }
  MPI_Request_free(&request);
}
#else
static void persistent(MPI_Comm comm, MPI_Datatype* type) { (void)comm, (void)type; }
#endif

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, handler);         // an MPI may keep a communicator as long as a request needs it
  for (int i = 0; i < 5; i++) MPI_Barrier(comm);  // the members agree
  MPI_Datatype type;
  MPI_Type_vector(RUNS, 1, 2, MPI_CHAR, &type);
  MPI_Type_commit(&type);
  memory = malloc(2 * (size_t)RUNS);
  if (argc > 1 && !strcmp(argv[1], "persistent"))
    persistent(comm, &type);
  else
    nonblocking(comm, &type);
  printf("RESULT {\"rank\": %d, \"bad\": %d, \"told\": %d}\n", world_rank, bad, told);
  free(memory);
  MPI_Finalize();
  return 0;
}
