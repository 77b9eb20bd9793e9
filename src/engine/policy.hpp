// SPDX-License-Identifier: BSD-3-Clause
// What the engine decides from options and the machine, by the measured thresholds of
// base/tuning.hpp. src/select decides which algorithm serves a call between nodes.
#pragma once
#include <algorithm>
#include <cstddef>

#include "base/tuning.hpp"
#include "engine/settings.hpp"
#include "shm/lane.hpp"
#include "shm/lines.hpp"
#include "sys/sys.hpp"

namespace stretto::engine {

// The number of slots of a lane. The lanes' length follows from the L2 cache and the
// tuning, but all lanes together take at most a quarter of the segment. A lane has at least
// eight slots in any case.
inline unsigned slots_of(const Settings& settings) {
  if (settings.slots != 0) return static_cast<unsigned>(settings.slots);
  const std::size_t l2 = sys::l2_bytes();
  const std::size_t lane = l2 == 0 ? kTuning.lane_unknown : std::clamp(2 * l2, kTuning.lane_least, kTuning.lane_most);
  const std::size_t room = settings.segment_bytes / 4 / (shm::Lanes::kLongLanes + shm::Team::kLanesApart);
  return static_cast<unsigned>(std::max<std::size_t>(std::min(lane, room) / settings.slot_bytes, 8));
}

inline std::size_t slot_gap() { return sys::cpu_is_amd() ? kTuning.slot_gap_amd : kTuning.slot_gap; }

// From which lengths on `ranks` readers copy straight out of the sender's memory, if that is
// possible. `crowded`: there are fewer processors than ranks.
inline Tuning::SingleCopyFrom single_copy_from(SingleCopyChoice choice, int ranks, bool crowded) {
  constexpr std::uint64_t kSlots = shm::kMostInlineBytes + 1;  // all messages that do not fit into records
  if (choice == SingleCopyChoice::always) return {kSlots, kSlots, kSlots, kSlots, kSlots};
  if (!crowded) return kTuning.single_copy;
  if (!sys::cpu_is_amd()) return kTuning.single_copy_crowded;
  Tuning::SingleCopyFrom from = kTuning.single_copy_crowded_amd;
  constexpr std::uint64_t kFew = kTuning.single_copy_ranks;
  const std::uint64_t readers = std::max(static_cast<std::uint64_t>(ranks), kFew);
  for (std::uint64_t* bytes : {&from.scatter, &from.alltoall})
    *bytes = std::max(*bytes * kFew * kFew / (readers * readers), kTuning.single_copy_least);
  return from;
}

// From which distance in ns on readers are far.
inline std::uint64_t far_from_ns(StreamingChoice streaming) {
  if (streaming != StreamingChoice::automatic) return streaming == StreamingChoice::always ? 0 : Tuning::kNever;
  return sys::cpu_is_amd() ? kTuning.far_ns_amd : kTuning.far_ns;
}

// Readers may store long messages past their caches. past_by_l3 says whether the L3 cache decides
// which ones. past_from_bytes says from which length on, with `ranks` ranks of this node in the
// call. `crowded`: the node has fewer processors than these ranks.
inline bool past_by_l3(StreamingChoice streaming) {
  return streaming == StreamingChoice::automatic && (sys::cpu_is_amd() ? kTuning.stores_past_amd : kTuning.stores_past);
}
inline std::uint64_t past_from_bytes(StreamingChoice streaming, const sys::SharedCache& l3, int ranks, bool crowded) {
  if (streaming == StreamingChoice::always) return 0;
  if (!past_by_l3(streaming)) return Tuning::kNever;
  if (crowded) return kTuning.stores_past_crowded_bytes;
  if (l3.bytes == 0) return Tuning::kNever;
  return l3.bytes / static_cast<unsigned>(std::min(ranks, l3.processors));
}

// Whether `ranks` ranks of this node have too few processors, as far as one of them knows. If the
// process is bound to some processors, the other ranks have processors of their own.
inline bool exceed_processors(unsigned ranks, const sys::Cpus& cpus, bool bound) {
  return ranks > (bound ? cpus.online : std::min<double>(cpus.quota, cpus.count));
}

// How ranks wait. `crowded`: there are fewer processors than ranks.
inline WaitMode wait_mode(WaitMode wanted, bool crowded) {
  if (wanted != WaitMode::automatic) return wanted;
  return crowded ? WaitMode::yield : WaitMode::spin;
}

}  // namespace stretto::engine
