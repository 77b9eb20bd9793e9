// SPDX-License-Identifier: BSD-3-Clause
// What the wrappers of calls with requests need. This file does not include mpi.h.
#pragma once
#include <cstdlib>
#include <new>
#include <type_traits>

#include "mpi/state/call.hpp"

namespace stretto::mpi {

// The host has served one, and returned `code`. Returns it.
int request_left_to_host(int code);

struct Nonblocking;  // nonblocking.hpp
struct Posted;       // posted.hpp

struct Requested {
  void* request;               // where the program, or its persistent request, gets the request
  Nonblocking* own = nullptr;  // of a persistent request: its messages
  State* state = nullptr;      // and its communicator
  bool tries = false;          // asks whether Stretto serves such a call, and checks the arguments
  Posted* tried = nullptr;     // if so: it holds the datatypes of blocks, until posted_free()
};

// ---- Persistent requests (persistent.hpp) ----

// The arguments of an _init call, and what starts the call. Arrays stay the program's.
struct KeptCall {
  bool (*make)(const void* closure, Call& call);
  void* closure;
  Handle held[2];  // datatypes and operations; 0: none
};
bool persistent_init(int* code, Entry entry, Handle comm, void* request, const KeptCall& kept);

// `closure` makes the call, and has a copy of its arguments.
template <class Closure>
bool persistent_init(int* code, Entry entry, Handle comm, void* request, const Closure& closure, Handle first = 0,
                     Handle second = 0) {
  static_assert(std::is_trivially_destructible_v<Closure>);
  void* const memory = std::malloc(sizeof(Closure));
  if (memory == nullptr) std::abort();  // a few words, and peers decide alike
  const auto make = [](const void* kept, Call& call) { return (*static_cast<const Closure*>(kept))(call); };
  return persistent_init(code, entry, comm, request, KeptCall{make, new (memory) Closure(closure), {first, second}});
}

// What the wrappers call. False: it is the host's turn.
bool start_served(int* code, void* request);
bool startall_served(int* code, int count, void* requests);
bool cancel_served(int* code, void* request);
bool request_free_served(int* code, void* request);

}  // namespace stretto::mpi
