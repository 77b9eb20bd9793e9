// SPDX-License-Identifier: BSD-3-Clause
// Collectives that had not ended when the first rank of a job ended: who waited there, for whom.
#pragma once
#include <map>
#include <vector>

#include "keeper/ranks.hpp"

namespace stretto::keeper {

struct OpenCalls {
  Collective collective{};
  std::uint64_t longest_ns = 0;           // in the call, of a rank that waits
  std::vector<int> waiting, late;         // ranks: in the call; not there yet
  std::map<int, observe::KeptCall> kept;  // by rank: as if the late ones had come at that moment
};

// `accounts`: by rank, null: not read. Their profiles count the open calls from here on.
// `first_ns`: the moment of the first end, by the clock of rank 0.
std::vector<OpenCalls> open_calls(std::vector<std::unique_ptr<Account>>& accounts, std::uint64_t first_ns);

}  // namespace stretto::keeper
