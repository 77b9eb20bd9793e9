// SPDX-License-Identifier: BSD-3-Clause
// Runs one call of the differential test, by us and by the host, after a delay. Judges what it did
// to the buffers.
#pragma once
#include <time.h>

#include "differential_calls.hpp"
#include "differential_case.hpp"

namespace differential {

inline Options g_options;
inline Functions g_ours;
inline Functions g_host;
inline bool g_compare = false;  // run the host's functions as well
inline std::string g_skip;      // an operation to leave out
inline int g_world_rank = 0;
inline const char* (*g_last_path)() = nullptr;
// Calls on communicators of several ranks, and those of them that the host did not serve.
inline std::int64_t g_calls = 0;
inline std::int64_t g_native = 0;

struct Live {
  MPI_Comm comm = MPI_COMM_NULL;
  std::string name;
  std::uint64_t color = 0;
  int rank = 0;
  int size = 0;
};

// ---- Judging ----

struct Context {
  const Case& c;
  const char* operation;
  const Live& live;
  const char* api;
};

[[noreturn]] inline void fail(const Context& x, const char* what, const std::string& types, long long offset) {
  std::fprintf(stderr,
               "differential: FAILED seed %llu case %d pass %d: %s by %s on %s, rank %d (world %d) of %d, root %d%s%s: "
               "%s at byte %lld; units of %s here %lld declared %lld; types %s\n",
               static_cast<unsigned long long>(g_options.seed), x.c.index, x.c.pass, x.operation, x.api,
               x.live.name.c_str(), x.c.rank, g_world_rank, x.c.size, x.c.root, x.c.in_place ? ", in place" : "",
               x.c.large ? ", large" : "", what, offset, x.c.unit->name,
               static_cast<long long>(x.c.units[static_cast<std::size_t>(x.c.rank)]),
               static_cast<long long>(x.c.declared[static_cast<std::size_t>(x.c.rank)]), types.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

inline void compare(const Context& x, const char* what, const Memory& seen, const Memory& expected,
                    const std::string& types) {
  if (seen.bytes == expected.bytes) return;
  std::size_t i = 0;
  while (seen.bytes[i] == expected.bytes[i]) ++i;
  fail(x, what, types, static_cast<long long>(i) - kGuardBytes + seen.low);
}

inline void delay(const Case& c) {
  if (c.rank != c.delayed_rank) return;
  timespec now{};
  if (!c.delay_spins) {
    const timespec nap{0, c.delay_ns};
    nanosleep(&nap, nullptr);
    return;
  }
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t end = now.tv_sec * 1000000000ll + now.tv_nsec + c.delay_ns / 4;
  while (now.tv_sec * 1000000000ll + now.tv_nsec < end) clock_gettime(CLOCK_MONOTONIC, &now);
}

inline void count_path(const Case& c) {
  if (!g_last_path || c.size < 2) return;
  ++g_calls;
  if (std::strcmp(g_last_path(), "host") != 0) ++g_native;
}

// Runs `call(caller)` by our functions and, if wanted, by the host's. `prepare` makes the buffers
// anew, and `judge(context)` looks at them.
template <class Prepare, class Call, class Judge>
inline void run(const Case& c, const Live& live, const char* operation, Prepare prepare, Call call, Judge judge) {
  for (int side = 0; side < (g_compare ? 2 : 1); ++side) {
    const Context x{c, operation, live, side == 0 ? "us" : "the host"};
    prepare();
    delay(c);
    const int code = call(Caller{side == 0 ? g_ours : g_host, c.large});
    if (code != MPI_SUCCESS) fail(x, "error code", "", code);
    if (side == 0) count_path(c);
    judge(x);
  }
}

}  // namespace differential
