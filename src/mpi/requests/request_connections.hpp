// SPDX-License-Identifier: BSD-3-Clause
// Messages between nodes of calls with requests (nonblocking.hpp): by the process's connections
// (job/connections.hpp).
//
// The MPI's own messages would not do. MPI promises that a call goes on while the program is in any
// other call of MPI, such as MPI_Comm_dup, in which nobody may drive the MPI for Stretto.
#pragma once
#include "mpi/job/near_members.hpp"
#include "mpi/state/state.hpp"
#include "transport/bulk/bulk_transport.hpp"

namespace stretto::mpi {

// The messages of one communicator, or of one persistent request.
class RequestConnections {
 public:
  RequestConnections() = default;
  // No message is under way.
  ~RequestConnections();
  RequestConnections(const RequestConnections&) = delete;
  RequestConnections& operator=(const RequestConnections&) = delete;

  // Collective over the communicator. `job_ranks` are its members' ranks in the job, and must stay.
  // Those of `shares` need no connection. Returns true on all members or on none.
  bool open(State& state, const int* job_ranks, const NearMembers* shares);
  [[nodiscard]] transport::Transport transport() { return messages_.transport(); }

 private:
  transport::bulk::BulkTransport messages_;
  std::uint64_t id_ = 0;
  bool open_ = false;
};

// Says once for a communicator what serves its calls with requests, if an option asks for it.
void report_requests(const State& state, const char* how);

}  // namespace stretto::mpi
