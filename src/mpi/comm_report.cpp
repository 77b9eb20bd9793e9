// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include "base/log.hpp"
#include "mpi/comm_agreement.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/schedules.hpp"

namespace stretto::mpi {
namespace {

// The names of a set of collectives.
struct Names {
  char text[400] = "";
  explicit Names(std::uint32_t set) {
    int at = 0;
    for (int op = 0; op < kCollectives; ++op) {
      if ((set >> op & 1) == 0) continue;
      at += std::snprintf(text + at, sizeof text - static_cast<std::size_t>(at), "%s%s", at == 0 ? "" : ", ",
                          kCollectiveNames[op]);
    }
  }
};

void explain(const State& state) {
  if (state.rank != 0 || state.size == 1) return;
  const auto say = [&](const char* how, std::uint32_t set, const char* why) {
    if (set == 0) return;
    const auto serial = static_cast<unsigned long long>(state.serial);
    log_explain("communicator %llu of %d ranks, %s: %s%s%s", serial, state.size, how, Names(set).text,
                *why != 0 ? "; " : "", why);
  };
  say("over shared memory", state.served, "");
  const std::uint32_t ruled = state.schedules != nullptr ? schedules_scheduler(*state.schedules).selector().ruled() : 0;
  say("by schedule, or at some lengths by the MPI", state.scheduled & ~ruled, "");
  say("as rules say", state.scheduled & ruled, "");
  say("by the MPI", kNativeCollectives & ~(state.served | state.scheduled),
      state.reason != nullptr ? state.reason : "as options say");
}

}  // namespace

void report(const State& state) {
  if (options().explain()) explain(state);
  if (!log_enabled(LogLevel::info) || state.rank != 0) return;
  if (state.engine != nullptr || state.scheduled != 0) {
    log_line(LogLevel::info, "communicator %llu of %d ranks is served", static_cast<unsigned long long>(state.serial),
             state.size);
  } else {
    log_line(LogLevel::info, "communicator %llu of %d ranks is left to the MPI: %s (rank %d)",
             static_cast<unsigned long long>(state.serial), state.size, state.reason, state.reason_rank);
  }
}

}  // namespace stretto::mpi
