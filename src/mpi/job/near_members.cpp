// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/near_members.hpp"

#include <cstdlib>
#include <cstring>

#include "base/tuning.hpp"
#include "mpi/job/job.hpp"
#include "sys/sys.hpp"
#include "topo/numbering.hpp"

namespace stretto::mpi {

const std::int32_t* job_nodes() { return job()->has_nodes ? job()->node_of.data() : nullptr; }

int nodes_of(const int* job_ranks, int size) {
  const std::int32_t* const nodes = job_nodes();
  if (nodes == nullptr) return 1;
  topo::Numbering numbers;
  for (int r = 0; r < size; ++r) (void)numbers.number(0, nodes[job_ranks[r]]);
  if (numbers.failed()) std::abort();  // a few words, and the members decide by it
  return numbers.count();
}

bool NearMembers::find(int rank, int size, const int* job_ranks) {
  const std::int32_t* const nodes = job_nodes();
  for (int r = 0; r < size; ++r) {
    if (nodes && nodes[job_ranks[r]] != nodes[job_ranks[rank]]) continue;
    if (r == rank) me = static_cast<int>(ranks.size());
    ranks.push(r);
  }
  return !ranks.failed();
}

bool NearMembers::wait(int messages) const {
  std::uint32_t tickets[16];
  while (messages > 0) {
    const int through = transport.poll(transport.context, tickets, 16);
    if (through < 0) return false;
    if (through == 0) sys::nap_ns(kTuning.opening_pause_ns);
    messages -= through;
  }
  return true;
}

// Each member sends its word to the first, which sends all words back.
bool NearMembers::allgather(const void* mine, void* all, std::size_t bytes) {
  const int others = static_cast<int>(ranks.size()) - 1;
  char* const words = static_cast<char*>(all);
  if (me != 0) {
    transport.send(transport.context, ranks[0], 0, static_cast<const char*>(mine), bytes, 0);
    transport.recv(transport.context, ranks[0], 0, words, bytes * ranks.size(), 0);
    return wait(2);
  }
  std::memcpy(words, mine, bytes);
  for (std::size_t i = 1; i < ranks.size(); ++i)
    transport.recv(transport.context, ranks[i], 0, words + i * bytes, bytes, 0);
  if (!wait(others)) return false;
  for (std::size_t i = 1; i < ranks.size(); ++i)
    transport.send(transport.context, ranks[i], 0, words, bytes * ranks.size(), 0);
  return wait(others);
}

engine::Comm* NearMembers::share(engine::Process& process, const transport::Transport& by, engine::Decline& why,
                                 bool serves_node) {
  if (ranks.size() < 2) return nullptr;
  transport = by;
  const engine::Bootstrap bootstrap = {me, static_cast<int>(ranks.size()), this,
                                       [](void* context, const void* mine, void* all, std::size_t bytes) {
                                         return static_cast<NearMembers*>(context)->allgather(mine, all, bytes);
                                       }};
  return engine::comm_create(process, bootstrap, 0, why, serves_node);
}

}  // namespace stretto::mpi
