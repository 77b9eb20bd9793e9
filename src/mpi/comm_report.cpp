// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include "base/log.hpp"
#include "coll/shm/manifest.hpp"
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

// The first length that `last` serves. Lengths below go by another algorithm.
std::uint64_t first_length(const coll_shm::Algorithm& last, int ranks) {
  std::uint64_t below = 0, from = std::uint64_t{1} << 62;
  while (from - below > 1) {
    const std::uint64_t middle = below + (from - below) / 2;
    (&coll_shm::algorithm_of(last.collective, middle, ranks) == &last ? from : below) = middle;
  }
  return from;
}

// Which algorithms serve the collectives of a set over shared memory, where lengths decide.
void explain_algorithms(const State& state) {
  for (int op = 0; op < kCollectives; ++op) {
    if ((state.served >> op & 1) == 0) continue;
    const auto collective = static_cast<Collective>(op);
    const coll_shm::Algorithm& first = coll_shm::algorithm_of(collective, 0, state.size);
    const coll_shm::Algorithm& last = coll_shm::algorithm_of(collective, std::uint64_t{1} << 62, state.size);
    if (&first == &last) continue;
    log_explain("communicator %llu of %d ranks, over shared memory: %s by %s, from %llu bytes on by %s",
                static_cast<unsigned long long>(state.serial), state.size, kCollectiveNames[op], first.name,
                static_cast<unsigned long long>(first_length(last, state.size)), last.name);
  }
}

void explain(const State& state) {
  if (state.rank != 0 || state.size == 1) return;
  const auto say = [&](const char* how, std::uint32_t set, const char* why) {
    if (set == 0) return;
    const auto serial = static_cast<unsigned long long>(state.serial);
    log_explain("communicator %llu of %d ranks, %s: %s%s%s", serial, state.size, how, Names(set).text,
                *why != 0 ? "; " : "", why);
  };
  say("over shared memory", state.served, "");
  explain_algorithms(state);
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
