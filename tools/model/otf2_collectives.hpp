// SPDX-License-Identifier: BSD-3-Clause
// Collectives in OTF2: their numbers, and what their two lengths mean. An event says what a rank
// sends to all members and receives from all, itself included, as Score-P counts it. Other tools
// write the length of a block: EZTrace does.
#pragma once
#include <otf2/otf2.h>

#include <algorithm>
#include <cstdint>

#include "base/collective.hpp"

namespace stretto::modelling {

struct Otf2Collective {
  Collective collective;
  OTF2_CollectiveOp operation;
};
inline constexpr Otf2Collective kOtf2Collectives[] = {
    {Collective::barrier, OTF2_COLLECTIVE_OP_BARRIER},
    {Collective::bcast, OTF2_COLLECTIVE_OP_BCAST},
    {Collective::gather, OTF2_COLLECTIVE_OP_GATHER},
    {Collective::gatherv, OTF2_COLLECTIVE_OP_GATHERV},
    {Collective::scatter, OTF2_COLLECTIVE_OP_SCATTER},
    {Collective::scatterv, OTF2_COLLECTIVE_OP_SCATTERV},
    {Collective::allgather, OTF2_COLLECTIVE_OP_ALLGATHER},
    {Collective::allgatherv, OTF2_COLLECTIVE_OP_ALLGATHERV},
    {Collective::alltoall, OTF2_COLLECTIVE_OP_ALLTOALL},
    {Collective::alltoallv, OTF2_COLLECTIVE_OP_ALLTOALLV},
    {Collective::alltoallw, OTF2_COLLECTIVE_OP_ALLTOALLW},
    {Collective::reduce, OTF2_COLLECTIVE_OP_REDUCE},
    {Collective::allreduce, OTF2_COLLECTIVE_OP_ALLREDUCE},
    {Collective::reduce_scatter, OTF2_COLLECTIVE_OP_REDUCE_SCATTER},
    {Collective::reduce_scatter_block, OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK},
    {Collective::scan, OTF2_COLLECTIVE_OP_SCAN},
    {Collective::exscan, OTF2_COLLECTIVE_OP_EXSCAN},
};

inline OTF2_CollectiveOp otf2_operation(Collective collective) {
  for (const Otf2Collective& each : kOtf2Collectives) {
    if (each.collective == collective) return each.operation;
  }
  return OTF2_COLLECTIVE_OP_CREATE_HANDLE;
}
// count_: the operation makes or frees something.
inline Collective otf2_collective(OTF2_CollectiveOp operation) {
  for (const Otf2Collective& each : kOtf2Collectives) {
    if (each.operation == operation) return each.collective;
  }
  return Collective::count_;
}

struct Otf2Lengths {
  std::uint64_t sent, received;
};
// `bytes`: of a block or vector. `me` and `root`: ranks among so many members.
inline Otf2Lengths otf2_lengths(Collective collective, std::uint64_t bytes, std::uint64_t members, std::uint64_t me,
                                bool is_root) {
  switch (collective) {
    case Collective::barrier: return {0, 0};
    case Collective::bcast:
    case Collective::scatter:
    case Collective::scatterv: return {is_root ? members * bytes : 0, bytes};
    case Collective::gather:
    case Collective::gatherv:
    case Collective::reduce: return {bytes, is_root ? members * bytes : 0};
    case Collective::scan: return {(members - me) * bytes, (me + 1) * bytes};
    case Collective::exscan: return {(members - me - 1) * bytes, me * bytes};
    default: return {members * bytes, members * bytes};
  }
}
// The other way round: of blocks that differ, their mean.
inline std::uint64_t otf2_block(Collective collective, const Otf2Lengths& lengths, std::uint64_t members,
                                bool is_root) {
  const std::uint64_t more = std::max(lengths.sent, lengths.received), both = lengths.sent + lengths.received;
  switch (collective) {
    case Collective::barrier:
    case Collective::count_: return 0;
    case Collective::bcast:
    case Collective::scatter:
    case Collective::scatterv:
    case Collective::gather:
    case Collective::gatherv:
    case Collective::reduce: return is_root ? more / members : more;
    case Collective::scan: return both / (members + 1);
    case Collective::exscan: return members > 1 ? both / (members - 1) : 0;
    default: return more / members;
  }
}

}  // namespace stretto::modelling
