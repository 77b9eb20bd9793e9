// SPDX-License-Identifier: BSD-3-Clause
// Reductions by a function: user-defined operations, and predefined ones on types without a kernel.
// They take whole contributions, in rank order, as the datatype lays them out in memory. So
// operations need not commute. `named` is as in reduce.hpp.
#pragma once
#include "coll/shm/arguments.hpp"
#include "coll/shm/manifest.hpp"
#include "shm/message.hpp"

namespace stretto::coll_shm {

void reduce_ordered(shm::Call& call, const FunctionArgs& operands, const FunctionOp& operation, int root,
                    const Algorithm* named);
void allreduce_ordered(shm::Call& call, const FunctionArgs& operands, const FunctionOp& operation,
                       const Algorithm* named);
// Rank r gets elements [begins[r], begins[r + 1]) of the combined contribution.
void reduce_scatter_ordered(shm::Call& call, const FunctionArgs& operands, const FunctionOp& operation,
                            const std::uint64_t* begins);
void scan_ordered(shm::Call& call, const FunctionArgs& operands, const FunctionOp& operation, bool exclusive,
                  const Algorithm* named);

}  // namespace stretto::coll_shm
