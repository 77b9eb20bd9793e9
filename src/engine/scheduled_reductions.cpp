// SPDX-License-Identifier: BSD-3-Clause
// Reductions by schedules, in units of elements. Kernels combine dense elements. For others a
// function combines elements in their type's layout, and schedules carry them packed.
#include "engine/prepared.hpp"

namespace stretto::engine {
namespace {

using select::Backend;

// ---- Kernels ----

void by_kernel(void* context, char* out, const char* left, const char* right, std::uint64_t units) {
  static_cast<const KernelOp*>(context)->fold(out, left, right, static_cast<std::size_t>(units));
}

// `gets` says whether this rank gets a result.
Outcome prepare(Prepared& p, coll::Problem problem, const KernelArgs& vector, const KernelOp& reduction, bool gets) {
  problem.in_order = p.scheduler.in_order(reduction.rounds);
  problem.commutative = !problem.in_order;  // all of MPI's own operations are
  problem.in_place = gets && vector.own == vector.out;
  p.kernel = reduction;
  p.call = Scheduled{problem, reduction.element_bytes, vector.own, gets ? vector.out : nullptr, {&p.kernel, by_kernel}};
  p.call.kernel = &p.kernel;
  p.call.choice = p.scheduler.choose(p.call);
  p.moves = p.call.choice.backend == Backend::schedule;
  return p.moves ? outcome_of(Status::ok) : left_to(p.call.choice.backend);
}

// ---- Functions ----

// This rank contributes `count` elements and gets `out_count` elements of the result.
Outcome prepare(Prepared& p, coll::Problem problem, const FunctionArgs& operands, const FunctionOp& operation,
                std::uint64_t count, std::uint64_t out_count) {
  const std::uint64_t element_bytes = operands.grown.layout ? operands.grown.layout->size : 0;
  if (element_bytes == 0) return outcome_of(Status::ok);  // nothing, or elements of nothing
  problem.in_order = p.scheduler.in_order(operation.rounds);
  problem.commutative = operation.commutative && !problem.in_order;
  const select::Choice choice = p.scheduler.choose({problem, element_bytes});
  if (choice.backend != Backend::schedule) return left_to(choice.backend);
  p.function = {operation, operands.arrived, operands.grown, operands.grown.count, element_bytes};
  char* const own = p.source.from(operands.own, count * element_bytes);
  char* const out = p.target.to(operands.out, out_count * element_bytes);
  if (p.source.failed() || p.target.failed()) return outcome_of(Status::no_memory);
  problem.in_place = own && own == out;
  p.call = {problem, element_bytes, own, out, {&p.function, combine_packed}, choice};
  p.moves = true;
  return outcome_of(Status::ok);
}

coll::Problem vector_problem(const Scheduler& scheduler, Collective as, std::uint64_t count, int root = 0) {
  coll::Problem problem = scheduler.problem(as, root);
  problem.count = count;
  return problem;
}
coll::Problem parts_problem(const Scheduler& scheduler, Collective as, const std::uint64_t* begins) {
  coll::Problem problem = scheduler.problem(as);
  problem.count = begins[1];
  problem.begins = as == Collective::reduce_scatter_block ? nullptr : begins;
  return problem;
}

bool scan_gets(const Scheduler& scheduler, bool exclusive) { return !exclusive || scheduler.rank() != 0; }

// Element offsets instead of byte offsets.
bool in_units(Begins& parts, const std::uint64_t* begins, int ranks, std::uint64_t unit) {
  return parts.fill(ranks, [&](int r) { return (begins[r + 1] - begins[r]) / unit; });
}

}  // namespace

void combine_packed(void* context, char* out, const char* left, const char* right, std::uint64_t units) {
  PackedFunction& f = *static_cast<PackedFunction*>(context);
  for (std::uint64_t done = 0; done < units; done += f.at_once) {
    const std::uint64_t count = units - done < f.at_once ? units - done : f.at_once;
    const std::uint64_t at = done * f.element_bytes, bytes = count * f.element_bytes;
    f.left.count = f.right.count = count;
    Stream(f.left).unpack(left + at, bytes);
    Stream(f.right).unpack(right + at, bytes);
    f.operation.fold(f.operation.context, f.left.base, f.right.base, count);
    Stream(f.right).pack(out + at, bytes);
  }
}

Outcome reduce(Prepared& p, const KernelArgs& v, const KernelOp& r, int root) {
  const Scheduler& s = p.scheduler;
  return prepare(p, vector_problem(s, Collective::reduce, v.bytes / r.element_bytes, root), v, r, s.rank() == root);
}

Outcome allreduce(Prepared& p, const KernelArgs& v, const KernelOp& r) {
  return prepare(p, vector_problem(p.scheduler, Collective::allreduce, v.bytes / r.element_bytes), v, r, true);
}

Outcome reduce_scatter(Prepared& p, Collective as, const KernelArgs& v, const KernelOp& r,
                       const std::uint64_t* begins) {
  if (!in_units(p.begins, begins, p.scheduler.size(), r.element_bytes)) return outcome_of(Status::no_memory);
  return prepare(p, parts_problem(p.scheduler, as, p.begins.get()), v, r, true);
}

Outcome scan(Prepared& p, const KernelArgs& v, const KernelOp& r, bool exclusive) {
  const Scheduler& s = p.scheduler;
  return prepare(p, vector_problem(s, scan_kind(exclusive), v.bytes / r.element_bytes), v, r, scan_gets(s, exclusive));
}

Outcome reduce(Prepared& p, const FunctionArgs& o, const FunctionOp& f, int root) {
  const Scheduler& s = p.scheduler;
  const std::uint64_t count = o.own.count;
  return prepare(p, vector_problem(s, Collective::reduce, count, root), o, f, count, s.rank() == root ? count : 0);
}

Outcome allreduce(Prepared& p, const FunctionArgs& o, const FunctionOp& f) {
  const std::uint64_t count = o.own.count;
  return prepare(p, vector_problem(p.scheduler, Collective::allreduce, count), o, f, count, count);
}

Outcome reduce_scatter(Prepared& p, Collective as, const FunctionArgs& o, const FunctionOp& f,
                       const std::uint64_t* begins) {
  const Scheduler& s = p.scheduler;
  if (!in_units(p.begins, begins, s.size(), 1)) return outcome_of(Status::no_memory);
  return prepare(p, parts_problem(s, as, p.begins.get()), o, f, begins[s.size()], p.begins.length(s.rank()));
}

Outcome scan(Prepared& p, const FunctionArgs& o, const FunctionOp& f, bool exclusive) {
  const Scheduler& s = p.scheduler;
  const std::uint64_t count = o.own.count;
  return prepare(p, vector_problem(s, scan_kind(exclusive), count), o, f, count, scan_gets(s, exclusive) ? count : 0);
}

}  // namespace stretto::engine
