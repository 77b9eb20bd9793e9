// SPDX-License-Identifier: BSD-3-Clause
// Do all ranks of a node have this library? Found out without a message, for a rank that lacks it
// would take ours for the program's.
//
// Each rank leaves a mark, a name (sys::Name), before MPI_Init, which no rank leaves before all
// have entered it. After MPI_Init the first rank to ask counts the marks; what it finds becomes a
// name, too, and is the verdict for all ranks that ask later. So ranks agree even where an MPI lets
// some of them leave MPI_Init early.
//
// Cost: each rank makes 5 system calls to leave a mark, 2 or 3 to learn the verdict and 4 to end;
// the rank that counts makes one more for each rank of the node. The ranks that ask meanwhile look
// again after 20 us, then less and less often.
#pragma once
#include <cstdint>

#include "sys/sys.hpp"

namespace stretto::engine {

class Attendance {
 public:
  // `job`: a number that the ranks of the job on this node have in common, and nobody else. `slot`:
  // below `slots`, one for each of them. False: this process cannot leave a mark.
  bool enter(std::uint64_t job, unsigned slot, unsigned slots);
  // Whether all ranks have the library: the same on all who ask. `first`: this rank has counted,
  // and found `present` marks.
  struct Verdict {
    bool all = false;
    bool first = false;
    unsigned present = 0;
  };
  // `patience_ns`: how long the one who counts waits for marks, where ranks may not have come so
  // far as to leave one.
  Verdict verdict(std::uint64_t patience_ns = 0);
  // Takes the names back, when all ranks have asked. This one may ask again.
  void leave();

 private:
  enum class Kind : std::uint64_t { mark, decided, all, not_all };
  [[nodiscard]] std::uint64_t id(Kind kind, unsigned slot = 0) const;
  Verdict count(std::uint64_t patience_ns);

  Verdict decide(std::uint64_t patience_ns);

  std::uint64_t job_ = 0;
  bool known_ = false, all_ = false;
  unsigned slots_ = 0;
  enum { kMark, kDecided, kAnswer, kAsking, kNames };
  sys::Name names_[kNames];
};

}  // namespace stretto::engine
