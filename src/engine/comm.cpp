// SPDX-License-Identifier: BSD-3-Clause
// A communicator's life after it was agreed, and its collectives.
#include "coll/direct/direct.hpp"
#include "engine/process.hpp"

namespace stretto::engine {

void comm_free(Comm* comm) {
  if (!comm) return;
  Process& process = *comm->process;
  const Locked locked(process);
  comm->next = process.leaving;
  process.leaving = comm;
  reap(process);
}

std::uint32_t comm_collectives(const Comm& comm) { return comm.collectives; }
int comm_rank(const Comm& comm) { return comm.team->rank(); }
int comm_size(const Comm& comm) { return comm.team->size(); }

namespace {

Outcome outcome(const shm::Call& call) { return {call.status(), call.path(), call.bytes()}; }

}  // namespace

Outcome barrier(Comm& comm) {
  shm::Call call(*comm.team, Collective::barrier);
  coll::direct::barrier(call);
  return outcome(call);
}

Outcome bcast(Comm& comm, const Region& buffer, int root, bool good) {
  shm::Call call(*comm.team, Collective::bcast);
  coll::direct::bcast(call, buffer, root, good);
  return outcome(call);
}

Outcome gather(Comm& comm, Collective as, const Region& send, const Blocks& receive, int root, bool in_place,
               bool good) {
  shm::Call call(*comm.team, as);
  coll::direct::gather(call, send, receive, root, in_place, good);
  return outcome(call);
}

Outcome scatter(Comm& comm, Collective as, const Blocks& send, const Region& receive, int root, bool in_place,
                bool good) {
  shm::Call call(*comm.team, as);
  coll::direct::scatter(call, send, receive, root, in_place, good);
  return outcome(call);
}

Outcome allgather(Comm& comm, Collective as, const Region& send, const Blocks& receive, bool in_place, bool good) {
  shm::Call call(*comm.team, as);
  coll::direct::allgather(call, send, receive, in_place, good);
  return outcome(call);
}

}  // namespace stretto::engine
