// SPDX-License-Identifier: BSD-3-Clause
// Reductions of dense elements by a kernel. All lengths are in bytes. Total and per-rank lengths
// are the same on all ranks; otherwise the call fails as mismatched. `selection` says what there is
// to choose from.
#pragma once
#include "coll/shm/combine.hpp"
#include "coll/shm/selection.hpp"

namespace stretto::coll_shm {

void allreduce(shm::Call& call, const KernelArgs& vector, const KernelOp& reduction, const Selection& selection);
void reduce(shm::Call& call, const KernelArgs& vector, const KernelOp& reduction, int root, const Selection& selection);
// Rank r gets the bytes [begins[r], begins[r + 1]) of the combined vector. `begins` has size + 1
// entries.
void reduce_scatter(shm::Call& call, const KernelArgs& vector, const KernelOp& reduction, const std::uint64_t* begins,
                    const Selection& selection);
void scan(shm::Call& call, const KernelArgs& vector, const KernelOp& reduction, bool exclusive,
          const Selection& selection);

}  // namespace stretto::coll_shm
