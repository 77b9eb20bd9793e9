// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/query.hpp"

#include <cstring>

namespace stretto::pmix {
namespace {

constexpr const char* kJobKeys[] = {
    PMIX_JOB_SIZE,     PMIX_UNIV_SIZE,       PMIX_LOCAL_SIZE, PMIX_MAX_PROCS, PMIX_NUM_NODES, PMIX_JOB_NUM_APPS,
    PMIX_APP_SIZE,     PMIX_LOCAL_RANK,      PMIX_NODE_RANK,  PMIX_APPNUM,    PMIX_APP_RANK,  PMIX_GLOBAL_RANK,
    PMIX_NPROC_OFFSET, PMIX_HOSTNAME,        PMIX_NODEID,     PMIX_NODE_LIST, PMIX_NODE_MAP,  PMIX_PROC_MAP,
    PMIX_LOCAL_PEERS,  PMIX_LOCALLDR,        PMIX_APPLDR,     PMIX_CPUSET,    PMIX_TMPDIR,    PMIX_NSDIR,
    PMIX_ANL_MAP,      PMIX_LOCALITY_STRING,
};

bool is_job_key(const char* key) {
  for (const char* const known : kJobKeys) {
    if (std::strcmp(key, known) == 0) return true;
  }
  return false;
}

bool is_true(const pmix_info_t& info) {
  return info.value.type == PMIX_UNDEF || (info.value.type == PMIX_BOOL && info.value.data.flag);
}

bool is(const pmix_info_t& info, const char* key) { return std::strcmp(info.key, key) == 0; }

}  // namespace

Query classify(const pmix_proc_t* proc, const pmix_proc_t& self, const char* key, const pmix_info_t* info,
               std::size_t infos) {
  Query query;
  if (!proc || proc->nspace[0] == 0) return query;
  const bool reserved = key && std::strncmp(key, "pmix", 4) == 0;
  query.put = !reserved && proc->rank <= PMIX_RANK_VALID &&
              (proc->rank != self.rank || std::strcmp(proc->nspace, self.nspace) != 0);
  if (!key || key[0] == 0 || proc->rank == PMIX_RANK_UNDEF) return query;
  bool optional = false;
  for (std::size_t i = 0; i < infos; ++i) {
    if (is(info[i], PMIX_OPTIONAL)) {
      optional = is_true(info[i]);
    } else if (is(info[i], PMIX_GET_REFRESH_CACHE)) {
      query.refresh = is_true(info[i]);
    } else if (!is(info[i], PMIX_IMMEDIATE) && !is(info[i], PMIX_TIMEOUT)) {
      return query;
    }
  }
  if (reserved) {
    if (is_job_key(key)) query.kind = Kind::job;
  } else if (query.put && !optional) {  // optional: only what this process's library has
    query.kind = Kind::modex;
  }
  return query;
}

}  // namespace stretto::pmix
