// SPDX-License-Identifier: BSD-3-Clause
// Requests of nonblocking calls that Stretto serves itself. This file does not include mpi.h.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>

#include "mpi/entry.hpp"

namespace stretto::mpi {

extern constinit std::atomic<bool> g_nonblocking;  // some communicator serves such calls
// How many waits and tests must know of: those that are not complete, and those that no wait has
// ended and that have failed or are of a persistent request.
extern constinit std::atomic<std::uint32_t> g_own_requests;

// Every wait of the program then has to drive these requests.
inline bool own_requests_outstanding() { return g_own_requests.load(std::memory_order_relaxed) != 0; }

[[gnu::cold]] void drive_outstanding_requests();

// Moves what can move of these requests, and completes those that have ended. It never waits. Any
// thread that may call the MPI may call it.
inline void drive_own_requests() {
  if (own_requests_outstanding()) [[unlikely]]
    drive_outstanding_requests();
}

// ---- Calls with a request ----

// The host has served one, and returned `code`. Returns it.
int request_left_to_host(int code);

struct Nonblocking;  // nonblocking.hpp
struct Posted;       // likewise

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
bool op_free_served(int* code, void* op);
bool type_free_served(int* code, void* datatype);

}  // namespace stretto::mpi
