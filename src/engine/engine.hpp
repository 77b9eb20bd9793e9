// SPDX-License-Identifier: BSD-3-Clause
// The engine's interface for the mpi layer, and for tests that run ranks as threads.
//
//   Process   what a rank has once: its segment, its attached peers, its lanes of payload slots
//   Comm      what a communicator needs: control lines in the segment of each member
//
// The engine does not know MPI. Members exchange their first words through a Bootstrap. The mpi
// layer implements it with PMPI_Allgather on the communicator itself, and the tests with a
// barrier between threads.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bootstrap.hpp"
#include "base/collective.hpp"
#include "base/mistake.hpp"
#include "base/neighborhood.hpp"
#include "base/region.hpp"
#include "base/status.hpp"
#include "coll/shm/arguments.hpp"
#include "coll/shm/policy.hpp"
#include "shm/ledger.hpp"

namespace stretto::select {
class ShmRules;
}
namespace stretto::shm {
struct DeferredNotes;
struct HostCalls;
struct Modules;
struct SourceLine;
}  // namespace stretto::shm
namespace stretto::topo {
class Hosts;
}

namespace stretto::engine {

struct Settings;  // engine/settings.hpp: what the option table says, already parsed

using stretto::Bootstrap;

// Drives the host MPI. In every long wait the waiting thread calls it
// (ARCHITECTURE.md, invariant 8).
struct HostProgress {
  void* context = nullptr;
  void (*poke)(void* context) = nullptr;
  unsigned every = 1;                             // poke at every n-th step of a wait: some hosts take 1 us for a poke
  const std::atomic<int>* has_windows = nullptr;  // how many windows the program has (shm/waiter.hpp)
};

// From which line of source calls come (shm/call_sites.hpp).
struct Sources {
  const shm::Modules* modules = nullptr;
  // Finds the place of this thread's call, which returns to `caller`. False: the address says all.
  bool (*locate)(std::uint64_t caller, shm::SourceLine* line) = nullptr;
};

struct Process;
struct Comm;

// Makes this rank's engine. It does not fail if there is no shared memory: comm_create finds that
// out, and all members agree on it.
Process* process_create(const Settings& settings, const HostProgress& progress, const Sources& sources = {});
// The modules have grown. Returns false if another thread is at the segment: then it must be said
// again. A thread that waits for peers does not wait for a lock.
bool process_follow_modules(Process& process);
// Unmaps everything. Every Comm must have been freed.
void process_destroy(Process* process);
// Whether threads of this process may be in collectives at the same time. True by default.
void process_set_concurrent(Process& process, bool concurrent);

// Communicators that are made from now on may make calls that the program does not wait for
// (Scheduler::stay_apart).
void process_want_lanes_apart(Process& process);
// How many calls found no lane free, so that their long messages went in records (shm/lane.hpp).
std::uint64_t process_calls_without_lane(const Process& process);

// Counts of this process's calls by collective, which observers read. They move when the first
// communicator is made, so the caller must ask again then.
shm::Tally* process_tally(Process& process);
// Notes a call that shared memory does not serve. Returns 0 if it makes no note, because there is
// no segment yet or no option needs notes.
std::uint64_t process_note(Process& process, Collective collective, bool by_schedule);
// Notes that members agree on the n-th communicator of this process, of `size` ranks, in a call.
std::uint64_t process_note_agreement(Process& process, Collective collective, std::uint64_t communicator, int size);
// Where this thread's call comes from: "solve.py:33 in step", "/path/app+0x1234", or nothing. A
// text that does not fit is not given.
void process_place(Process& process, char* place, std::size_t bytes);
void process_note_left(Process& process, std::uint64_t note);  // the schedules leave the call to the host
void process_note_end(Process& process, std::uint64_t note);
// Where this process says which data are under way. Null: it has no memory for it. The watchdog
// calls hosts by these names; they stay.
shm::DeferredNotes* process_deferred(Process& process, const topo::Hosts& hosts);

// With a watchdog: where a process of this job has its segment. Peers on the same host then see it
// before they agree on any communicator. Zeros: it has none.
struct ProcessAddress {
  std::uint64_t host = 0, pid_namespace = 0, identity = 0;
  std::int64_t pid = 0, descriptor = -1;
};
ProcessAddress process_address(Process& process);
void process_meet(Process& process, const ProcessAddress& peer);
// Where this process notes calls that the host serves. Null: there is no watchdog, or no memory.
shm::HostCalls* process_host_calls(Process& process);

inline constexpr char kOnSeveralNodes[] = "members are on different nodes";
// Why members of a communicator decline together: the reason of the lowest declining rank, as a
// static text that can be printed.
struct Decline {
  int rank = -1;
  const char* reason = nullptr;
};

// Collective over the bootstrap's members: attaches peers and makes control lines. It returns null
// on every member or on none. If null, `decline` says who declined and why. `wanted` is the set of
// collectives that this rank's options leave to Stretto. comm_collectives() is the set that all
// ranks want. If `wanted` is empty, the communicator carries messages of schedules
// (transport/shm.hpp), without notes. With `serves_node` it has tiers all the same, if it can have
// them and no rank has a watchdog: it makes the node's part of schedules (node_part.hpp).
Comm* comm_create(Process& process, const Bootstrap& bootstrap, std::uint32_t wanted, Decline& decline,
                  bool serves_node = false);
// Local. It does not synchronise: memory that peers may still read stays until they have read it.
void comm_free(Comm* comm);

std::uint32_t comm_collectives(const Comm& comm);
// What the rules say of its algorithms. All members must set the same, before the first call.
void comm_obey(Comm& comm, select::ShmRules&& rules);
const select::ShmRules& comm_rules(const Comm& comm);
// What decides over shared memory which algorithm serves a call.
coll_shm::TeamTraits comm_members(const Comm& comm);
// STRETTO_REPRODUCIBLE=rank: reductions whose result depends on the order combine from left to
// right. All members must call it, or none, before the first call.
void comm_keep_order(Comm& comm);
// This rank's neighbours, for neighbourhood collectives. `neighborhood` must stay.
void comm_set_neighborhood(Comm& comm, const Neighborhood& neighborhood);
// A number that its members have in common, and no other communicator has.
std::uint64_t comm_generation(const Comm& comm);
int comm_rank(const Comm& comm);
int comm_size(const Comm& comm);

// The rank to which the system refused single copy on this communicator. Rank -1: none was refused,
// or nobody wanted single copy.
struct Refused {
  int rank = -1;
  const char* error = "";  // a static text
  std::uint64_t call = 0;  // the call in which it was refused; 0: from the start
};
Refused comm_refused(const Comm& comm);

// What a finished call reports, for the statistics.
struct Outcome {
  Status status = Status::ok;
  Path path = Path::inlined;
  std::uint64_t bytes = 0;  // sent and received by this rank through the engine
};

// Says that this rank refuses a call before it begins, because of its arguments. The peers do not
// count it and wait for this rank's next call. They can say that the call was refused, and why.
void comm_refuse_call(Comm& comm, Collective collective, Mistake mistake);

// ---- The collectives. All members call them in the same order; one call at a time per Comm. ----
// A rank may fail after the call has begun, because its data could not be packed. It still takes
// part and passes `good = false`, so that its peers fail and do not hang. It publishes poison in
// place of its data, and it reads and drops what it should receive. `in_place` means MPI_IN_PLACE:
// the rank's own block is already where it belongs.

Outcome barrier(Comm& comm);
// The root reads `buffer`, the other ranks write it.
Outcome bcast(Comm& comm, const Region& buffer, int root, bool good);
// `receive` is used at the root only.
Outcome gather(Comm& comm, Collective as, const Region& send, const Blocks& receive, int root, bool in_place,
               bool good);
// `send` is used at the root only.
Outcome scatter(Comm& comm, Collective as, const Blocks& send, const Region& receive, int root, bool in_place,
                bool good);
// With `in_place` the rank sends its block in `receive` and ignores `send`.
Outcome allgather(Comm& comm, Collective as, const Region& send, const Blocks& receive, bool in_place, bool good);

// With `in_place` the rank sends the blocks of `receive`.
Outcome alltoall(Comm& comm, Collective as, const Blocks& send, const Blocks& receive, bool in_place, bool good);

// Neighbourhood collectives: a block for each neighbour, numbered as the communicator's
// Neighborhood says.
Outcome neighbors(Comm& comm, Collective as, const SentBlocks& send, const Blocks& receive, bool good);

// Reductions by kernels. Lengths are the same on all ranks. `begins` has size + 1 byte offsets, at
// which the parts of the ranks begin and end.
using coll_shm::elements_at_once;
using coll_shm::FunctionArgs;
using coll_shm::FunctionOp;
using coll_shm::KernelArgs;
using coll_shm::KernelOp;
Outcome reduce(Comm& comm, const KernelArgs& vector, const KernelOp& reduction, int root);
Outcome allreduce(Comm& comm, const KernelArgs& vector, const KernelOp& reduction);
Outcome reduce_scatter(Comm& comm, Collective as, const KernelArgs& vector, const KernelOp& reduction,
                       const std::uint64_t* begins);
Outcome scan(Comm& comm, const KernelArgs& vector, const KernelOp& reduction, bool exclusive);

// Reductions by a function, which may be the program's own. `begins` has element offsets.
Outcome reduce(Comm& comm, const FunctionArgs& operands, const FunctionOp& operation, int root);
Outcome allreduce(Comm& comm, const FunctionArgs& operands, const FunctionOp& operation);
Outcome reduce_scatter(Comm& comm, Collective as, const FunctionArgs& operands, const FunctionOp& operation,
                       const std::uint64_t* begins);
Outcome scan(Comm& comm, const FunctionArgs& operands, const FunctionOp& operation, bool exclusive);

}  // namespace stretto::engine
