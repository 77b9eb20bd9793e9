/* SPDX-License-Identifier: BSD-3-Clause
 * What a PMIx client can see: values of all kinds, scopes, values put again, refresh, timeouts,
 * direct modex, non-blocking gets. Each rank writes what it saw into a file of its own in the given
 * directory, so that two runs can be compared. Nothing here may depend on time.
 */
#include <pmix.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t me;
static uint32_t size;

static void show(const char* what, uint32_t rank, pmix_status_t rc, const pmix_value_t* v) {
  char text[256] = "";
  if (rc == PMIX_SUCCESS && v) switch (v->type) {
      case PMIX_STRING: snprintf(text, sizeof text, "'%.80s' of %zu", v->data.string, strlen(v->data.string)); break;
      case PMIX_BYTE_OBJECT:
      case PMIX_COMPRESSED_STRING: { /* OpenPMIx 5 hands long strings out as they travelled */
        unsigned sum = 0;
        for (size_t i = 0; i < v->data.bo.size; ++i) sum = sum * 31 + (unsigned char)v->data.bo.bytes[i];
        snprintf(text, sizeof text, "%zu bytes, sum %u", v->data.bo.size, sum);
        break;
      }
      case PMIX_DOUBLE: snprintf(text, sizeof text, "%g", v->data.dval); break;
      case PMIX_UINT64: snprintf(text, sizeof text, "%llu", (unsigned long long)v->data.uint64); break;
      case PMIX_UINT16: snprintf(text, sizeof text, "%u", v->data.uint16); break;
      case PMIX_BOOL: snprintf(text, sizeof text, "%d", v->data.flag); break;
      default: snprintf(text, sizeof text, "%d", v->data.integer);
    }
  printf("%u: %s of %d: %s type %d %s\n", me.rank, what, (int)rank, PMIx_Error_string(rc),
         rc == PMIX_SUCCESS && v ? v->type : 0, text);
}

static pmix_status_t get(const char* key, uint32_t rank, const pmix_info_t* info, size_t infos, const char* what) {
  pmix_proc_t proc = me;
  pmix_value_t* v = NULL;
  proc.rank = rank;
  const pmix_status_t rc = PMIx_Get(&proc, key, info, infos, &v);
  if (what) show(what, rank, rc, v);
  if (rc == PMIX_SUCCESS) PMIX_VALUE_RELEASE(v);
  return rc;
}

static void put(pmix_scope_t scope, const char* key, pmix_data_type_t type, const void* data) {
  pmix_value_t v;
  memset(&v, 0, sizeof v);
  PMIx_Value_load(&v, data, type);
  if (PMIx_Put(scope, key, &v) != PMIX_SUCCESS) printf("%u: put %s failed\n", me.rank, key);
  PMIX_VALUE_DESTRUCT(&v);
}

static void fence(int collect) {
  pmix_info_t info;
  const bool yes = true;
  PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
  if (PMIx_Fence(NULL, 0, collect ? &info : NULL, collect ? 1 : 0) != PMIX_SUCCESS)
    printf("%u: fence failed\n", me.rank);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static int waiting;

/* Takes a lock that the caller holds during the call: it must not run before the call returns. */
static void came(pmix_status_t rc, pmix_value_t* v, void* data) {
  pthread_mutex_lock(&mutex);
  show("nb", (uint32_t)(size_t)data, rc, v);
  --waiting;
  pthread_cond_signal(&arrived);
  pthread_mutex_unlock(&mutex);
}

static void get_nb(const char* key, uint32_t rank) {
  pmix_proc_t proc = me;
  proc.rank = rank;
  pthread_mutex_lock(&mutex);
  ++waiting;
  if (PMIx_Get_nb(&proc, key, NULL, 0, came, (void*)(size_t)rank) != PMIX_SUCCESS)
    --waiting, printf("%u: nb refused\n", me.rank);
  while (waiting) pthread_cond_wait(&arrived, &mutex);
  pthread_mutex_unlock(&mutex);
}

/* One rank waits for another without PMIx. */
static void meet_as(const char* folder, const char* what, int first) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder, what);
  if (first)
    fclose(fopen(path, "w"));
  else {
    while (access(path, F_OK) != 0) usleep(1000);
    unlink(path);
  }
}

