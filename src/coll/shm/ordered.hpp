// SPDX-License-Identifier: BSD-3-Clause
// Reductions by a function: user-defined operations, and predefined ones on types without a kernel.
// They take whole contributions, in rank order, as the datatype lays them out in memory. So
// operations need not commute. `named` is as in reduce.hpp.
#pragma once
#include "coll/shm/arguments.hpp"
#include "coll/shm/selection.hpp"
#include "shm/message.hpp"

namespace stretto::coll_shm {

void reduce_ordered(shm::Call& call, const FunctionArgs& operands, const FunctionOp& operation, int root,
                    const Selection& selection);
void allreduce_ordered(shm::Call& call, const FunctionArgs& operands, const FunctionOp& operation,
                       const Selection& selection);
// Rank r gets elements [begins[r], begins[r + 1]) of the combined contribution.
void reduce_scatter_ordered(shm::Call& call, const FunctionArgs& operands, const FunctionOp& operation,
                            const std::uint64_t* begins, const Selection& selection);
void scan_ordered(shm::Call& call, const FunctionArgs& operands, const FunctionOp& operation, bool exclusive,
                  const Selection& selection);

}  // namespace stretto::coll_shm
