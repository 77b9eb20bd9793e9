// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>

namespace stretto {

// How the members of a communicator talk before there is state, in rank order. `allgather` is
// collective over the communicator: every rank gives `bytes` bytes and gets size * bytes.
struct Bootstrap {
  int rank = 0;
  int size = 0;
  void* context = nullptr;
  bool (*allgather)(void* context, const void* mine, void* all, std::size_t bytes) = nullptr;
  // Members may be on several nodes, as far as all of them know: they tell each other where they
  // are before anything is reserved.
  bool several_nodes = false;
};

}  // namespace stretto
