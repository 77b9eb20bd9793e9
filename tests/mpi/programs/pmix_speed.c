/* SPDX-License-Identifier: BSD-3-Clause
 * How long PMIx's calls take, or the same calls of the store (stretto/kv.h). Prints medians of what
 * rank 0 has seen, in ns, on one line.
 *
 *   pmix_speed [store] [ROUNDS]
 *
 * In a round, all ranks meet, each puts two keys and commits, and all meet again. Then rank 0 asks
 * for keys of a rank far from it, on another node if there is one. The others sleep in the next
 * fence meanwhile. Every second fence collects data.
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stretto/kv.h"

enum { kGets = 2001, kMostRounds = 1000, kPatienceS = 40 };

#define NEED(condition)                                                                \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      fprintf(stderr, "pmix_speed: rank %u, line %d: %s\n", me, __LINE__, #condition); \
      exit(2);                                                                         \
    }                                                                                  \
  } while (0)

static unsigned me, ranks;
static pmix_proc_t self;
static stretto_kv* kv; /* NULL: by PMIx */

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void* a, const void* b) {
  return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

static double at(double* times, int count, double part) {
  qsort(times, (size_t)count, sizeof *times, by_size);
  return times[(int)(part * count)];
}

/* ---- The same calls of both ---- */

static void start(int by_store) {
  if (by_store) {
    NEED(stretto_kv_open_job(&kv) == STRETTO_KV_SUCCESS);
    me = stretto_kv_rank(kv);
    ranks = stretto_kv_ranks(kv);
    return;
  }
  pmix_value_t* size;
  NEED(PMIx_Init(&self, NULL, 0) == PMIX_SUCCESS);
  me = self.rank;
  pmix_proc_t job = self;
  job.rank = PMIX_RANK_WILDCARD;
  NEED(PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &size) == PMIX_SUCCESS);
  ranks = size->data.uint32;
  PMIX_VALUE_RELEASE(size);
}

static void put(const char* key, int number) {
  if (kv) {
    stretto_kv_value value = {STRETTO_KV_INT64, 0, {0}};
    value.data.int64 = number;
    NEED(stretto_kv_put(kv, STRETTO_KV_GLOBAL, key, &value) == STRETTO_KV_SUCCESS);
  } else {
    pmix_value_t value;
    value.type = PMIX_INT;
    value.data.integer = number;
    NEED(PMIx_Put(PMIX_GLOBAL, key, &value) == PMIX_SUCCESS);
  }
}

static void commit(void) {
  if (kv) {
    NEED(stretto_kv_commit(kv) == STRETTO_KV_SUCCESS);
  } else {
    NEED(PMIx_Commit() == PMIX_SUCCESS);
  }
}

static double fence(int collect) {
  const double begin = now_ns();
  if (kv) {
    NEED(stretto_kv_fence(kv, collect, kPatienceS) == STRETTO_KV_SUCCESS);
  } else {
    pmix_info_t info;
    bool yes = true;
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    NEED(PMIx_Fence(NULL, 0, collect ? &info : NULL, (size_t)collect) == PMIX_SUCCESS);
  }
  return now_ns() - begin;
}

static double get(unsigned rank, const char* key, int number) {
  double end;
  const double begin = now_ns();
  if (kv) {
    stretto_kv_value value;
    NEED(stretto_kv_get(kv, NULL, rank, key, NULL, &value) == STRETTO_KV_SUCCESS);
    end = now_ns();
    NEED(value.data.int64 == number);
  } else {
    pmix_value_t* value;
    pmix_proc_t peer = self;
    peer.rank = rank;
    NEED(PMIx_Get(&peer, key, NULL, 0, &value) == PMIX_SUCCESS);
    end = now_ns();
    NEED(value->data.integer == number);
    PMIX_VALUE_RELEASE(value);
  }
  return end - begin;
}

/* ---- Measuring ---- */

static double fences[2][kMostRounds], first[2][kMostRounds], second[2][kMostRounds], again[kGets];

int main(int argc, char** argv) {
  const int by_store = argc > 1 && strcmp(argv[1], "store") == 0;
  const int rounds = argc > 1 + by_store ? atoi(argv[1 + by_store]) : 41;
  if (rounds < 1 || rounds > kMostRounds) return 4;
  start(by_store);
  const unsigned far = (me + ranks / 2) % ranks;
  char keys[2][32];
  for (int i = 0; i < 2 * rounds; ++i) {
    const int collect = i % 2;
    for (int k = 0; k < 2; ++k) snprintf(keys[k], sizeof keys[k], "key%d.%d", i, k);
    fence(0);
    for (int k = 0; k < 2; ++k) put(keys[k], 10 * i + k);
    commit();
    fences[collect][i / 2] = fence(collect);
    if (me != 0) continue;
    first[collect][i / 2] = get(far, keys[0], 10 * i);
    second[collect][i / 2] = get(far, keys[1], 10 * i + 1);
  }
  if (me == 0) {
    for (int i = 0; i < kGets; ++i) again[i] = get(far, "key0.0", 0);
    printf(
        "{\"of\": \"%s\", \"ranks\": %u, \"fence_ns\": %.0f, \"first_ns\": %.0f, \"second_ns\": %.0f, "
        "\"collecting_fence_ns\": %.0f, \"collected_ns\": %.0f, \"again_ns\": %.0f, \"again_p90_ns\": %.0f}\n",
        kv ? "store" : "pmix", ranks, at(fences[0], rounds, 0.5), at(first[0], rounds, 0.5), at(second[0], rounds, 0.5),
        at(fences[1], rounds, 0.5), at(first[1], rounds, 0.5), at(again, kGets, 0.5), at(again, kGets, 0.9));
  }
  fence(0);
  if (kv) {
    stretto_kv_close(kv);
    return 0;
  }
  return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? 0 : 3;
}
