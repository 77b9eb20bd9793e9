// SPDX-License-Identifier: BSD-3-Clause
// Finds out whether all ranks of a node have this library. It sends no message, because a rank
// without the library would take the message for the program's.
//
// Before MPI_Init each rank leaves a mark, which is a name (sys::Name). No rank leaves MPI_Init
// before all ranks have entered it. After MPI_Init the first rank that asks counts the marks. It
// takes a name that says the result, which is the verdict for all ranks that ask later. So ranks
// agree even where an MPI lets some of them leave MPI_Init early.
//
// Cost: each rank makes 5 system calls to leave a mark, 2 or 3 to learn the verdict and 4 to end.
// The rank that counts makes one more for each rank of the node. The ranks that ask meanwhile look
// again after 20 us, then less and less often.
#pragma once
#include <cstdint>

#include "sys/sys.hpp"

namespace stretto::engine {

class Attendance {
 public:
  // Leaves this rank's mark. `job` is a number that the ranks of the job on this node have in
  // common, and no others. Each of these ranks has another `slot` below `slots`. Returns false if
  // this process cannot leave a mark.
  bool enter(std::uint64_t job, unsigned slot, unsigned slots);
  // `all` says whether all ranks have the library, and is the same on all ranks that ask. `first`
  // says that this rank has counted and found `present` marks.
  struct Verdict {
    bool all = false;
    bool first = false;
    unsigned present = 0;
  };
  // `patience_ns` is how long the rank that counts waits for marks, where some ranks may
  // not have left theirs yet.
  Verdict verdict(std::uint64_t patience_ns = 0);
  // Takes this rank's names back, after all ranks have asked. This rank may still ask again.
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
