// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/schedules.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "mpi/job.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/wire.hpp"
#include "topo/seat.hpp"

namespace stretto::mpi {

struct Schedules {
  Wire wire;
  engine::Scheduler scheduler;
  int number = -1;  // on the wire
  int* job_ranks = nullptr;
};

namespace {

bool on_several_nodes(const int* job_ranks, int size) {
  const topo::Placement& all = job()->placement;
  for (int level = 0; level < all.levels; ++level) {
    if (!all.names[level].is(topo::kSeatLevels[topo::kNodeLevel])) continue;
    for (int r = 1; r < size; ++r) {
      if (all.at(level, job_ranks[r]) != all.at(level, job_ranks[0])) return true;
    }
  }
  return false;
}

}  // namespace

Schedules* schedules_create(State& state, const int* job_ranks, const engine::Process& process) {
  const std::uint32_t forced = job()->scheduled;
  std::uint32_t wanted = forced;
  if (state.engine == nullptr && on_several_nodes(job_ranks, state.size)) {
    wanted |= job()->wanted & select::automatic_across_nodes(state.size);
  }
  if (wanted == 0) return nullptr;
  const std::size_t bytes = static_cast<std::size_t>(state.size) * sizeof(int);
  void* const memory = std::malloc(sizeof(Schedules));
  auto* const ranks = static_cast<int*>(std::malloc(bytes));
  if (memory == nullptr || ranks == nullptr) std::abort();  // a few kilobytes, and nothing can be agreed without them
  auto* const schedules = new (memory) Schedules;
  schedules->job_ranks = static_cast<int*>(std::memcpy(ranks, job_ranks, bytes));
  topo::Placement placement;
  const bool able = topo::place_members(&placement, job()->placement, ranks, state.size) &&
                    schedules->scheduler.start(state.rank, placement, job()->levels, schedules->wire.transport(),
                                               engine::schedule_policy(process), forced);
  schedules->number = wire_take_number(state.handle, able);
  if (schedules->number < 0) {
    schedules_free(schedules);
    return nullptr;
  }
  schedules->wire.start(ranks, schedules->number);
  if (options().explain()) schedules->scheduler.explain();
  state.scheduled = wanted;
  state.served &= ~wanted;
  return schedules;
}

void schedules_free(Schedules* schedules) {
  if (schedules == nullptr) return;
  if (schedules->number >= 0) wire_release_number(schedules->number);
  std::free(schedules->job_ranks);
  schedules->~Schedules();
  std::free(schedules);
}

engine::Scheduler& schedules_scheduler(Schedules& schedules) { return schedules.scheduler; }

}  // namespace stretto::mpi
