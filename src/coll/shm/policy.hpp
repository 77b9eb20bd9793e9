// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm over shared memory serves a call, by the thresholds of base/tuning.hpp. All ranks
// know the arguments of these functions.
#pragma once
#include <cstdint>

#include "base/tuning.hpp"

namespace stretto::coll_shm {

// How the data of a call go. Reductions publish it with them (Call::go), so that ranks which chose
// from different counts notice.
enum class DataPath : unsigned { whole, slices, chain, rounds };

// From how many ranks on a Reduce goes by slices. With kernels and two ranks, the root combines as
// fast as both could copy.
inline constexpr int kRanksToSplitByKernels = 3, kRanksToSplitByFunction = 2;

inline bool barrier_is_flat(int ranks) { return ranks <= kTuning.barrier_flat_ranks; }
inline bool allreduces_flat(std::uint64_t bytes) { return bytes <= kTuning.flat_reduce_bytes; }
inline bool reduces_at_root(std::uint64_t bytes, int ranks, int least_ranks_to_split) {
  return bytes <= kTuning.flat_reduce_bytes || ranks < least_ranks_to_split;
}
// Two ranks are a chain of one message.
inline bool scans_flat(std::uint64_t bytes, int ranks) { return bytes <= kTuning.flat_reduce_bytes && ranks != 2; }

}  // namespace stretto::coll_shm
