// SPDX-License-Identifier: BSD-3-Clause
// The odd lives of MPI objects around our calls.
//   session_life CASE       the cases are the functions below
// Prints RESULT with the path of the case's last collective, or SKIP.
#include <sys/wait.h>

#include "robust.h"

static void use(MPI_Comm comm, uint64_t seed) {
  int rank, size, root;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  static char big[40000];
  for (root = 0; root < size; root++) {
    size_t bytes = root % 2 ? sizeof big : 100;
    if (rank == root) fill(big, seed + (uint64_t)root, bytes);
    CHECK(MPI_Bcast(big, (int)bytes, MPI_BYTE, root, comm) == MPI_SUCCESS, "bcast");
    CHECK(mismatch(big, seed + (uint64_t)root, bytes) < 0, "bcast from %d", root);
  }
  int mine = 10 * rank + (int)seed, *all = malloc(sizeof(int) * (size_t)size);
  CHECK(MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm) == MPI_SUCCESS, "allgather");
  for (int r = 0; r < size; r++) CHECK(all[r] == 10 * r + (int)seed, "allgather: block %d is %d", r, all[r]);
  free(all);
  MPI_Barrier(comm);
}

static const char* finish(const char* path) {
  if (world_rank == 0) printf("RESULT {\"path\": \"%s\"}\n", path), fflush(stdout);
  return path;
}

// Some ranks are in no part, some parts have one rank.
static void undefined(void) {
  MPI_Comm part;
  int color = world_rank == 0 ? MPI_UNDEFINED : world_rank == 1 ? 1 : 2;
  MPI_Comm_split(MPI_COMM_WORLD, color, 0, &part);
  if (part != MPI_COMM_NULL) {
    use(part, 3);
    MPI_Comm_free(&part);
  }
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &part);  // all, in reverse order
  use(part, 5);
  MPI_Comm_free(&part);
  use(MPI_COMM_SELF, 7);
  use(MPI_COMM_WORLD, 9);
}

static int copies, deletes;
static int copy(MPI_Comm c, int k, void* extra, void* in, void* out, int* flag) {
  (void)c, (void)k, (void)extra;
  *(void**)out = in, *flag = 1, copies++;
  return MPI_SUCCESS;
}
static int drop(MPI_Comm c, int k, void* in, void* extra) {
  (void)c, (void)k, (void)in, (void)extra;
  deletes++;
  return MPI_SUCCESS;
}

// The program's own attributes are copied on dup and deleted on free, and ours is not copied with
// them.
static void attributes(void) {
  int key, flag;
  void* value = NULL;
  MPI_Comm first, second, third;
  MPI_Comm_create_keyval(copy, drop, &key, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_set_attr(first, key, &copies);
  use(first, 1);
  MPI_Comm_dup(first, &second);
  MPI_Comm_get_attr(second, key, &value, &flag);
  CHECK(flag && value == &copies && copies == 1, "copied %d times", copies);
  use(first, 2), use(second, 3);
  MPI_Comm_free(&first);
  CHECK(deletes == 1, "deleted %d times", deletes);
  use(second, 4);
  MPI_Comm_dup(second, &third);
  use(third, 5), use(second, 6);
  MPI_Comm_free(&second);
  use(third, 7);
  MPI_Comm_free(&third);
  CHECK(copies == 2 && deletes == 3, "%d copies, %d deletes", copies, deletes);
  MPI_Comm_free_keyval(&key);
  use(MPI_COMM_WORLD, 8);
}

// MPI_Finalize runs a delete callback of COMM_SELF's, and the standard lets that callback
// communicate.
static int last_words(MPI_Comm c, int k, void* in, void* extra) {
  (void)c, (void)k, (void)in, (void)extra;
  use(MPI_COMM_WORLD, 77);
  finish(last_path());
  return MPI_SUCCESS;
}
static void in_finalize(void) {
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_words, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  use(MPI_COMM_WORLD, 1);
}

static void intercommunicator(void) {
  MPI_Comm half, inter, merged;
  int upper = world_rank >= world_size / 2, rank;
  MPI_Comm_split(MPI_COMM_WORLD, upper, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : world_size / 2, 5, &inter);
  MPI_Comm_rank(half, &rank);
  int word = upper ? 0 : 4711;
  // Root group: rank 0 of the lower half sends, all of the upper half receive.
  MPI_Bcast(&word, 1, MPI_INT, upper ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
  CHECK(word == 4711, "bcast across gave %d", word);
  int mine = 100 * upper + rank, all[64];
  MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, inter);
  CHECK(all[0] == 100 * !upper, "allgather across gave %d", all[0]);
  MPI_Barrier(inter);
  CHECK(!path_is_ours(last_path()), "an intercommunicator is the host's");
  MPI_Intercomm_merge(inter, upper, &merged);
  use(merged, 3);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
  use(MPI_COMM_WORLD, 8);
}

// The root is done with a communicator while the others are still inside its last call.
static void free_early(void) {
  static char big[200000];
  for (int n = 0; n < 300; n++) {
    MPI_Comm c;
    MPI_Comm_split(MPI_COMM_WORLD, 0, world_rank, &c);
    int root = n % world_size;
    size_t bytes = n % 3 ? 64 : sizeof big;
    if (world_rank == root)
      fill(big, (uint64_t)n, bytes);
    else if (n % 10 == 0)
      sleep_ms(2);
    MPI_Bcast(big, (int)bytes, MPI_BYTE, root, c);
    MPI_Comm_free(&c);
    CHECK(mismatch(big, (uint64_t)n, bytes) < 0, "bcast %d", n);
  }
  use(MPI_COMM_WORLD, 4);
}

// One rank races ahead through many calls as root while another sleeps: nothing may be overwritten.
static void far_ahead(void) {
  enum { kCalls = 3000 };
  if (world_rank == world_size - 1) sleep_ms(200);
  for (int n = 0; n < kCalls; n++) {
    char word[200];
    size_t bytes = (size_t)(n % 200);
    if (world_rank == 0) fill(word, (uint64_t)n, bytes);
    MPI_Bcast(word, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    CHECK(mismatch(word, (uint64_t)n, bytes) < 0, "call %d", n);
  }
  use(MPI_COMM_WORLD, 4);
}

// fork and exec in a rank, and a child that leaves by _exit: neither may disturb the rank or take
// anything from it.
static void forks(void) {
  use(MPI_COMM_WORLD, 1);
  for (int n = 0; n < 5; n++) {
    pid_t child = fork();
    if (child == 0) {
      if (n % 2) _exit(0);
      execl("/bin/sh", "sh", "-c", "ls /proc/self/fd >/dev/null; exit 3", (char*)NULL);
      _exit(127);
    }
    use(MPI_COMM_WORLD, 2);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status), "the child");
    CHECK(WEXITSTATUS(status) == (n % 2 ? 0 : 3), "child %d gave %d", n, WEXITSTATUS(status));
  }
  CHECK(system("true") == 0, "system");
  FILE* p = popen("echo said", "r");
  char text[16] = "";
  CHECK(p && fgets(text, sizeof text, p) && !strcmp(text, "said\n"), "popen");
  pclose(p);
  use(MPI_COMM_WORLD, 3);
}

