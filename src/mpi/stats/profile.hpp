// SPDX-License-Identifier: BSD-3-Clause
// What STRETTO_STATS learns of each call, beside the counts of stats.hpp: its size, its place in
// the program, when it was, and at the end of the job for whom it waited (observe/arrivals.hpp).
//
// Calls with a request count by the time within the call itself. They are not compared: a rank that
// comes late to one holds nobody up there.
#pragma once
#include "mpi/state/call.hpp"
#include "observe/stats_page.hpp"

namespace stretto::mpi {

// What the arguments say of the call's size. The types are asked when the call has ended, if at
// all: most programs run without statistics.
struct CallSize {
  enum class Counts : std::uint8_t {
    none,  // `count` says all
    own,   // this rank's entry
    mean,  // of the entries of all ranks
  };
  std::int64_t count = 0;
  Handle type = 0;
  int root = -1;
  Counts kind = Counts::none;
  bool wide = false;
  const void* counts = nullptr;
  const void* types = nullptr;  // one for each entry
};
extern thread_local constinit CallSize t_call_size STRETTO_TLS;

inline void call_sized(int root, std::int64_t count, Handle type) {
  if (g_timed) [[unlikely]]
    t_call_size = {count, type, root};
}
inline void call_sized(CallSize::Counts kind, const CountArray& counts, Handle type, int root = -1,
                       const void* types = nullptr) {
  if (g_timed) [[unlikely]]
    t_call_size = {0, type, root, kind, counts.wide, counts.data, types};
}

// Before the first call is served.
void profile_begin();
// The ranks have come together, at the end of MPI_Init. Collective over MPI_COMM_WORLD.
void profile_meet();
// The program has come to a call. What it is in can be read after its death.
[[gnu::cold, gnu::noinline]] void profile_open(const Call& call);
// A call has ended. `bytes`: through the engine. Returns how long it took.
[[gnu::cold, gnu::noinline]] std::uint64_t profile_call(const Call& call, Path path, std::uint64_t bytes);
// A call has ended before it had begun.
[[gnu::cold, gnu::noinline]] void profile_refused();

// The program ends the job by MPI_Abort: the statistics say so.
void profile_abort();

// What this process keeps. Null: there is no memory, or no STRETTO_STATS.
observe::StatsPage* profile_page();
// The memory file that has it; -1: none.
int profile_descriptor();
// Since profile_meet(), or since profile_begin() where ranks do not meet.
std::uint64_t profile_ns();

// Compares the arrivals of all ranks. Collective over MPI_COMM_WORLD. Returns what this rank has
// waited. The caller frees it.
using observe::Waits;
Waits* profile_compare();

// The bytes of all ranks at rank 0, one after another. `all` is null on other ranks. The caller
// frees both.
struct Gathered {
  char* all;
  int* lengths;  // then where the bytes of each rank begin
};
Gathered gather_bytes(const void* mine, std::size_t bytes);

}  // namespace stretto::mpi
