// SPDX-License-Identifier: BSD-3-Clause
// Collectives on one node, written by hand over queues in shared memory: the hot path. All members
// of the team call the same function in the same order. `call` says afterwards what the call came
// to on this rank.
//
// `good = false`: this rank cannot do its part (its data could not be packed). It still takes part.
// It publishes poison where it should send, and drops what it should receive. So its peers fail and
// do not hang.
#pragma once
#include "base/neighborhood.hpp"
#include "base/region.hpp"
#include "coll/shm/selection.hpp"
#include "shm/message.hpp"

namespace stretto::coll_shm {

void barrier_flat(shm::Call& call);
void barrier_dissemination(shm::Call& call);
void barrier_root(shm::Call& call);
void barrier_tiers(shm::Call& call, const Tiers& tiers);
void bcast_board(shm::Call& call, const Region& buffer, int root, bool good);
// `flat`: the root publishes on its own board, and others expect that.
void bcast_tiers(shm::Call& call, const Region& buffer, int root, bool good, const TierChoice& tiers, bool flat);
// `together`: peers may give the call up, or go another way.
void gather_channels(shm::Call& call, const Region& send, const Blocks& receive, int root, bool in_place, bool good,
                     bool together);
void gather_tiers(shm::Call& call, const Region& own, const Blocks& receive, int root, const Tiers& tiers);
void allgather_boards(shm::Call& call, const Region& send, const Blocks& receive, bool in_place, bool good,
                      bool together);
void allgather_rails(shm::Call& call, const Region& own, const Blocks& receive, const Tiers& rails);
void alltoall_channels(shm::Call& call, const Blocks& send, const Blocks& receive, bool in_place, bool good,
                       bool together);
void alltoall_rails(shm::Call& call, const Blocks& send, const Blocks& receive, const Tiers& rails);

void barrier(shm::Call& call, const Selection& selection);
void bcast(shm::Call& call, const Region& buffer, int root, bool good, const Selection& selection);
void gather(shm::Call& call, const Region& send, const Blocks& receive, int root, bool in_place, bool good,
            const Selection& selection);
void scatter(shm::Call& call, const Blocks& send, const Region& receive, int root, bool in_place, bool good);
void allgather(shm::Call& call, const Region& send, const Blocks& receive, bool in_place, bool good,
               const Selection& selection);
// In place, `receive` also holds what is sent.
void alltoall(shm::Call& call, const Blocks& send, const Blocks& receive, bool in_place, bool good,
              const Selection& selection);
// One block to each neighbour, and one from each.
void neighbors(shm::Call& call, const Neighborhood& neighborhood, const SentBlocks& send, const Blocks& receive,
               bool good);

}  // namespace stretto::coll_shm
