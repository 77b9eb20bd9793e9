// SPDX-License-Identifier: BSD-3-Clause
// What a program does with data that may not be there yet: under_way BYTES [CASE ...]
// Each case makes an Alltoall of so many bytes to each rank, and at once does something with the
// buffer. Every byte is checked. A line for each case says how many bytes were wrong, and how many
// calls have returned early. No case: all but those that end the job.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "under_way_memory.h"
#include "under_way_system.h"

// ---- touching ----

static void reverse(void) {
  exchange(in);
  for (size_t at = all(); at-- > 0;) wrong += !is_right(in, (int)(at / each), at % each);
}

static void store(void) {  // a store waits for the page, too
  exchange(in);
  for (size_t at = 0; at < all(); at += 4096) in[at] = (char)(in[at] + 1);
  for (size_t at = 0; at < all(); at += 4096) in[at] = (char)(in[at] - 1);
  check(in);
}

static void in_place(void) {
  write_out(in);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_BYTE, in, (int)each, MPI_BYTE, MPI_COMM_WORLD);
  early += is_early();
  check(in);
}

static void* reader(void* part) {
  const size_t begin = *(const size_t*)part;
  long bad = 0;
  for (size_t at = begin; at < all(); at += 4) bad += !is_right(in, (int)(at / each), at % each);
  __atomic_fetch_add(&wrong, bad, __ATOMIC_RELAXED);
  return NULL;
}
static void threads(void) {
  exchange(in);
  pthread_t made[4];
  size_t begins[4];
  for (size_t t = 0; t < 4; ++t) {
    begins[t] = t;
    REQUIRE(pthread_create(&made[t], NULL, reader, &begins[t]) == 0);
  }
  for (int t = 0; t < 4; ++t) pthread_join(made[t], NULL);
}

static volatile sig_atomic_t handled;
static void on_alarm(int number) {
  (void)number;
  const size_t at = (size_t)handled * 100003 % all();
  wrong += !is_right(in, (int)(at / each), at % each);
  if (++handled < 3) raise(SIGUSR1);  // nested
  char byte = in[all() - 1];
  if (write(STDERR_FILENO, &byte, 0) != 0) wrong += 1;
}
static void handlers(void) {
  struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_NODEFER}, before;
  REQUIRE(sigaction(SIGUSR1, &action, &before) == 0);
  handled = 0;
  exchange(in);
  raise(SIGUSR1);
  check(in);
  REQUIRE(sigaction(SIGUSR1, &before, NULL) == 0);
}

static void masked(void) {  // all signals are blocked, before the call or after it
  sigset_t everything, before;
  sigfillset(&everything);
  sigprocmask(SIG_SETMASK, &everything, &before);
  exchange(in);
  char last = 0;
  int ends[2];
  REQUIRE(pipe(ends) == 0 && write(ends[1], in + all() - 1, 1) == 1 && read(ends[0], &last, 1) == 1);
  wrong += last != value(world_size - 1, world_rank, each - 1);
  sigprocmask(SIG_SETMASK, &before, NULL);
  check(in);
  exchange(in);
  sigprocmask(SIG_SETMASK, &everything, &before);
  REQUIRE(write(ends[1], in + all() / 2, 1) == 1 && read(ends[0], &last, 1) == 1);
  wrong += last != in[all() / 2];
  sigprocmask(SIG_SETMASK, &before, NULL);
  check(in);
  close(ends[0]);
  close(ends[1]);
}

// ---- MPI ----

static void communicators(void) {
  for (int i = 0; i < 3; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int j = 0; j < 5; ++j) exchange_on(comm, in);
    MPI_Comm_free(&comm);
    check(in);
  }
}

static void two_at_once(void) {
  char* const second = malloc(all());
  exchange(in);
  exchange(second);
  check(second);
  --turn;
  check(in);
  ++turn;
  // Both on one page: the second begins where the first ends.
  const size_t before = each;
  each = (before / 2) & ~(size_t)4095;
  each -= 100;
  exchange(in);
  exchange(in + all());
  check(in + all());
  --turn;
  check(in);
  ++turn;
  each = before;
  free(second);
}

