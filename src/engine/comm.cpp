// SPDX-License-Identifier: BSD-3-Clause
// A communicator's life after it was agreed, and its collectives.
#include "coll/direct/direct.hpp"
#include "coll/direct/ordered.hpp"
#include "coll/direct/reduce.hpp"
#include "engine/process.hpp"

namespace stretto::engine {

namespace direct = coll::direct;

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

// One call: numbered, run, reported.
template <class Body>
Outcome call_as(Comm& comm, Collective collective, Body body) {
  shm::Call call(*comm.team, collective);
  body(call);
  return {call.status(), call.path(), call.bytes()};
}

Collective scan_kind(bool exclusive) { return exclusive ? Collective::exscan : Collective::scan; }

}  // namespace

Outcome barrier(Comm& comm) {
  return call_as(comm, Collective::barrier, [](shm::Call& call) { direct::barrier(call); });
}

Outcome bcast(Comm& comm, const Region& buffer, int root, bool good) {
  return call_as(comm, Collective::bcast, [&](shm::Call& call) { direct::bcast(call, buffer, root, good); });
}

Outcome gather(Comm& comm, Collective as, const Region& send, const Blocks& receive, int root, bool in_place,
               bool good) {
  return call_as(comm, as, [&](shm::Call& call) { direct::gather(call, send, receive, root, in_place, good); });
}

Outcome scatter(Comm& comm, Collective as, const Blocks& send, const Region& receive, int root, bool in_place,
                bool good) {
  return call_as(comm, as, [&](shm::Call& call) { direct::scatter(call, send, receive, root, in_place, good); });
}

Outcome allgather(Comm& comm, Collective as, const Region& send, const Blocks& receive, bool in_place, bool good) {
  return call_as(comm, as, [&](shm::Call& call) { direct::allgather(call, send, receive, in_place, good); });
}

Outcome alltoall(Comm& comm, Collective as, const Blocks& send, const Blocks& receive, bool in_place, bool good) {
  return call_as(comm, as, [&](shm::Call& call) { direct::alltoall(call, send, receive, in_place, good); });
}

Outcome reduce(Comm& comm, const Vector& vector, const Reduction& reduction, int root) {
  return call_as(comm, Collective::reduce, [&](shm::Call& call) { direct::reduce(call, vector, reduction, root); });
}

Outcome allreduce(Comm& comm, const Vector& vector, const Reduction& reduction) {
  return call_as(comm, Collective::allreduce, [&](shm::Call& call) { direct::allreduce(call, vector, reduction); });
}

Outcome reduce_scatter(Comm& comm, Collective as, const Vector& vector, const Reduction& reduction,
                       const std::uint64_t* begins) {
  return call_as(comm, as, [&](shm::Call& call) { direct::reduce_scatter(call, vector, reduction, begins); });
}

Outcome scan(Comm& comm, const Vector& vector, const Reduction& reduction, bool exclusive) {
  return call_as(comm, scan_kind(exclusive),
                 [&](shm::Call& call) { direct::scan(call, vector, reduction, exclusive); });
}

Outcome reduce(Comm& comm, const Operands& operands, const Operation& operation, int root) {
  return call_as(comm, Collective::reduce,
                 [&](shm::Call& call) { direct::reduce_ordered(call, operands, operation, root); });
}

Outcome allreduce(Comm& comm, const Operands& operands, const Operation& operation) {
  return call_as(comm, Collective::allreduce,
                 [&](shm::Call& call) { direct::allreduce_ordered(call, operands, operation); });
}

Outcome reduce_scatter(Comm& comm, Collective as, const Operands& operands, const Operation& operation,
                       const std::uint64_t* begins) {
  return call_as(comm, as,
                 [&](shm::Call& call) { direct::reduce_scatter_ordered(call, operands, operation, begins); });
}

Outcome scan(Comm& comm, const Operands& operands, const Operation& operation, bool exclusive) {
  return call_as(comm, scan_kind(exclusive),
                 [&](shm::Call& call) { direct::scan_ordered(call, operands, operation, exclusive); });
}

}  // namespace stretto::engine
