/* SPDX-License-Identifier: BSD-3-Clause
 *   call_sites linked            calls MPI from two places of a library that it is linked to, and
 *                                from here, 1000 times each
 *   call_sites opened A B N      calls N times from A, a library that it opens and closes, then
 *                                from B, which may lie where A lay
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((weak)) int call_a(void); /* not there without the library */
__attribute__((weak)) int call_b(void);

/* Returns the address of its function. */
static void* call_from(const char* path, int calls) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  int (*const call)(void) = library != NULL ? (int (*)(void))dlsym(library, "call_a") : NULL;
  if (call == NULL) {
    fprintf(stderr, "%s: %s\n", path, dlerror());
    exit(1);
  }
  for (int i = 0; i < calls; i++) call();
  dlclose(library);
  return (void*)call;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int same = 0;
  if (argc > 4 && strcmp(argv[1], "opened") == 0) {
    MPI_Barrier(MPI_COMM_SELF); /* maps whatever the first call maps */
    void* const a = call_from(argv[2], atoi(argv[4]));
    void* const b = call_from(argv[3], atoi(argv[4]));
    same = a == b;
  } else {
    for (int i = 0; i < 1000; i++) {
      call_a();
      call_b();
      MPI_Barrier(MPI_COMM_SELF);
    }
    double times[2];
    for (int two = 0; two < 2; two++) {
      const double start = MPI_Wtime();
      for (int i = 0; i < 20000; i++) {
        call_a();
        two ? call_b() : call_a();
      }
      times[two] = (MPI_Wtime() - start) / 40000 * 1e9;
    }
    if (rank == 0) printf("one caller %.1f ns, two %.1f ns\n", times[0], times[1]);
  }
  if (rank == 0) printf("RESULT {\"same_address\": %s}\n", same ? "true" : "false");
  MPI_Finalize();
  return 0;
}
