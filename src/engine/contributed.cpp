// SPDX-License-Identifier: BSD-3-Clause
// Reductions by the user's function over shared memory: each rank brings all contributions and
// combines them itself.
#include "engine/prepared.hpp"

namespace stretto::engine {
namespace {

// Makes memory for the contributions of all ranks. This rank combines the first `combined` of them.
// False: there is no memory.
bool begin(Contributed& c, const FunctionArgs& operands, const FunctionOp& operation, const Region& out,
           std::uint64_t bytes, int combined) {
  const Layout& layout = *operands.grown.layout;
  c.prepared.function = {operation, operands.arrived, operands.grown, operands.grown.count, layout.size};
  c.out = out;
  c.count = combined;
  c.bytes = bytes;
  c.all = static_cast<char*>(std::malloc(static_cast<std::size_t>(c.prepared.scheduler.size()) * bytes + 1));
  return c.all != nullptr;
}

bool is_empty(const FunctionArgs& operands) { return operands.grown.layout == nullptr || operands.own.bytes() == 0; }

Blocks blocks_of(const Contributed& c) { return {c.all, &kPlainByte, c.bytes}; }

Outcome bring_all(Contributed& c, const FunctionArgs& operands, const FunctionOp& operation, int combined) {
  if (is_empty(operands)) return outcome_of(Status::ok);
  if (!begin(c, operands, operation, operands.out, operands.own.bytes(), combined))
    return outcome_of(Status::no_memory);
  return allgather(c.prepared, Collective::allgather, operands.own, blocks_of(c), false, true);
}

}  // namespace

void Contributed::fold() {
  if (count == 0) return;
  PackedFunction& f = prepared.function;
  for (int r = 1; r < count; ++r)
    combine_packed(&f, all, all, all + static_cast<std::uint64_t>(r) * bytes, bytes / f.element_bytes);
  Stream(out).unpack(all, bytes);
}

Outcome reduce(Contributed& c, const FunctionArgs& o, const FunctionOp& f, int root) {
  if (is_empty(o)) return outcome_of(Status::ok);
  const Scheduler& s = c.prepared.scheduler;
  const bool is_root = s.rank() == root;
  if (!begin(c, o, f, o.out, o.own.bytes(), is_root ? s.size() : 0)) return outcome_of(Status::no_memory);
  return gather(c.prepared, Collective::gather, o.own, blocks_of(c), root, false, true);
}

Outcome allreduce(Contributed& c, const FunctionArgs& o, const FunctionOp& f) {
  return bring_all(c, o, f, c.prepared.scheduler.size());
}

Outcome reduce_scatter(Contributed& c, Collective, const FunctionArgs& o, const FunctionOp& f,
                       const std::uint64_t* begins) {
  if (is_empty(o)) return outcome_of(Status::ok);
  const int ranks = c.prepared.scheduler.size(), me = c.prepared.scheduler.rank();
  const std::uint64_t mine = begins[me + 1] - begins[me];
  Array<std::int64_t> counts, displs;
  const auto size = static_cast<std::size_t>(ranks);
  const bool able = counts.resize(size, 0) && displs.resize(size, 0) &&
                    begin(c, o, f, o.out, mine * o.own.layout->size, mine != 0 ? ranks : 0);
  if (!able) return outcome_of(Status::no_memory);
  for (int r = 0; r < ranks; ++r) {
    counts[static_cast<std::size_t>(r)] = static_cast<std::int64_t>(begins[r + 1] - begins[r]);
    displs[static_cast<std::size_t>(r)] = static_cast<std::int64_t>(begins[r]);
  }
  const Blocks send = {o.own.base, o.own.layout, 0, counts.data(), displs.data(), true};
  return alltoall(c.prepared, Collective::alltoallv, send, blocks_of(c), false, true);
}

Outcome scan(Contributed& c, const FunctionArgs& o, const FunctionOp& f, bool exclusive) {
  const int me = c.prepared.scheduler.rank();
  return bring_all(c, o, f, exclusive ? me : me + 1);
}

}  // namespace stretto::engine
