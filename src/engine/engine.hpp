// SPDX-License-Identifier: BSD-3-Clause
// The engine's face towards the mpi layer and towards tests that run ranks as threads.
//
//   Process   what a rank has once: its segment, the peers it has attached, its lanes of payload slots
//   Comm      what a communicator costs: control lines in every member's segment
//
// Nothing here knows MPI. Members exchange their first words through a Bootstrap, which the mpi layer implements with
// PMPI_Allgather on the communicator itself and the tests with a barrier between threads.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bootstrap.hpp"
#include "base/collective.hpp"
#include "base/mistake.hpp"
#include "base/region.hpp"
#include "base/status.hpp"
#include "coll/shm/arguments.hpp"
#include "shm/ledger.hpp"

namespace stretto::engine {

struct Settings;  // engine/settings.hpp: what the option table says, already parsed

using stretto::Bootstrap;

// Moves the host MPI forward: called by every wait that lasts (DESIGN.md rule 5), from the waiting thread.
struct HostProgress {
  void* context = nullptr;
  void (*poke)(void* context) = nullptr;
  unsigned every = 1;                              // poke at every n-th step of a wait: some hosts take 1 us for a poke
  const std::atomic<bool>* has_windows = nullptr;  // the program has made one (shm/wait.hpp)
};

struct Process;
struct Comm;

// Makes this rank's engine. Never fails for want of shared memory: that shows at comm_create, where it is agreed.
Process* process_create(const Settings& settings, const HostProgress& progress);
// Unmaps everything. Every Comm must have been freed.
void process_destroy(Process* process);
// Whether threads of this process may be in collectives at the same time; true unless told otherwise.
void process_set_concurrent(Process& process, bool concurrent);

// Counts of this process' calls by collective, which observers read. They move when the first communicator is made: ask
// again then.
shm::Tally* process_tally(Process& process);
// Notes a call that shared memory does not serve; 0: there is nowhere to note it yet.
std::uint64_t process_note(Process& process, Collective collective, bool by_schedule);
// Notes an agreement about the n-th communicator of this process, of `size` ranks, in a call.
std::uint64_t process_note_agreement(Process& process, Collective collective, std::uint64_t communicator, int size);
void process_note_left(Process& process, std::uint64_t note);  // by the schedules, to the host
void process_note_end(Process& process, std::uint64_t note);

inline constexpr char kOnSeveralNodes[] = "members are on different nodes";
// Why members of a communicator decline together: printable, static, the lowest declining rank's reason.
struct Decline {
  int rank = -1;
  const char* reason = nullptr;
};

// Collective over the bootstrap's members: attaches peers, makes control lines. Returns null on every member or on
// none; then `decline` says who and why. `wanted` is the set of collectives this rank's options leave to us; the set
// that all ranks want comes back through comm_collectives(). Nothing wanted: it is to carry messages
// (transport/shm.hpp), without checks and notes.
Comm* comm_create(Process& process, const Bootstrap& bootstrap, std::uint32_t wanted, Decline& decline);
// Local, does not synchronise: what peers may still read stays until they have read it.
void comm_free(Comm* comm);

std::uint32_t comm_collectives(const Comm& comm);
int comm_rank(const Comm& comm);
int comm_size(const Comm& comm);

// Who was refused single copy on this communicator, in words that stay; rank -1: nobody, or it was not wanted.
struct Refused {
  int rank = -1;
  const char* error = "";
  std::uint64_t call = 0;  // in which; 0: from the start
};
Refused comm_refused(const Comm& comm);

// What a finished call reports, for the statistics.
struct Outcome {
  Status status = Status::ok;
  Path path = Path::inlined;
  std::uint64_t bytes = 0;  // bytes this rank sent plus received through the engine
};

// A call whose arguments this rank refuses before it begins. It is no call to the others, which go on waiting for this
// rank's next one; that it was refused, and why, they can say.
void comm_refuse_call(Comm& comm, Collective collective, Mistake mistake);

// ---- The collectives. All members call them in the same order; one call at a time per Comm. ----
// A rank that fails when the call has begun (its data could not be packed) still takes part, so that its peers fail
// instead of hanging: it passes `good = false`; what it should have sent is published as poison, what it should receive
// is read and dropped. `in_place` means MPI_IN_PLACE: the rank's own block already lies where it belongs.

Outcome barrier(Comm& comm);
// At the root `buffer` is read, elsewhere written.
Outcome bcast(Comm& comm, const Region& buffer, int root, bool good);
// `receive` is used at the root only.
Outcome gather(Comm& comm, Collective as, const Region& send, const Blocks& receive, int root, bool in_place,
               bool good);
// `send` is used at the root only.
Outcome scatter(Comm& comm, Collective as, const Blocks& send, const Region& receive, int root, bool in_place,
                bool good);
// With in_place, `send` is ignored: the rank's block in `receive` is sent.
Outcome allgather(Comm& comm, Collective as, const Region& send, const Blocks& receive, bool in_place, bool good);

// In place, `receive` holds what is sent too.
Outcome alltoall(Comm& comm, Collective as, const Blocks& send, const Blocks& receive, bool in_place, bool good);

// By kernels. Lengths are the same on all ranks; `begins` (size + 1 byte offsets) says which part is whose.
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

// By a function that may be the user's. `begins` are element offsets.
Outcome reduce(Comm& comm, const FunctionArgs& operands, const FunctionOp& operation, int root);
Outcome allreduce(Comm& comm, const FunctionArgs& operands, const FunctionOp& operation);
Outcome reduce_scatter(Comm& comm, Collective as, const FunctionArgs& operands, const FunctionOp& operation,
                       const std::uint64_t* begins);
Outcome scan(Comm& comm, const FunctionArgs& operands, const FunctionOp& operation, bool exclusive);

}  // namespace stretto::engine
