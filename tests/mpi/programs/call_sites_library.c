/* SPDX-License-Identifier: BSD-3-Clause
 * A library with many symbols and two callers of MPI, far apart. */
#include <mpi.h>

#define FAR __attribute__((aligned(32768)))
FAR int call_a(void) { return MPI_Barrier(MPI_COMM_SELF) + 1; }
FAR int call_b(void) { return MPI_Barrier(MPI_COMM_SELF) + 1; }
FAR int padding(void) { return 0; }

#define ONE(n) \
  int function_number_##n(int x) { return x + 1; }
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
#define HUNDRED(n) TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)
HUNDRED(1) HUNDRED(2) HUNDRED(3) HUNDRED(4) HUNDRED(5) HUNDRED(6) HUNDRED(7) HUNDRED(8) HUNDRED(9)
