// SPDX-License-Identifier: BSD-3-Clause
// The members of a communicator that are on this rank's node, as the job's placement says.
#pragma once
#include <cstdint>

#include "base/array.hpp"
#include "engine/engine.hpp"
#include "transport/transport.hpp"

namespace stretto::mpi {

// The node of each rank of the job. Null if the job's placement has no nodes.
const std::int32_t* job_nodes();
// On how many nodes these ranks of the job are.
int nodes_of(const int* job_ranks, int size);

// The members on this node, and how they exchange words before they share memory.
struct NearMembers {
  Array<int> ranks;
  int me = 0;  // this rank's index in `ranks`
  transport::Transport transport;

  // Returns false if there is no memory.
  bool find(int rank, int size, const int* job_ranks);
  // A team for messages over shared memory. Collective over these members, to which `by` carries
  // words. Null on all of them or on none: if this rank is alone, or for `why`. `serves_node` is as
  // in engine::comm_create.
  engine::Comm* share(engine::Process& process, const transport::Transport& by, engine::Decline& why,
                      bool serves_node = false);

 private:
  bool allgather(const void* mine, void* all, std::size_t bytes);
  bool wait(int messages) const;
};

}  // namespace stretto::mpi
