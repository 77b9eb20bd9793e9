// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm over shared memory serves a call, by the thresholds of base/tuning.hpp. All ranks
// know the arguments of these functions.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/tuning.hpp"

namespace stretto::coll_shm {

// How the data of a call go. Reductions publish it with them (Call::go), so that ranks which chose
// from different counts notice.
enum class DataPath : unsigned { whole, slices, chain, rounds, tiers, rails, root };

// What decides, of the team of a call.
struct TeamTraits {
  int ranks = 0;
  bool tiers = false;         // whether the communicator has tiers
  bool span_sockets = false;  // whether ranks are bound to different sockets
  bool wide_caches = false;   // whether an L3 cache has ranks of several groups
  int rails = 0;              // of a lowest group, if the call may go by rails
  bool even_rails = false;    // whether each rank has a slice on each level
  bool crowded = false;       // fewer processors than ranks
};

// From how many ranks on a Reduce goes by slices. With kernels and two ranks, the root combines as
// fast as both could copy.
inline constexpr int kRanksToSplitByKernels = 3, kRanksToSplitByFunction = 2;

// With few ranks, a short vector goes from each to all, or to one.
inline bool is_for_tiers(std::uint64_t bytes, const TeamTraits& members) {
  return members.tiers && (members.ranks > kTuning.flat_ranks || bytes > kTuning.flat_bytes);
}
// Ranks without a processor each: what they need of one another goes by one of them. So each shares
// queues with few. All take one turn in a call either way, and that one takes one more.
inline bool is_for_root(const TeamTraits& members) {
  return members.crowded && !members.tiers && members.ranks > kTuning.crowded_flat_ranks;
}
// How many ranks combine a slice each.
inline int slice_owners(const TeamTraits& members) {
  return is_for_root(members) ? std::min(members.ranks, kTuning.crowded_owners) : members.ranks;
}
inline bool is_for_rails(std::uint64_t bytes, std::uint64_t from_bytes, const TeamTraits& members) {
  return members.rails != 0 && bytes > from_bytes;
}

inline DataPath barrier_path(const TeamTraits& members) {
  if (is_for_tiers(0, members)) return DataPath::tiers;
  if (is_for_root(members)) return DataPath::root;
  return members.ranks <= kTuning.barrier_flat_ranks ? DataPath::whole : DataPath::rounds;
}
inline DataPath bcast_path(std::uint64_t bytes, const TeamTraits& members) {
  if (!members.tiers) return DataPath::whole;
  const Tuning::BcastTiers& by = members.wide_caches ? kTuning.bcast_tiers_wide : kTuning.bcast_tiers;
  const bool is_short = members.ranks >= by.least_ranks && bytes <= by.short_bytes;
  const bool is_long = bytes > (members.span_sockets ? kTuning.bcast_far_bytes : kTuning.bcast_long_bytes);
  return is_short || is_long ? DataPath::tiers : DataPath::whole;
}
inline DataPath allreduce_path(std::uint64_t bytes, const TeamTraits& members) {
  if (is_for_rails(bytes, kTuning.rails_reduce_bytes, members)) return DataPath::rails;
  if (is_for_tiers(bytes, members) && bytes <= kTuning.tiers_reduce_bytes) return DataPath::tiers;
  if (bytes > kTuning.flat_reduce_bytes) return DataPath::slices;
  return is_for_root(members) ? DataPath::root : DataPath::whole;
}
inline DataPath reduce_path(std::uint64_t bytes, const TeamTraits& members, int least_ranks_to_split) {
  if (is_for_rails(bytes, kTuning.rails_reduce_bytes, members)) return DataPath::rails;
  if (is_for_tiers(bytes, members) && bytes <= kTuning.tiers_reduce_bytes) return DataPath::tiers;
  const bool short_or_few = bytes <= kTuning.flat_reduce_bytes || members.ranks < least_ranks_to_split;
  return short_or_few ? DataPath::whole : DataPath::slices;
}
inline DataPath reduce_scatter_path(std::uint64_t bytes, const TeamTraits& members) {
  const bool many = members.ranks > kTuning.flat_ranks;
  if (many ? members.rails != 0 : is_for_rails(bytes, kTuning.rails_scatter_bytes, members)) return DataPath::rails;
  if (bytes > (many ? kTuning.tiers_reduce_bytes : kTuning.flat_reduce_bytes)) return DataPath::slices;
  if (many && members.tiers) return DataPath::tiers;
  return is_for_root(members) ? DataPath::root : DataPath::slices;
}
// `bytes`, here and below: of all parts together.
inline DataPath gather_path(std::uint64_t bytes, const TeamTraits& members) {
  const Tuning::GatherTiers& by = kTuning.gather_tiers;
  const std::uint64_t ranks = static_cast<unsigned>(members.ranks);
  const bool fit = bytes <= by.short_to * ranks || (bytes >= by.from * ranks && bytes <= by.to * ranks);
  return members.tiers && members.ranks >= by.least_ranks && fit ? DataPath::tiers : DataPath::whole;
}
inline DataPath allgather_path(std::uint64_t bytes, const TeamTraits& members) {
  const std::uint64_t ranks = static_cast<unsigned>(members.ranks);
  if (members.rails == 0 || members.ranks < kTuning.rails_gather_ranks) return DataPath::whole;
  const bool full = members.even_rails && !members.wide_caches;
  const bool is_short = bytes <= kTuning.rails_gather_bytes * ranks;
  const bool is_long = bytes >= kTuning.rails_gather_long.from * ranks &&
                       bytes <= (full ? kTuning.rails_gather_long.to : kTuning.rails_gather_long.to_uneven) * ranks;
  return is_short || is_long ? DataPath::rails : DataPath::whole;
}
inline DataPath alltoall_path(std::uint64_t bytes, const TeamTraits& members) {
  const bool many = members.rails != 0 && members.ranks >= kTuning.rails_alltoall_ranks;
  const bool few = bytes <= kTuning.rails_alltoall_bytes * static_cast<unsigned>(members.ranks);
  return many && few ? DataPath::rails : DataPath::whole;
}
// Two ranks are a chain of one message.
inline DataPath scan_path(std::uint64_t bytes, const TeamTraits& members) {
  if (is_for_tiers(bytes, members) && bytes <= kTuning.tiers_reduce_bytes) return DataPath::tiers;
  return bytes <= kTuning.flat_reduce_bytes && members.ranks != 2 && !is_for_root(members) ? DataPath::whole
                                                                                           : DataPath::chain;
}

}  // namespace stretto::coll_shm