// A call that waits for all its data comes between a deferred one and a system call.
static void after_another(void) {
  const int file = memfd_create("overlap", 0);
  const int few = 70000;
  char *to = malloc((size_t)(few * world_size)), *from = calloc((size_t)(few * world_size), 1);
  MPI_Datatype gaps;
  MPI_Type_create_resized(MPI_BYTE, 0, 2, &gaps);
  MPI_Type_commit(&gaps);
  exchange(in);
  MPI_Alltoall(to, few / 2, gaps, from, few / 2, gaps, MPI_COMM_WORLD);
  REQUIRE(write(file, in, all()) == (ssize_t)all());
  check(in);
  MPI_Type_free(&gaps);
  close(file);
  free(to);
  free(from);
}

static void open_send(void) {  // a long message of the MPI is under way
  const int next = (world_rank + 1) % world_size, last = (world_rank + world_size - 1) % world_size;
  const int bytes = 4 << 20;
  char *to = malloc((size_t)bytes), *from = calloc((size_t)bytes, 1);
  memset(to, world_rank + 1, (size_t)bytes);
  MPI_Request request;
  MPI_Isend(to, bytes, MPI_BYTE, next, 5, MPI_COMM_WORLD, &request);
  exchange(in);
  check(in);
  MPI_Recv(from, bytes, MPI_BYTE, last, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < bytes; ++i) wrong += from[i] != (char)(last + 1);
  free(to);
  free(from);
}

static void types(void) {  // a derived type that is freed at once
  MPI_Datatype ints, gaps;
  each = each / 64 * 64;
  MPI_Type_contiguous((int)(each / sizeof(int)), MPI_INT, &ints);
  MPI_Type_commit(&ints);
  write_out(out);
  MPI_Alltoall(out, 1, ints, in, 1, ints, MPI_COMM_WORLD);
  early += is_early();
  MPI_Type_free(&ints);
  check(in);
  MPI_Type_vector((int)(each / 64), 32, 64, MPI_BYTE, &gaps);
  MPI_Type_commit(&gaps);
  memset(in, 'g', all());
  write_out(out);
  MPI_Alltoall(out, 1, gaps, in, 1, gaps, MPI_COMM_WORLD);
  MPI_Type_free(&gaps);
  // Elements of `gaps` are 32 bytes shorter than its pattern.
  const size_t extent = each / 64 * 64 - 32;
  for (int from = 0; from < world_size; ++from) {
    for (size_t i = 0; i < extent; ++i) {
      const size_t sent = (size_t)world_rank * extent + i;
      const char theirs = value(from, (int)(sent / each), sent % each);
      wrong += in[(size_t)from * extent + i] != (i % 64 < 32 ? theirs : 'g');
    }
  }
}

static void vectors(void) {  // Alltoallv: gaps stay as they are, some blocks are empty
  int counts[64], places[64], sizes[64], begins[64];
  for (int r = 0; r < world_size; ++r) {
    counts[r] = (world_rank + r) % 3 == 0 ? 0 : (int)each - 1000 - world_rank - r;
    sizes[r] = counts[r];
    begins[r] = r * (int)each;
    places[r] = (world_size - 1 - r) * (int)each + 77;
  }
  for (int i = 0; i < 3; ++i) {
    write_out(out);
    memset(in, 'g', all());
    MPI_Alltoallv(out, counts, begins, MPI_BYTE, in, sizes, places, MPI_BYTE, MPI_COMM_WORLD);
    early += is_early();
    in[40] = 'h';  // in the page of a block
    for (int r = 0; r < world_size; ++r) {
      const char* const block = in + places[r];
      for (int b = 0; b < sizes[r]; ++b) wrong += block[b] != value(r, world_rank, (size_t)b);
      for (size_t b = (size_t)sizes[r]; b + 77 < each; ++b) wrong += block[b] != 'g';
    }
    wrong += in[40] != 'h';
  }
}

