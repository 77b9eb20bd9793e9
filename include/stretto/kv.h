/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A key-value store: what processes of a job tell each other before they can talk. It has the
 * semantics of PMIx (put, commit, fence, get). On a node it lies in shared memory: readers take no
 * lock and make no system call. Values of ranks on other nodes come by the runtime's PMIx, and the
 * whole node shares them.
 *
 *   stretto_kv* kv;
 *   stretto_kv_open_job(&kv);                  // under mpirun, prterun, srun --mpi=pmix
 *   stretto_kv_put(kv, STRETTO_KV_GLOBAL, "address", &value);
 *   stretto_kv_commit(kv);
 *   stretto_kv_fence(kv, 0, 0);
 *   stretto_kv_get(kv, NULL, peer, "address", NULL, &value);    ... stretto_kv_value_free(&value);
 *   stretto_kv_close(kv);
 *
 * Threads may share a store. Link with -lstretto-kv. */
#ifndef STRETTO_KV_H
#define STRETTO_KV_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stretto_kv stretto_kv;

typedef enum {
  STRETTO_KV_SUCCESS = 0,
  STRETTO_KV_NOT_FOUND = -1,
  STRETTO_KV_TIMEOUT = -2,
  STRETTO_KV_BAD_PARAM = -3,   /* also: a key that begins with "pmix", which is reserved */
  STRETTO_KV_NO_MEMORY = -4,   /* also: no room in the file system of shared memory; earlier values stay */
  STRETTO_KV_UNAVAILABLE = -5, /* the system refuses what the store needs, or there is no runtime */
  STRETTO_KV_PEER_GONE = -6    /* a process that this call waits for has died or left, or the runtime has died */
} stretto_kv_status;

/* The rank of values that belong to the whole job, on this node. A process that opens the store as
 * this rank puts them. */
#define STRETTO_KV_WILDCARD 0xfffffffeu

typedef enum {
  STRETTO_KV_LOCAL,  /* for processes of this node */
  STRETTO_KV_REMOTE, /* for processes of other nodes only */
  STRETTO_KV_GLOBAL
} stretto_kv_scope;

typedef enum {
  STRETTO_KV_BOOL,
  STRETTO_KV_INT64,
  STRETTO_KV_UINT64,
  STRETTO_KV_DOUBLE,
  STRETTO_KV_STRING,
  STRETTO_KV_BYTES
} stretto_kv_type;

typedef struct {
  stretto_kv_type type;
  size_t bytes; /* of string (without its 0) and bytes; get sets it, put reads it for bytes */
  union {
    int flag;
    int64_t int64;
    uint64_t uint64;
    double real;
    char* string;
    void* bytes;
  } data;
} stretto_kv_value;

typedef struct {
  int optional;     /* get only what this process can see now, without waiting */
  int immediate;    /* get only what this node has: the same */
  double timeout_s; /* of a get that waits for its key; 0: no limit */
  int refresh;      /* ask a rank on another node, whatever this node has */
} stretto_kv_options;

/* Joins the store of a job on this node, as one of `local_ranks` ranks. (The agent, which opens it
 * as STRETTO_KV_WILDCARD, does not count.) All processes name the same directory and job. The first
 * one makes the file there, and stretto_kv_remove removes it. */
int stretto_kv_open(const char* directory, const char* nspace, uint32_t rank, unsigned local_ranks, stretto_kv** kv);
/* Joins the store of the job that this process was started in, with all its ranks on all its nodes.
 * The process must be a client of a PMIx runtime. This call loads the runtime's client library if
 * it is not loaded already. Unavailable: there is no runtime, or this process has opened its job's
 * store before. The runtime removes the files. */
int stretto_kv_open_job(stretto_kv** kv);
void stretto_kv_close(stretto_kv* kv);
uint32_t stretto_kv_rank(const stretto_kv* kv);
uint32_t stretto_kv_ranks(const stretto_kv* kv); /* of the job; local_ranks after stretto_kv_open */
int stretto_kv_remove(const char* directory, const char* nspace);

/* Keeps a value in this process. Others see it after the next commit. They see all values of a
 * commit at once. */
int stretto_kv_put(stretto_kv* kv, stretto_kv_scope scope, const char* key, const stretto_kv_value* value);
int stretto_kv_commit(stretto_kv* kv);

/* Waits until all ranks have called it. Gets then find what the ranks committed before. With
 * `collect` it is also brought to this node, so that optional and immediate gets find it, too. A
 * timeout of 0 s is no limit. */
int stretto_kv_fence(stretto_kv* kv, int collect, double timeout_s);

/* Gets the value that `rank` of `nspace` has committed under `key`. NULL is the process's own
 * namespace. Of its own rank a process also gets what it has put and not committed. Unless
 * `options` say otherwise, the call waits until there is a value.
 *   - A rank of this node: always the newest value. Its remote values are not found.
 *   - A rank of another node: a value no older than this process's last fence. Its local values are
 *     not found.
 * The caller owns `value` and frees it by stretto_kv_value_free. */
int stretto_kv_get(stretto_kv* kv, const char* nspace, uint32_t rank, const char* key,
                   const stretto_kv_options* options, stretto_kv_value* value);
void stretto_kv_value_free(stretto_kv_value* value);

const char* stretto_kv_error(int status);

#ifdef __cplusplus
}
#endif
#endif
