// SPDX-License-Identifier: BSD-3-Clause
// What a program does with data that may not be there yet: under_way BYTES [CASE ...]
// Each case makes an Alltoall of so many bytes to each rank, and at once does something with the
// buffer. Every byte is checked. A line for each case says how many bytes were wrong, and how many
// calls have returned early. No case: all but those that end the job.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pinned.h"
#include "robust.h"

extern char** environ;

static size_t each = 2 << 20;
static char *out, *in;
static int turn, early;
static volatile long wrong;

#define REQUIRE(condition)                                                             \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      fprintf(stderr, "rank %d, line %d: %s: %m\n", world_rank, __LINE__, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 2);                                                    \
    }                                                                                  \
  } while (0)

static char value(int from, int to, size_t i) { return (char)(from * 7 + to * 13 + (int)(i * 3) + turn); }

static size_t all(void) { return each * (size_t)world_size; }

static int is_early(void) {
  const char* (*last_path)(void) = (const char* (*)(void))dlsym(RTLD_DEFAULT, "stretto_last_path");
  return last_path != NULL && strcmp(last_path(), "deferred") == 0;
}

static void write_out(char* from) {
  ++turn;
  for (int to = 0; to < world_size; ++to) {
    for (size_t i = 0; i < each; ++i) from[(size_t)to * each + i] = value(world_rank, to, i);
  }
}

static void exchange_on(MPI_Comm comm, char* to) {
  write_out(out);
  MPI_Alltoall(out, (int)each, MPI_BYTE, to, (int)each, MPI_BYTE, comm);
  early += is_early();
  memset(out, 0, all());
}
static void exchange(char* to) { exchange_on(MPI_COMM_WORLD, to); }

static int is_right(const char* data, int from, size_t i) {
  return data[(size_t)from * each + i] == value(from, world_rank, i);
}
static void check(const char* data) {
  long bad = 0;
  for (int from = 0; from < world_size; ++from) {
    for (size_t i = 0; i < each; ++i) bad += !is_right(data, from, i);
  }
  wrong += bad;
}

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

// ---- system calls ----

static void files(void) {
  char name[] = "/tmp/overlap-XXXXXX";
  const int file = mkstemp(name);
  REQUIRE(file >= 0);
  unlink(name);
  char* const copy = malloc(all());
  exchange(in);
  REQUIRE(write(file, in, all()) == (ssize_t)all());
  REQUIRE(pread(file, copy, all(), 0) == (ssize_t)all());
  check(copy);
  // Two pieces, the later one first: each waits for its own pages.
  exchange(in);
  struct iovec pieces[2] = {{in + all() / 2, all() / 2}, {in, all() / 2}};
  REQUIRE(pwritev(file, pieces, 2, 0) == (ssize_t)(all() / 2 * 2));
  REQUIRE(pread(file, copy, all() / 2, 0) == (ssize_t)(all() / 2));
  wrong += memcmp(copy, in + all() / 2, all() / 2) != 0;
  check(in);
  // What is read into the buffer comes after the data.
  exchange(in);
  struct iovec into[2] = {{in + 5000, 3000}, {in + all() - 9000, 2000}};
  REQUIRE(preadv(file, into, 2, 0) == 5000);
  REQUIRE(pread(file, copy, 5000, 0) == 5000);
  wrong += memcmp(in + 5000, copy, 3000) != 0;
  wrong += memcmp(in + all() - 9000, copy + 3000, 2000) != 0;
  close(file);
  free(copy);
}

static void streams(void) {
  FILE* const file = tmpfile();
  REQUIRE(file != NULL);
  char* const copy = malloc(all());
  exchange(in);
  REQUIRE(fwrite(in, 1, all(), file) == all());
  rewind(file);
  REQUIRE(fread(copy, 1, all(), file) == all());
  check(copy);
  exchange(in);
  rewind(file);
  REQUIRE(fread(in, 1, all(), file) == all());  // the former data
  --turn;
  check(in);
  ++turn;
  fclose(file);
  free(copy);
}

static void* drain(void* end) {
  char* const copy = malloc(all());
  for (size_t got = 0; got < all();) {
    const ssize_t more = recv(*(int*)end, copy + got, all() - got, 0);
    if (more <= 0) break;
    got += (size_t)more;
  }
  check(copy);
  free(copy);
  return NULL;
}
static void sockets(void) {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  pthread_t made;
  REQUIRE(pthread_create(&made, NULL, drain, &ends[1]) == 0);
  exchange(in);
  for (size_t sent = 0; sent < all();) {
    const ssize_t more = send(ends[0], in + sent, all() - sent, 0);
    REQUIRE(more > 0);
    sent += (size_t)more;
  }
  pthread_join(made, NULL);
  close(ends[0]);
  close(ends[1]);
}

// ---- processes ----

static int exit_code(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
static void forks(void) {
  for (int i = 0; i < 3; ++i) {
    exchange(in);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      wrong = 0;
      check(in);
      _exit(wrong != 0);
    }
    memset(in, 0, 4096);  // the parent's, after the fork
    REQUIRE(exit_code(child) == 0);
  }
}
static void commands(void) {
  exchange(in);
  REQUIRE(system("exit 7") == 7 << 8);
  check(in);
  exchange(in);
  // The argument lies among the data.
  char* const word = in + all() / 2;
  strcpy(word, "exit 5");
  char* words[] = {(char*)"sh", (char*)"-c", word, NULL};
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ) == 0);
  REQUIRE(exit_code(child) == 5);
}

