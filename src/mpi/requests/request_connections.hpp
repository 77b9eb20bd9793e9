// SPDX-License-Identifier: BSD-3-Clause
// Messages between nodes of calls with requests (nonblocking.hpp): by connections of this process,
// which a thread serves (transport/bulk/driver.hpp).
//
// The MPI's own messages would not do. MPI promises that a call goes on while the program is in any
// other call of MPI, such as MPI_Comm_dup, in which nobody may drive the MPI for Stretto.
//
// All communicators share the connections. They open at the first message of each pair.
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

// At MPI_Finalize: ends the thread, and closes all connections.
void request_connections_stop();

}  // namespace stretto::mpi
