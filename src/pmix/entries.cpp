// SPDX-License-Identifier: BSD-3-Clause
// The functions that libstretto-pmix.so puts in front of the PMIx client library (LD_PRELOAD).
// Where that is allowed, kept values answer gets (query.hpp, value_cache.hpp). Everything else goes
// on to the library. So does every call before PMIx_Init and after the last PMIx_Finalize, in
// servers and tools, and with STRETTO=off or STRETTO_PMIX=off.
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/log.hpp"
#include "base/options.hpp"
#include "pmix/directive.hpp"
#include "pmix/pmix_library.hpp"
#include "pmix/value_cache.hpp"
#include "pmix/values.hpp"

#define STRETTO_PMIX_EXPORT extern "C" __attribute__((visibility("default")))

using stretto::pmix::directive;
using stretto::pmix::Inside;
using stretto::pmix::Kind;
using stretto::pmix::library;
using stretto::pmix::Query;
using stretto::pmix::ValueCache;

namespace {

namespace kv = stretto::kv;

// Raw memory, so that no code of Stretto's runs before the first call. The cache is open from the
// first PMIx_Init to the last PMIx_Finalize.
alignas(ValueCache) char g_value_cache[sizeof(ValueCache)];
constinit pmix_proc_t g_self{};
constinit int g_inits = 0;
constinit bool g_open = false;
pthread_mutex_t g_life = PTHREAD_MUTEX_INITIALIZER;

ValueCache& value_cache() { return *reinterpret_cast<ValueCache*>(g_value_cache); }
bool serves() { return __atomic_load_n(&g_open, __ATOMIC_ACQUIRE) && !Inside::is(); }

// Runs under the lock. Large objects are static, because the caller's stack may be small.
bool wanted() {
  alignas(stretto::Options) static constinit char memory[sizeof(stretto::Options)] = {};
  auto& options = *new (memory) stretto::Options;
  static constinit stretto::OptionsReport report{};
  (void)stretto::options_load(options, report);  // the MPI library reports wrong settings
  stretto::log_set_level(options.log());
  return options.enabled() && options.pmix();
}

void begin(const pmix_proc_t& self) {
  pthread_mutex_lock(&g_life);
  if (g_inits++ == 0 && wanted()) {
    g_self = self;
    stretto::log_set_rank(static_cast<int>(self.rank));
    __atomic_store_n(&g_open, (new (g_value_cache) ValueCache)->open(self), __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&g_life);
}

// Stretto expects, as the library does, that no thread is in a get while another finalizes.
void end() {
  pthread_mutex_lock(&g_life);
  if (g_inits > 0 && --g_inits == 0 && g_open) {
    __atomic_store_n(&g_open, false, __ATOMIC_RELEASE);
    const stretto::pmix::Counts counts = value_cache().counts();
    stretto::log_line(stretto::LogLevel::info,
                      "PMIx_Get: %llu answered here, %llu by the node, %llu brought, %llu passed on",
                      static_cast<unsigned long long>(counts.own), static_cast<unsigned long long>(counts.shared),
                      static_cast<unsigned long long>(counts.missed), static_cast<unsigned long long>(counts.passed));
    value_cache().close();
  }
  pthread_mutex_unlock(&g_life);
}

void learn(const pmix_proc_t& proc, const char* key, Query query, ValueCache::Asked asked, pmix_status_t status,
           const pmix_value_t* value) {
  kv::Name name;
  if (status == PMIX_SUCCESS && value && serves() && kv::name_make(proc.nspace, proc.rank, key, &name)) {
    value_cache().learn(name, query, asked, *value);
  }
}

// A get that waits for the PMIx library's callback.
struct Pending {
  pmix_value_cbfunc_t callback;
  void* data;
  pmix_value_t* value;  // Stretto's answer; null: the library's answer is to be learned
  Query query;
  ValueCache::Asked asked;
  pmix_proc_t proc;
  char key[PMIX_MAX_KEYLEN + 1];
};

void answered(pmix_status_t status, pmix_value_t* value, void* data) {
  auto* const pending = static_cast<Pending*>(data);
  if (pending->value) {
    pending->callback(PMIX_SUCCESS, pending->value, pending->data);
    stretto::pmix::value_release(pending->value);
  } else {
    learn(pending->proc, pending->key, pending->query, pending->asked, status, value);
    pending->callback(status, value, pending->data);
  }
  std::free(pending);
}

// The callback must not run before the call returns, and must run where callbacks run. Stretto
// therefore makes a query that the PMIx library answers from its own memory, and answers in that
// query's callback.
pmix_status_t answer_later(Pending* pending) {
  const Inside inside;
  pmix_proc_t job = g_self;
  job.rank = PMIX_RANK_WILDCARD;
  const pmix_status_t status = library()->get_nb(&job, PMIX_JOB_SIZE, nullptr, 0, answered, pending);
  if (status == PMIX_SUCCESS) return status;
  stretto::pmix::value_release(pending->value);
  std::free(pending);
  return status;
}

// When another process's table has answered, the PMIx library first fetches that value before it is
// asked for more (value_cache.hpp).
constexpr Query kCatchUp{Kind::modex, true, true};

bool is_behind(const pmix_proc_t* proc, Query query, char (&key)[PMIX_MAX_KEYLEN + 1]) {
  return query.put && !query.refresh && value_cache().is_behind(*proc, key);
}

void catch_up(const pmix_proc_t& proc, const char* key) {
  const pmix_info_t info = directive(PMIX_GET_REFRESH_CACHE, true);
  pmix_value_t* value = nullptr;
  const ValueCache::Asked asked = value_cache().asking();
  pmix_status_t status = PMIX_SUCCESS;
  {
    const Inside inside;
    status = library()->get(&proc, key, &info, 1, &value);
  }
  learn(proc, key, kCatchUp, asked, status, value);
  if (status == PMIX_SUCCESS) stretto::pmix::value_release(value);
}

// A get that waits until the PMIx library has caught up.
struct Waiting {
  pmix_proc_t proc;
  char key[PMIX_MAX_KEYLEN + 1];  // what was asked for
  bool all;                       // no key was named: all keys
  const pmix_info_t* info;        // the caller's, valid until the callback has run
  std::size_t infos;
  pmix_value_cbfunc_t callback;
  void* data;
  ValueCache::Asked asked;
  pmix_info_t refresh;
  char shown[PMIX_MAX_KEYLEN + 1];  // the key that the library fetches first
};

void caught_up(pmix_status_t status, pmix_value_t* value, void* data) {
  auto* const waiting = static_cast<Waiting*>(data);
  learn(waiting->proc, waiting->shown, kCatchUp, waiting->asked, status, value);
  pmix_status_t asked = PMIX_SUCCESS;
  {
    const Inside inside;
    asked = library()->get_nb(&waiting->proc, waiting->all ? nullptr : waiting->key, waiting->info, waiting->infos,
                              waiting->callback, waiting->data);
  }
  if (asked != PMIX_SUCCESS) waiting->callback(asked, nullptr, waiting->data);
  std::free(waiting);
}

pmix_status_t ask_later(const pmix_proc_t* proc, const char* key, Query query, const pmix_info_t* info,
                        std::size_t infos, pmix_value_cbfunc_t callback, void* data) {
  const Inside inside;
  char shown[PMIX_MAX_KEYLEN + 1];
  auto* const waiting = is_behind(proc, query, shown) ? static_cast<Waiting*>(std::malloc(sizeof(Waiting))) : nullptr;
  if (!waiting) return library()->get_nb(proc, key, info, infos, callback, data);
  *waiting = {
      *proc, {}, !key, info, infos, callback, data, value_cache().asking(), directive(PMIX_GET_REFRESH_CACHE, true),
      {}};
  if (key) std::strncpy(waiting->key, key, PMIX_MAX_KEYLEN);
  std::memcpy(waiting->shown, shown, sizeof shown);
  const pmix_status_t status = library()->get_nb(proc, shown, &waiting->refresh, 1, caught_up, waiting);
  if (status != PMIX_SUCCESS) std::free(waiting);
  return status;
}

struct FencePending {
  pmix_op_cbfunc_t callback;
  void* data;
};

void fence_done(pmix_status_t status, void* data) {
  const FencePending pending = *static_cast<FencePending*>(data);
  std::free(data);
  if (serves()) value_cache().fenced();
  pending.callback(status, pending.data);
}

}  // namespace

STRETTO_PMIX_EXPORT pmix_status_t PMIx_Init(pmix_proc_t* proc, pmix_info_t info[], size_t ninfo) {
  if (!library()) return PMIX_ERR_NOT_SUPPORTED;
  if (Inside::is()) return library()->init(proc, info, ninfo);
  pmix_proc_t own{};
  pmix_proc_t* const self = proc ? proc : &own;
  pmix_status_t status = PMIX_SUCCESS;
  {
    const Inside inside;
    status = library()->init(self, info, ninfo);
  }
  if (status == PMIX_SUCCESS) begin(*self);
  return status;
}

STRETTO_PMIX_EXPORT pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t ninfo) {
  if (!library()) return PMIX_ERR_NOT_SUPPORTED;
  if (!Inside::is()) end();
  const Inside inside;
  return library()->finalize(info, ninfo);
}

