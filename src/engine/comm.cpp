// SPDX-License-Identifier: BSD-3-Clause
// A communicator's life after it was agreed, and its collectives.
#include "base/log.hpp"
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
  Comm** link = &process.active;
  while (*link != comm) link = &(*link)->next;
  *link = comm->next;
  comm->next = process.leaving;
  process.leaving = comm;
  reap(process);
}

std::uint32_t comm_collectives(const Comm& comm) { return comm.collectives; }
int comm_rank(const Comm& comm) { return comm.team->rank(); }
int comm_size(const Comm& comm) { return comm.team->size(); }

namespace {

constexpr int kNoRoot = -1;

// What a mismatch was, for the user; the mpi layer raises the error.
[[gnu::cold]] void explain(const Comm& comm, const shm::Call& call) {
  const shm::Call::Stranger& other = call.stranger();
  if (other.call == call.tag()) {
    log_line(LogLevel::error, "communicator of %d ranks, %s (call %llu there): rank %d gives %llu bytes, but rank %d gives %llu",
             comm.team->size(), CallName(call.tag()).text, static_cast<unsigned long long>(call.tag() >> 8), comm.team->rank(),
             static_cast<unsigned long long>(other.expected_bytes), other.rank, static_cast<unsigned long long>(other.bytes));
    return;
  }
  log_line(LogLevel::error,
           "communicator of %d ranks: rank %d is in %s (call %llu there), but rank %d is in %s (call %llu): every rank must "
           "call the same collectives in the same order",
           comm.team->size(), comm.team->rank(), CallName(call.tag()).text, static_cast<unsigned long long>(call.tag() >> 8),
           other.rank, CallName(other.call).text, static_cast<unsigned long long>(other.call >> 8));
}

// One call: numbered, noted, run, reported. `bytes` is this rank's own block, for the flight recorder.
template <class Body>
Outcome call_as(Comm& comm, Collective collective, int root, std::uint64_t bytes, Body body) {
  shm::Call call(*comm.team, collective);
  shm::Note* const note = comm.process->journal.begin(comm.team->generation(), call.tag(), bytes, root);
  body(call);
  shm::Journal::end(note, call.tag());
  if (call.status() == Status::mismatch) [[unlikely]] explain(comm, call);
  return {call.status(), call.path(), call.bytes()};
}

Collective scan_kind(bool exclusive) { return exclusive ? Collective::exscan : Collective::scan; }

}  // namespace

Outcome barrier(Comm& comm) {
  return call_as(comm, Collective::barrier, kNoRoot, 0, [](shm::Call& call) { direct::barrier(call); });
}

Outcome bcast(Comm& comm, const Region& buffer, int root, bool good) {
  return call_as(comm, Collective::bcast, root, buffer.bytes(),
                 [&](shm::Call& call) { direct::bcast(call, buffer, root, good); });
}

Outcome gather(Comm& comm, Collective as, const Region& send, const Blocks& receive, int root, bool in_place,
               bool good) {
  return call_as(comm, as, root, send.bytes(),
                 [&](shm::Call& call) { direct::gather(call, send, receive, root, in_place, good); });
}

Outcome scatter(Comm& comm, Collective as, const Blocks& send, const Region& receive, int root, bool in_place,
                bool good) {
  return call_as(comm, as, root, receive.bytes(),
                 [&](shm::Call& call) { direct::scatter(call, send, receive, root, in_place, good); });
}

Outcome allgather(Comm& comm, Collective as, const Region& send, const Blocks& receive, bool in_place, bool good) {
  return call_as(comm, as, kNoRoot, send.bytes(),
                 [&](shm::Call& call) { direct::allgather(call, send, receive, in_place, good); });
}

Outcome alltoall(Comm& comm, Collective as, const Blocks& send, const Blocks& receive, bool in_place, bool good) {
  return call_as(comm, as, kNoRoot, 0,
                 [&](shm::Call& call) { direct::alltoall(call, send, receive, in_place, good); });
}

Outcome reduce(Comm& comm, const Vector& vector, const Reduction& reduction, int root) {
  return call_as(comm, Collective::reduce, root, vector.bytes,
                 [&](shm::Call& call) { direct::reduce(call, vector, reduction, root); });
}

Outcome allreduce(Comm& comm, const Vector& vector, const Reduction& reduction) {
  return call_as(comm, Collective::allreduce, kNoRoot, vector.bytes,
                 [&](shm::Call& call) { direct::allreduce(call, vector, reduction); });
}

Outcome reduce_scatter(Comm& comm, Collective as, const Vector& vector, const Reduction& reduction,
                       const std::uint64_t* begins) {
  return call_as(comm, as, kNoRoot, vector.bytes,
                 [&](shm::Call& call) { direct::reduce_scatter(call, vector, reduction, begins); });
}

Outcome scan(Comm& comm, const Vector& vector, const Reduction& reduction, bool exclusive) {
  return call_as(comm, scan_kind(exclusive), kNoRoot, vector.bytes,
                 [&](shm::Call& call) { direct::scan(call, vector, reduction, exclusive); });
}

Outcome reduce(Comm& comm, const Operands& operands, const Operation& operation, int root) {
  return call_as(comm, Collective::reduce, root, operands.own.bytes(),
                 [&](shm::Call& call) { direct::reduce_ordered(call, operands, operation, root); });
}

Outcome allreduce(Comm& comm, const Operands& operands, const Operation& operation) {
  return call_as(comm, Collective::allreduce, kNoRoot, operands.own.bytes(),
                 [&](shm::Call& call) { direct::allreduce_ordered(call, operands, operation); });
}

Outcome reduce_scatter(Comm& comm, Collective as, const Operands& operands, const Operation& operation,
                       const std::uint64_t* begins) {
  return call_as(comm, as, kNoRoot, operands.own.bytes(),
                 [&](shm::Call& call) { direct::reduce_scatter_ordered(call, operands, operation, begins); });
}

Outcome scan(Comm& comm, const Operands& operands, const Operation& operation, bool exclusive) {
  return call_as(comm, scan_kind(exclusive), kNoRoot, operands.own.bytes(),
                 [&](shm::Call& call) { direct::scan_ordered(call, operands, operation, exclusive); });
}

}  // namespace stretto::engine
