/* SPDX-License-Identifier: BSD-3-Clause
 *   session_threads ends N     four threads open and close communicators of a session, N times
 *                              each: the end of the last one meets a new beginning
 *   session_threads beside N   a thread uses a session's communicator of all ranks while the main
 *                              thread uses MPI_COMM_WORLD
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rounds, wrong;

static MPI_Session open_session(void) {
  MPI_Session session;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
  MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Info_free(&info);
  return session;
}

static MPI_Comm open_communicator(MPI_Session session, const char* set, const char* tag) {
  MPI_Group group;
  MPI_Comm comm;
  MPI_Group_from_session_pset(session, set, &group);
  MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&group);
  return comm;
}

/* Whether several threads may use the session. MPICH 5 grants MPI_THREAD_SINGLE to all, if MPI_Init
 * has asked for it.
 */
static int threads_are_granted(MPI_Session session) {
  MPI_Info info;
  char level[MPI_MAX_INFO_VAL] = "";
  int there = 0;
  MPI_Session_get_info(session, &info);
  MPI_Info_get(info, "thread_level", MPI_MAX_INFO_VAL - 1, level, &there);
  MPI_Info_free(&info);
  return there && strcmp(level, "MPI_THREAD_MULTIPLE") == 0;
}

static int sums_are_right(MPI_Comm comm, int first) {
  int size, sums[300], in[300];
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < 300; i++) in[i] = first + i;
  MPI_Allreduce(in, sums, 300, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < 300; i++) {
    if (sums[i] != size * (first + i)) return 0;
  }
  return 1;
}

static MPI_Session shared;

static void* open_and_close(void* number) {
  char tag[40];
  snprintf(tag, sizeof tag, "thread %d", (int)(long)number);
  for (int i = 0; i < rounds; i++) {
    MPI_Comm comm = open_communicator(shared, "mpi://SELF", tag);
    MPI_Barrier(comm);
    if (!sums_are_right(comm, i)) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    MPI_Comm_free(&comm);
  }
  return NULL;
}

static void* use_beside(void* unused) {
  (void)unused;
  MPI_Comm comm = open_communicator(shared, "mpi://WORLD", "beside");
  for (int i = 0; i < rounds; i++) {
    if (!sums_are_right(comm, 1000 + i)) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
  }
  MPI_Comm_free(&comm);
  return NULL;
}

int main(int argc, char** argv) {
  const int ends = argc > 1 && strcmp(argv[1], "ends") == 0;
  rounds = argc > 2 ? atoi(argv[2]) : 100;
  pthread_t threads[4];
  if (!ends) MPI_Init(NULL, NULL);
  shared = open_session();
  const int granted = threads_are_granted(shared);
  if (granted && ends) {
    for (long t = 0; t < 4; t++) pthread_create(&threads[t], NULL, open_and_close, (void*)t);
    for (int t = 0; t < 4; t++) pthread_join(threads[t], NULL);
  } else if (granted) {
    pthread_create(&threads[0], NULL, use_beside, NULL);
    for (int i = 0; i < rounds; i++) {
      if (!sums_are_right(MPI_COMM_WORLD, i)) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    }
    pthread_join(threads[0], NULL);
  }
  MPI_Session_finalize(&shared);
  if (!ends) MPI_Finalize();
  printf("RESULT {\"wrong\": %d, \"granted\": %s}\n", wrong, granted ? "true" : "false");
  return 0;
}
