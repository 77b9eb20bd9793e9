// SPDX-License-Identifier: BSD-3-Clause
// Which rank waited for which, from the times at which the members of communicators came to the
// same calls. The times are those that each rank has kept (call_profile.hpp).
//
// A rank *waits* from its own arrival until the last rank that it needs has come, at most until its
// call ends. The rest of the call is *moving*: copying, combining, and waiting for messages of
// ranks that are there.
//
//   barrier, allgather, alltoall, allreduce, reduce_scatter   a rank needs all others
//   bcast, scatter                                            a rank needs the root
//   gather, reduce                                            the root needs all others
//   scan, exscan                                              a rank needs those below it
//
// These are the wait states of the Scalasca tool set: Wait at Barrier, Wait at N x N, Late
// Broadcast, Early Reduce, Early Scan (F. Wolf et al., "Usage of the SCALASCA toolset for scalable
// performance analysis of large-scale parallel applications", 2008).
#pragma once
#include "base/array.hpp"
#include "observe/call_profile.hpp"

namespace stretto::observe {

// What a rank's clock shows more than that of rank 0.
struct ClockOffset {
  std::uint64_t at_ns = 0;  // when this was found, by the rank's clock
  std::int64_t more_ns = 0;
  std::uint64_t error_ns = 0;  // at most
};

// How many rounds of barriers find out the offset.
inline constexpr unsigned kClockRounds = 8;
// When a process came to a barrier and when it left, by its clock.
struct ClockRound {
  std::uint64_t enter_ns, leave_ns;
};
// Nobody leaves a barrier before all have come. So rank 0 came before this rank left, and this rank
// came before rank 0 left. That bounds the offset from both sides. If it may be zero, it is.
ClockOffset clock_offset(const ClockRound* mine, const ClockRound* root);

// What a rank hands in. Plain bytes: it travels by the host's Gatherv.
struct KeptHead {
  std::uint64_t origin_ns;
  ClockOffset begin, end;
  std::uint32_t calls, communicators;
};

struct Compared {
  std::uint64_t calls, ns, waiting_ns;  // of this rank's kept calls that all members have kept
};
struct WaitedFor {
  std::int32_t rank;  // in MPI_COMM_WORLD; -1: this place is empty
  std::uint32_t calls;
  std::uint64_t ns;
};
// What comes back to a rank.
struct RankWaits {
  static constexpr unsigned kRanks = 16;
  Compared of[kCollectives];
  Compared site[CallProfile::kSites];
  std::uint64_t late_calls, caused_ns;                // others waited for this rank
  std::uint64_t site_caused_ns[CallProfile::kSites];  // at these calls of this rank
  WaitedFor waited_for[kRanks];                       // those for which it waited longest
  ProfileTime time;                                   // compared_ns, waiting_ns
};

// What a rank learns in the end.
struct Waits {
  RankWaits mine;
  std::uint64_t clock_error_ns;  // between this rank and rank 0
};

class Arrivals {
 public:
  explicit Arrivals(int ranks) : ranks_(ranks) {}

  // The rank's communicators and calls. They stay where they are until compare() has returned.
  // Ranks come in order.
  void add(const KeptHead& head, const ProfileCommunicator* communicators, const KeptCall* calls);
  // Writes an entry for each rank. False: there is no memory.
  bool compare(RankWaits* waits);

 private:
  struct Rank {
    KeptHead head;
    const ProfileCommunicator* communicators;
    const KeptCall* calls;
  };
  struct Entry {
    std::uint64_t members;
    std::uint32_t nth, number;
    std::int32_t rank;
    std::uint32_t member;  // its rank in the communicator
    std::int64_t came_ns;  // by the clock of rank 0
    const KeptCall* call;
  };
  [[nodiscard]] std::int64_t by_clock_of_root(const Rank& rank, std::uint64_t ns) const;
  void compare_call(const Entry* entries, std::size_t count, RankWaits* waits);
  void wait(const Entry& waiting, const Entry& late, RankWaits* waits);
  void tell(RankWaits* waits) const;

  static constexpr int kMostRanks = 2048;  // for who waited for whom: the table takes 64 MiB

  int ranks_;
  Array<Rank> of_;
  Array<Entry> entries_;
  const KeptCall* blamed_ = nullptr;  // the late rank's call, for which some rank has waited
  Array<WaitedFor> table_;            // by waiting rank, then by the rank that it waited for
};

}  // namespace stretto::observe
