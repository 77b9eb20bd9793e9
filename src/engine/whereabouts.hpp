// SPDX-License-Identifier: BSD-3-Clause
// Where a rank is, by the notes of its process, in the user's words: in which call it is, or from
// which one it has come back last. Private to src/engine.
#pragma once
#include "shm/journal.hpp"

namespace stretto::engine {

// What a process's notes say, also of one communicator.
struct Trace {
  static constexpr int kLastCalls = 5;

  shm::NoteCopy here{};              // its latest call there; number 0: none, or its note is overwritten
  shm::NoteCopy now{};               // the call that it is in, otherwise its latest one; number 0: none
  shm::NoteCopy last[kLastCalls]{};  // its latest calls anywhere, the latest first

  // No notes: they are null. `generation` is the communicator's.
  Trace(const shm::Note* notes, std::uint64_t generation);
};

// The place of a call. Empty: not known.
shm::CallSite site_of(const shm::Note* notes, const shm::NoteCopy& note);

enum class Life : std::uint8_t { out_of_sight, gone, alive };
Life life_of(int pid, std::uint64_t started);  // `started`: see shm::Peer

// "(process 4711, alive) is in no collective since it came back from MPI_Bcast, call 2 here, at
// solver.c:97 in main". `here` is the communicator of which the message is; 0: of none.
struct StateWords {
  char text[1024];
  StateWords(const shm::Note* notes, const shm::NoteCopy& now, std::uint64_t here, int pid, Life life);
};

// "MPI_Bcast 2; MPI_Barrier by the MPI": its latest calls. Empty: there are not two.
struct HistoryWords {
  char text[900] = "";
  HistoryWords(const shm::Note* notes, const Trace& trace, std::uint64_t here);
};

}  // namespace stretto::engine
