// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/data/held_handles.hpp"

#include <pthread.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "base/locked.hpp"
#include "mpi/host/host.hpp"

namespace stretto::mpi {
namespace {

enum class Freed : std::uint8_t { no, op, type };

struct Held {
  Handle handle;
  std::uint64_t users;
  Freed freed;
  Held* next;
};

constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Held* g_held = nullptr;

// Of a handle that is an int, the upper half of a register is undefined.
Handle key_of(Handle handle) { return (Handle)(MPI_Datatype)handle; }  // NOLINT: an int or a pointer

// The lock is held.
Held** link_of(Handle handle) {
  Held** link = &g_held;
  while (*link != nullptr && (*link)->handle != key_of(handle)) link = &(*link)->next;
  return link;
}

void free_now(const Held& held) {
  const Inside inside;
  if (held.freed == Freed::op) {
    auto op = (MPI_Op)held.handle;  // NOLINT: likewise
    host().Op_free(&op);
  } else if (held.freed == Freed::type) {
    auto type = (MPI_Datatype)held.handle;  // NOLINT: likewise
    host().Type_free(&type);
  }
}

template <class T>
bool free_later(int* code, void* place, T null, Freed as) {
  if (place == nullptr) return false;
  T& handle = *static_cast<T*>(place);
  const Locked locked(g_lock);
  Held* const held = *link_of((Handle)handle);  // NOLINT: likewise
  if (held == nullptr) return false;
  held->freed = as;
  handle = null;
  *code = MPI_SUCCESS;
  return true;
}

}  // namespace

void held_add(Handle handle) {
  if (handle == 0) return;
  const Locked locked(g_lock);
  Held** const link = link_of(handle);
  if (*link == nullptr) {
    void* const memory = std::malloc(sizeof(Held));
    if (memory == nullptr) std::abort();  // a few words, and peers have decided alike
    *link = new (memory) Held{key_of(handle), 0, Freed::no, nullptr};
  }
  ++(*link)->users;
}

void held_release(Handle handle) {
  if (handle == 0) return;
  Held* last = nullptr;
  {
    const Locked locked(g_lock);
    Held** const link = link_of(handle);
    if (--(*link)->users == 0) last = std::exchange(*link, (*link)->next);
  }
  if (last == nullptr) return;
  free_now(*last);
  std::free(last);
}

bool op_free_served(int* code, void* op) { return free_later(code, op, host().constants.op_null, Freed::op); }
bool type_free_served(int* code, void* datatype) {
  return free_later(code, datatype, host().constants.datatype_null, Freed::type);
}

}  // namespace stretto::mpi
