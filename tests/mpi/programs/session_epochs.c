// SPDX-License-Identifier: BSD-3-Clause
// Sessions of MPI 4: two epochs, one after another.
//   session_epochs single|alone|pair|world
//     single   one epoch with one session, without MPI_Init
//     alone    two epochs, one session at a time
//     pair     two sessions at a time
//     world    two beside the world model
#include "robust.h"

static MPI_Comm from_session(MPI_Session s, const char* tag) {
  MPI_Group group;
  MPI_Comm comm;
  CHECK(MPI_Group_from_session_pset(s, "mpi://WORLD", &group) == MPI_SUCCESS, "pset");
  CHECK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS, "comm");
  MPI_Group_free(&group);
  return comm;
}

static const char* use(MPI_Comm comm, uint64_t seed) {
  int rank, size;
  static char big[50000];
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  world_rank = rank;
  for (int k = 0; k < 5; k++)
    MPI_Barrier(comm);  // used enough for an agreement, whose option no MPI_Init has agreed on
  for (int root = 0; root < size; root++) {
    if (rank == root) fill(big, seed, sizeof big);
    CHECK(MPI_Bcast(big, (int)sizeof big, MPI_BYTE, root, comm) == MPI_SUCCESS, "bcast");
    CHECK(mismatch(big, seed, sizeof big) < 0, "wrong data");
    memset(big, 0, sizeof big);
  }
  MPI_Barrier(comm);
  return last_path();
}

// A rank's mistake. The library tells the others by a code of its own.
static void hear_of_a_mistake(MPI_Comm comm) {
  char data[4] = {0}, text[MPI_MAX_ERROR_STRING];
  int rank, length;
  MPI_Comm_rank(comm, &rank);
  if (!path_is_ours(last_path())) return;
  const int code = MPI_Bcast(data, rank == 0 ? -1 : (int)sizeof data, MPI_BYTE, 0, comm);
  CHECK(code != MPI_SUCCESS && MPI_Error_string(code, text, &length) == MPI_SUCCESS, "code %d", code);
}

typedef struct {
  MPI_Session session;
  MPI_Comm comm;
} Epoch;

static Epoch begin(const char* tag) {
  Epoch e;
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &e.session) == MPI_SUCCESS, "session %s", tag);
  e.comm = from_session(e.session, tag);
  return e;
}

static void end(Epoch* e) {
  MPI_Comm_free(&e->comm);
  MPI_Session_finalize(&e->session);
}

int main(int argc, char** argv) {
  const char *path = "none", *second = "none", *how = argc > 1 ? argv[1] : "alone";
  int world = !strcmp(how, "world");
  if (world) {
    MPI_Init(&argc, &argv);
    use(MPI_COMM_WORLD, 1);
  }
  uint64_t epochs = strcmp(how, "single") ? 2 : 1;
  int pair = !strcmp(how, "pair") || world;
  for (uint64_t n = 0; n < epochs; n++) {
    Epoch first = begin("org.example.first");
    path = second = use(first.comm, n + 3);
    if (pair) {
      Epoch other = begin("org.example.second");
      second = use(other.comm, n + 5);
      use(first.comm, n + 7);
      end(&first);
      use(other.comm, n + 9);
      end(&other);
    } else {
      hear_of_a_mistake(first.comm);
      end(&first);
    }
  }
  if (world) {
    use(MPI_COMM_WORLD, 2);
    MPI_Finalize();
  }
  if (world_rank == 0) printf("RESULT {\"path\": \"%s\", \"second\": \"%s\"}\n", path, second);
  return 0;
}
