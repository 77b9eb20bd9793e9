// SPDX-License-Identifier: BSD-3-Clause
// An Alltoall may return before its data are there. At once the buffer goes to another function of
// MPI, which must see the data.
//   overlap_touched all BLOCK     all functions but those below, with so many ints for each rank
//   overlap_touched NAME BLOCK    one function: put, accumulate, get, win_create. Once there is a
//                                 window, no call returns early
// Each rank prints how many Alltoalls there were, how many returned early, and how often the kernel
// refused it to read the memory of a peer.
#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "robust.h"

static int block, total, call, early, refused;
static int *from, *to, *other;

// The MPI's single copies come here. After an error they may go on another way.
ssize_t process_vm_readv(pid_t peer, const struct iovec* local, unsigned long locals, const struct iovec* remote,
                         unsigned long remotes, unsigned long flags) {
  const ssize_t bytes = syscall(SYS_process_vm_readv, peer, local, locals, remote, remotes, flags);
  refused += bytes < 0 && errno == EFAULT;
  return bytes;
}

// What rank `r` has at `i` of the block that it got from rank `s`.
static int value(int s, int r, int i) { return call * 1009 + s * 131 + r * 17 + i; }

static void expect(int good, const char* what, int at) {
  if (good) return;
  fprintf(stderr, "rank %d, call %d, %s: wrong data at %d\n", world_rank, call, what, at);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

// Whether `data` is what rank `r` got in this call's Alltoall.
static void check(const int* data, int r, const char* what) {
  for (int i = 0; i < total; i++) expect(data[i] == value(i / block, r, i % block), what, i);
}

static void alltoall(void) {
  call++;
  for (int i = 0; i < total; i++) from[i] = value(world_rank, i / block, i % block);
  memset(to, 0xff, (size_t)total * sizeof *to);
  memset(other, 0xff, (size_t)total * sizeof *other);
  MPI_Alltoall(from, block, MPI_INT, to, block, MPI_INT, MPI_COMM_WORLD);
  early += is_early();
}

// ---- point to point ----
static int next(void) { return (world_rank + 1) % world_size; }
static int before(void) { return (world_rank + world_size - 1) % world_size; }

enum { SEND, SSEND, BSEND, ISEND, ISSEND, IBSEND, SEND_INIT, SENDS };

static void sends(int kind) {
  MPI_Request receive, send = MPI_REQUEST_NULL;
  if (kind == SEND_INIT) MPI_Send_init(to, total, MPI_INT, next(), 1, MPI_COMM_WORLD, &send);
  alltoall();
  MPI_Irecv(other, total, MPI_INT, before(), 1, MPI_COMM_WORLD, &receive);
  if (kind == SEND) MPI_Send(to, total, MPI_INT, next(), 1, MPI_COMM_WORLD);
  if (kind == SSEND) MPI_Ssend(to, total, MPI_INT, next(), 1, MPI_COMM_WORLD);
  if (kind == BSEND) MPI_Bsend(to, total, MPI_INT, next(), 1, MPI_COMM_WORLD);
  if (kind == ISEND) MPI_Isend(to, total, MPI_INT, next(), 1, MPI_COMM_WORLD, &send);
  if (kind == ISSEND) MPI_Issend(to, total, MPI_INT, next(), 1, MPI_COMM_WORLD, &send);
  if (kind == IBSEND) MPI_Ibsend(to, total, MPI_INT, next(), 1, MPI_COMM_WORLD, &send);
  if (kind == SEND_INIT) MPI_Start(&send);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  check(other, before(), "a send");
  if (kind == SEND_INIT) MPI_Request_free(&send);
}

// Data that come late must not lie over what the program receives.
static void receive_into(void) {
  MPI_Request requests[2];
  alltoall();
  MPI_Irecv(to, total, MPI_INT, before(), 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(from, total, MPI_INT, next(), 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < total; i++) expect(to[i] == value(before(), i / block, i % block), "Irecv", i);
}

static void sendrecv(void) {
  alltoall();
  MPI_Sendrecv(to, total, MPI_INT, next(), 3, other, total, MPI_INT, before(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(other, before(), "Sendrecv");
  alltoall();
  MPI_Sendrecv_replace(to, total, MPI_INT, next(), 3, before(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(to, before(), "Sendrecv_replace");
}

// Every second int, by a type that begins behind the buffer and goes backwards.
static void backwards(void) {
  MPI_Datatype one, all;
  MPI_Request receive;
  const int count = total / 2;
  MPI_Type_create_resized(MPI_INT, 0, -2 * (MPI_Aint)sizeof(int), &one);
  MPI_Type_contiguous(1, one, &all);
  MPI_Type_commit(&all);
  alltoall();
  MPI_Irecv(other, count, MPI_INT, before(), 4, MPI_COMM_WORLD, &receive);
  MPI_Send(to + total - 1, count, all, next(), 4, MPI_COMM_WORLD);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  for (int i = 0; i < count; i++) {
    const int at = total - 1 - 2 * i;
    expect(other[i] == value(at / block, before(), at % block), "a type that goes backwards", i);
  }
  MPI_Type_free(&one);
  MPI_Type_free(&all);
}

static void absolute(void) {
  MPI_Aint at;
  MPI_Datatype all;
  MPI_Request receive;
  MPI_Get_address(to, &at);
  MPI_Type_create_hindexed(1, &total, &at, MPI_INT, &all);
  MPI_Type_commit(&all);
  alltoall();
  MPI_Irecv(other, total, MPI_INT, before(), 5, MPI_COMM_WORLD, &receive);
  MPI_Send(MPI_BOTTOM, 1, all, next(), 5, MPI_COMM_WORLD);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  check(other, before(), "MPI_BOTTOM");
  MPI_Type_free(&all);
}

// ---- without messages ----
static void pack(void) {
  int position = 0;
  alltoall();
  MPI_Pack(to, total, MPI_INT, other, total * (int)sizeof(int), &position, MPI_COMM_WORLD);
  check(other, world_rank, "Pack");
  alltoall();
  position = 0;
  MPI_Unpack(from, total * (int)sizeof(int), &position, to, total, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < total; i++) expect(to[i] == from[i], "Unpack", i);
}

static void reduce_local(void) {
  alltoall();
  for (int i = 0; i < total; i++) other[i] = 1;
  MPI_Reduce_local(to, other, total, MPI_INT, MPI_SUM);
  for (int i = 0; i < total; i++) expect(other[i] == value(i / block, world_rank, i % block) + 1, "Reduce_local", i);
}

static void file(void) {
  MPI_File fh;
  char name[300];
  const char* const folder = getenv("TMPDIR");
  snprintf(name, sizeof name, "%s/touched.%d", folder ? folder : "/tmp", world_rank);
  MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &fh);
  alltoall();
  MPI_File_write(fh, to, total, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_read_at(fh, 0, other, total, MPI_INT, MPI_STATUS_IGNORE);
  check(other, world_rank, "File_write");
  alltoall();  // the file has the data of the call before
  MPI_File_read_at(fh, 0, to, total, MPI_INT, MPI_STATUS_IGNORE);
  call--;
  check(to, world_rank, "File_read_at");
  call++;
  MPI_File_close(&fh);
}

// ---- collectives ----
static void sum_expected(const int* data, const char* what) {
  for (int i = 0; i < total; i++) {
    unsigned sum = 0;
    for (int r = 0; r < world_size; r++) sum += (unsigned)value(i / block, r, i % block);
    expect((unsigned)data[i] == sum, what, i);
  }
}

static void reductions(void) {
  MPI_Request request;
  alltoall();
  MPI_Allreduce(MPI_IN_PLACE, to, total, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  sum_expected(to, "Allreduce");
  alltoall();
  MPI_Iallreduce(to, other, total, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  sum_expected(other, "Iallreduce");
  alltoall();
  MPI_Reduce(to, other, total, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
  if (world_rank == 1) sum_expected(other, "Reduce");
  alltoall();
  MPI_Reduce_scatter_block(to, other, block, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < block; i++) {
    unsigned sum = 0;
    for (int r = 0; r < world_size; r++) sum += (unsigned)value(world_rank, r, i);
    expect((unsigned)other[i] == sum, "Reduce_scatter_block", i);
  }
}

static void one_root(void) {
  MPI_Request request;
  const int root = call % world_size;
  alltoall();
  MPI_Bcast(to, total, MPI_INT, root, MPI_COMM_WORLD);
  check(to, root, "Bcast");
  alltoall();
  MPI_Ibcast(to, total, MPI_INT, root, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(to, root, "Ibcast");
  alltoall();  // only the root has valid arguments for what it receives
  const int is_root = world_rank == root;
  MPI_Gather(to + world_rank * block, block, MPI_INT, is_root ? other : NULL, is_root ? block : -1,
             is_root ? MPI_INT : MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
  for (int i = 0; is_root && i < total; i++) expect(other[i] == value(i / block, i / block, i % block), "Gather", i);
  alltoall();
  MPI_Scatter(to, block, MPI_INT, other, block, MPI_INT, root, MPI_COMM_WORLD);
  for (int i = 0; i < block; i++) expect(other[i] == value(world_rank, root, i), "Scatter", i);
}

static void all_to_all(void) {
  int counts[64], places[64];
  for (int r = 0; r < world_size; r++) counts[r] = block, places[r] = (world_size - 1 - r) * block;
  alltoall();
  MPI_Allgatherv(to + world_rank * block, block, MPI_INT, other, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < total; i++) {
    const int r = world_size - 1 - i / block;
    expect(other[i] == value(r, r, i % block), "Allgatherv", i);
  }
  alltoall();
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, block, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < total; i++) expect(to[i] == value(i / block, i / block, i % block), "Allgather", i);
  alltoall();
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, block, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < total; i++) expect(to[i] == value(world_rank, i / block, i % block), "Alltoall in place", i);
  alltoall();
  MPI_Alltoallv(to, counts, places, MPI_INT, other, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < total; i++) {
    const int r = world_size - 1 - i / block;
    expect(other[i] == value(world_size - 1 - world_rank, r, i % block), "Alltoallv", i);
  }
}

static void neighbours(void) {
  MPI_Comm ring;
  const int periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &world_size, &periodic, 0, &ring);
  alltoall();
  MPI_Neighbor_alltoall(to, block, MPI_INT, other, block, MPI_INT, ring);  // first to the one before
  for (int i = 0; i < block; i++) {
    expect(other[i] == value(1, before(), i), "Neighbor_alltoall", i);
    expect(other[block + i] == value(0, next(), i), "Neighbor_alltoall", block + i);
  }
  MPI_Comm_free(&ring);
}

// ---- windows ----
static void one_sided(const char* name) {
  MPI_Win window;
  int* const own = calloc((size_t)total, sizeof *own);
  const int makes = !strcmp(name, "win_create");
  const MPI_Aint bytes = total * (MPI_Aint)sizeof(int);
  MPI_Barrier(MPI_COMM_WORLD);
  alltoall();
  MPI_Win_create(makes ? to : own, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  if (!strcmp(name, "put")) MPI_Put(to, total, MPI_INT, next(), 0, total, MPI_INT, window);
  if (!strcmp(name, "accumulate")) MPI_Accumulate(to, total, MPI_INT, next(), 0, total, MPI_INT, MPI_SUM, window);
  if (makes) MPI_Get(own, total, MPI_INT, before(), 0, total, MPI_INT, window);
  if (!strcmp(name, "get")) MPI_Get(to, total, MPI_INT, before(), 0, total, MPI_INT, window);
  MPI_Win_fence(0, window);
  if (!strcmp(name, "get")) {
    for (int i = 0; i < total; i++) expect(to[i] == 0, name, i);
  } else {
    check(own, before(), name);
  }
  MPI_Win_free(&window);
  free(own);
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  block = atoi(argv[2]);
  total = block * world_size;
  from = malloc((size_t)total * sizeof *from);
  to = malloc((size_t)total * sizeof *to);
  other = malloc((size_t)total * sizeof *other);
  const int attached = total * (int)sizeof(int) + MPI_BSEND_OVERHEAD;
  void* buffer = malloc((size_t)attached);
  MPI_Buffer_attach(buffer, attached);
  for (int shift = 1; shift < world_size; shift++) {  // the MPI finds out what it may read
    MPI_Sendrecv(from, total, MPI_INT, (world_rank + shift) % world_size, 9, to, total, MPI_INT,
                 (world_rank + world_size - shift) % world_size, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  refused = 0;
  if (strcmp(argv[1], "all")) {
    alltoall();
    check(to, world_rank, "Alltoall");
    one_sided(argv[1]);
  } else {
    for (int kind = 0; kind < SENDS; kind++) sends(kind);
    receive_into();
    sendrecv();
    backwards();
    absolute();
    pack();
    reduce_local();
    file();
    reductions();
    one_root();
    all_to_all();
    neighbours();
  }
  MPI_Buffer_detach(&buffer, &(int){0});
  printf("RESULT {\"rank\": %d, \"calls\": %d, \"early\": %d, \"refused\": %d}\n", world_rank, call, early, refused);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