static void meet(const char* folder, int first) { meet_as(folder, "met", first); }

/* The type of a value, and the number that it is. */
static void kind(const char* key, uint32_t rank, const pmix_info_t* info, size_t infos) {
  pmix_proc_t proc = me;
  pmix_value_t* v = NULL;
  proc.rank = rank;
  const pmix_status_t rc = PMIx_Get(&proc, key, info, infos, &v);
  const int found = rc == PMIX_SUCCESS && v;
  printf("%u: %s of %d: %s type %d %d\n", me.rank, key, (int)rank, PMIx_Error_string(rc), found ? v->type : 0,
         found && v->type == PMIX_INT ? v->data.integer : 0);
  if (found) PMIX_VALUE_RELEASE(v);
}

/* Rank 1 has fetched what the last rank has put. On one host rank 0 finds a part of that there, and
 * has old values of the rest.
 */
static void behind(const char* folder) {
  const uint32_t last = size - 1;
  const char* const ways[] = {"plain", "optional", "nb"};
  pmix_info_t refresh, optional;
  const bool yes = true;
  PMIX_INFO_LOAD(&refresh, PMIX_GET_REFRESH_CACHE, &yes, PMIX_BOOL);
  PMIX_INFO_LOAD(&optional, PMIX_OPTIONAL, &yes, PMIX_BOOL);
  for (int way = 0; way < 3; ++way) {
    char shown[32], fresh[32];
    snprintf(shown, sizeof shown, "shown%d", way);
    snprintf(fresh, sizeof fresh, "fresh%d", way);
    if (me.rank == last) {
      const int again = 5000 + way;
      put(PMIX_GLOBAL, "number", PMIX_INT, &again);
      put(PMIX_GLOBAL, shown, PMIX_INT, &again);
      put(PMIX_GLOBAL, fresh, PMIX_INT, &again);
      PMIx_Commit();
    }
    fence(1);
    if (me.rank == 1) {
      get(shown, last, &refresh, 1, shown);
      meet(folder, 1);
    }
    if (me.rank == 0) {
      meet(folder, 0);
      get(shown, last, NULL, 0, shown);
      if (way == 0) get("number", last, NULL, 0, ways[way]);
      if (way == 1) get(fresh, last, &optional, 1, ways[way]);
      if (way == 2) get_nb("number", last);
      get(fresh, last, &optional, 1, ways[way]);
      get("number", last, NULL, 0, ways[way]);
    }
    fence(0);
  }
}

/* The last rank puts again and tells rank 0 without a fence. Rank 0 refreshes another key, or the
 * key itself, which has another type now.
 */
static void between_fences(const char* folder) {
  const uint32_t last = size - 1;
  const int one = 1, two = 2;
  pmix_info_t refresh;
  const bool yes = true;
  PMIX_INFO_LOAD(&refresh, PMIX_GET_REFRESH_CACHE, &yes, PMIX_BOOL);
  for (int typed = 0; typed < 2; ++typed) {
    const char* const old = typed ? "old kind" : "old number";
    const char* const other = typed ? "other kind" : "other number";
    if (me.rank == last) {
      put(PMIX_GLOBAL, old, PMIX_INT, &one);
      put(PMIX_GLOBAL, other, PMIX_INT, &one);
      PMIx_Commit();
    }
    fence(0);
    if (me.rank == 0) {
      get(old, last, NULL, 0, "before");
      meet(folder, 1);
      meet_as(folder, "put", 0);
      kind(typed ? old : other, last, &refresh, 1);
      for (int n = 0; n < 2; ++n) kind(old, last, NULL, 0);
    }
    if (me.rank == last) {
      meet(folder, 0);
      pmix_proc_t procs[2] = {me, me};
      pmix_data_array_t array = {PMIX_PROC, 2, procs};
      if (typed)
        put(PMIX_GLOBAL, old, PMIX_DATA_ARRAY, &array);
      else
        put(PMIX_GLOBAL, old, PMIX_INT, &two);
      put(PMIX_GLOBAL, other, PMIX_INT, &two);
      PMIx_Commit();
      meet_as(folder, "put", 1);
    }
    fence(0);
  }
}

