// SPDX-License-Identifier: BSD-3-Clause
// Collectives that may return before their data are there (STRETTO_OVERLAP): a third way beside
// shared memory and schedules, on communicators that span nodes.
//
// The members agree once whether calls go this way: if all have connections, and at least one can
// guard memory. From then on, which way a call goes follows from what all ranks know: the
// collective, and its length where all know it. Whether a rank returns early is its own decision.
//
// A process has one object of such calls (overlap/deferred_calls.hpp), on its connections. It opens
// with the first communicator that asks.
//
// overlap_choice.cpp says which calls go this way. The messages of a call are those of a schedule
// (overlap/played_schedule.hpp), and overlap_calls.cpp names the algorithms. Reductions are by
// kernels only: no user's function runs on the driver's thread.
#pragma once
#include "base/array.hpp"
#include "base/bootstrap.hpp"
#include "engine/engine.hpp"
#include "mpi/overlap/overlap_trial.hpp"
#include "mpi/overlap/short_calls.hpp"
#include "mpi/overlap/vector_ends.hpp"
#include "mpi/state/state.hpp"
#include "overlap/exchange.hpp"
#include "overlap/sites.hpp"
#include "shm/waiter.hpp"

namespace stretto::overlap {
enum class Refusal : std::uint8_t;  // guard.hpp
}

namespace stretto::mpi {

// A communicator's part.
class Overlap {
 public:
  Overlap() = default;
  ~Overlap();
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  // What all is for. `job_ranks` are the members' ranks in the job, and must stay. `nodes` has the
  // node of each rank of the job.
  // `next` carries messages of the members by the MPI.
  void start(State& state, const int* job_ranks, const std::int32_t* nodes, const transport::Transport& next,
             const shm::WaitPolicy& policy);
  // The collectives that may go this way, as a bit set; 0: start() was not called.
  [[nodiscard]] std::uint32_t wanted() const;
  // Whether this call goes this way. It may be collective over the communicator. `bytes` is the
  // length of the call as far as this rank knows; in most collectives all ranks know it.
  bool takes(Collective as, std::uint64_t bytes);
  // A call goes as without the option because of what all ranks know of it.
  void leaves(Collective as, const char* why);
  // Whether a call may return early, as far as the mpi layer knows. `staged`: the program does not
  // get its data in its buffer itself.
  [[nodiscard]] bool may_defer(bool staged) const;

  // The calls, as in engine.hpp. Arguments are good.
  engine::Outcome bcast(const Region& buffer, int root, bool may_defer);
  engine::Outcome reduce(const engine::KernelArgs& vector, const engine::KernelOp& reduction, int root, bool may_defer);
  engine::Outcome allreduce(const engine::KernelArgs& vector, const engine::KernelOp& reduction, bool may_defer);
  // `begins`: of the parts in the vector, in bytes.
  engine::Outcome reduce_scatter(const engine::KernelArgs& vector, const engine::KernelOp& reduction,
                                 const std::uint64_t* begins, bool may_defer);
  engine::Outcome scan(const engine::KernelArgs& vector, const engine::KernelOp& reduction, bool exclusive,
                       bool may_defer);
  engine::Outcome gather(const Region& send, const Blocks& receive, int root, bool in_place, bool may_defer);
  engine::Outcome scatter(const Blocks& send, const Region& receive, int root, bool in_place, bool may_defer);
  engine::Outcome allgather(const Region& send, const Blocks& receive, bool in_place, bool may_defer);
  engine::Outcome alltoall(const Blocks& send, const Blocks& receive, bool in_place, bool may_defer);

 private:
  enum class Stage : std::uint8_t { off, unasked, open, declined };
  [[nodiscard]] Bootstrap members() const;
  bool open();
  bool decline(const char* why, const char* more = "") const;
  void judge(bool early, overlap::Refusal refused);
  // The first member on another node than rank 0, or their number.
  [[nodiscard]] int first_elsewhere() const;
  bool is_fast_enough(int other);
  bool pass(int peer, bool sends, char* data, std::uint64_t bytes, std::uint64_t number);
  bool goes_as_short(Collective as, std::uint64_t bytes);
  Trial* trial_of(Collective as, std::uint64_t bytes);
  bool goes_with_overlap(Trial& trial, Collective as, std::uint64_t bytes);
  struct Played;
  bool deal_to_nodes(std::uint64_t begin, std::uint64_t end, Array<std::uint64_t>* begins) const;
  engine::Outcome combine(Played& call, const engine::KernelArgs& vector, const engine::KernelOp& reduction, bool gets,
                          bool may_defer);
  engine::Outcome play(Played& call, bool gets, std::uint64_t bytes, bool may_defer);
  engine::Outcome run(overlap::Exchange& call, std::uint64_t bytes);
  engine::Outcome give_up();

  Stage stage_ = Stage::off;
  State* state_ = nullptr;
  const int* job_ranks_ = nullptr;
  Array<int> ring_, ring_jobs_;  // members, node after node; their ranks in the job
  VectorEnds ends_;
  const std::int32_t* nodes_ = nullptr;
  transport::Transport next_;
  shm::WaitPolicy policy_;
  std::uint64_t id_ = 0, calls_ = 0;
  std::uint32_t asked_ = 0;
  std::uint32_t told_ = 0;     // why calls did not return early
  std::uint32_t refused_ = 0;  // how many did not
  Trials trials_;
  ShortCalls short_calls_[kCollectives] = {};
  std::uint32_t left_out_ = 0;  // collectives of which leaves() has told
};

// Data of some call are not there yet.
bool overlap_any_away();
// Wait until all data of this memory are there; the second: all data of calls that returned early.
// They drive the host meanwhile. The memory may be any, also none of a call.
void overlap_complete(const void* memory, std::uint64_t bytes);
void overlap_complete_all();

// So long threads of the program have waited for data of calls that had returned early. Grows.
std::uint64_t overlap_waited_ns();

// The same for memory that the thread of the connections is to use. It brings such data itself, so
// it must not wait for them. Does not drive the host.
void overlap_bring_home(const void* memory, std::uint64_t bytes);

// What has become of the calls that went this way, by site. For statistics.
void overlap_each_site(void (*each)(void* context, const overlap::Sites::Site& site), void* context);

// Completes all calls and ends the thread of the connections. The host still runs.
void overlap_stop();

}  // namespace stretto::mpi
