// SPDX-License-Identifier: BSD-3-Clause
// What few programs do and MPI, or the system, allows.
//   rare_uses callback cycles    attributes whose delete callbacks call collectives on the
//                                communicator that is being freed
//   rare_uses handler            an error handler that frees its communicator
//   rare_uses invalid            a collective on a handle that names no communicator
//   rare_uses refused            a user's operation on a datatype that MPI_Reduce_local refuses
//   rare_uses files              rank 1 closes the files that it does not know, and opens its own
//   rare_uses limit              no room in the address space for peers' segments
//   rare_uses locked             all memory is locked (mlockall)
//   rare_uses deep levels        a datatype of so many levels
//   rare_uses vast               datatypes of many blocks that are one, or none
//   rare_uses bad_w              an Alltoallw with a null buffer, or a negative count
//   rare_uses in_place           an Alltoall in place of a datatype of many pieces
//   rare_uses zeros              MPI_MINLOC and MPI_MAXLOC of both zeros, and of NaNs
//   rare_uses threads number     each Barrier in a thread of its own
//   rare_uses mistake            a call that fails on one rank, and then another communicator
//   rare_uses many number        so many communicators at a time
//   rare_uses at_once number [rank]
//                                so many threads (of all ranks but that one), each the first to
//                                use a communicator of its own
// Prints one RESULT per rank.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "robust.h"

static int number, single;

static void check_sum(MPI_Comm comm) {
  int size = 0, one = 1, sum = 0;
  MPI_Comm_size(comm, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK(sum == size, "sum %d of %d ranks", sum, size);
}

static void check_bcast(MPI_Comm comm, int n) {
  int size = 0, rank = 0;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  int root = n % size;
  char data[3000] = "";
  if (rank == root) fill(data, (uint64_t)n, sizeof data);
  MPI_Bcast(data, sizeof data, MPI_BYTE, root, comm);
  CHECK(mismatch(data, (uint64_t)n, sizeof data) < 0, "broadcast %d", n);
}

static int class_of(int code) {
  int class = -1;
  MPI_Error_class(code, &class);
  return class;
}

// ---- Callback ----

static int callbacks;

static int on_delete(MPI_Comm comm, int keyval, void* value, void* extra) {
  (void)keyval, (void)value, (void)extra;
  check_sum(comm);
  check_bcast(comm, callbacks++);
  return MPI_SUCCESS;
}

// The attribute comes before our library's or after it, not on all ranks alike. So its callback
// does, too.
static void callback(void) {
  int keyval;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &keyval, NULL);
  for (int n = 0; n < number; n++) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, n % 3 == 0 ? world_rank % 2 : 0, world_rank, &comm);
    int first = (n + world_rank) % 2;
    if (first) MPI_Comm_set_attr(comm, keyval, NULL);
    check_bcast(comm, n);
    if (!first) MPI_Comm_set_attr(comm, keyval, NULL);
    n % 5 == 0 ? MPI_Comm_disconnect(&comm) : MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    check_bcast(comm, n);
    MPI_Comm_free(&comm);
  }
  MPI_Comm_free_keyval(&keyval);
  CHECK(callbacks == number, "%d callbacks", callbacks);
}

// ---- Handler, invalid, refused ----

static int handled;

static void free_it(MPI_Comm* comm, int* code, ...) {
  (void)code;
  MPI_Comm victim = *comm;
  handled++;
  MPI_Comm_free(&victim);
}

static void handler(void) {
  MPI_Errhandler freeing;
  MPI_Comm_create_errhandler(free_it, &freeing);
  for (int n = 0; n < 20; n++) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, freeing);
    check_bcast(comm, n);
    int data = 0;
    int code =
        n % 2 ? MPI_Bcast(&data, -1, MPI_INT, 0, comm) : MPI_Allreduce(&data, &data, 1, MPI_INT, MPI_OP_NULL, comm);
    CHECK(class_of(code) == (n % 2 ? MPI_ERR_COUNT : MPI_ERR_OP), "class %d", class_of(code));
  }
  CHECK(handled == 20, "%d errors", handled);
  MPI_Errhandler_free(&freeing);
}

