// SPDX-License-Identifier: BSD-3-Clause
// Implements include/stretto/kv.h on the store of one process.
#include <cstdlib>
#include <cstring>
#include <new>

#include "kv/handle.hpp"

namespace stretto::kv {

int status_of(Status status) {
  switch (status) {
    case Status::ok: return STRETTO_KV_SUCCESS;
    case Status::no_memory: return STRETTO_KV_NO_MEMORY;
    case Status::invalid: return STRETTO_KV_BAD_PARAM;
    case Status::peer_gone: return STRETTO_KV_PEER_GONE;
    default: return STRETTO_KV_UNAVAILABLE;
  }
}

stretto_kv* handle_make() {
  void* const memory = std::calloc(1, sizeof(stretto_kv));
  return memory ? new (memory) stretto_kv : nullptr;
}

}  // namespace stretto::kv

namespace {

using namespace stretto;
using namespace stretto::kv;

int status_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::found: return STRETTO_KV_SUCCESS;
    case Outcome::not_found: return STRETTO_KV_NOT_FOUND;
    case Outcome::timed_out: return STRETTO_KV_TIMEOUT;
    case Outcome::peer_gone: return STRETTO_KV_PEER_GONE;
    case Outcome::no_memory: return STRETTO_KV_NO_MEMORY;
    case Outcome::failed: return STRETTO_KV_UNAVAILABLE;
  }
  return STRETTO_KV_UNAVAILABLE;
}

// 0 and less: without a limit.
std::uint64_t nanoseconds(double seconds) {
  return seconds > 0 && seconds < 1e9 ? static_cast<std::uint64_t>(seconds * 1e9) + 1 : kForEver;
}

bool is_reserved(const char* key) { return std::strncmp(key, "pmix", 4) == 0; }

bool is_text(const stretto_kv_value& value) {
  return value.type == STRETTO_KV_STRING || value.type == STRETTO_KV_BYTES;
}

// The form in which a value is stored: texts by their bytes, numbers by 8 bytes, flags as int.
// False: its type is unknown, or it is too long.
bool stored_form(const stretto_kv_value& value, Value* stored) {
  if (value.type < STRETTO_KV_BOOL || value.type > STRETTO_KV_BYTES) return false;
  stored->type = static_cast<std::uint16_t>(value.type);
  if (!is_text(value)) {
    stored->data = &value.data;
    stored->bytes = value.type == STRETTO_KV_BOOL ? sizeof value.data.flag : sizeof value.data.uint64;
    return true;
  }
  const std::size_t bytes = value.type == STRETTO_KV_BYTES ? value.bytes
                            : value.data.string            ? std::strlen(value.data.string)
                                                           : 0;
  stored->data = value.data.bytes;
  stored->bytes = static_cast<std::uint32_t>(bytes);
  return bytes < (std::size_t{1} << 31) && (value.data.bytes || (bytes == 0 && value.type == STRETTO_KV_BYTES));
}

// Makes the caller's copy of a value in a process's memory.
int copy_out(const Value& stored, stretto_kv_value* value) {
  *value = {};
  value->type = static_cast<stretto_kv_type>(stored.type);
  if (stored.type > STRETTO_KV_BYTES) return STRETTO_KV_NOT_FOUND;
  if (!is_text(*value)) {
    const std::size_t bytes = stored.type == STRETTO_KV_BOOL ? sizeof value->data.flag : sizeof value->data.uint64;
    if (stored.bytes != bytes) return STRETTO_KV_NOT_FOUND;
    std::memcpy(&value->data, stored.data, bytes);
    return STRETTO_KV_SUCCESS;
  }
  auto* const copy = static_cast<char*>(std::malloc(std::size_t{stored.bytes} + 1));
  if (!copy) return STRETTO_KV_NO_MEMORY;
  std::memcpy(copy, stored.data, stored.bytes);
  copy[stored.bytes] = 0;
  value->bytes = stored.bytes;
  value->data.string = copy;
  return STRETTO_KV_SUCCESS;
}

}  // namespace