// ---- memory ----

static void freed(void) {
  for (int i = 0; i < 4; ++i) {
    char* data = malloc(all());
    exchange(data);
    if (i % 2 == 0) {
      free(data);
      continue;
    }
    data = realloc(data, all() + (16 << 20));
    REQUIRE(data != NULL);
    check(data);
    free(data);
  }
  char* const mapped = mmap(NULL, all(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  exchange(mapped);
  munmap(mapped, all());
  char* const again = mmap(mapped, all(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sleep(1);
  for (size_t at = 0; at < all(); at += 512) wrong += again[at] != 0;
  munmap(again, all());
}

// Buffers of many kinds: each call returns early, or waits for all its data.
static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static void of_kind_in(char* data, size_t most, int turns) {
  each = least(each, most / (size_t)world_size);
  // A rank returns early only if its sources have come, and their data have not.
  // On a busy machine that takes some turns.
  int any = 0;
  while (turns-- > 0 && !any) {
    exchange(data);
    check(data);
    exchange(data);
    for (size_t at = all(); at-- > 0;) wrong += !is_right(data, (int)(at / each), at % each);
    MPI_Allreduce(&early, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
}
// For memory whose calls return early, and for memory that may make them wait.
static void of_early(char* data, size_t most) { of_kind_in(data, most, 60); }
static void of_kind(char* data, size_t most) { of_kind_in(data, most, 2); }
enum { kSmall = 1 << 20 };
static char initialised[kSmall] = {1}, zeros[kSmall];
static void of_data(void) { of_kind(initialised, kSmall); }
static void of_bss(void) { of_early(zeros, kSmall); }
static void of_stack(void) {
  char on_stack[512 << 10];
  of_kind(on_stack, sizeof on_stack);
}

static char* volatile lent;
static volatile int is_back;
static void* lend_stack(void* unused) {
  char on_stack[512 << 10];
  memset(on_stack, 1, sizeof on_stack);
  lent = on_stack;
  while (!is_back) usleep(1000);
  return unused;
}
static void of_thread_stack(void) {
  pthread_t made;
  lent = NULL;
  is_back = 0;
  REQUIRE(pthread_create(&made, NULL, lend_stack, NULL) == 0);
  while (lent == NULL) usleep(1000);
  of_kind(lent, 512 << 10);
  is_back = 1;
  pthread_join(made, NULL);
}

static void of_file(int flags) {
  const int file = memfd_create("overlap", 0);
  REQUIRE(file >= 0 && ftruncate(file, (off_t)all()) == 0);
  char* const data = mmap(NULL, all(), PROT_READ | PROT_WRITE, flags, file, 0);
  REQUIRE(data != MAP_FAILED);
  of_kind(data, all());
  munmap(data, all());
  close(file);
}
static void of_private_file(void) { of_file(MAP_PRIVATE); }
static void of_shared_file(void) { of_file(MAP_SHARED); }

// Fresh memory, with a hint of the kernel's.
static void of_memory(int flags, int advice) {
  const size_t bytes = (all() + (2 << 20) - 1) >> 21 << 21;
  char* const data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (data == MAP_FAILED) return;  // the system has no pages set aside for hugetlbfs
  memset(data, 1, bytes);
  (void)madvise(data, bytes, advice);
  (flags & MAP_HUGETLB ? of_kind : of_early)(data, bytes);
  munmap(data, bytes);
}
static void of_dropped(void) { of_memory(0, MADV_DONTNEED); }
static void of_freed(void) { of_memory(0, MADV_FREE); }
static void of_mergeable(void) { of_memory(0, MADV_MERGEABLE); }
static void of_hugetlbfs(void) { of_memory(MAP_HUGETLB, MADV_NORMAL); }

static void of_locked(void) {
  char* const locked = mmap(NULL, all(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mlock(locked, all()) == 0) of_kind(locked, all());
  munmap(locked, all());
}
static void of_huge_pages(void) {
  char* const huge = aligned_alloc(2 << 20, (all() + (2 << 20) - 1) >> 21 << 21);
  madvise(huge, all(), MADV_HUGEPAGE);
  memset(huge, 1, all());
  of_early(huge, all());
  of_early(huge, all());
  free(huge);
}

// Pinned by the kernel, as by RDMA. What the kernel writes by its pin reaches the program.
static void of_pinned(void) {
  struct pinned ring;
  char* const data = mmap(NULL, all(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(data, 1, all());
  if (pin(&ring, data, all()) == 0) {
    of_kind(data, all());
    wrong += !write_by_pin(&ring, data + all() / 2, 12345);
    for (size_t i = 0; i < 12345; ++i) wrong += data[all() / 2 + i] != kByPin;
    exchange(data);
    wrong += !write_by_pin(&ring, data, 5);  // after the data of this page
    wrong += memcmp(data, "\x55\x55\x55\x55\x55", 5) != 0;
    unpin(&ring);
  }
  munmap(data, all());
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
