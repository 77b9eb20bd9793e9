// SPDX-License-Identifier: BSD-3-Clause
// A call by schedule with all that it needs until it ends: the problem, packed copies of what it
// reads and writes, lengths, and what combines. The functions below prepare one. A blocking call
// prepares it on its stack and runs it. A call that the program does not wait for is prepared on
// the heap, and a CallQueue runs it.
#pragma once
#include <atomic>
#include <cstdlib>

#include "engine/begins.hpp"
#include "engine/packed_buffer.hpp"
#include "engine/scheduler.hpp"
#include "engine/told_lengths.hpp"

namespace stretto::engine {

// A function that combines packed elements.
struct PackedFunction {
  FunctionOp operation;
  Region left, right;  // private memory for `at_once` elements
  std::uint64_t at_once = 0;
  std::uint64_t element_bytes = 0;  // packed
};

struct Prepared {
  explicit Prepared(Scheduler& by) : scheduler(by) {}
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  // Ends the call: unpacks what came, and adds what is wrong with it to the outcome.
  Outcome finish(Outcome outcome);
  // Runs it to its end. `prepared` is what the function below has returned.
  Outcome run(const Outcome& prepared);

  Scheduler& scheduler;
  Scheduled call;
  PackedBuffer source, target;
  Begins begins, sent_begins;
  ToldLengths told;
  KernelOp kernel;
  PackedFunction function;

  // Of a call in a queue (call_queue.hpp).
  bool moves = false;  // there is something to run
  Outcome outcome;     // once it has ended
  Prepared* next = nullptr;
};

// A reduction by a function that nobody but the program's own threads may call. Schedules bring
// the packed contributions to each rank that needs them, and fold() combines them at the end, in
// the order of the ranks. No rank needs another one's function, so such a call goes on while ranks
// compute, or wait inside the MPI. A rank gets up to p n bytes and has memory for them.
struct Contributed {
  explicit Contributed(Prepared& by) : prepared(by) {}
  ~Contributed() { std::free(all); }
  Contributed(const Contributed&) = delete;
  Contributed& operator=(const Contributed&) = delete;

  // After the schedule has ended well.
  void fold();

  Prepared& prepared;
  Region out;
  char* all = nullptr;      // packed, one contribution after the other
  int count = 0;            // how many of them this rank combines
  std::uint64_t bytes = 0;  // of each
};

// Makes a blocking call. `prepare(prepared)` is one of the functions below.
template <class Prepare>
Outcome run_prepared(Scheduler& by, const Prepare& prepare) {
  Prepared prepared(by);
  return prepared.run(prepare(prepared));
}

// The collectives, as in engine.hpp. Arguments are good.
//
// Each sets `moves`, or returns the outcome of a call that has nothing to run: it cannot be
// prepared, schedules leave it to another, or it has no data. They move no messages. Only lengths
// that some ranks do not know may be told first.
Outcome barrier(Prepared& p);
Outcome bcast(Prepared& p, const Region& buffer, int root, bool good);
Outcome gather(Prepared& p, Collective as, const Region& send, const Blocks& receive, int root, bool in_place,
               bool good);
Outcome scatter(Prepared& p, Collective as, const Blocks& send, const Region& receive, int root, bool in_place,
                bool good);
Outcome allgather(Prepared& p, Collective as, const Region& send, const Blocks& receive, bool in_place, bool good);
Outcome alltoall(Prepared& p, Collective as, const Blocks& send, const Blocks& receive, bool in_place, bool good);

Outcome neighbors(Prepared& p, Collective as, const SentBlocks& send, const Blocks& receive, bool good);

Outcome reduce(Prepared& p, const KernelArgs& vector, const KernelOp& reduction, int root);
Outcome allreduce(Prepared& p, const KernelArgs& vector, const KernelOp& reduction);
Outcome reduce_scatter(Prepared& p, Collective as, const KernelArgs& vector, const KernelOp& reduction,
                       const std::uint64_t* begins);
Outcome scan(Prepared& p, const KernelArgs& vector, const KernelOp& reduction, bool exclusive);

// What `operation.context` and the regions of `operands` name must stay until the call has ended.
Outcome reduce(Prepared& p, const FunctionArgs& operands, const FunctionOp& operation, int root);
Outcome allreduce(Prepared& p, const FunctionArgs& operands, const FunctionOp& operation);
Outcome reduce_scatter(Prepared& p, Collective as, const FunctionArgs& operands, const FunctionOp& operation,
                       const std::uint64_t* begins);
Outcome scan(Prepared& p, const FunctionArgs& operands, const FunctionOp& operation, bool exclusive);

Outcome reduce(Contributed& c, const FunctionArgs& operands, const FunctionOp& operation, int root);
Outcome allreduce(Contributed& c, const FunctionArgs& operands, const FunctionOp& operation);
Outcome reduce_scatter(Contributed& c, Collective as, const FunctionArgs& operands, const FunctionOp& operation,
                       const std::uint64_t* begins);
Outcome scan(Contributed& c, const FunctionArgs& operands, const FunctionOp& operation, bool exclusive);

// `out` = `left` combined with `right`, all packed. `context` is a PackedFunction.
void combine_packed(void* context, char* out, const char* left, const char* right, std::uint64_t units);

}  // namespace stretto::engine
