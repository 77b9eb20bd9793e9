// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>

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

}  // namespace stretto