// MPI-IO and one-sided calls use collectives inside the host.
static void files(void) {
  MPI_File f;
  char name[256];
  const char* folder = getenv("TMPDIR");
  snprintf(name, sizeof name, "%s/io-test.data", folder ? folder : "/tmp");
  use(MPI_COMM_WORLD, 1);
  CHECK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &f) == MPI_SUCCESS,
        "open");
  int block[1000], back[1000];
  for (int n = 0; n < 5; n++) {
    for (int i = 0; i < 1000; i++) block[i] = world_rank * 1000 + i + n;
    CHECK(MPI_File_write_at_all(f, (MPI_Offset)world_rank * 4000, block, 1000, MPI_INT, MPI_STATUS_IGNORE) == 0,
          "write");
    use(MPI_COMM_WORLD, 2);
    memset(back, 0, sizeof back);
    CHECK(MPI_File_read_at_all(f, (MPI_Offset)world_rank * 4000, back, 1000, MPI_INT, MPI_STATUS_IGNORE) == 0, "read");
    CHECK(!memcmp(block, back, sizeof block), "file contents");
  }
  MPI_File_close(&f);
  use(MPI_COMM_WORLD, 3);
}

static void one_sided(void) {
  MPI_Win w;
  int *memory, next = (world_rank + 1) % world_size;
  use(MPI_COMM_WORLD, 1);
  MPI_Win_allocate(4000, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &w);
  for (int n = 0; n < 5; n++) {
    MPI_Win_fence(0, w);
    int value = world_rank * 10 + n;
    MPI_Put(&value, 1, MPI_INT, next, n, 1, MPI_INT, w);
    MPI_Win_fence(0, w);
    use(MPI_COMM_WORLD, 2);
    CHECK(memory[n] == ((world_rank + world_size - 1) % world_size) * 10 + n, "put gave %d", memory[n]);
  }
  MPI_Win_free(&w);
  use(MPI_COMM_WORLD, 3);
}

static void quiet_rank(void) {
  MPI_Comm part;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank == 0 ? MPI_UNDEFINED : 0, 0, &part);
  if (world_rank == 0) return;  // never calls a collective of ours
  use(part, 1);
}

static void mixed_nonblocking(void) {
  for (int n = 0; n < 200; n++) {
    int a = world_rank == 0 ? n : -1, b = world_rank == 1 % world_size ? n + 1 : -1, sum = 0;
    MPI_Request r[2];
    MPI_Ibcast(&a, 1, MPI_INT, 0, MPI_COMM_WORLD, &r[0]);
    MPI_Bcast(&b, 1, MPI_INT, 1 % world_size, MPI_COMM_WORLD);
    MPI_Iallreduce(&b, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    CHECK(a == n && b == n + 1 && sum == (n + 1) * world_size, "round %d: %d %d %d", n, a, b, sum);
  }
  use(MPI_COMM_WORLD, 3);
}

static const struct {
  const char* name;
  void (*run)(void);
} kCases[] = {{"undefined", undefined},
              {"attributes", attributes},
              {"in_finalize", in_finalize},
              {"intercommunicator", intercommunicator},
              {"free_early", free_early},
              {"far_ahead", far_ahead},
              {"forks", forks},
              {"files", files},
              {"one_sided", one_sided},
              {"quiet_rank", quiet_rank},
              {"mixed_nonblocking", mixed_nonblocking}};

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    if (strcmp(argv[1], kCases[i].name)) continue;
    kCases[i].run();
    if (strcmp(argv[1], "in_finalize") && strcmp(argv[1], "quiet_rank")) finish(last_path());
    if (!strcmp(argv[1], "quiet_rank") && world_rank == world_size - 1)
      printf("RESULT {\"path\": \"%s\"}\n", last_path());
    MPI_Finalize();
    return 0;
  }
  fprintf(stderr, "no case %s\n", argv[1]);
  return 2;
}
