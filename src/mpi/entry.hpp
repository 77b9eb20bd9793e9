// SPDX-License-Identifier: BSD-3-Clause
// The entry from the user's program to us: what a generated wrapper needs. No mpi.h here: the wrappers see handles
// as 64-bit integers, so that they can forward arguments unseen to an MPI whose ABI is not ours.
//
// A wrapper asks may_serve(); if so it calls the hand-written collective, which serves the call or declines before any
// side effect; everything else goes to the host's PMPI_ function with the arguments as they came.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mpi/callers.hpp"
#include "mpi/entries.gen.hpp"
#include "sys/sys.hpp"

#define STRETTO_EXPORT extern "C" __attribute__((visibility("default")))
#define STRETTO_TLS __attribute__((tls_model("initial-exec")))

namespace stretto::mpi {

using Handle = std::uintptr_t;

// Where this process stands. Only `serving` looks at a call's arguments.
enum class Mode : std::uint8_t {
  unresolved,  // no call seen yet: the host library is not looked up
  serving,
  aside,  // forward everything: unknown or foreign MPI, off on every rank, finalized, or a forked child
};
extern constinit std::atomic<Mode> g_mode;
// Whether a PMPI tool sits behind us in the symbol order, so that MPI_ calls must visit it first.
extern constinit std::atomic<bool> g_tools;
extern constinit void* g_host_entries[kEntries];
extern constinit void* g_tool_entries[kEntries];

// What a thread keeps at hand at the entry. Trivial, so that no guard or destructor comes with it.
struct Thread {
  unsigned depth;         // > 0: inside a call of ours to the host; whatever comes back is not the user's
  const char* last_path;  // path of this thread's last collective
  CallerRange caller;     // where this thread called from last; empty: unknown
};
extern thread_local constinit Thread t_thread STRETTO_TLS;

extern constinit bool g_timed;  // STRETTO_STATS is on; set before the first call is served
extern constinit std::atomic<std::uint64_t>
    g_caller_lookups;  // callers that were in no lasting range, with STRETTO_STATS

// Finds the host, fills the tables, leaves Mode::unresolved. Once per process; any thread.
[[gnu::cold]] void resolve(const void* caller);
// Whether the host's handles are those that we were compiled for; stands aside if not. Once MPI, or a session, is
// initialised.
bool host_is_proven();
[[gnu::noinline]] bool judge_caller(std::uintptr_t address);
[[gnu::cold]] void entry_missing(Entry entry);
void* host_symbol(const char* name);  // host.hpp

// Calls from inside libmpi (MPI-IO, topology set-up) are the host's own affair. The Fortran libraries are not "inside".
inline bool is_inside_host(const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  const CallerRange& known = t_thread.caller;
  if (address - known.begin < known.bytes) [[likely]]
    return known.inside;
  return judge_caller(address);
}

inline bool may_serve(const void* caller) {
  if (g_mode.load(std::memory_order_acquire) != Mode::serving) [[unlikely]] {
    if (g_mode.load(std::memory_order_acquire) == Mode::unresolved) resolve(caller);
    if (g_mode.load(std::memory_order_acquire) != Mode::serving) return false;
  }
  return t_thread.depth == 0 && !is_inside_host(caller);
}

// When a call began, for STRETTO_STATS. A wrapper asks before anything else; 0: nobody wants to know.
inline std::uint64_t call_begins() { return g_timed ? sys::now_ns() : 0; }

inline void* host_entry(Entry entry) {
  void* const function = g_host_entries[static_cast<int>(entry)];
  if (function == nullptr) [[unlikely]]
    entry_missing(entry);
  return function;
}

// The MPI_ function of a tool that comes after us in the symbol order and has not seen this call; null as a rule.
inline void* tool_behind(Entry entry, const void* caller) {
  if (g_mode.load(std::memory_order_acquire) == Mode::unresolved) [[unlikely]]
    resolve(caller);
  if (!g_tools.load(std::memory_order_relaxed)) [[likely]]
    return nullptr;
  void* const tool = g_tool_entries[static_cast<int>(entry)];
  if (tool == nullptr || t_thread.depth != 0 || is_inside_host(caller)) return nullptr;
  t_thread.last_path = kPathNames[static_cast<int>(Path::host)];  // unless the tool comes back to us by the PMPI_ name
  return tool;
}

// Marks calls of ours into the host.
class Inside {
 public:
  Inside() { t_thread.depth++; }
  ~Inside() { t_thread.depth--; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// ---- The hand-written side ----

// An array of counts or displacements: int, or 64-bit in the _c family.
struct Array {
  const void* data;
  bool wide;
  Array(const int* narrow, bool) : data(narrow), wide(false) {}
  Array(const std::int64_t* large, bool) : data(large), wide(true) {}
};

struct State;     // communicator.hpp
struct Snapshot;  // check.hpp

// One call on its way through us.
struct Call {
  Entry entry;
  std::uint64_t began_ns = 0;    // STRETTO_STATS
  int code = 0;                  // MPI_SUCCESS or the error code to return
  State* state = nullptr;        // null: the communicator is the host's to judge
  Snapshot* snapshot = nullptr;  // STRETTO_CHECK=3: compare with the host's result
  std::uint64_t note = 0;        // of a call that shared memory does not serve
  bool to_memory = false;        // which it does after all: so a rule says

  [[nodiscard]] Collective collective() const { return kEntryFacts[static_cast<int>(entry)].collective; }
};

// Each serves the call and returns true (the result is call.code), or returns false: the host's turn, after which the
// wrapper reports to host_done.
bool barrier(Call& call, Handle comm);
bool bcast(Call& call, void* buffer, std::int64_t count, Handle type, int root, Handle comm);
bool gather(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
            std::int64_t receive_count, Handle receive_type, int root, Handle comm);
bool gatherv(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive, Array counts,
             Array displs, Handle receive_type, int root, Handle comm);
bool scatter(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
             std::int64_t receive_count, Handle receive_type, int root, Handle comm);
bool scatterv(Call& call, const void* send, Array counts, Array displs, Handle send_type, void* receive,
              std::int64_t receive_count, Handle receive_type, int root, Handle comm);
bool allgather(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
               std::int64_t receive_count, Handle receive_type, Handle comm);
bool allgatherv(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive, Array counts,
                Array displs, Handle receive_type, Handle comm);

bool alltoall(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
              std::int64_t receive_count, Handle receive_type, Handle comm);
bool alltoallv(Call& call, const void* send, Array send_counts, Array send_displs, Handle send_type, void* receive,
               Array receive_counts, Array receive_displs, Handle receive_type, Handle comm);
// Arrays of types hold handles as the host makes them.
bool alltoallw(Call& call, const void* send, Array send_counts, Array send_displs, const void* send_types,
               void* receive, Array receive_counts, Array receive_displs, const void* receive_types, Handle comm);
bool reduce(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, int root,
            Handle comm);
bool allreduce(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, Handle comm);
bool reduce_scatter(Call& call, const void* send, void* receive, Array counts, Handle type, Handle op, Handle comm);
bool reduce_scatter_block(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op,
                          Handle comm);
bool scan(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, Handle comm);
bool exscan(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, Handle comm);

// After the host's function: statistics, or the comparison of STRETTO_CHECK=3. Returns what the user gets.
int host_done(Call& call, int code);

// Start-up: the host's function, then the agreement of all ranks.
int init(int* argc, char*** argv);
int init_thread(int* argc, char*** argv, int required, int* provided);

// The program makes a window: from now on every call of ours drives the host at its end, as the host's own collectives
// do. Programs take a one-sided operation for visible after a Barrier that came after it.
void window_made();
// MPI_Comm_free and MPI_Comm_disconnect: `comm` points to the handle.
int comm_free(void* comm);
int comm_disconnect(void* comm);

}  // namespace stretto::mpi
