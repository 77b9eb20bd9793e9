/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A key-value store: what processes of a job tell each other before they can talk, with the semantics of PMIx (put,
 * commit, fence, get). On a node it lies in shared memory: readers take no lock and make no system call. Values of
 * ranks on other nodes come by the runtime's PMIx and are shared with the whole node.
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
  STRETTO_KV_BAD_PARAM = -3, /* also: a key that begins with "pmix", which is reserved */
  STRETTO_KV_NO_MEMORY = -4, /* also: no room on the file system of shared memory; what was put before is still there */
  STRETTO_KV_UNAVAILABLE = -5, /* the system refuses what the store needs; there is no runtime */
  STRETTO_KV_PEER_GONE = -6    /* a process that this call waits for has died or closed its store, or the runtime has */
} stretto_kv_status;

/* Rank of what belongs to the whole job, on this node: a process that opens the store as this rank puts it. */
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
  size_t bytes; /* of string (without its end) and bytes; set by get, read for STRETTO_KV_BYTES */
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
  int optional;     /* only what this process can see now: no waiting */
  int immediate;    /* only what this node has: the same */
  double timeout_s; /* of a get that waits for its key; 0: for ever */
  int refresh;      /* of a rank on another node: ask there, whatever this node has */
} stretto_kv_options;

/* Joins the store of a job on this node, as one of `local_ranks` ranks (the agent does not count). All processes name
 * the same directory and job; the file there is made when needed, and removed by stretto_kv_remove. */
int stretto_kv_open(const char* directory, const char* nspace, uint32_t rank, unsigned local_ranks, stretto_kv** kv);
/* Joins the store of the job that this process was started in, with all its ranks on all its nodes: it must be a client
 * of a PMIx runtime, whose client library is loaded here if it is not already. Unavailable: there is none, or this
 * process has opened its job's store before. The runtime removes the files. */
int stretto_kv_open_job(stretto_kv** kv);
void stretto_kv_close(stretto_kv* kv);
uint32_t stretto_kv_rank(const stretto_kv* kv);
uint32_t stretto_kv_ranks(const stretto_kv* kv); /* of the job; of one opened on this node alone: local_ranks */
int stretto_kv_remove(const char* directory, const char* nspace);

/* Keeps a value in this process. Others see it after the next commit, all values of a commit at once. */
int stretto_kv_put(stretto_kv* kv, stretto_kv_scope scope, const char* key, const stretto_kv_value* value);
int stretto_kv_commit(stretto_kv* kv);

/* Waits until all ranks are here: what they committed before is then what gets find. `collect`: it is brought to this
 * node, so that optional and immediate gets find it, too. 0 s: for ever. */
int stretto_kv_fence(stretto_kv* kv, int collect, double timeout_s);

/* The value that `rank` of `nspace` (NULL: one's own) has committed under `key`; one's own rank: has put. Unless told
 * otherwise, waits until there is one. Of this node's ranks the newest value, always; their remote values are not
 * found. Of other nodes' ranks one that is no older than this process' last fence, and not their local values. `value`
 * is the caller's, to be freed by stretto_kv_value_free. */
int stretto_kv_get(stretto_kv* kv, const char* nspace, uint32_t rank, const char* key,
                   const stretto_kv_options* options, stretto_kv_value* value);
void stretto_kv_value_free(stretto_kv_value* value);

const char* stretto_kv_error(int status);

#ifdef __cplusplus
}
#endif
#endif
