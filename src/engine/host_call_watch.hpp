// SPDX-License-Identifier: BSD-3-Clause
// The watchdog's eye on calls that the host serves (shm/host_calls.hpp): messages, waits,
// one-sided, files. Private to src/engine.
#pragma once
#include "observe/standing.hpp"

namespace stretto::engine {

struct Process;

// Where the processes of this machine are that this one knows, and itself.
observe::Standing standing_of(Process& process);
// Draws the cycle of waits that goes through this rank, if it is the lowest there, and says where
// its first ranks are.
class CycleTold {
 public:
  CycleTold(const Process& process, const observe::Standing& standing);
  // Whether it has been said where this rank is.
  [[nodiscard]] bool has(int rank) const;

 private:
  static constexpr unsigned kMost = 4;  // the log takes ten lines a second
  int ranks_[kMost];
  unsigned count_ = 0;
};

class HostCallWatch {
 public:
  // Tells once of each call that has lasted so long. True: there is one.
  bool look(Process& process, std::uint64_t limit_ns, std::uint64_t now_ns);

 private:
  struct Watched {
    std::uint64_t number = 0, since_ns = 0;
    bool told = false;
  };
  Watched watched_[shm::HostCalls::kNotes];
};

}  // namespace stretto::engine
