/* SPDX-License-Identifier: BSD-3-Clause
 * The store of a job on any number of nodes (stretto/kv.h): what each rank may see of the others,
 * and when.
 *
 *   kv_job semantics DIRECTORY     every rank says how many ranks it has met on how many hosts
 *   kv_job questions DIRECTORY     every rank says how often it asked PMIx for values in 10
 *                                  collecting fences
 *   kv_job lost DIRECTORY          gets and fences until the runtime is gone; every rank writes
 *                                  their results into a file of its own
 *
 * All hosts see DIRECTORY.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stretto/kv.h"

#define NEED(condition)                                                    \
  do {                                                                     \
    if (!(condition)) {                                                    \
      fprintf(stderr, "rank %u, line %d: %s\n", me, __LINE__, #condition); \
      exit(10);                                                            \
    }                                                                      \
  } while (0)

static stretto_kv* kv;
static uint32_t me, ranks;
static char hosts[64][64];
static const char* directory;
static const stretto_kv_options kNow = {1, 0, 0, 0}, kImmediate = {0, 1, 0, 0}, kShort = {0, 0, 0.2, 0},
                                kLong = {0, 0, 40, 0}, kRefresh = {0, 0, 40, 1};

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int get(uint32_t rank, const char* key, const stretto_kv_options* options, stretto_kv_value* value) {
  return stretto_kv_get(kv, NULL, rank, key, options, value);
}

/* The number found, or -1000 and the status. */
static int64_t number(uint32_t rank, const char* key, const stretto_kv_options* options) {
  stretto_kv_value value;
  const int status = get(rank, key, options, &value);
  if (status != STRETTO_KV_SUCCESS) return -1000 + status;
  NEED(value.type == STRETTO_KV_INT64);
  return value.data.int64;
}

static void put(stretto_kv_scope scope, const char* key, int64_t number_of_it) {
  stretto_kv_value value = {STRETTO_KV_INT64, 0, {0}};
  value.data.int64 = number_of_it;
  NEED(stretto_kv_put(kv, scope, key, &value) == STRETTO_KV_SUCCESS);
}

static void put_bytes(stretto_kv_type type, const char* key, const void* data, size_t bytes) {
  stretto_kv_value value = {type, bytes, {0}};
  value.data.bytes = (void*)data;
  NEED(stretto_kv_put(kv, STRETTO_KV_GLOBAL, key, &value) == STRETTO_KV_SUCCESS);
}

static void commit(void) { NEED(stretto_kv_commit(kv) == STRETTO_KV_SUCCESS); }
static void fence(int collect) { NEED(stretto_kv_fence(kv, collect, 40) == STRETTO_KV_SUCCESS); }
static int is_here(uint32_t rank) { return strcmp(hosts[rank], hosts[me]) == 0; }