STRETTO_PMIX_EXPORT pmix_status_t PMIx_Get(const pmix_proc_t* proc, const char key[], const pmix_info_t info[],
                                           size_t ninfo, pmix_value_t** value) {
  Query query;
  kv::Name name;
  if (serves()) {
    query = stretto::pmix::classify(proc, g_self, key, info, ninfo);
    if (!value || (query.kind != Kind::pass && !kv::name_make(proc->nspace, proc->rank, key, &name)))
      query.kind = Kind::pass;
    if (query.kind == Kind::pass) value_cache().pass();
  }
  if (query.kind != Kind::pass && !query.refresh) {
    if (pmix_value_t* const kept = value_cache().find(name, query.kind)) {
      *value = kept;
      return PMIX_SUCCESS;
    }
  }
  if (!library()) return PMIX_ERR_NOT_SUPPORTED;
  char shown[PMIX_MAX_KEYLEN + 1];
  if (is_behind(proc, query, shown)) catch_up(*proc, shown);
  const ValueCache::Asked asked = query.kind != Kind::pass ? value_cache().asking() : ValueCache::Asked{};
  pmix_status_t status = PMIX_SUCCESS;
  {
    const Inside inside;
    status = library()->get(proc, key, info, ninfo, value);
  }
  if (status == PMIX_SUCCESS && query.kind != Kind::pass && *value) value_cache().learn(name, query, asked, **value);
  return status;
}

