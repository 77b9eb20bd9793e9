// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/comm/comm_agreement.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/tuning.hpp"
#include "engine/engine.hpp"
#include "mpi/comm/schedules.hpp"
#include "mpi/job/attendance.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/process.hpp"
#include "mpi/job/world.hpp"
#include "mpi/job/world_ranks.hpp"
#include "mpi/requests/nonblocking.hpp"
#include "mpi/state/neighborhood.hpp"
#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi {
namespace {

// What members tell each other first, if no MPI_Init has agreed on it for all.
struct Word {
  std::uint32_t version;
  std::int32_t off;
  std::int32_t error;
  std::int32_t check;
  std::int32_t reproducible;
  std::int32_t nonblocking;
};

// Agrees on the options within the communicator. Returns false if they leave it to the host.
bool agree_on_options(State& state) {
  state.check = world().check;
  state.reproducible = world().reproducible;
  state.nonblocking_choice = world().nonblocking;
  if (world().agreed) return !world().off;
  if (!session_has_library()) {
    decline(state, "ranks without the library");
    return false;
  }
  const Word mine = {world_version(),
                     !options().enabled(),
                     options_have_error(),
                     options().check(),
                     static_cast<std::int32_t>(options().reproducible()),
                     static_cast<std::int32_t>(options().nonblocking())};
  auto* const all = static_cast<Word*>(std::malloc(static_cast<std::size_t>(state.size) * sizeof(Word)));
  // The other members wait for this rank's word.
  if (all == nullptr || !allgather_bytes(&state.handle, &mine, all, sizeof mine)) std::abort();
  auto reproducible = static_cast<int>(ReproducibleChoice::off);
  state.nonblocking_choice = NonblockingChoice::on;
  for (int r = state.size - 1; r >= 0; --r) {
    if (all[r].reproducible > reproducible) reproducible = all[r].reproducible;
    if (all[r].check > state.check) state.check = all[r].check;
    state.nonblocking_choice = std::min(state.nonblocking_choice, static_cast<NonblockingChoice>(all[r].nonblocking));
    if (all[r].version != all[0].version) decline(state, "members run different versions of Stretto", r);
    if (all[r].off) decline(state, "STRETTO=off", r);
    if (all[r].error) options_abort(state.handle, r == state.rank);
  }
  std::free(all);
  state.reproducible = static_cast<ReproducibleChoice>(reproducible);
  return state.reason == nullptr;
}

// The first member that runs on another machine than member 0, by the job's table, which is the
// same on all ranks. -1 if there is none, or no table.
int first_elsewhere(const int* ranks, int size) {
  if (ranks == nullptr) return -1;
  const auto machine = [&](int r) { return job()->nodes.of(ranks[r]).machine; };
  for (int r = 1; r < size; ++r) {
    if (machine(r) != machine(0)) return r;
  }
  return -1;
}

// `ranks` are the members' ranks in the job. They are null if there is no job.
void serve_by_engine(State& state, const int* ranks) {
  const int elsewhere = first_elsewhere(ranks, state.size);
  if (elsewhere >= 0) return decline(state, engine::kOnSeveralNodes, elsewhere);
  const std::uint32_t wanted = options().wanted() & kNativeCollectives & ~unable_on(state);
  const bool may_be_on_several_nodes = ranks == nullptr && (!world().agreed || world().several_nodes);
  const engine::Bootstrap bootstrap = {state.rank, state.size, &state.handle, allgather_bytes, may_be_on_several_nodes};
  engine::Decline why;
  state.engine = engine::comm_create(process(), bootstrap, wanted, why);
  if (state.engine == nullptr) return decline(state, why.reason, why.rank);
  state.served = engine::comm_collectives(*state.engine);
  if (state.neighborhood != nullptr) engine::comm_set_neighborhood(*state.engine, *state.neighborhood);
  if (state.reproducible == ReproducibleChoice::rank) engine::comm_keep_order(*state.engine);
}

void decide_together(State& state) {
  if (world().agreed && has_foreign(state.handle)) return decline(state, "members of several MPI_COMM_WORLDs");
  if (!agree_on_options(state)) return;
  state.neighborhood = neighborhood_create(state);
  int* const ranks = world().agreed && job() != nullptr ? world_ranks(state.handle, state.size) : nullptr;
  serve_by_engine(state, ranks);
  nonblocking_agreed(state, ranks, process());
  if (ranks != nullptr) state.schedules = schedules_create(state, ranks, process());
  std::free(ranks);
  process_count_in_segment();
}

// Whether a call with this code does not count. The host checks the arguments first, on this rank
// alone. After any other error, the other members have had this rank's part in the call.
bool is_refusal(int code) {
  if (code == MPI_SUCCESS) return false;
  int error_class = MPI_SUCCESS;
  host().Error_class(code, &error_class);
  for (const int refusal :
       {MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_COMM, MPI_ERR_ROOT, MPI_ERR_OP, MPI_ERR_ARG}) {
    if (error_class == refusal) return true;
  }
  return false;
}

}  // namespace

bool decide_alone(State& state, bool inter) {
  host().Comm_rank(state.handle, &state.rank);
  host().Comm_size(state.handle, &state.size);
  if (inter)
    decline(state, "intercommunicator");
  else if (vendor::reports_failures())
    decline(state, "the MPI reports failures of processes (ULFM)");
  else if (state.size == 1)
    decline(state, "one rank");
  else if (world().off)
    decline(state, "STRETTO=off");
  return state.reason != nullptr;
}

std::uint32_t calls_until_agreement(const State& state) {
  const int wanted = world().agreed ? world().agree : kAgreeAuto;
  if (wanted == kAgreeFirst ||
      (world().agreed && (world().check >= 2 || world().reproducible == ReproducibleChoice::rank)))
    return 0;
  if (wanted != kAgreeAuto) return static_cast<std::uint32_t>(wanted);
  return state.handle == host().constants.comm_world ? kTuning.agree_calls_world : kTuning.agree_calls;
}

void agree(State& state, Collective collective) {
  const Inside inside;
  const std::uint64_t note = engine::process_note_agreement(process(), collective, state.serial, state.size);
  state.reason = nullptr;
  decide_together(state);
  state.agreed = true;
  engine::process_note_end(process(), note);
  report(state);
}

// Collective over the communicator, in a call of `collective`.
void agree_on_requests(State& state, Collective collective) {
  const Inside inside;
  const std::uint64_t note = engine::process_note_agreement(process(), collective, state.serial, state.size);
  nonblocking_meet(state, process());
  engine::process_note_end(process(), note);
}

void call_before_agreement(State& state, Collective collective, int code) {
  if (is_refusal(code)) return;
  if (state.agreed) {
    if (waits_for_all(collective)) agree_on_requests(state, collective);
    return;
  }
  ++state.calls;
  if (waits_for_all(collective)) ++state.calls_of_all;
  const bool now = waits_for_all(collective) && state.calls_of_all >= calls_until_agreement(state);
  if (now || state.calls >= kTuning.agree_calls_of_any_kind) agree(state, collective);
}

}  // namespace stretto::mpi
