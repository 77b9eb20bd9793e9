// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/requests/request_connections.hpp"

#include "base/bootstrap.hpp"
#include "base/log.hpp"
#include "mpi/job/connections.hpp"
#include "mpi/job/world.hpp"
#include "mpi/overlap/overlap.hpp"

namespace stretto::mpi {

bool RequestConnections::open(State& state, const int* job_ranks, const NearMembers* shares) {
  const Bootstrap members = {state.rank, state.size, &state.handle, allgather_bytes};
  const Array<ConnectionWord> all = of_all(members, connection_word());
  id_ = all[0].id;
  const bool able = all_can_connect(all);
  open_ =
      everybody(members, able && connections_introduce(all, job_ranks, shares != nullptr ? &shares->ranks : nullptr));
  if (open_) messages_.start(*connections(), id_, job_ranks, state.size, overlap_bring_home);
  report_requests(state, open_  ? "ours, by connections of our own between nodes"
                         : able ? "the MPI; a member would have too many connections"
                                : "the MPI; members cannot connect");
  return open_;
}

// Later ones are for persistent requests.
void report_requests(const State& state, const char* how) {
  if (state.rank != 0 || state.nonblocking != nullptr || !options().explain()) return;
  log_explain("calls with requests on communicator %llu of %d ranks: %s", static_cast<unsigned long long>(state.serial),
              state.size, how);
}

RequestConnections::~RequestConnections() {
  transport::bulk::Driver* const own = open_ ? connections() : nullptr;
  if (own != nullptr) own->forget(id_);
}

}  // namespace stretto::mpi