STRETTO_PMIX_EXPORT pmix_status_t PMIx_Get_nb(const pmix_proc_t* proc, const char key[], const pmix_info_t info[],
                                              size_t ninfo, pmix_value_cbfunc_t callback, void* data) {
  if (!library()) return PMIX_ERR_NOT_SUPPORTED;
  Query query;
  kv::Name name;
  if (serves() && callback) {
    query = stretto::pmix::classify(proc, g_self, key, info, ninfo);
    if (query.kind != Kind::pass && !kv::name_make(proc->nspace, proc->rank, key, &name)) query.kind = Kind::pass;
  }
  auto* const pending = query.kind != Kind::pass ? static_cast<Pending*>(std::malloc(sizeof(Pending))) : nullptr;
  if (!pending) {
    if (serves()) value_cache().pass();
    return ask_later(proc, key, query, info, ninfo, callback, data);
  }
  *pending = {
      callback, data, query.refresh ? nullptr : value_cache().find(name, query.kind), query, value_cache().asking(),
      *proc,    {}};
  if (pending->value) return answer_later(pending);
  std::strncpy(pending->key, key, PMIX_MAX_KEYLEN);
  const pmix_status_t status = ask_later(proc, key, query, info, ninfo, answered, pending);
  if (status != PMIX_SUCCESS) std::free(pending);
  return status;
}

STRETTO_PMIX_EXPORT pmix_status_t PMIx_Fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                             size_t ninfo) {
  if (!library()) return PMIX_ERR_NOT_SUPPORTED;
  const bool outer = serves();
  pmix_status_t status = PMIX_SUCCESS;
  {
    const Inside inside;
    status = library()->fence(procs, nprocs, info, ninfo);
  }
  if (outer) value_cache().fenced();
  return status;
}

STRETTO_PMIX_EXPORT pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                                size_t ninfo, pmix_op_cbfunc_t callback, void* data) {
  if (!library()) return PMIX_ERR_NOT_SUPPORTED;
  auto* const pending = serves() && callback ? static_cast<FencePending*>(std::malloc(sizeof(FencePending))) : nullptr;
  const Inside inside;
  if (!pending) return library()->fence_nb(procs, nprocs, info, ninfo, callback, data);
  *pending = {callback, data};
  const pmix_status_t status = library()->fence_nb(procs, nprocs, info, ninfo, fence_done, pending);
  if (status != PMIX_SUCCESS) {
    std::free(pending);
    if (status == PMIX_OPERATION_SUCCEEDED) value_cache().fenced();  // it is done already; no callback comes
  }
  return status;
}
