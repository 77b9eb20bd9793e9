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
enum class DataPath : unsigned { whole, slices, chain, rounds, tiers, sockets };

// What decides, of the team of a call.
struct TeamTraits {
  int ranks = 0;
  bool tiers = false;         // whether the communicator has tiers
  bool span_sockets = false;  // whether ranks are bound to different sockets
  int socket_ranks = 0;       // of the smallest socket, if long messages may go by sockets
};

// From how many ranks on a Reduce goes by slices. With kernels and two ranks, the root combines as
// fast as both could copy.
inline constexpr int kRanksToSplitByKernels = 3, kRanksToSplitByFunction = 2;

inline DataPath barrier_path(const TeamTraits& members) {
  if (members.tiers) return DataPath::tiers;
  return members.ranks <= kTuning.barrier_flat_ranks ? DataPath::whole : DataPath::rounds;
}
inline DataPath bcast_path(std::uint64_t bytes, const TeamTraits& members) {
  const bool by_tiers = members.tiers && members.span_sockets && bytes > kTuning.tiers_bcast_bytes;
  return by_tiers ? DataPath::tiers : DataPath::whole;
}
// From which length on slices are long enough.
inline bool is_for_sockets(std::uint64_t bytes, const TeamTraits& members) {
  const std::uint64_t slices = kTuning.sockets_slice_bytes * static_cast<unsigned>(members.socket_ranks);
  const std::uint64_t from =
      std::clamp(slices, std::uint64_t{kTuning.flat_reduce_bytes}, std::uint64_t{kTuning.tiers_reduce_bytes});
  return members.socket_ranks != 0 && bytes > from;
}
inline DataPath allreduce_path(std::uint64_t bytes, const TeamTraits& members) {
  if (is_for_sockets(bytes, members)) return DataPath::sockets;
  if (members.tiers && bytes <= kTuning.tiers_reduce_bytes) return DataPath::tiers;
  return bytes <= kTuning.flat_reduce_bytes ? DataPath::whole : DataPath::slices;
}
inline DataPath reduce_path(std::uint64_t bytes, const TeamTraits& members, int least_ranks_to_split) {
  if (members.tiers && bytes <= kTuning.tiers_reduce_bytes) return DataPath::tiers;
  const bool short_or_few = bytes <= kTuning.flat_reduce_bytes || members.ranks < least_ranks_to_split;
  return short_or_few ? DataPath::whole : DataPath::slices;
}
inline DataPath reduce_scatter_path(std::uint64_t bytes, const TeamTraits& members) {
  return members.tiers && bytes <= kTuning.tiers_reduce_bytes ? DataPath::tiers : DataPath::slices;
}
// Two ranks are a chain of one message.
inline DataPath scan_path(std::uint64_t bytes, const TeamTraits& members) {
  if (members.tiers && bytes <= kTuning.tiers_reduce_bytes) return DataPath::tiers;
  return bytes <= kTuning.flat_reduce_bytes && members.ranks != 2 ? DataPath::whole : DataPath::chain;
}

}  // namespace stretto::coll_shm