static void invalid(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm comm;
  memset(&comm, 0, sizeof comm);
  for (int n = 0; n < 3; n++) {
    int data = 0, code = MPI_Bcast(&data, 1, MPI_INT, 0, comm);
    CHECK(class_of(code) == MPI_ERR_COMM, "class %d", class_of(code));
  }
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < 2 * *count; i++) ((int*)inout)[i] += ((int*)in)[i];
}

static void refused(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  MPI_Datatype type;
  MPI_Type_contiguous(2, MPI_INT, &type);  // not committed
  int mine[2] = {1, 2}, sum[2] = {0, 0};
  int code = MPI_Allreduce(mine, sum, 1, type, op, MPI_COMM_WORLD);
  CHECK(class_of(code) == MPI_ERR_TYPE, "class %d", class_of(code));
  MPI_Type_free(&type);
  MPI_Op_free(&op);
}

// ---- Files ----

static int taken = -1;

// Makes the descriptor of the library's memory file one of an empty file of the program.
static void take_descriptor(void) {
  for (int fd = 3; fd < 256; fd++) {
    char path[64], target[256] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink(path, target, sizeof target - 1) < 0 || !strstr(target, "memfd:stretto")) continue;
    close(fd);
    FILE* file = tmpfile();
    CHECK(file && dup2(fileno(file), fd) == fd, "descriptor %d", fd);
    taken = fd;
  }
}

static void files(void) {
  MPI_Comm some;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank == 0, world_rank, &some);
  check_sum(some);  // all but rank 0 have a segment now, and have each other's
  if (world_rank == 1) take_descriptor();
  for (int n = 0; n < 10; n++) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    check_sum(comm);
    check_bcast(some, n);
    MPI_Comm_free(&comm);
  }
  MPI_Comm_free(&some);
}

static void files_afterwards(void) {
  struct stat status;
  CHECK(taken < 0 || fstat(taken, &status) == 0, "descriptor %d is closed", taken);
  CHECK(taken < 0 || status.st_blocks == 0, "%ld blocks were written", (long)status.st_blocks);
}

// ---- Limit, locked ----

static long status_kib(const char* key) {
  char line[256];
  long kib = -1;
  FILE* f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, key, strlen(key))) kib = atol(line + strlen(key));
  if (f) fclose(f);
  return kib;
}

static double limit(void) {
  struct rlimit most = {((rlim_t)status_kib("VmSize:") << 10) + (300u << 20), RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &most);
  double began = now_s();
  for (int n = 0; n < 5; n++) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    check_sum(comm);
    MPI_Comm_free(&comm);
  }
  return now_s() - began;
}

static long locked(void) {
  long before = status_kib("RssShmem:");
  check_sum(MPI_COMM_WORLD);
  for (int n = 0; n < 20; n++) check_bcast(MPI_COMM_WORLD, n);
  return status_kib("RssShmem:") - before;
}

// ---- Datatypes ----

static void deep(void) {
  MPI_Datatype type, next;
  MPI_Type_vector(2, 1, 2, MPI_INT, &type);
  for (int n = 0; n < number; n++) {
    MPI_Type_dup(type, &next);
    MPI_Type_free(&type);
    type = next;
  }
  MPI_Type_commit(&type);
  int data[4] = {-1, -1, -1, -1};
  if (world_rank == 0) data[0] = 7, data[2] = 9;
  MPI_Bcast(data, 1, type, 0, MPI_COMM_WORLD);
  CHECK(data[0] == 7 && data[1] == -1 && data[2] == 9 && data[3] == -1, "%d %d %d %d", data[0], data[1], data[2],
        data[3]);
  MPI_Type_free(&type);
}

static void bcast_of(MPI_Datatype type, int count) {
  char data[8] = {0};
  MPI_Type_commit(&type);
  CHECK(MPI_Bcast(data, count, type, 0, MPI_COMM_WORLD) == MPI_SUCCESS, "bcast");
  MPI_Type_free(&type);
}

