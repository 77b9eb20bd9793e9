/* SPDX-License-Identifier: BSD-3-Clause
 * Medians, in ns: a PMIx_Get of a peer's key that is asked for again, and of a key asked for the first time. */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kGets = 2001, kKeys = 200 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void* a, const void* b) { return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b); }

static double timed(const pmix_proc_t* peer, const char* key) {
  pmix_value_t* v;
  const double begin = now_ns();
  if (PMIx_Get(peer, key, NULL, 0, &v) != PMIX_SUCCESS) exit(2);
  const double end = now_ns();
  PMIX_VALUE_RELEASE(v);
  return end - begin;
}

int main(void) {
  static double again[kGets], first[kKeys];
  pmix_proc_t me;
  char key[32];
  if (PMIx_Init(&me, NULL, 0) != PMIX_SUCCESS) return 1;
  for (int k = 0; k < kKeys; ++k) {
    pmix_value_t v;
    v.type = PMIX_INT;
    v.data.integer = k;
    snprintf(key, sizeof key, "key%d", k);
    PMIx_Put(PMIX_GLOBAL, key, &v);
  }
  PMIx_Commit();
  PMIx_Fence(NULL, 0, NULL, 0);
  pmix_proc_t peer = me;
  peer.rank = me.rank ^ 1;
  if (me.rank == 0) { /* alone: the other sleeps in the fence */
    for (int k = 0; k < kKeys; ++k) {
      snprintf(key, sizeof key, "key%d", k);
      first[k] = timed(&peer, key);
    }
    for (int i = 0; i < kGets; ++i) again[i] = timed(&peer, "key7");
    qsort(first, kKeys, sizeof *first, by_size);
    qsort(again, kGets, sizeof *again, by_size);
    printf("{\"first_ns\": %.0f, \"again_ns\": %.0f, \"again_p90_ns\": %.0f}\n", first[kKeys / 2], again[kGets / 2], again[kGets * 9 / 10]);
  }
  PMIx_Fence(NULL, 0, NULL, 0);
  return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? 0 : 3;
}
