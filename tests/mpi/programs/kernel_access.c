// SPDX-License-Identifier: BSD-3-Clause
// Data under way that somebody else has the kernel use: kernel_access BYTES [CASE ...]
// Each case makes Alltoalls of so many bytes to each rank. Then a thread, a child, a signal or the
// kernel itself uses the buffer. A line for each case says how much was wrong, and how many calls
// have returned early.
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "robust.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static size_t each = 1 << 20;
static char *out, *in;
static int turn, early;
static long wrong;

#define REQUIRE(condition)                                                             \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      fprintf(stderr, "rank %d, line %d: %s: %m\n", world_rank, __LINE__, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 2);                                                    \
    }                                                                                  \
  } while (0)

static size_t all(void) { return each * (size_t)world_size; }
static char value(int from, int to, size_t i) { return (char)(from * 11 + to * 5 + (int)(i * 7) + turn); }

static void exchange(char* to) {
  ++turn;
  for (int r = 0; r < world_size; ++r) {
    for (size_t i = 0; i < each; ++i) out[(size_t)r * each + i] = value(world_rank, r, i);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Alltoall(out, (int)each, MPI_BYTE, to, (int)each, MPI_BYTE, MPI_COMM_WORLD);
  early += is_early();
}
static void check(const char* data) {
  for (int r = 0; r < world_size; ++r) {
    for (size_t i = 0; i < each; ++i) wrong += data[(size_t)r * each + i] != value(r, world_rank, i);
  }
}
static void check_file(int file) {
  char* const copy = malloc(all());
  REQUIRE(pread(file, copy, all(), 0) == (ssize_t)all());
  check(copy);
  free(copy);
}
static int temporary_file(void) {
  char name[] = "/tmp/kernel-access-XXXXXX";
  const int file = mkstemp(name);
  REQUIRE(file >= 0 && unlink(name) == 0);
  return file;
}

// A rank returns early only if its data are not there yet. On a busy machine that takes some turns.
static void exchange_until_early(void) {
  int any = 0;
  for (int turns = 0; turns < 20 && !any; ++turns) {
    exchange(in);
    check(in);
    MPI_Allreduce(&early, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
}

static void nobody_else(void) { exchange_until_early(); }

// ---- threads and processes that were there before ----

static int to_pool[2], from_pool[2], pool_file;
static void* pool_main(void* unused) {
  char word = 0;
  while (read(to_pool[0], &word, 1) == 1) {
    FILE* const stream = fdopen(dup(pool_file), "w");
    const int failed = fwrite(in, 1, all(), stream) != all();
    word = (char)(failed | fclose(stream));
    if (write(from_pool[1], &word, 1) != 1) break;
  }
  return unused;
}
static void pool(void) {
  pthread_t made;
  char word = 1;
  pool_file = temporary_file();
  REQUIRE(pipe(to_pool) == 0 && pipe(from_pool) == 0);
  REQUIRE(pthread_create(&made, NULL, pool_main, NULL) == 0);
  exchange(in);
  REQUIRE(write(to_pool[1], &word, 1) == 1 && read(from_pool[0], &word, 1) == 1);
  wrong += word != 0;
  check_file(pool_file);
  close(to_pool[1]);
  pthread_join(made, NULL);
  close(pool_file);
}

static ssize_t write_in_background(int file, size_t bytes) {
  struct aiocb job = {.aio_fildes = file, .aio_buf = in, .aio_nbytes = bytes};
  const struct aiocb* const jobs[] = {&job};
  REQUIRE(aio_write(&job) == 0);
  while (aio_error(&job) == EINPROGRESS) aio_suspend(jobs, 1, NULL);
  return aio_return(&job);
}
static void background_files(void) {
  const int file = temporary_file();
  REQUIRE(write_in_background(file, 4096) == 4096);
  exchange(in);
  REQUIRE(write_in_background(file, all()) == (ssize_t)all());
  check_file(file);
  close(file);
}

static void child_reads(void) {
  int go[2], done[2];
  char word = 1;
  REQUIRE(pipe(go) == 0 && pipe(done) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char* const copy = malloc(all());
    struct iovec mine = {copy, all()}, theirs = {in, all()};
    if (read(go[0], &word, 1) != 1) _exit(1);
    word = process_vm_readv(getppid(), &mine, 1, &theirs, 1, 0) != (ssize_t)all();
    _exit(write(done[1], &word, 1) == 1 ? 0 : 1);
  }
  exchange(in);
  REQUIRE(write(go[1], &word, 1) == 1 && read(done[0], &word, 1) == 1);
  wrong += word != 0;
  waitpid(child, NULL, 0);
  check(in);
}

// ---- stacks, on which the kernel puts frames of signals ----

static volatile long ticks;
static void on_tick(int number) {
  (void)number;
  ++ticks;
}
static void tick_every(long microseconds) {
  const struct itimerval often = {{0, microseconds}, {0, microseconds}};
  REQUIRE(setitimer(ITIMER_REAL, &often, NULL) == 0);
}
static void catch_ticks(void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | flags};
  REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
}
static void compute(double seconds) {
  for (const double begin = MPI_Wtime(); MPI_Wtime() - begin < seconds;) {
  }
}

static __attribute__((noinline)) void on_the_stack(void) {
  char data[512 << 10];
  const size_t before = each;
  each = sizeof data / (size_t)world_size;
  exchange(data);
  if (turn % 2 == 0) check(data);
  each = before;
}
static void stack_of_a_function(void) {
  for (int i = 0; i < 4; ++i) {
    on_the_stack();
    (void)syscall(SYS_getppid);  // the function has returned
  }
  catch_ticks(on_tick, 0);
  tick_every(1000);
  for (int i = 0; i < 4; ++i) {
    on_the_stack();
    compute(0.01);
  }
  tick_every(0);
  catch_ticks(SIG_DFL, 0);
}

static void alternate_stack(void) {
  const stack_t own = {.ss_sp = in, .ss_size = all()}, none = {.ss_flags = SS_DISABLE};
  REQUIRE(sigaltstack(&own, NULL) == 0);
  catch_ticks(on_tick, SA_ONSTACK);
  exchange(in);
  raise(SIGALRM);
  REQUIRE(sigaltstack(&none, NULL) == 0);
  catch_ticks(SIG_DFL, 0);
}

static ucontext_t main_context, fibre_context;
static void fibre_main(void) {
  char data[512 << 10];
  each = sizeof data / (size_t)world_size;
  exchange(data);
  (void)syscall(SYS_getppid);
  check(data);
}
static void fibre(void) {
  const size_t bytes = 2 << 20, before = each;
  char* const stack = malloc(bytes);
  REQUIRE(getcontext(&fibre_context) == 0);
  fibre_context.uc_stack.ss_sp = stack;
  fibre_context.uc_stack.ss_size = bytes;
  fibre_context.uc_link = &main_context;
  makecontext(&fibre_context, fibre_main, 0);
  REQUIRE(swapcontext(&main_context, &fibre_context) == 0);
  each = before;
  free(stack);
}

// ---- handlers that use what lies between blocks ----

static volatile long* counter;
static void on_count(int number) {
  (void)number;
  ++*counter;
}
static void handlers_in_gaps(void) {
  const size_t block = each / 4, stride = block + each + 100;
  char *const from = malloc(block * (size_t)world_size), *const to = calloc(stride, (size_t)world_size);
  int counts[64], begins[64], places[64];
  for (int r = 0; r < world_size; ++r) {
    counts[r] = (int)block;
    begins[r] = r * (int)block;
    places[r] = r * (int)stride;
  }
  memset(from, world_rank + 1, block * (size_t)world_size);
  counter = (volatile long*)(((uintptr_t)to + block + each / 2) & ~(uintptr_t)7);
  const long before = ticks;
  catch_ticks(on_count, 0);
  tick_every(1000);
  for (int i = 0; i < 150; ++i) {
    MPI_Alltoallv(from, counts, begins, MPI_BYTE, to, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    early += is_early();
    for (int r = 0; r < world_size; ++r) wrong += to[(size_t)r * stride + block - 1] != r + 1;
  }
  tick_every(0);
  wrong += *counter == 0 || ticks != before;
  *counter = 0;
  for (int r = 0; r < world_size; ++r) {
    for (size_t i = block; i < stride; ++i) wrong += to[(size_t)r * stride + i] != 0;
  }
  catch_ticks(SIG_DFL, 0);
  free(from);
  free(to);
}

// A handler hands earlier data to the kernel while the next call begins.
static int handler_file;
static void on_write(int number) {
  (void)number;
  if (pwrite(handler_file, in, all(), 0) != (ssize_t)all()) ++wrong;
}
static void handlers_of_earlier_data(void) {
  char* const second = malloc(all());
  handler_file = temporary_file();
  exchange(in);
  catch_ticks(on_write, 0);
  tick_every(1000);
  exchange(second);
  compute(0.01);
  tick_every(0);
  check(second);
  --turn;
  check_file(handler_file);
  ++turn;
  catch_ticks(SIG_DFL, 0);
  close(handler_file);
  free(second);
}

// ---- the rest ----

static void populate(void) {
  for (int advice = MADV_POPULATE_READ; advice <= MADV_POPULATE_WRITE; ++advice) {
    char* const data = mmap(NULL, all(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    exchange(data);
    REQUIRE(madvise(data, all(), advice) == 0 || errno == EINVAL);  // EINVAL: before Linux 5.14
    check(data);
    munmap(data, all());
  }
}

static void windows(void) {
  for (int i = 0; i < 3; ++i) {
    char* memory = NULL;
    MPI_Win window;
    MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    exchange(in);
    wrong += is_early();
    check(in);
    MPI_Win_free(&window);
  }
  exchange_until_early();
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
  } cases[] = {
      {"nobody else", nobody_else},
      {"pool", pool},
      {"child reads", child_reads},
      {"stack of a function", stack_of_a_function},
      {"alternate stack", alternate_stack},
      {"fibre", fibre},
      {"handlers in gaps", handlers_in_gaps},
      {"handlers of earlier data", handlers_of_earlier_data},
      {"populate", populate},
      {"windows", windows},
      {"background files", background_files},  // its helper stays for a second
  };
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  if (argc > 1) each = (size_t)atol(argv[1]);
  out = malloc(all());
  in = malloc(all());
  memset(in, 1, all());
  for (int i = 0; i < 3; ++i) exchange(in);  // the members agree in the first one
  check(in);
  early = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    int asked = argc < 3;
    for (int a = 2; a < argc; ++a) asked = asked || strcmp(argv[a], cases[i].name) == 0;
    if (!asked) continue;
    cases[i].run();
    report(cases[i].name);
  }
  MPI_Finalize();
  return wrong != 0;
}
