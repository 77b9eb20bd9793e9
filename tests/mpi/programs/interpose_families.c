// SPDX-License-Identifier: BSD-3-Clause
// Every collective of the library by each of its C names: MPI_, PMPI_ and, where the MPI has them,
// MPI__c and PMPI__c. Every result is checked, and every call must have gone our way (with an
// argument "host": the MPI's). Each rank calls each operation once per family:
//   RESULT {"families": 4}
#include "robust.h"

static int rank, size;
#define MOST 64

static int by_host;
static void ours(const char* what) { CHECK(path_is_ours(last_path()) == !by_host, "%s went by %s", what, last_path()); }

// Rank r has 100 * r + i for rank i, or for all at element i. This is the sum over ranks up to
// `last`.
static int sum_of(int i, int last) { return 100 * last * (last - 1) / 2 + last * i; }

static MPI_Comm ring;  // a periodic grid of one dimension

#define ALL_TO_ALL(function, P, C, COUNT, DISPL)                                                                       \
  static void function##_all_to_all(void) {                                                                            \
    int mine[MOST], all[MOST];                                                                                         \
    COUNT counts[MOST];                                                                                                \
    DISPL displs[MOST], places[MOST];                                                                                  \
    MPI_Datatype types[MOST];                                                                                          \
    for (int r = 0; r < size; r++) counts[r] = 1, displs[r] = r, places[r] = 4 * r, types[r] = MPI_INT;                \
    for (int i = 0; i < size; i++) mine[i] = 100 * rank + i;                                                           \
    memset(all, 0xff, sizeof all);                                                                                     \
    CHECK(P##Alltoall##C(mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS, "alltoall");               \
    ours(#P "Alltoall" #C);                                                                                            \
    for (int r = 0; r < size; r++) CHECK(all[r] == 100 * r + rank, "alltoall");                                        \
    memset(all, 0xff, sizeof all);                                                                                     \
    CHECK(P##Alltoallv##C(mine, counts, displs, MPI_INT, all, counts, displs, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS, \
          "alltoallv");                                                                                                \
    ours(#P "Alltoallv" #C);                                                                                           \
    for (int r = 0; r < size; r++) CHECK(all[r] == 100 * r + rank, "alltoallv");                                       \
    memset(all, 0xff, sizeof all);                                                                                     \
    CHECK(P##Alltoallw##C(mine, counts, places, types, all, counts, places, types, MPI_COMM_WORLD) == MPI_SUCCESS,     \
          "alltoallw");                                                                                                \
    ours(#P "Alltoallw" #C);                                                                                           \
    for (int r = 0; r < size; r++) CHECK(all[r] == 100 * r + rank, "alltoallw");                                       \
  }

#define NEIGHBORS(function, P, C, COUNT, DISPL)                                                                        \
  static void function##_neighbors(void) {                                                                             \
    const int below = 100 * ((rank + size - 1) % size), above = 100 * ((rank + 1) % size);                             \
    int mine[2] = {100 * rank, 100 * rank + 1}, all[2];                                                                \
    const COUNT counts[2] = {1, 1};                                                                                    \
    const DISPL displs[2] = {0, 1}, crossed[2] = {1, 0};                                                               \
    const MPI_Aint places[2] = {0, 4};                                                                                 \
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};                                                                        \
    CHECK(P##Neighbor_allgather##C(mine, 1, MPI_INT, all, 1, MPI_INT, ring) == MPI_SUCCESS, "");                       \
    ours(#P "Neighbor_allgather" #C);                                                                                  \
    CHECK(all[0] == below && all[1] == above, "neighbor_allgather");                                                   \
    CHECK(P##Neighbor_allgatherv##C(mine, 1, MPI_INT, all, counts, crossed, MPI_INT, ring) == MPI_SUCCESS, "");        \
    ours(#P "Neighbor_allgatherv" #C);                                                                                 \
    CHECK(all[1] == below && all[0] == above, "neighbor_allgatherv");                                                  \
    CHECK(P##Neighbor_alltoall##C(mine, 1, MPI_INT, all, 1, MPI_INT, ring) == MPI_SUCCESS, "");                        \
    ours(#P "Neighbor_alltoall" #C);                                                                                   \
    CHECK(all[0] == below + 1 && all[1] == above, "neighbor_alltoall");                                                \
    CHECK(P##Neighbor_alltoallv##C(mine, counts, displs, MPI_INT, all, counts, crossed, MPI_INT, ring) == MPI_SUCCESS, \
          "");                                                                                                         \
    ours(#P "Neighbor_alltoallv" #C);                                                                                  \
    CHECK(all[1] == below + 1 && all[0] == above, "neighbor_alltoallv");                                               \
    CHECK(P##Neighbor_alltoallw##C(mine, counts, places, types, all, counts, places, types, ring) == MPI_SUCCESS, ""); \
    ours(#P "Neighbor_alltoallw" #C);                                                                                  \
    CHECK(all[0] == below + 1 && all[1] == above, "neighbor_alltoallw");                                               \
  }

#define REDUCTIONS(function, P, C, COUNT)                                                                  \
  static void function##_reductions(int root) {                                                            \
    int mine[MOST], all[MOST];                                                                             \
    COUNT counts[MOST];                                                                                    \
    for (int i = 0; i < size; i++) counts[i] = 1, mine[i] = 100 * rank + i;                                \
    memset(all, 0xff, sizeof all);                                                                         \
    CHECK(P##Reduce##C(mine, all, size, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD) == MPI_SUCCESS, "reduce"); \
    ours(#P "Reduce" #C);                                                                                  \
    for (int i = 0; i < size; i++) CHECK(all[i] == (rank == root ? sum_of(i, size) : -1), "reduce");       \
    CHECK(P##Allreduce##C(mine, all, size, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS, "allreduce"); \
    ours(#P "Allreduce" #C);                                                                               \
    for (int i = 0; i < size; i++) CHECK(all[i] == sum_of(i, size), "allreduce");                          \
    CHECK(P##Reduce_scatter##C(mine, all, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS, "");   \
    ours(#P "Reduce_scatter" #C);                                                                          \
    CHECK(all[0] == sum_of(rank, size), "reduce_scatter gave %d", all[0]);                                 \
    CHECK(P##Reduce_scatter_block##C(mine, all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS, "");  \
    ours(#P "Reduce_scatter_block" #C);                                                                    \
    CHECK(all[0] == sum_of(rank, size), "reduce_scatter_block gave %d", all[0]);                           \
    CHECK(P##Scan##C(mine, all, size, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS, "scan");           \
    ours(#P "Scan" #C);                                                                                    \
    for (int i = 0; i < size; i++) CHECK(all[i] == sum_of(i, rank + 1), "scan");                           \
    memset(all, 0xff, sizeof all);                                                                         \
    CHECK(P##Exscan##C(mine, all, size, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS, "exscan");       \
    ours(#P "Exscan" #C);                                                                                  \
    for (int i = 0; i < size; i++) CHECK(all[i] == (rank == 0 ? -1 : sum_of(i, rank)), "exscan");          \
  }

// The same calls in four spellings. COUNT and DISPL are the types of counts and displacements.
#define FAMILY(function, P, C, COUNT, DISPL)                                                                         \
  static void function(int root) {                                                                                   \
    int mine[MOST], all[MOST * MOST];                                                                                \
    COUNT counts[MOST];                                                                                              \
    DISPL displs[MOST];                                                                                              \
    for (int r = 0; r < size; r++) counts[r] = r + 1, displs[r] = (DISPL)r * (size + 1);                             \
    CHECK(P##Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "barrier");                                                     \
    ours(#P "Barrier");                                                                                              \
    for (int i = 0; i < size; i++) mine[i] = rank == root ? 7 * i : -1;                                              \
    CHECK(P##Bcast##C(mine, size, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS, "bcast");                           \
    ours(#P "Bcast" #C);                                                                                             \
    for (int i = 0; i < size; i++) CHECK(mine[i] == 7 * i, "bcast gave %d", mine[i]);                                \
    for (int i = 0; i < size; i++) mine[i] = 100 * rank + i;                                                         \
    CHECK(P##Gather##C(mine, size, MPI_INT, all, size, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS, "gather");     \
    ours(#P "Gather" #C);                                                                                            \
    for (int r = 0; rank == root && r < size; r++)                                                                   \
      for (int i = 0; i < size; i++) CHECK(all[r * size + i] == 100 * r + i, "gather");                              \
    memset(all, 0xff, sizeof all);                                                                                   \
    CHECK(P##Gatherv##C(mine, rank + 1, MPI_INT, all, counts, displs, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS, \
          "gatherv");                                                                                                \
    ours(#P "Gatherv" #C);                                                                                           \
    if (rank == root) blocks(all, #P "Gatherv" #C);                                                                  \
    for (int r = 0; r < size; r++)                                                                                   \
      for (int i = 0; i < size + 1; i++) all[r * (size + 1) + i] = 100 * r + i;                                      \
    memset(mine, 0xff, sizeof mine);                                                                                 \
    CHECK(P##Scatter##C(all, size + 1, MPI_INT, mine, size + 1, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS,       \
          "scatter");                                                                                                \
    ours(#P "Scatter" #C);                                                                                           \
    for (int i = 0; i < size + 1; i++) CHECK(mine[i] == 100 * rank + i, "scatter");                                  \
    memset(mine, 0xff, sizeof mine);                                                                                 \
    CHECK(P##Scatterv##C(all, counts, displs, MPI_INT, mine, MOST, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS,    \
          "scatterv");                                                                                               \
    ours(#P "Scatterv" #C);                                                                                          \
    for (int i = 0; i < MOST; i++) CHECK(mine[i] == (i <= rank ? 100 * rank + i : -1), "scatterv");                  \
    CHECK(P##Allgather##C(mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS, "allgather");           \
    ours(#P "Allgather" #C);                                                                                         \
    for (int r = 0; r < size; r++) CHECK(all[r] == 100 * r, "allgather");                                            \
    memset(all, 0xff, sizeof all);                                                                                   \
    CHECK(P##Allgatherv##C(mine, rank + 1, MPI_INT, all, counts, displs, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS,    \
          "allgatherv");                                                                                             \
    ours(#P "Allgatherv" #C);                                                                                        \
    blocks(all, #P "Allgatherv" #C);                                                                                 \
    function##_all_to_all();                                                                                         \
    function##_neighbors();                                                                                          \
    function##_reductions(root);                                                                                     \
  }

// Block r: r + 1 elements from r * (size + 1) on, the rest untouched.
static void blocks(const int* all, const char* what) {
  for (int r = 0; r < size; r++)
    for (int i = 0; i < size + 1; i++)
      CHECK(all[r * (size + 1) + i] == (i <= r ? 100 * r + i : -1), "%s: element %d of block %d", what, i, r);
}

#define WHOLE_FAMILY(function, P, C, COUNT, DISPL) \
  ALL_TO_ALL(function, P, C, COUNT, DISPL)         \
  NEIGHBORS(function, P, C, COUNT, DISPL)          \
  REDUCTIONS(function, P, C, COUNT)                \
  FAMILY(function, P, C, COUNT, DISPL)

WHOLE_FAMILY(family_mpi, MPI_, , int, int)
WHOLE_FAMILY(family_pmpi, PMPI_, , int, int)
#ifdef LARGE_COUNTS
WHOLE_FAMILY(family_mpi_c, MPI_, _c, MPI_Count, MPI_Aint)
WHOLE_FAMILY(family_pmpi_c, PMPI_, _c, MPI_Count, MPI_Aint)
#endif

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  rank = world_rank, size = world_size;
  by_host = argc > 1 && !strcmp(argv[1], "host");
  const int periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
  int families = 2;
  family_mpi(0);
  family_pmpi(size - 1);
#ifdef LARGE_COUNTS
  family_mpi_c(size / 2);
  family_pmpi_c(0);
  families = 4;
#endif
  MPI_Comm_free(&ring);
  if (rank == 0) printf("RESULT {\"families\": %d}\n", families);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
