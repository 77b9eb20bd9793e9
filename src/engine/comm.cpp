// SPDX-License-Identifier: BSD-3-Clause
// What happens to a communicator after the agreement: its collectives and its end.
#include <cerrno>
#include <utility>

#include "coll/shm/collectives.hpp"
#include "coll/shm/ordered.hpp"
#include "coll/shm/reduce.hpp"
#include "engine/explain.hpp"
#include "engine/process.hpp"

namespace stretto::engine {

void comm_free(Comm* comm) {
  if (!comm) return;
  explain_end(*comm);
  Process& process = *comm->process;
  comm->team->calls().retire();
  const Locked locked(process.lock);
  Comm** link = &process.active;
  Comm* before = nullptr;
  for (; *link != comm; link = &(*link)->next) {
    if (is_listed(**link)) before = *link;
  }
  *link = comm->next;
  if (is_listed(*comm)) unlist(*comm, before);
  comm->next = process.leaving;
  process.leaving = comm;
  reap(process);
}

void comm_refuse_call(Comm& comm, Collective collective, Mistake mistake) {
  comm.team->calls().refuse(collective, mistake);
}

void comm_obey(Comm& comm, select::ShmRules&& rules) { comm.rules = std::move(rules); }
const select::ShmRules& comm_rules(const Comm& comm) { return comm.rules; }

std::uint32_t comm_collectives(const Comm& comm) { return comm.collectives; }
void comm_set_neighborhood(Comm& comm, const Neighborhood& neighborhood) { comm.neighborhood = &neighborhood; }
std::uint64_t comm_generation(const Comm& comm) { return comm.team->generation(); }
int comm_rank(const Comm& comm) { return comm.team->rank(); }
int comm_size(const Comm& comm) { return comm.team->size(); }

namespace {

const char* error_name(int error) {
  switch (error) {
    case 0: return "members are in different PID namespaces";
    case EPERM: return "EPERM";
    case EACCES: return "EACCES";
    case EFAULT: return "EFAULT";
    case ENOSYS: return "ENOSYS";
    case ESRCH: return "ESRCH";
    case ENOMEM: return "ENOMEM";
    default: return "another error";
  }
}

}  // namespace

Refused comm_refused(const Comm& comm) {
  const shm::MemoryRefusal& refusal = comm.team->single_copy().refusal();
  return {refusal.rank, error_name(refusal.error), refusal.call};
}

coll_shm::TeamTraits comm_members(const Comm& comm) {
  const coll_shm::TierChoice& tiers = comm.tier_choice;
  return coll_shm::traits_of(comm_size(comm), tiers, tiers.rails_of(false, false));
}
void comm_keep_order(Comm& comm) { comm.tier_choice.left_to_right = true; }

namespace {

constexpr int kNoRoot = -1;

// What this rank tells others of a call that moves data.
shm::CallDescriptor descriptor_of(const Region& own, int root, bool good) {
  return {own.bytes(), root, 0, own.layout ? own.layout->signature.element() : ElementCode{0}, good};
}
// The same of a reduction.
shm::CallDescriptor descriptor_of(const KernelArgs& vector, const KernelOp& reduction, int root) {
  return {vector.bytes, root, reduction.op, reduction.element, vector.good};
}
shm::CallDescriptor descriptor_of(const FunctionArgs& operands, const FunctionOp& operation, int root) {
  return {operands.own.bytes(), root, operation.op, operation.element, operands.good};
}

shm::Progress progress_of(Status status) {
  if (status == Status::ok) return shm::Progress::ended;
  return status == Status::mismatch || status == Status::peer_gone ? shm::Progress::gave_up : shm::Progress::failed;
}

// What a call of so many bytes, as rules count them, may choose from.
coll_shm::Selection selection(const Comm& comm, Collective collective, std::uint64_t bytes) {
  return {comm.rules.of(collective, bytes), comm.tier_choice};
}

// The same of a call whose parts are as long as this one. Without groups there is no choice.
coll_shm::Selection selection_of_parts(const Comm& comm, Collective collective, const Region& part) {
  if (!comm.tier_choice.any()) [[likely]]
    return {nullptr, comm.tier_choice};
  return selection(comm, collective, part.bytes() * static_cast<unsigned>(comm_size(comm)));
}

// Makes one call: numbers it, notes it, runs it and reports it.
template <class Body>
Outcome call_as(Comm& comm, Collective collective, const shm::CallDescriptor& descriptor, Body body) {
  shm::Call call(*comm.team, collective, descriptor);
  shm::Journal& journal = comm.process->journal;
  std::uint64_t note = 0;
  if (comm.noted) [[likely]] {
    note = journal.begin(comm.team->generation(), call.tag(), descriptor);
    comm.team->calls().begin(call.number(), note);
  } else {
    shm::t_call.note = 0;
  }
  if (comm.team->calls().check() < shm::CheckLevel::strict || shm::CallCheck(call).match_calls()) [[likely]]
    body(call);
  if (call.status() != Status::ok) [[unlikely]] {
    locate_call(*comm.process);  // while peers that ask still wait for it
    shm::CallCheck(call).give_up();
  }
  if (comm.noted) [[likely]] {
    journal.end(note, progress_of(call.status()));
    comm.team->calls().end(call.number(), note);
  }
  Status status = call.status();
  const bool fine = status == Status::ok && descriptor.good && call.type_mismatch().rank < 0;
  if (!fine) [[unlikely]] {
    status = explain(comm, call);
    if (status != Status::ok || !descriptor.good) comm.team->set_troubled();
  }
  return {status, call.path(), call.bytes()};
}

}  // namespace

Outcome barrier(Comm& comm) {
  return call_as(comm, Collective::barrier, {},
                 [&](shm::Call& call) { coll_shm::barrier(call, selection(comm, Collective::barrier, 0)); });
}

Outcome bcast(Comm& comm, const Region& buffer, int root, bool good) {
  return call_as(comm, Collective::bcast, descriptor_of(buffer, root, good), [&](shm::Call& call) {
    coll_shm::bcast(call, buffer, root, good, selection(comm, Collective::bcast, buffer.bytes()));
  });
}

Outcome gather(Comm& comm, Collective as, const Region& send, const Blocks& receive, int root, bool in_place,
               bool good) {
  return call_as(comm, as, descriptor_of(send, root, good), [&](shm::Call& call) {
    if (!comm.tier_choice.any()) return coll_shm::gather_channels(call, send, receive, root, in_place, good, false);
    const Region own = in_place ? receive.at(root) : send;
    coll_shm::gather(call, send, receive, root, in_place, good, selection_of_parts(comm, as, own));
  });
}

Outcome scatter(Comm& comm, Collective as, const Blocks& send, const Region& receive, int root, bool in_place,
                bool good) {
  return call_as(comm, as, descriptor_of(receive, root, good),
                 [&](shm::Call& call) { coll_shm::scatter(call, send, receive, root, in_place, good); });
}

Outcome allgather(Comm& comm, Collective as, const Region& send, const Blocks& receive, bool in_place, bool good) {
  const Region own = in_place ? receive.at(comm_rank(comm)) : send;
  return call_as(comm, as, descriptor_of(own, kNoRoot, good), [&](shm::Call& call) {
    coll_shm::allgather(call, send, receive, in_place, good, selection_of_parts(comm, as, own));
  });
}

Outcome alltoall(Comm& comm, Collective as, const Blocks& send, const Blocks& receive, bool in_place, bool good) {
  return call_as(
      comm, as,
      descriptor_of(as == Collective::alltoall ? (in_place ? receive : send).at(comm.team->rank()) : Region{}, kNoRoot,
                    good),
      [&](shm::Call& call) {
        const Region part = (in_place ? receive : send).at(0);
        coll_shm::alltoall(call, send, receive, in_place, good, selection_of_parts(comm, as, part));
      });
}

Outcome neighbors(Comm& comm, Collective as, const SentBlocks& send, const Blocks& receive, bool good) {
  return call_as(comm, as, descriptor_of(Region{}, kNoRoot, good),
                 [&](shm::Call& call) { coll_shm::neighbors(call, *comm.neighborhood, send, receive, good); });
}

Outcome reduce(Comm& comm, const KernelArgs& vector, const KernelOp& reduction, int root) {
  return call_as(comm, Collective::reduce, descriptor_of(vector, reduction, root), [&](shm::Call& call) {
    coll_shm::reduce(call, vector, reduction, root, selection(comm, Collective::reduce, vector.bytes));
  });
}

Outcome allreduce(Comm& comm, const KernelArgs& vector, const KernelOp& reduction) {
  return call_as(comm, Collective::allreduce, descriptor_of(vector, reduction, kNoRoot), [&](shm::Call& call) {
    coll_shm::allreduce(call, vector, reduction, selection(comm, Collective::allreduce, vector.bytes));
  });
}

Outcome reduce_scatter(Comm& comm, Collective as, const KernelArgs& vector, const KernelOp& reduction,
                       const std::uint64_t* begins) {
  return call_as(comm, as, descriptor_of(vector, reduction, kNoRoot), [&](shm::Call& call) {
    coll_shm::reduce_scatter(call, vector, reduction, begins, selection(comm, as, vector.bytes));
  });
}

Outcome scan(Comm& comm, const KernelArgs& vector, const KernelOp& reduction, bool exclusive) {
  const Collective as = scan_kind(exclusive);
  return call_as(comm, as, descriptor_of(vector, reduction, kNoRoot), [&](shm::Call& call) {
    coll_shm::scan(call, vector, reduction, exclusive, selection(comm, as, vector.bytes));
  });
}

Outcome reduce(Comm& comm, const FunctionArgs& operands, const FunctionOp& operation, int root) {
  return call_as(comm, Collective::reduce, descriptor_of(operands, operation, root), [&](shm::Call& call) {
    coll_shm::reduce_ordered(call, operands, operation, root,
                             selection(comm, Collective::reduce, operands.own.bytes()));
  });
}

Outcome allreduce(Comm& comm, const FunctionArgs& operands, const FunctionOp& operation) {
  return call_as(comm, Collective::allreduce, descriptor_of(operands, operation, kNoRoot), [&](shm::Call& call) {
    coll_shm::allreduce_ordered(call, operands, operation,
                                selection(comm, Collective::allreduce, operands.own.bytes()));
  });
}

Outcome reduce_scatter(Comm& comm, Collective as, const FunctionArgs& operands, const FunctionOp& operation,
                       const std::uint64_t* begins) {
  return call_as(comm, as, descriptor_of(operands, operation, kNoRoot), [&](shm::Call& call) {
    coll_shm::reduce_scatter_ordered(call, operands, operation, begins, selection(comm, as, operands.own.bytes()));
  });
}

Outcome scan(Comm& comm, const FunctionArgs& operands, const FunctionOp& operation, bool exclusive) {
  const Collective as = scan_kind(exclusive);
  return call_as(comm, as, descriptor_of(operands, operation, kNoRoot), [&](shm::Call& call) {
    coll_shm::scan_ordered(call, operands, operation, exclusive, selection(comm, as, operands.own.bytes()));
  });
}

}  // namespace stretto::engine
