// SPDX-License-Identifier: BSD-3-Clause
// Where the processes of a job on one machine stand at one moment, and who waits for whom: in
// collectives that shared memory serves, in messages, and in calls that all members of something
// make. The watchdog makes it of its peers' segments, `stretto top` of those that it has found.
//
// Processes go on while it is made. A wait that is over by then was one a moment ago: the caller
// says things only of waits that last.
#pragma once
#include "base/array.hpp"
#include "observe/observer.hpp"
#include "shm/host_calls.hpp"

namespace stretto::observe {

// One process.
struct Stand {
  int rank = 0;  // of the job
  int pid = 0;
  bool gone = false, left = false;  // it has ended; it has called MPI_Finalize
  const char* base = nullptr;       // its segment
  std::size_t bytes = 0;
  shm::NoteCopy collective;  // the call that it is in, otherwise its latest one; number 0: none
  shm::HostCall call;        // the same

  [[nodiscard]] const shm::Note* notes() const {
    return reinterpret_cast<const shm::Note*>(base + shm::Segment::kNotesOffset);
  }
  [[nodiscard]] const shm::Modules& modules() const {
    return reinterpret_cast<const shm::CallSites*>(base + shm::Segment::kCallSitesOffset)->modules;
  }
  [[nodiscard]] bool runs() const { return !gone && !left; }
  // Outside collectives.
  [[nodiscard]] bool waits() const { return runs() && call.open && !call.tests; }
  [[nodiscard]] bool in_collective() const { return runs() && collective.number != 0 && collective.open(); }
};

// Whether both are in the same call of all members: of one communicator, window or file.
bool are_together(const shm::HostCall& one, const shm::HostCall& other);
// Whether a member of this rank may wait for that one, in this call of a collective.
bool may_wait_for(const shm::NoteCopy& call, int rank, int other);

class Standing {
 public:
  // The process that has this segment. False: it is none of ours, or memory is short.
  bool add(const char* base, std::size_t bytes, bool gone);

  [[nodiscard]] std::size_t size() const { return stands_.size(); }
  [[nodiscard]] const Stand* begin() const { return stands_.begin(); }
  [[nodiscard]] const Stand* end() const { return stands_.end(); }
  [[nodiscard]] const Stand* of(int rank) const;
  // The lock of this window that the process has. Null: none.
  static const shm::HeldLock* holds(const Stand& stand, const shm::Awaited& target) {
    return stand.runs() ? shm::Segment::host_calls_beside(stand.notes()).lock_of(target.world, target.where) : nullptr;
  }

  // Visits the ranks of the job that this one waits for: all of them, or one of them if the call
  // says `any`. Ranks that are not here are visited, too, where the call names them.
  template <class Visit>
  void each_awaited(const Stand& stand, const Visit& visit) const {
    if (stand.waits()) return each_of_call(stand, visit);
    if (stand.in_collective()) each_missing(stand, visit);
  }
  // A shortest cycle of ranks each of which waits for the next one. Returns how many there are, 0
  // if there is no cycle through `rank`. It begins with the lowest rank.
  unsigned cycle(int rank, int* ranks, unsigned most) const;

 private:
  template <class Visit>
  void each_of_call(const Stand& stand, const Visit& visit) const {
    const shm::HostCall& call = stand.call;
    if (call.kind == shm::HostCallKind::all) {
      for (const Stand& other : stands_) {
        if (other.rank != stand.rank && call.members == ranks_ && !(other.waits() && are_together(call, other.call)))
          visit(other.rank);
      }
      return;
    }
    for (unsigned i = 0; i < call.known(); ++i) {
      const shm::Awaited& part = call.parts[i];
      if (part.world < 0) continue;
      bool is_held = false;
      for (const Stand& other : stands_) {
        if (part.what != shm::Awaited::What::target || other.rank == stand.rank || !holds(other, part)) continue;
        is_held = true;
        visit(other.rank);
      }
      if (!is_held) visit(part.world);
    }
  }
  // Members of the collective's communicator that have not come to the call.
  template <class Visit>
  void each_missing(const Stand& stand, const Visit& visit) const {
    if (shm::is_elsewhere(stand.collective)) return;
    Membership mine, theirs;
    if (!member_of(stand, stand.collective.generation, &mine)) return;
    for (const Stand& other : stands_) {
      if (other.rank == stand.rank || !member_of(other, stand.collective.generation, &theirs)) continue;
      const auto rank = static_cast<int>(mine.rank), its = static_cast<int>(theirs.rank);
      if (theirs.begun < stand.collective.call >> 8 && may_wait_for(stand.collective, rank, its)) visit(other.rank);
    }
  }
  static bool member_of(const Stand& stand, std::uint64_t generation, Membership* membership);

  Array<Stand> stands_;  // by rank
  std::uint32_t ranks_ = 0;
};

// What two calls say of each other: one receives, the other one sends to it, and the messages do
// not fit. Empty: nothing.
struct ContradictionWords {
  char text[900] = "";
  ContradictionWords(const Stand& receiver, const Stand& sender);
};

}  // namespace stretto::observe