// Seconds.
static double vast(void) {
  MPI_Datatype type, nothing;
  const double began = now_s();
  MPI_Type_vector(1000000000, 2, 2, MPI_BYTE, &type);
  bcast_of(type, 0);
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_vector(2147483647, 2, 4, nothing, &type);
  bcast_of(type, 1);
  MPI_Type_free(&nothing);
  const int sizes[2] = {20000, 20000}, parts[2] = {2, 1},
            arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
  const int distributions[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
  MPI_Type_create_darray(2, world_rank, 2, sizes, distributions, arguments, parts, MPI_ORDER_C, MPI_BYTE, &type);
  bcast_of(type, 0);
  return now_s() - began;
}

static void bad_w(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int n = 0; n < 2; n++) {
    int data[8] = {0}, counts[8], places[8];
    MPI_Datatype types[8];
    for (int r = 0; r < world_size; r++) counts[r] = 1, places[r] = 4 * r, types[r] = MPI_INT;
    const int wrong = world_rank == 0;
    if (wrong && n == 1) counts[1] = -1;
    if (wrong) {  // refused there alone: no call to the others
      const int code =
          MPI_Alltoallw(n == 0 ? NULL : data, counts, places, types, data + 4, counts, places, types, MPI_COMM_WORLD);
      const int class = n == 0 ? MPI_ERR_BUFFER : MPI_ERR_COUNT;
      CHECK(class_of(code) == class, "class %d instead of %d", class_of(code), class);
      counts[1] = 1;
    }
    const int code = MPI_Alltoallw(data, counts, places, types, data + 4, counts, places, types, MPI_COMM_WORLD);
    CHECK(code == MPI_SUCCESS, "class %d", class_of(code));
  }
}

static void in_place(void) {
  enum { kPieces = 5000000 };
  MPI_Datatype type;
  MPI_Type_vector(kPieces, 1, 2, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_Aint lower, extent;
  MPI_Type_get_extent(type, &lower, &extent);
  char* const data = malloc((size_t)(world_size * extent) + 1);
  for (int r = 0; r < world_size; r++)
    for (long i = 0; i < kPieces; i++) data[r * extent + 2 * i] = (char)(10 * world_rank + r);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, 1, type, MPI_COMM_WORLD);
  long wrong = 0;
  for (int r = 0; r < world_size; r++)
    for (long i = 0; i < kPieces; i++) wrong += data[r * extent + 2 * i] != (char)(10 * r + world_rank);
  CHECK(wrong == 0, "%ld bytes are wrong", wrong);
  free(data);
  MPI_Type_free(&type);
}

static void zeros(void) {
  for (int n = 0; n < 8; n++) {
    struct {
      double value;
      int place;
    } mine = {(world_rank + n) & 1 ? -0.0 : 0.0, world_rank}, result;
    if (n >= 4) mine.value = world_rank == n % world_size ? NAN : world_rank + 1.0;
    memset(&result, 0, sizeof result);
    MPI_Allreduce(&mine, &result, 1, MPI_DOUBLE_INT, n % 2 ? MPI_MAXLOC : MPI_MINLOC, MPI_COMM_WORLD);
  }
}

// ---- Threads ----

static void* wait_long(void* nothing) {
  if (world_rank != 0) usleep(300);
  MPI_Barrier(MPI_COMM_WORLD);
  return nothing;
}

// Bytes that the heap has grown by.
static long threads(void) {
  long before = 0;
  for (int n = 0; n < number; n++) {
    pthread_t thread;
    pthread_create(&thread, NULL, wait_long, NULL);
    pthread_join(thread, NULL);
    if (n == number / 10) before = (long)mallinfo2().uordblks;
  }
  return (long)mallinfo2().uordblks - before;
}

// ---- Communicators ----