STRETTO_KV_EXPORT int stretto_kv_open(const char* directory, const char* nspace, std::uint32_t rank,
                                      unsigned local_ranks, stretto_kv** kv) {
  if (!directory || !nspace || !kv) return STRETTO_KV_BAD_PARAM;
  stretto_kv* const made = handle_make();
  if (!made) return STRETTO_KV_NO_MEMORY;
  const Status status = made->store.open(directory, nspace, rank, local_ranks);
  if (status != Status::ok) {
    std::free(made);
    return status_of(status);
  }
  *kv = made;
  return STRETTO_KV_SUCCESS;
}

STRETTO_KV_EXPORT void stretto_kv_close(stretto_kv* kv) {
  if (!kv) return;
  kv->store.close();
  if (kv->leave_road) kv->leave_road();
  kv->~stretto_kv();
  std::free(kv);
}

#ifndef STRETTO_KV_PMIX  // otherwise src/pmix/open_job.cpp has it
STRETTO_KV_EXPORT int stretto_kv_open_job(stretto_kv** kv) {
  return kv ? STRETTO_KV_UNAVAILABLE : STRETTO_KV_BAD_PARAM;
}
#endif

STRETTO_KV_EXPORT std::uint32_t stretto_kv_rank(const stretto_kv* kv) { return kv->store.rank(); }
STRETTO_KV_EXPORT std::uint32_t stretto_kv_ranks(const stretto_kv* kv) { return kv->store.ranks(); }

STRETTO_KV_EXPORT int stretto_kv_remove(const char* directory, const char* nspace) {
  char path[1024];
  if (!directory || !nspace || !Store::path_of(directory, nspace, path, sizeof path)) return STRETTO_KV_BAD_PARAM;
  return sys::remove_file(path) == 0 ? STRETTO_KV_SUCCESS : STRETTO_KV_UNAVAILABLE;
}

STRETTO_KV_EXPORT int stretto_kv_put(stretto_kv* kv, stretto_kv_scope scope, const char* key,
                                     const stretto_kv_value* value) {
  Value stored;
  if (!kv || !key || !value || scope > STRETTO_KV_GLOBAL || is_reserved(key) || !stored_form(*value, &stored))
    return STRETTO_KV_BAD_PARAM;
  return status_of(kv->store.put(static_cast<Scope>(scope), key, stored));
}

STRETTO_KV_EXPORT int stretto_kv_commit(stretto_kv* kv) {
  if (!kv) return STRETTO_KV_BAD_PARAM;
  return status_of(kv->store.commit());
}

STRETTO_KV_EXPORT int stretto_kv_fence(stretto_kv* kv, int collect, double timeout_s) {
  return kv ? status_of(kv->store.fence(collect != 0, nanoseconds(timeout_s))) : STRETTO_KV_BAD_PARAM;
}

STRETTO_KV_EXPORT int stretto_kv_get(stretto_kv* kv, const char* nspace, std::uint32_t rank, const char* key,
                                     const stretto_kv_options* options, stretto_kv_value* value) {
  Name name;
  if (!kv || !key || !value || !name_make(nspace ? nspace : kv->store.nspace(), rank, key, &name))
    return STRETTO_KV_BAD_PARAM;
  const bool now = options && (options->optional || options->immediate);
  int copied = STRETTO_KV_SUCCESS;
  const Outcome outcome =
      kv->store.get(name, now ? 0 : nanoseconds(options ? options->timeout_s : 0), options && options->refresh,
                    [&](const Value& found) { copied = copy_out(found, value); });
  return outcome == Outcome::found ? copied : status_of(outcome);
}

STRETTO_KV_EXPORT void stretto_kv_value_free(stretto_kv_value* value) {
  if (!value) return;
  if (is_text(*value)) std::free(value->data.bytes);
  *value = {};
}

STRETTO_KV_EXPORT const char* stretto_kv_error(int status) {
  switch (status) {
    case STRETTO_KV_SUCCESS: return "success";
    case STRETTO_KV_NOT_FOUND: return "no such value";
    case STRETTO_KV_TIMEOUT: return "the time is up";
    case STRETTO_KV_BAD_PARAM: return "a wrong argument";
    case STRETTO_KV_NO_MEMORY: return "no memory";
    case STRETTO_KV_UNAVAILABLE: return "the system refuses";
    case STRETTO_KV_PEER_GONE: return "a process is gone";
    default: return "unknown";
  }
}
