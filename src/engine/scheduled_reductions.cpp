// SPDX-License-Identifier: BSD-3-Clause
// Reductions by schedules, in units of elements. Kernels combine dense elements. For others a
// function combines elements in their type's layout, and schedules carry them packed.
#include "engine/packed_buffer.hpp"
#include "engine/scheduler.hpp"

namespace stretto::engine {
namespace {

using select::Backend;

// ---- Kernels ----

void by_kernel(void* context, char* out, const char* left, const char* right, std::uint64_t units) {
  static_cast<const KernelOp*>(context)->fold(out, left, right, static_cast<std::size_t>(units));
}

// `gets` says whether this rank gets a result.
Outcome run(Scheduler& scheduler, coll::Problem problem, const KernelArgs& vector, const KernelOp& reduction,
            bool gets) {
  problem.in_order = scheduler.in_order(reduction.rounds);
  problem.commutative = !problem.in_order;  // all of MPI's own operations are
  problem.in_place = gets && vector.own == vector.out;
  Scheduled call{problem,
                 reduction.element_bytes,
                 vector.own,
                 gets ? vector.out : nullptr,
                 {const_cast<KernelOp*>(&reduction), by_kernel}};
  call.choice = scheduler.choose(call);
  return call.choice.backend == Backend::schedule ? scheduler.run(call) : left_to(call.choice.backend);
}

// ---- Functions ----

struct Function {
  const FunctionOp* operation;
  Region left, right;  // private memory for `at_once` elements
  std::uint64_t at_once;
  std::uint64_t element_bytes;  // packed
};

void by_function(void* context, char* out, const char* left, const char* right, std::uint64_t units) {
  Function& f = *static_cast<Function*>(context);
  for (std::uint64_t done = 0; done < units; done += f.at_once) {
    const std::uint64_t count = units - done < f.at_once ? units - done : f.at_once;
    const std::uint64_t at = done * f.element_bytes, bytes = count * f.element_bytes;
    f.left.count = f.right.count = count;
    Stream(f.left).unpack(left + at, bytes);
    Stream(f.right).unpack(right + at, bytes);
    f.operation->fold(f.operation->context, f.left.base, f.right.base, count);
    Stream(f.right).pack(out + at, bytes);
  }
}

// This rank contributes `count` elements and gets `out_count` elements of the result.
Outcome run(Scheduler& scheduler, coll::Problem problem, const FunctionArgs& operands, const FunctionOp& operation,
            std::uint64_t count, std::uint64_t out_count) {
  const std::uint64_t element_bytes = operands.grown.layout ? operands.grown.layout->size : 0;
  if (element_bytes == 0) return outcome_of(Status::ok);  // nothing, or elements of nothing
  problem.in_order = scheduler.in_order(operation.rounds);
  const select::Choice choice = scheduler.choose({problem, element_bytes});
  if (choice.backend != Backend::schedule) return left_to(choice.backend);
  Function function{&operation, operands.arrived, operands.grown, operands.grown.count, element_bytes};
  PackedBuffer source, target;
  char* const own = source.from(operands.own, count * element_bytes);
  char* const out = target.to(operands.out, out_count * element_bytes);
  if (source.failed() || target.failed()) return outcome_of(Status::no_memory);
  problem.commutative = operation.commutative && !problem.in_order;
  problem.in_place = own && own == out;
  Outcome outcome = scheduler.run({problem, element_bytes, own, out, {&function, by_function}, choice});
  for (const Status status : {source.finish(), target.finish()}) {
    if (outcome.status == Status::ok) outcome.status = status;
  }
  return outcome;
}

// Divides `begins` by `unit`: from byte offsets to element offsets.
bool in_units(Array<std::uint64_t>& parts, const std::uint64_t* begins, int ranks, std::uint64_t unit) {
  if (!parts.resize(static_cast<std::size_t>(ranks) + 1, 0)) return false;
  for (int r = 0; r <= ranks; ++r) parts[r] = begins[r] / unit;
  return true;
}

coll::Problem vector_problem(Scheduler& scheduler, Collective as, std::uint64_t count, int root = 0) {
  coll::Problem problem = scheduler.problem(as, root);
  problem.count = count;
  return problem;
}
coll::Problem parts_problem(Scheduler& scheduler, Collective as, const std::uint64_t* begins) {
  coll::Problem problem = scheduler.problem(as);
  problem.count = begins[1];
  problem.begins = as == Collective::reduce_scatter_block ? nullptr : begins;
  return problem;
}

bool scan_gets(const Scheduler& scheduler, bool exclusive) { return !exclusive || scheduler.rank() != 0; }

}  // namespace

Outcome reduce(Scheduler& s, const KernelArgs& v, const KernelOp& r, int root) {
  return run(s, vector_problem(s, Collective::reduce, v.bytes / r.element_bytes, root), v, r, s.rank() == root);
}

Outcome allreduce(Scheduler& s, const KernelArgs& v, const KernelOp& r) {
  return run(s, vector_problem(s, Collective::allreduce, v.bytes / r.element_bytes), v, r, true);
}

Outcome reduce_scatter(Scheduler& s, Collective as, const KernelArgs& v, const KernelOp& r,
                       const std::uint64_t* begins) {
  Array<std::uint64_t> parts;
  if (!in_units(parts, begins, s.size(), r.element_bytes)) return outcome_of(Status::no_memory);
  return run(s, parts_problem(s, as, parts.data()), v, r, true);
}

Outcome scan(Scheduler& s, const KernelArgs& v, const KernelOp& r, bool exclusive) {
  return run(s, vector_problem(s, scan_kind(exclusive), v.bytes / r.element_bytes), v, r, scan_gets(s, exclusive));
}

Outcome reduce(Scheduler& s, const FunctionArgs& o, const FunctionOp& f, int root) {
  const std::uint64_t count = o.own.count;
  return run(s, vector_problem(s, Collective::reduce, count, root), o, f, count, s.rank() == root ? count : 0);
}

Outcome allreduce(Scheduler& s, const FunctionArgs& o, const FunctionOp& f) {
  return run(s, vector_problem(s, Collective::allreduce, o.own.count), o, f, o.own.count, o.own.count);
}

Outcome reduce_scatter(Scheduler& s, Collective as, const FunctionArgs& o, const FunctionOp& f,
                       const std::uint64_t* begins) {
  return run(s, parts_problem(s, as, begins), o, f, begins[s.size()], begins[s.rank() + 1] - begins[s.rank()]);
}

Outcome scan(Scheduler& s, const FunctionArgs& o, const FunctionOp& f, bool exclusive) {
  const std::uint64_t count = o.own.count;
  return run(s, vector_problem(s, scan_kind(exclusive), count), o, f, count, scan_gets(s, exclusive) ? count : 0);
}

}  // namespace stretto::engine
