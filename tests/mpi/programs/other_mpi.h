/* SPDX-License-Identifier: BSD-3-Clause
 * An MPI for one process, in the shapes of MPIs that Stretto does not serve:
 *   (nothing)         MPI_ names only, numbers as handles: a stub
 *   OTHER_NUMBERS     MPI_ and PMPI_ names, numbers as handles, but other ones than MPICH's
 *   OTHER_POINTERS    MPI_ and PMPI_ names, pointers as handles: a library that wraps MPICH
 */
#ifdef OTHER_POINTERS
typedef struct other_object* MPI_Comm;
typedef struct other_object* MPI_Datatype;
typedef struct other_object* MPI_Op;
typedef struct other_object* MPI_Info;
#define OTHER_HANDLE(n) ((struct other_object*)(0x7000000000l + (n)))
#else
typedef int MPI_Comm;
typedef int MPI_Datatype;
typedef int MPI_Op;
typedef int MPI_Info;
#define OTHER_HANDLE(n) (n)
#endif
#define MPI_COMM_WORLD OTHER_HANDLE(1)
#define MPI_INT OTHER_HANDLE(2)
#define MPI_SUM OTHER_HANDLE(3)
#define MPI_INFO_NULL OTHER_HANDLE(4)

int MPI_Init(int* argc, char*** argv);
int MPI_Finalize(void);
int MPI_Comm_rank(MPI_Comm comm, int* rank);
int MPI_Comm_size(MPI_Comm comm, int* size);
int MPI_Barrier(MPI_Comm comm);
int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
