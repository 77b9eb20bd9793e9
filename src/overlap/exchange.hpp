// SPDX-License-Identifier: BSD-3-Clause
// What a collective that may be deferred moves: messages out, and messages into one buffer.
#pragma once
#include "overlap/guard.hpp"
#include "overlap/pages.hpp"
#include "transport/bulk/driver.hpp"

namespace stretto::overlap {

struct Outgoing {
  int peer = -1;  // a rank of the job
  const char* data = nullptr;
  std::uint64_t bytes = 0;
};
struct Incoming {
  int peer = -1;
  Block block;  // in the buffer. Blocks do not overlap.
};

// Who is told, on the driver's thread, that a call has failed after it returned. It ends the job.
struct Mourner {
  void* context = nullptr;
  void (*failed)(void* context, const char* name, Status status, const transport::Lost& lost) = nullptr;
};

struct Exchange {
  std::uint64_t comm = 0, call = 0;  // as in bulk::Key
  const char* name = "";             // of the collective; static
  // Messages without bytes are left out on both ends.
  const Outgoing* sends = nullptr;
  std::size_t send_count = 0;
  const Incoming* receives = nullptr;
  std::size_t receive_count = 0;
  char* buffer = nullptr;
  std::uint64_t buffer_bytes = 0;
  Block own;  // of the buffer: what this rank has put there itself, before the call
  bool may_return_early = false;
  Mourner mourner;
};

}  // namespace stretto::overlap
