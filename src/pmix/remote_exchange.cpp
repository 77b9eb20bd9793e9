// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/remote_exchange.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kv/deadline.hpp"
#include "pmix/directive.hpp"
#include "pmix/timed_call.hpp"

namespace stretto::pmix {
namespace {

// The functions that Stretto calls, by their public names. A library in front of the PMIx library
// therefore sees these calls, too.
struct Client {
  decltype(&PMIx_Init) init;
  decltype(&PMIx_Finalize) finalize;
  decltype(&PMIx_Put) put;
  decltype(&PMIx_Commit) commit;
  decltype(&PMIx_Get) get;
  decltype(&PMIx_Fence) fence;
  decltype(&PMIx_Register_event_handler) watch;
  decltype(&PMIx_Deregister_event_handler) unwatch;
};

constinit Client g_client{};
constinit pmix_proc_t g_self{};
constinit bool g_joined = false;
constinit bool g_gone = false;  // whether the runtime's daemon is gone
constinit std::size_t g_watch = 0;

// The longest time of one query. The library then forgets it, and the caller asks again.
constexpr std::uint64_t kPatienceNs = 10'000'000'000;

template <class Function>
bool find(void* library, const char* name, Function* function) {
  void* address = dlsym(RTLD_DEFAULT, name);
  if (!address) address = dlsym(library, name);  // a library that an MPI has loaded for itself
  *function = reinterpret_cast<Function>(address);
  return address != nullptr;
}

bool find_client() {
  // the one that is loaded, if any; it stays loaded
  void* const library = dlopen("libpmix.so.2", RTLD_LAZY | RTLD_LOCAL);
  return library && find(library, "PMIx_Init", &g_client.init) && find(library, "PMIx_Finalize", &g_client.finalize) &&
         find(library, "PMIx_Put", &g_client.put) && find(library, "PMIx_Commit", &g_client.commit) &&
         find(library, "PMIx_Get", &g_client.get) && find(library, "PMIx_Fence", &g_client.fence) &&
         find(library, "PMIx_Register_event_handler", &g_client.watch) &&
         find(library, "PMIx_Deregister_event_handler", &g_client.unwatch);
}

void on_lost(std::size_t, pmix_status_t, const pmix_proc_t*, pmix_info_t*, std::size_t, pmix_info_t*, std::size_t,
             pmix_event_notification_cbfunc_fn_t done, void* data) {
  __atomic_store_n(&g_gone, true, __ATOMIC_RELEASE);
  if (done) done(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, data);
}

pmix_value_t* value_of(std::uint32_t rank, const char* key) {
  pmix_proc_t proc = g_self;
  proc.rank = rank;
  pmix_value_t* value = nullptr;
  return g_client.get(&proc, key, nullptr, 0, &value) == PMIX_SUCCESS ? value : nullptr;
}

std::uint32_t job_size() {
  pmix_value_t* const value = value_of(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
  if (!value) return 0;
  const std::uint32_t size = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
  std::free(value);
  return size;
}

// A text from malloc, which the caller frees. null: there is none.
char* text_of(std::uint32_t rank, const char* key) {
  pmix_value_t* const value = value_of(rank, key);
  if (!value) return nullptr;
  char* const text = value->type == PMIX_STRING ? value->data.string : nullptr;
  std::free(value);
  return text;
}

// Reads the ranks of the job on this node from a list such as "0,1,4", and sorts them.
Status find_peers(RuntimeClient* client) {
  char* const list = text_of(PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS);
  if (!list) return Status::unavailable;
  client->here = static_cast<std::uint32_t*>(std::malloc((std::strlen(list) / 2 + 1) * sizeof *client->here));
  client->count_here = 0;
  for (char* at = list; client->here && *at != 0;) {
    char* end = nullptr;
    const unsigned long rank = std::strtoul(at, &end, 10);
    if (end == at) break;
    client->here[client->count_here++] = static_cast<std::uint32_t>(rank);
    at = end + (*end == ',');
  }
  std::free(list);
  if (!client->here) return Status::no_memory;
  std::sort(client->here, client->here + client->count_here);
  return std::binary_search(client->here, client->here + client->count_here, g_self.rank) ? Status::ok
                                                                                          : Status::unavailable;
}

// Finds the lowest rank on each rank's node. Hosts have names in every runtime. OpenPMIx 4.2 knows
// numbers (PMIX_NODEID) of its own node only.
Status find_first(RuntimeClient* client) {
  struct Home {
    char* host;  // null: unknown, so no other rank shares it
    std::uint32_t rank;
  };
  const auto same = [](const Home& a, const Home& b) { return a.host && b.host && std::strcmp(a.host, b.host) == 0; };
  const auto before = [](const Home& a, const Home& b) {
    const int order = std::strcmp(a.host ? a.host : "", b.host ? b.host : "");
    return order != 0 ? order < 0 : a.rank < b.rank;
  };
  client->first = static_cast<std::uint32_t*>(std::malloc(client->ranks * sizeof *client->first));
  auto* const homes = static_cast<Home*>(std::malloc(client->ranks * sizeof(Home)));
  if (!client->first || !homes) {
    std::free(homes);
    return Status::no_memory;
  }
  for (std::uint32_t r = 0; r < client->ranks; ++r) homes[r] = {text_of(r, PMIX_HOSTNAME), r};
  std::sort(homes, homes + client->ranks, before);
  for (std::uint32_t i = 0; i < client->ranks; ++i) {
    const bool joins = i != 0 && same(homes[i - 1], homes[i]);
    client->first[homes[i].rank] = joins ? client->first[homes[i - 1].rank] : homes[i].rank;
  }
  for (std::uint32_t i = 0; i < client->ranks; ++i) std::free(homes[i].host);
  std::free(homes);
  return Status::ok;
}

bool is_gone() { return __atomic_load_n(&g_gone, __ATOMIC_ACQUIRE); }

void name_batch(char* key, std::size_t capacity, std::uint64_t number) {
  std::snprintf(key, capacity, "stretto.kv.%llu", static_cast<unsigned long long>(number));
}

kv::Outcome outcome_of(pmix_status_t status) {
  if (is_gone()) return kv::Outcome::peer_gone;
  switch (status) {
    case PMIX_OPERATION_SUCCEEDED:
    case PMIX_SUCCESS: return kv::Outcome::found;
    case PMIX_ERR_NOT_FOUND: return kv::Outcome::not_found;
    case PMIX_ERROR:  // how OpenPMIx 5 reports it
    case PMIX_ERR_TIMEOUT: return kv::Outcome::timed_out;
    case PMIX_ERR_NOMEM: return kv::Outcome::no_memory;
    case PMIX_ERR_UNREACH:
    case PMIX_ERR_COMM_FAILURE:
    case PMIX_ERR_LOST_CONNECTION: return kv::Outcome::peer_gone;
    default: return kv::Outcome::failed;
  }
}

pmix_status_t call_commit(TimedCall&) { return g_client.commit(); }

pmix_status_t call_fence(TimedCall&) { return g_client.fence(nullptr, 0, nullptr, 0); }

pmix_status_t call_get(TimedCall& timed) {
  pmix_value_t* value = nullptr;
  const pmix_status_t status = g_client.get(&timed.proc, timed.key, timed.directives, timed.count, &value);
  if (status != PMIX_SUCCESS || !value) return status;
  if (value->type == PMIX_BYTE_OBJECT) {
    timed.value = {value->data.bo.bytes, value->data.bo.size};  // from malloc; this process owns it now
  }
  std::free(value);
  return status;
}

kv::Outcome run(TimedCall* timed, pmix_status_t (*call)(TimedCall&), std::uint64_t timeout_ns,
                kv::Fetched* brought = nullptr) {
  pmix_status_t status = PMIX_SUCCESS;
  const kv::Outcome outcome = timed->run(call, timeout_ns, &g_gone, &status, brought);
  return outcome == kv::Outcome::found ? outcome_of(status) : outcome;
}

Status send(void*, std::uint64_t number, const void* data, std::size_t bytes) {
  if (is_gone()) return Status::peer_gone;
  char key[64];
  name_batch(key, sizeof key, number);
  pmix_value_t value{};
  value.type = PMIX_BYTE_OBJECT;
  value.data.bo = {static_cast<char*>(const_cast<void*>(data)), bytes};
  TimedCall* const timed = TimedCall::make();
  if (!timed || g_client.put(PMIX_REMOTE, key, &value) != PMIX_SUCCESS) {
    std::free(timed);
    return Status::no_memory;
  }
  return run(timed, call_commit, kv::kForEver) == kv::Outcome::found ? Status::ok : Status::peer_gone;
}

TimedCall* timed_call_for(std::uint32_t rank, std::uint64_t number) {
  TimedCall* const timed = TimedCall::make();
  if (!timed) return nullptr;
  timed->proc = g_self;
  timed->proc.rank = rank;
  name_batch(timed->key, sizeof timed->key, number);
  return timed;
}

kv::Outcome fetch(TimedCall* timed, std::uint64_t timeout_ns, kv::Fetched* fetched) {
  const kv::Outcome outcome = run(timed, call_get, timeout_ns, fetched);
  return outcome == kv::Outcome::found && !fetched->data ? kv::Outcome::failed : outcome;
}

kv::Outcome ask(void*, std::uint32_t rank, std::uint64_t number, std::uint64_t timeout_ns, kv::Fetched* fetched) {
  if (is_gone()) return kv::Outcome::peer_gone;
  timeout_ns = std::min(timeout_ns, kPatienceNs);
  TimedCall* const timed = timed_call_for(rank, number);
  if (!timed) return kv::Outcome::no_memory;
  timed->add(directive(PMIX_GET_REFRESH_CACHE, true));
  timed->add(directive(PMIX_TIMEOUT, static_cast<int>(timeout_ns / 1'000'000'000) + 1));
  return fetch(timed, timeout_ns, fetched);
}

kv::Outcome look(void*, std::uint32_t rank, std::uint64_t number, kv::Fetched* fetched) {
  if (is_gone()) return kv::Outcome::peer_gone;
  TimedCall* const timed = timed_call_for(rank, number);
  if (!timed) return kv::Outcome::no_memory;
  timed->add(directive(PMIX_OPTIONAL, true));
  return fetch(timed, kPatienceNs, fetched);
}

// Without PMIX_COLLECT_DATA, which runtimes treat in different ways (ADR 23).
kv::Outcome fence(void*, std::uint64_t timeout_ns) {
  if (is_gone()) return kv::Outcome::peer_gone;
  TimedCall* const timed = TimedCall::make();
  if (!timed) return kv::Outcome::no_memory;
  return run(timed, call_fence, timeout_ns);
}

}  // namespace

Status remote_join(RuntimeClient* client) {
  const char* const directory = std::getenv("PMIX_SERVER_TMPDIR");
  if (g_joined || !directory || !std::getenv("PMIX_NAMESPACE") || !find_client()) return Status::unavailable;
  if (g_client.init(&g_self, nullptr, 0) != PMIX_SUCCESS) return Status::unavailable;
  g_joined = true;
  pmix_status_t lost[] = {PMIX_ERR_LOST_CONNECTION, PMIX_ERR_UNREACH};
  const pmix_status_t watch = g_client.watch(lost, 2, nullptr, 0, on_lost, nullptr, nullptr);
  g_watch = watch >= 0 ? static_cast<std::size_t>(watch) : 0;
  *client = {g_self, directory, job_size(), nullptr, 0, nullptr};
  Status status = client->ranks != 0 && watch >= 0 ? find_peers(client) : Status::unavailable;
  if (status == Status::ok && client->count_here != client->ranks) status = find_first(client);
  if (status != Status::ok) {
    std::free(client->here);
    std::free(client->first);
    remote_leave();
  }
  return status;
}

kv::RemoteExchange remote_exchange() { return {nullptr, send, ask, look, fence}; }

void remote_leave() {
  if (!is_gone()) {  // a process without its runtime would wait for ever in PMIx_Finalize
    g_client.unwatch(g_watch, nullptr, nullptr);
    g_client.finalize(nullptr, 0);
  }
}

}  // namespace stretto::pmix