// Contributions are numbers, which the program changes as soon as the call has returned.
static void sums(void) {
  const int count = (int)(all() / sizeof(int));
  int *from = (int*)out, *to = (int*)in;
  for (int root = -2; root < world_size; ++root) {
    for (int in_place = 0; in_place < 2; ++in_place) {
      const int gets = root < 0 || root == world_rank;
      int* const own = in_place && gets ? to : from;
      ++turn;
      for (int i = 0; i < count; ++i) own[i] = (int)((unsigned)i * (unsigned)(world_rank + 1)) + turn;
      const void* const send = in_place && gets ? MPI_IN_PLACE : from;
      if (root < 0)
        MPI_Allreduce(send, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      else
        MPI_Reduce(send, to, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
      early += is_early();
      memset(from, 0, all());
      const int ranks = world_size * (world_size + 1) / 2;
      for (int i = count; gets && i-- > 0;) wrong += to[i] != (int)((unsigned)i * (unsigned)ranks) + world_size * turn;
    }
  }
}

static void at_the_end(void) { exchange(in); }  // MPI_Finalize, with data under way

static void killed(void) {
  exchange(in);
  check(in);
  MPI_Barrier(MPI_COMM_WORLD);
  each = 64 << 20;
  out = realloc(out, all());
  in = realloc(in, all());
  memset(in, 0, all());
  write_out(out);
  MPI_Alltoall(out, (int)each, MPI_BYTE, in, (int)each, MPI_BYTE, MPI_COMM_WORLD);
  if (world_rank == 1) kill(getpid(), SIGKILL);
  check(in);
}

static void report(const char* name) {
  long mine[2] = {wrong, early}, total[2] = {0, 0};
  MPI_Reduce(mine, total, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world_rank == 0) printf("RESULT {\"case\": \"%s\", \"wrong\": %ld, \"early\": %ld}\n", name, total[0], total[1]);
  fflush(stdout);
  wrong = early = 0;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
    int last;  // it ends the job, or MPI ends behind it
  } cases[] = {
      {"reverse", reverse, 0},
      {"store", store, 0},
      {"in_place", in_place, 0},
      {"threads", threads, 0},
      {"handlers", handlers, 0},
      {"masked", masked, 0},
      {"files", files, 0},
      {"streams", streams, 0},
      {"sockets", sockets, 0},
      {"forks", forks, 0},
      {"commands", commands, 0},
      {"freed", freed, 0},
      {"of data", of_data, 0},
      {"of bss", of_bss, 0},
      {"of stack", of_stack, 0},
      {"of thread stack", of_thread_stack, 0},
      {"of private file", of_private_file, 0},
      {"of shared file", of_shared_file, 0},
      {"of dropped", of_dropped, 0},
      {"of freed", of_freed, 0},
      {"of mergeable", of_mergeable, 0},
      {"of hugetlbfs", of_hugetlbfs, 0},
      {"of locked", of_locked, 0},
      {"of huge pages", of_huge_pages, 0},
      {"of pinned", of_pinned, 0},
      {"communicators", communicators, 0},
      {"two_at_once", two_at_once, 0},
      {"after_another", after_another, 0},
      {"open_send", open_send, 0},
      {"types", types, 0},
      {"vectors", vectors, 0},
      {"sums", sums, 0},
      {"at_the_end", at_the_end, 1},
      {"killed", killed, 1},
  };
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  if (argc > 1) each = (size_t)atol(argv[1]);
  const size_t wanted = each;
  out = malloc(all());
  in = malloc(all());
  memset(in, 1, all());
  for (int i = 0; i < 3; ++i) exchange(in);  // the members agree in the first one
  check(in);
  early = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    int asked = argc < 3 && !cases[i].last;
    for (int a = 2; a < argc; ++a) asked = asked || strcmp(argv[a], cases[i].name) == 0;
    if (!asked) continue;
    each = wanted;
    cases[i].run();
    if (!cases[i].last) report(cases[i].name);
  }
  MPI_Finalize();
  return wrong != 0;
}