static const char* file_of(const char* name) {
  static char path[1024];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

static void put_what_there_is(void) {
  static char large[1000000];
  gethostname(hosts[me], sizeof hosts[me]);
  memset(large, 'a' + (int)me, sizeof large);
  put_bytes(STRETTO_KV_STRING, "host", hosts[me], 0);
  put_bytes(STRETTO_KV_BYTES, "large", large, sizeof large);
  stretto_kv_value value = {STRETTO_KV_DOUBLE, 0, {0}};
  value.data.real = me / 8.0;
  NEED(stretto_kv_put(kv, STRETTO_KV_GLOBAL, "real", &value) == STRETTO_KV_SUCCESS);
  put(STRETTO_KV_LOCAL, "local", 100 + me);
  put(STRETTO_KV_REMOTE, "remote", 200 + me);
  put(STRETTO_KV_GLOBAL, "global", 300 + me);
  NEED(number(me, "remote", &kNow) == 200 + me);
  commit();
}

static void see_what_there_is(uint32_t rank) {
  stretto_kv_value value;
  NEED(get(rank, "host", &kLong, &value) == STRETTO_KV_SUCCESS && value.type == STRETTO_KV_STRING);
  strncpy(hosts[rank], value.data.string, sizeof hosts[rank] - 1);
  stretto_kv_value_free(&value);
  NEED(number(rank, "global", &kLong) == 300 + rank);
  NEED(get(rank, "real", &kLong, &value) == STRETTO_KV_SUCCESS && value.type == STRETTO_KV_DOUBLE &&
       value.data.real == rank / 8.0);
  NEED(get(rank, "large", &kLong, &value) == STRETTO_KV_SUCCESS && value.type == STRETTO_KV_BYTES &&
       value.bytes == 1000000);
  for (size_t i = 0; i < value.bytes; i += 999) NEED(((char*)value.data.bytes)[i] == 'a' + (int)rank);
  stretto_kv_value_free(&value);
  if (rank == me) return;
  NEED(number(rank, "local", &kShort) == (is_here(rank) ? 100 + (int)rank : -1000 + STRETTO_KV_TIMEOUT));
  NEED(number(rank, "remote", &kShort) == (is_here(rank) ? -1000 + STRETTO_KV_TIMEOUT : 200 + (int)rank));
}

/* Puts again. A rank that asks after a fence sees it. If the fence collects, the value is here. */
static void put_again(int round) {
  const int collects = round % 2;
  put(STRETTO_KV_GLOBAL, "again", 1000 * round + me);
  commit();
  fence(collects);
  for (uint32_t r = 0; r < ranks; ++r) {
    if (collects) NEED(number(r, "again", r % 2 ? &kNow : &kImmediate) == 1000 * round + r);
    NEED(number(r, "again", &kLong) == 1000 * round + r);
    NEED(number(r, "again", &kNow) == 1000 * round + r);
  }
  fence(0);
}

/* Without a fence: a get waits for its key, another asks for the newest. */
static void modex(void) {
  const uint32_t last = ranks - 1;
  if (me == last) {
    usleep(200000);
    put(STRETTO_KV_GLOBAL, "late", 1);
    commit();
    fclose(fopen(file_of("late1"), "w"));
  } else {
    NEED(number(last, "late", &kImmediate) == -1000 + STRETTO_KV_NOT_FOUND || access(file_of("late1"), F_OK) == 0);
    NEED(number(last, "late", NULL) == 1);
  }
  fence(0);
  if (me == last) {
    put(STRETTO_KV_GLOBAL, "late", 2);
    commit();
    fclose(fopen(file_of("late2"), "w"));
  }
  while (access(file_of("late2"), F_OK) != 0) usleep(10000);
  NEED(number(last, "late", &kRefresh) == 2);
  fence(0);
}

static void run_out_of_time(void) {
  stretto_kv_value value;
  const stretto_kv_options some = {0, 0, 0.3, 0};
  const double begin = now_s();
  NEED(get((me + 1) % ranks, "never", &some, &value) == STRETTO_KV_TIMEOUT);
  NEED(now_s() - begin > 0.29 && now_s() - begin < 10);
  fence(0);
  char name[32];
  if (me == 0) { /* late until all others have given up */
    for (uint32_t r = 1; r < ranks; ++r) {
      snprintf(name, sizeof name, "gave_up%u", r);
      while (access(file_of(name), F_OK) != 0) usleep(10000);
    }
    fence(0);
    fclose(fopen(file_of("came"), "w"));
  } else {
    NEED(stretto_kv_fence(kv, 0, 0.2) == STRETTO_KV_TIMEOUT);
    snprintf(name, sizeof name, "gave_up%u", me);
    fclose(fopen(file_of(name), "w"));
    while (access(file_of("came"), F_OK) != 0) usleep(10000);
    usleep(300000); /* the runtime ends on every node what it has begun */
  }
  fence(1);
  for (int round = 5; round <= 6; ++round) put_again(round);
}

static int semantics(void) {
  put_what_there_is();
  fence(0);
  unsigned others = 0, count = 0;
  for (uint32_t r = 0; r < ranks; ++r) {
    see_what_there_is(r);
    others += !is_here(r);
    unsigned first = 1;
    for (uint32_t s = 0; s < r; ++s) first &= strcmp(hosts[r], hosts[s]) != 0;
    count += first;
  }
  for (int round = 1; round <= 4; ++round) put_again(round);
  modex();
  run_out_of_time();
  fence(0);
  stretto_kv_close(kv);
  NEED(stretto_kv_open_job(&kv) == STRETTO_KV_UNAVAILABLE);
  printf("rank %u of %u: %u hosts, %u elsewhere\n", me, ranks, count, others);
  return 0;
}

/* Stands in front of the PMIx library's function: the store calls that by its public name. */
static _Atomic unsigned asked;
int PMIx_Get(const void* proc, const char* key, const void* info, size_t infos, void** value) {
  static int (*real)(const void*, const char*, const void*, size_t, void**);
  if (!real) *(void**)&real = dlsym(dlopen("libpmix.so.2", RTLD_LAZY | RTLD_LOCAL), "PMIx_Get");
  asked++;
  return real(proc, key, info, infos, value);
}

static int questions(void) {
  gethostname(hosts[me], sizeof hosts[me]);
  fence(1);
  const unsigned before = asked;
  for (int round = 0; round < 10; ++round) {
    put(STRETTO_KV_GLOBAL, "round", 1000 * round + me);
    commit();
    fence(1);
    for (uint32_t r = 0; r < ranks; ++r) NEED(number(r, "round", &kImmediate) == 1000 * round + r);
    fence(0); /* before any rank commits more */
  }
  printf("rank %u on %s asked %u\n", me, hosts[me], asked - before);
  stretto_kv_close(kv);
  return 0;
}

static int lost(void) {
  put(STRETTO_KV_GLOBAL, "n", 1);
  commit();
  fence(1);
  char name[32], line[64];
  snprintf(name, sizeof name, "ready%u", me);
  fclose(fopen(file_of(name), "w"));
  double begin = now_s(), longest = 0;
  int got = STRETTO_KV_TIMEOUT;
  while (got == STRETTO_KV_TIMEOUT && now_s() - begin < 60) {
    stretto_kv_value value;
    const double call = now_s();
    got = get((me + ranks / 2) % ranks, "never", &kShort, &value);
    longest = now_s() - call > longest ? now_s() - call : longest;
  }
  begin = now_s();
  const int met = stretto_kv_fence(kv, 0, 0);
  put(STRETTO_KV_GLOBAL, "n", 2);
  const int committed = stretto_kv_commit(kv);
  const int seen = number((me + ranks / 2) % ranks, "n", &kNow) == 1;
  stretto_kv_close(kv);
  snprintf(line, sizeof line, "%d %d %d %d %d\n", got, met, committed, seen, longest + now_s() - begin < 5);
  snprintf(name, sizeof name, "said%u~", me);
  FILE* const file = fopen(file_of(name), "w");
  fputs(line, file);
  fclose(file);
  char from[1024];
  strcpy(from, file_of(name));
  name[strlen(name) - 1] = 0;
  rename(from, file_of(name));
  _exit(0);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  directory = argv[2];
  const int status = stretto_kv_open_job(&kv);
  if (status != STRETTO_KV_SUCCESS) {
    printf("open: %s\n", stretto_kv_error(status));
    return 3;
  }
  me = stretto_kv_rank(kv);
  ranks = stretto_kv_ranks(kv);
  NEED(ranks <= 64);
  if (strcmp(argv[1], "questions") == 0) return questions();
  return strcmp(argv[1], "lost") == 0 ? lost() : semantics();
}