static void mistake(void) {
  MPI_Comm first, second;
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_set_errhandler(first, MPI_ERRORS_RETURN);
  check_sum(first);
  int data = 222;
  const int code = MPI_Bcast(&data, world_rank == 1 ? -1 : 1, MPI_INT, 0, first);
  CHECK(world_rank != 1 || class_of(code) == MPI_ERR_COUNT, "class %d", class_of(code));
  MPI_Comm_free(&first);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_dup(MPI_COMM_WORLD, &second);
  data = world_rank == 0 ? 333 : -1;
  MPI_Bcast(&data, 1, MPI_INT, 0, second);
  CHECK(data == 333, "%d came", data);
  MPI_Comm_free(&second);
}

// Seconds that the last tenth of them took.
static double many(void) {
  MPI_Comm* const comms = malloc((size_t)number * sizeof(MPI_Comm));
  double began = 0;
  for (int n = 0; n < number; n++) {
    if (n == number - number / 10) began = now_s();
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[n]);
    check_sum(comms[n]);
  }
  const double took = now_s() - began;
  for (int n = 0; n < number; n++) MPI_Comm_free(&comms[n]);
  free(comms);
  return took;
}

static void* use_first(void* comm) {
  for (int n = 0; n < 2; n++) check_sum(*(MPI_Comm*)comm);
  return path_is_ours(last_path()) ? comm : NULL;
}

// How many communicators are not ours. One rank may have a single thread for all of them.
static long at_once(void) {
  MPI_Comm* const comms = malloc((size_t)number * sizeof(MPI_Comm));
  pthread_t* const threads = malloc((size_t)number * sizeof(pthread_t));
  for (int n = 0; n < number; n++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[n]);
  MPI_Barrier(MPI_COMM_WORLD);
  const int in_threads = world_rank != single;
  for (int n = 0; n < number && in_threads; n++) pthread_create(&threads[n], NULL, use_first, &comms[n]);
  long others = 0;
  for (int n = number - 1; n >= 0; n--) {
    void* ours = NULL;
    if (in_threads)
      pthread_join(threads[n], &ours);
    else
      ours = use_first(&comms[n]);
    others += ours == NULL;
  }
  for (int n = 0; n < number; n++) MPI_Comm_free(&comms[n]);
  free(comms);
  free(threads);
  return others;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  number = argc > 2 ? atoi(argv[2]) : 0;
  single = argc > 3 ? atoi(argv[3]) : -1;
  if (!strcmp(what, "locked") && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    printf("SKIP mlockall: %s\n", strerror(errno));
    return 0;
  }
  start(&argc, &argv, !strcmp(what, "threads") || !strcmp(what, "at_once") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  double seconds = 0;
  long grown = 0;
  if (!strcmp(what, "callback"))
    callback();
  else if (!strcmp(what, "handler"))
    handler();
  else if (!strcmp(what, "invalid"))
    invalid();
  else if (!strcmp(what, "refused"))
    refused();
  else if (!strcmp(what, "files"))
    files();
  else if (!strcmp(what, "limit"))
    seconds = limit();
  else if (!strcmp(what, "locked"))
    grown = locked();
  else if (!strcmp(what, "deep"))
    deep();
  else if (!strcmp(what, "vast"))
    seconds = vast();
  else if (!strcmp(what, "bad_w"))
    bad_w();
  else if (!strcmp(what, "in_place"))
    in_place();
  else if (!strcmp(what, "zeros"))
    zeros();
  else if (!strcmp(what, "threads"))
    grown = threads();
  else if (!strcmp(what, "mistake"))
    mistake();
  else if (!strcmp(what, "many"))
    seconds = many();
  else if (!strcmp(what, "at_once"))
    grown = at_once();
  else
    CHECK(0, "no such use: %s", what);
  check_sum(MPI_COMM_WORLD);
  printf("RESULT {\"rank\": %d, \"seconds\": %.3f, \"grown\": %ld, \"path\": \"%s\"}\n", world_rank, seconds, grown,
         last_path());
  fflush(stdout);
  MPI_Finalize();
  files_afterwards();
  return 0;
}
