// SPDX-License-Identifier: BSD-3-Clause
// The watchdog's look at calls that may return before their data are there (STRETTO_OVERLAP). It
// says so if nothing of a call moves: which bytes are missing, from whom, and what the program does
// meanwhile. A call that has returned harms nobody by itself, so only a thread that waits for its
// data counts for STRETTO_TIMEOUT. Private to src/engine.
#pragma once
#include <cstdint>

#include "shm/deferred.hpp"
#include "topo/hosts.hpp"

namespace stretto::engine {

class DeferredWatch {
 public:
  struct Limits {
    std::uint64_t tell_ns = 0;
    std::uint64_t end_ns = 0;  // 0: never
  };
  // Does not return if a thread has waited too long. `hosts` may be null.
  void look(const shm::DeferredNotes& notes, const Limits& limits, const topo::Hosts* hosts, std::uint64_t now_ns);

 private:
  // A call, and since when the watchdog has seen it as it is.
  struct Watched {
    std::uint64_t number = 0, left_bytes = 0;
    std::uint64_t since_ns = 0;
    bool told = false;
  };
  Watched watched_[shm::DeferredNotes::kNotes];
};

// "waits for data of call 3 (MPI_Alltoall) from rank 2: ...", if a thread of that process does.
// Otherwise empty.
struct DeferredWords {
  char text[160] = "";
  explicit DeferredWords(const shm::DeferredNotes& notes);
};

}  // namespace stretto::engine
