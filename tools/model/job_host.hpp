// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm an MPI takes for a collective, by its length and its ranks.
#pragma once
#include "select/candidates.hpp"

namespace stretto::modelling {

// The choices of Thakur, Rabenseifner and Gropp 2005 (Optimization of Collective Communication
// Operations in MPICH), with MPICH's limits. `shape.bytes` is a vector's length, or one part's, in
// the mean. `collective`: of the shape, or with parts that have lengths of their own.
const coll::Algorithm& host_algorithm(Collective collective, const select::Shape& shape);

}  // namespace stretto::modelling