int main(int argc, char** argv) {
  char path[1024];
  if (argc != 2 || PMIx_Init(&me, NULL, 0) != PMIX_SUCCESS) return 1;
  snprintf(path, sizeof path, "%s/%u", argv[1], me.rank);
  if (!freopen(path, "w", stdout)) return 1;
  pmix_proc_t job = me;
  pmix_value_t* v;
  job.rank = PMIX_RANK_WILDCARD;
  if (PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &v) != PMIX_SUCCESS) return 2;
  size = v->data.uint32;
  PMIX_VALUE_RELEASE(v);
  for (int i = 0; i < 2; ++i) {
    get(PMIX_JOB_SIZE, PMIX_RANK_WILDCARD, NULL, 0, "job size");
    for (uint32_t r = 0; r < size; ++r) get(PMIX_LOCAL_RANK, r, NULL, 0, "local rank");
  }

  char* large = malloc(100000);
  memset(large, 'a' + (int)me.rank, 99999);
  large[99999] = 0;
  const int number = 100 + (int)me.rank;
  const double real = me.rank / 8.0;
  const uint64_t wide = ~(uint64_t)me.rank;
  const bool yes = true;
  pmix_byte_object_t object = {large, 50000};
  put(PMIX_GLOBAL, "number", PMIX_INT, &number);
  put(PMIX_GLOBAL, "real", PMIX_DOUBLE, &real);
  put(PMIX_GLOBAL, "wide", PMIX_UINT64, &wide);
  put(PMIX_GLOBAL, "flag", PMIX_BOOL, &yes);
  put(PMIX_GLOBAL, "large", PMIX_STRING, large);
  put(PMIX_LOCAL, "object", PMIX_BYTE_OBJECT, &object);
  get("number", me.rank, NULL, 0, "own before commit");
  PMIx_Commit();
  fence(1);
  for (int round = 0; round < 3; ++round) {
    for (uint32_t r = 0; r < size; ++r) {
      get("number", r, NULL, 0, "number");
      get("real", r, NULL, 0, "real");
      get("wide", r, NULL, 0, "wide");
      get("flag", r, NULL, 0, "flag");
      get("large", r, NULL, 0, "large");
      get("object", r, NULL, 0, "object");
      get_nb("number", r);
      get_nb("large", r);
    }
  }
  fence(0);

  /* Put again: a rank that asks for it after a fence sees it. */
  for (int round = 1; round <= 3; ++round) {
    pmix_info_t refresh;
    PMIX_INFO_LOAD(&refresh, PMIX_GET_REFRESH_CACHE, &yes, PMIX_BOOL);
    const int again = 1000 * round + (int)me.rank;
    char key[32];
    put(PMIX_GLOBAL, "number", PMIX_INT, &again);
    get("number", me.rank, NULL, 0, "own again");
    snprintf(key, sizeof key, "dynamic%d", round);
    put(PMIX_GLOBAL, key, PMIX_INT, &again);
    PMIx_Commit();
    fence(1);
    for (uint32_t r = 0; r < size; ++r) {
      get(key, r, NULL, 0, "dynamic");
      get(key, r, NULL, 0, "dynamic");
      get("number", r, NULL, 0, "number again");
      get("number", r, &refresh, 1, "number refreshed");
      get("number", r, NULL, 0, "number after refresh");
    }
    fence(0);
  }

  if (size > 2) behind(argv[1]);
  if (size > 2) between_fences(argv[1]);

  /* No rank puts this key: a get fails after the given time, again and again. */
  pmix_info_t timeout;
  const int seconds = 1;
  PMIX_INFO_LOAD(&timeout, PMIX_TIMEOUT, &seconds, PMIX_INT);
  if (me.rank == 0) get("never", 1, &timeout, 1, "never");
  pmix_info_t now;
  PMIX_INFO_LOAD(&now, PMIX_IMMEDIATE, &yes, PMIX_BOOL);
  get("never", (me.rank + 1) % size, &now, 1, "never, immediate");
  fence(0);

  /* Direct modex: no fence, the get waits for the put. */
  if (me.rank == 1) {
    usleep(100000);
    put(PMIX_GLOBAL, "late", PMIX_INT, &number);
    PMIx_Commit();
  } else {
    get("late", 1, NULL, 0, "late");
    get("late", 1, NULL, 0, "late");
  }
  fence(0);
  free(large);
  return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? 0 : 3;
}
