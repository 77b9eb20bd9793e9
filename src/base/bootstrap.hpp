// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/array.hpp"

namespace stretto {

// How the members of a communicator talk before Stretto has state for it. Ranks are those of the
// communicator. `allgather` is collective over the communicator: every rank gives `bytes` bytes and
// gets size * bytes, in rank order.
struct Bootstrap {
  int rank = 0;
  int size = 0;
  void* context = nullptr;
  bool (*allgather)(void* context, const void* mine, void* all, std::size_t bytes) = nullptr;
  // As far as all members know, they may be on several nodes. They then tell each other where they
  // are before they reserve anything.
  bool several_nodes = false;
};

// The words of all members, in rank order.
template <class T>
Array<T> of_all(const Bootstrap& members, const T& mine) {
  Array<T> all;
  if (!all.resize(static_cast<std::size_t>(members.size), mine))
    std::abort();  // a few words a rank: the others wait for ours
  if (!members.allgather(members.context, &mine, all.data(), sizeof mine)) std::abort();
  return all;
}

inline bool everybody(const Bootstrap& members, bool mine) {
  const Array<std::uint8_t> all = of_all<std::uint8_t>(members, mine ? 1 : 0);
  return std::all_of(all.begin(), all.end(), [](std::uint8_t word) { return word != 0; });
}

}  // namespace stretto
