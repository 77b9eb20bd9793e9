// SPDX-License-Identifier: BSD-3-Clause
// What a process with STRETTO_STATS knows of itself. It lies in a memory file of the process, so
// that another process of its node can read it after its death (tools/keeper). The owner alone
// writes. A reader of a living process may find parts of different moments.
#pragma once
#include "observe/totals.hpp"
#include "shm/atomic.hpp"
#include "shm/call_sites.hpp"

namespace stretto::observe {

// The call of a collective that the process is in. Of several threads, the one that came last.
struct OpenCall {
  std::uint64_t began_ns;  // 0: it is in none
  std::uint64_t caller;
  std::uint32_t number;       // on its communicator
  std::int32_t root;          // in the communicator; -1: it has none
  std::int16_t communicator;  // its number in the profile; negative: none
  Collective collective;
};

struct StatsPage {
  static constexpr std::uint64_t kMagic = 0x5354524554535447u;  // "STRETSTG"

  std::uint64_t layout;
  shm::Atomic<std::uint64_t> reported;  // the rank has said all: nothing is left to do after its death
  shm::Atomic<std::uint64_t> aborts;    // it has called MPI_Abort, which ends the others, maybe earlier
  std::int32_t rank, ranks;
  std::uint64_t began_ns;
  ClockOffset clock;
  OpenCall open;
  Counters counters;
  OtherCalls others;
  shm::Modules modules;
  char version[32], abi[16], host[64];
  char run[16 << 10];   // JSON: what all ranks have in common. Empty: it was too long
  char place[1 << 10];  // JSON: where this rank is
  CallProfile profile;

  explicit StatsPage(std::uint64_t now_ns = 0);
  // Of this process, in a memory file with pages behind it. `descriptor` is that file; -1: there is
  // none, and other processes cannot read it. Null: no memory.
  static StatsPage* create(std::uint64_t now_ns, int* descriptor);
  // Whether a copy of another process's page is one, and may be worked with.
  [[nodiscard]] bool is_sound() const;
};

}  // namespace stretto::observe
