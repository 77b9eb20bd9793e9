// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/nonblocking.hpp"

#include <cstdlib>
#include <new>
#include <utility>

#include "mpi/held_handles.hpp"
#include "mpi/late_errors.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/neighborhood.hpp"
#include "mpi/requests.hpp"

namespace stretto::mpi {

constinit std::atomic<bool> g_nonblocking{false};

namespace {

// All messages go through the team. Nothing is left for another transport.
constexpr transport::Transport kNowhere = {
    nullptr, [](void*, int, std::uint32_t, const char*, std::uint64_t, std::uint32_t) { return false; },
    [](void*, int, std::uint32_t, char*, std::uint64_t, std::uint32_t) { return false; },
    [](void*, std::uint32_t*, int) { return 0; }, [](void*) { return Status::invalid; }};

// Types of their own for each block are left to the host.
constexpr std::uint32_t kServed = kNativeCollectives & ~(1u << static_cast<int>(Collective::alltoallw) |
                                                         1u << static_cast<int>(Collective::neighbor_alltoallw));

bool is_wanted(const State& state, NonblockingChoice choice) {
  if (state.check == 3) return false;  // results would have to be compared
  return choice == NonblockingChoice::on;
}

// Of a generalized request.
int query(void* context, MPI_Status* status) {
  const Inside inside;
  host().Status_set_elements(status, host().constants.byte, 0);
  host().Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  const auto& posted = *static_cast<const Posted*>(context);
  if (posted.code != MPI_SUCCESS)
    late_errors_note({posted.request, posted.entry, posted.comm, posted.serial, posted.outcome.status, posted.code});
  return MPI_SUCCESS;
}
int release(void* context) {
  auto* const posted = static_cast<Posted*>(context);
  if (posted->counted) g_own_requests.fetch_sub(1, std::memory_order_relaxed);
  posted->~Posted();
  std::free(posted);
  return MPI_SUCCESS;
}
// MPI forbids it for collectives.
int cancel(void*, int) { return MPI_ERR_REQUEST; }

}  // namespace

Nonblocking* nonblocking_create(State& state, NonblockingChoice choice, engine::Process& process) {
  if (!is_wanted(state, choice)) return nullptr;
  void* const memory = std::malloc(sizeof(Nonblocking));
  if (memory == nullptr) std::abort();  // a few kilobytes, and members cannot agree without them
  auto* const made = new (memory) Nonblocking;
  topo::Placement placement;
  placement.start(state.size);
  select::Selector selector;
  const bool able = made->everybody.resize(static_cast<std::size_t>(state.size), 0) &&
                    selector.start({.ranks = state.size, .forced = kNativeCollectives}, made->rules);
  if (!able) std::abort();  // likewise
  for (int r = 0; r < state.size; r++) made->everybody[static_cast<std::size_t>(r)] = r;
  if (state.reproducible == ReproducibleChoice::rank) selector.keep_order();
  if (!made->scheduler.open(state.rank, placement, {}, kNowhere, engine::schedule_policy(process), std::move(selector)))
    std::abort();  // likewise
  made->scheduler.stay_apart();
  if (neighborhood_read(state, made->neighborhood)) made->scheduler.set_neighborhood(made->neighborhood);
  const engine::Bootstrap bootstrap = {state.rank, state.size, &state.handle, allgather_bytes};
  engine::Decline why;
  engine::Comm* const team = engine::comm_create(process, bootstrap, 0, why);
  if (team == nullptr) {
    made->~Nonblocking();
    std::free(made);
    return nullptr;
  }
  made->scheduler.join(team, made->everybody.data());
  made->served = engine::comm_collectives(*state.engine) & kServed;
  requests_add(*made);
  g_nonblocking.store(true, std::memory_order_relaxed);
  return made;
}

void nonblocking_free(Nonblocking* nonblocking) {
  if (nonblocking == nullptr || !requests_release(*nonblocking)) return;
  nonblocking->~Nonblocking();
  std::free(nonblocking);
}

// ---- One call ----

void Posted::let_go() {
  for (Handle& handle : held) held_release(std::exchange(handle, 0));
}

Posted::~Posted() {
  let_go();
  for (std::int64_t* array : arrays) std::free(array);
}

Posted* posted_begin(Call& call, Handle comm) {
  const Requested& requested = *call.requested;
  call.state = requested.own != nullptr ? requested.state : state_if_any(as<MPI_Comm>(comm));
  if (call.state == nullptr) return nullptr;
  Nonblocking* const on = requested.own != nullptr ? requested.own : call.state->nonblocking;
  if (on == nullptr || (on->served >> static_cast<int>(call.collective()) & 1) == 0) return nullptr;
  void* const memory = std::malloc(sizeof(Posted));
  if (memory == nullptr) std::abort();  // a kilobyte, and peers have decided alike
  return new (memory) Posted(*on);
}

void posted_drop(Posted* posted) {
  if (!posted->given) release(posted);
}

Data& posted_data(Posted& posted, int which) { return posted.data[which]; }
engine::Prepared& posted_prepared(Posted& posted) { return posted; }
FunctionWork& posted_work(Posted& posted) { return posted.work; }
engine::Contributed& posted_contributed(Posted& posted) { return posted.contributed; }

void posted_hold(Posted& posted, Handle op, Handle type) {
  posted.held[0] = op;
  posted.held[1] = type;
  for (const Handle handle : posted.held) held_add(handle);
}

// The refused call has no number in the order of blocking calls, so no peer hears of it.
bool posted_refuse(Call& call, const Arguments& arguments) {
  (void)raise(call, arguments.code, arguments.what);
  return true;
}

Extents posted_extents(Posted& posted, Arguments& arguments, const Extents& given) {
  if (given.counts == nullptr) return given;
  const auto ranks = static_cast<std::size_t>(given.ranks);
  std::int64_t*& place = posted.arrays[posted.arrays[0] != nullptr ? 1 : 0];
  place = static_cast<std::int64_t*>(std::malloc(2 * ranks * sizeof(std::int64_t)));
  if (place == nullptr) {
    arguments.failed(MPI_ERR_NO_MEM, "no memory");
    return {0, nullptr, nullptr, false, given.ranks};
  }
  const auto entry = [&](const void* array, std::size_t r) {
    return given.wide ? static_cast<const std::int64_t*>(array)[r] : static_cast<const int*>(array)[r];
  };
  for (std::size_t r = 0; r < ranks; r++) {
    place[r] = entry(given.counts, r);
    place[ranks + r] = entry(given.displs, r);
  }
  return {0, place, place + ranks, true, given.ranks};
}

bool posted_go(Call& call, Posted& posted, const engine::Outcome& prepared) {
  if (prepared.status != Status::ok) {
    (void)finish_all(&posted.data[0], &posted.data[1]);
    (void)raise(call, prepared.status);
    return true;
  }
  auto* const request = static_cast<MPI_Request*>(call.requested->request);
  int code = MPI_SUCCESS;
  {
    const Inside inside;
    code = host().Grequest_start(query, release, cancel, &posted, &posted.request);
  }
  if (code != MPI_SUCCESS) {
    (void)raise(call, code, "the MPI makes no request");
    return true;
  }
  posted.given = true;
  posted.counted = call.requested->own != nullptr;
  posted.entry = call.entry;
  posted.comm = call.state->handle;
  posted.serial = call.state->serial;
  *request = posted.request;
  count_call(call, Path::schedule, 0);
  requests_post(posted);
  return true;
}

}  // namespace stretto::mpi
