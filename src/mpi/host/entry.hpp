// SPDX-License-Identifier: BSD-3-Clause
// The entry from the program into Stretto: what a generated wrapper needs. This file does not
// include mpi.h. The wrappers see handles as 64-bit integers, so that they can forward arguments
// unseen to an MPI whose ABI is not ours.
//
// A wrapper asks may_serve(). If so, it calls the hand-written collective, which serves the call or
// declines before any side effect. Otherwise, and after a decline, the wrapper calls the host's
// PMPI_ function with the arguments as they came.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mpi/host/callers.hpp"
#include "mpi/host/entries.gen.hpp"
#include "shm/call_sites.hpp"
#include "sys/sys.hpp"

#define STRETTO_EXPORT extern "C" __attribute__((visibility("default")))
#define STRETTO_TLS __attribute__((tls_model("initial-exec")))

namespace stretto::mpi {

using Handle = std::uintptr_t;
template <class T>
T as(Handle handle) {
  return (T)handle;  // NOLINT: an int or a pointer; if it is an int, the upper half of the register is undefined
}

// Where this process stands. Only `serving` looks at a call's arguments.
enum class Mode : std::uint8_t {
  unresolved,  // no call has come yet: Stretto has not looked for the host
  serving,
  aside,  // forwards every call: unknown or foreign MPI, off on every rank, finalized, or a forked child
};
extern constinit std::atomic<Mode> g_mode;

// Functions by entry. Null: Stretto has not asked the dynamic linker yet. A program calls few of
// them, and a question takes microseconds. Threads that ask at the same time store the same.
inline void* no_function() { return reinterpret_cast<void*>(1); }  // it has been looked for in vain
extern constinit std::atomic<void*> g_host_entries[kEntries];
// With a watchdog or statistics: those of calls that leave notes (noted.hpp) or are timed
// (other_call.hpp), whose places above stay null. With a recording: all.
extern constinit std::atomic<void*> g_noted_entries[kEntries];
// Of a PMPI tool that follows Stretto in the symbol order. MPI_ calls must visit it first.
extern constinit std::atomic<void*> g_tool_entries[kEntries];

struct State;  // state.hpp

// What the entry knows of a thread. The type is trivial, so it needs no guard and no destructor.
struct Thread {
  unsigned depth;         // > 0: inside a call of ours to the host, so MPI calls are not the program's
  const char* last_path;  // path of this thread's last collective
  CallerRange caller;     // where this thread called from last; empty: unknown
  State* asks;            // whose call with a request the host is about to serve (route_request.hpp)
};
extern thread_local constinit Thread t_thread STRETTO_TLS;

extern constinit bool g_watched;  // there is a watchdog; set before the first call is served
extern constinit bool g_timed;    // STRETTO_STATS is on; set before the first call is served
// STRETTO_RECORD is set; set before the first call is served. False again when the recording ends.
extern constinit bool g_recorded;
// With STRETTO_STATS: calls whose caller was in no lasting range.
extern constinit std::atomic<std::uint64_t> g_caller_lookups;

// Finds the host and leaves Mode::unresolved, once per process.
// Any thread may do so.
[[gnu::cold]] void resolve(const void* caller);
// Called once by resolve(), when it has found a host that Stretto may serve. Reads the options.
// Returns false if this process stands aside whatever the others do. Defined in lifecycle.cpp.
bool lifecycle_begin();
// Whether the host's handles are those for which Stretto is compiled. If not, this process stands
// aside. MPI or a session must be initialised.
bool host_is_proven();
[[gnu::noinline]] bool judge_caller(std::uintptr_t address);
// These find the host first where no call has come yet. Null: there is no such function.
[[gnu::cold, gnu::noinline]] void* find_host_entry(Entry entry, const void* caller);
[[gnu::cold, gnu::noinline]] void* find_tool_entry(Entry entry, const void* caller);
[[noreturn, gnu::cold]] void entry_missing(Entry entry);
void* host_symbol(const char* name);  // host.hpp

// Whether the call comes from inside the host (MPI-IO, topology set-up). Stretto does not serve
// such calls. The host's Fortran libraries do not count as inside.
inline bool is_inside_host(const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  const CallerRange& known = t_thread.caller;
  if (address - known.begin < known.bytes) [[likely]]
    return known.inside;
  return judge_caller(address);
}

inline void resolve_once(const void* caller) {
  if (g_mode.load(std::memory_order_acquire) == Mode::unresolved) resolve(caller);
}

inline bool may_serve(const void* caller) {
  if (g_mode.load(std::memory_order_acquire) != Mode::serving) [[unlikely]] {
    resolve_once(caller);
    if (g_mode.load(std::memory_order_acquire) != Mode::serving) return false;
  }
  if (t_thread.depth != 0 || is_inside_host(caller)) return false;
  shm::t_call.caller = reinterpret_cast<std::uintptr_t>(caller);
  return true;
}

// When a call began, for STRETTO_STATS: a wrapper asks before anything else. 0
// without STRETTO_STATS.
inline std::uint64_t call_begins() { return g_timed ? sys::now_ns() : 0; }

inline void* host_entry_if_any(Entry entry, const void* caller = nullptr) {
  void* const function = g_host_entries[static_cast<int>(entry)].load(std::memory_order_relaxed);
  return function > no_function() ? function : find_host_entry(entry, caller);
}

inline void* host_entry(Entry entry, const void* caller = nullptr) {
  void* const function = host_entry_if_any(entry, caller);
  if (function == nullptr) [[unlikely]]
    entry_missing(entry);
  return function;
}

// The MPI_ function of a tool that follows Stretto in the symbol order and has not seen this call.
// Null in most programs.
inline void* tool_behind(Entry entry, const void* caller) {
  if (g_tool_entries[static_cast<int>(entry)].load(std::memory_order_relaxed) == no_function()) [[likely]]
    return nullptr;
  return find_tool_entry(entry, caller);
}

// Marks calls of Stretto into the host.
class Inside {
 public:
  Inside() { ++t_thread.depth; }
  ~Inside() { --t_thread.depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

}  // namespace stretto::mpi
