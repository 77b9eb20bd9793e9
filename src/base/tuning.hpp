// SPDX-License-Identifier: BSD-3-Clause
// Measured constants, in one place. Where nothing else is said they were measured on a 2-core virtual machine (Xeon 2.5
// GHz, 1 MiB of L2 each, 33 MiB of shared L3); `stretto bench` reproduces what they were chosen by.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto {

struct Tuning {
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  // Messages travel inside so many records before they go through a slot. A reader knows where the next records will
  // be, so it fetches them while it waits for the first; a slot's address comes out of a record first.
  unsigned inline_records = 4;
  unsigned inline_records_far =
      2;  // to readers whose caches are far: three lines take longer from there than one slot past the caches

  // Longer messages go in fragments of 1/parts of the message, at least `least` bytes, at most `most` (or a slot):
  // copying in and out overlap from the second fragment on. How much each beginning of a copy costs differs by
  // processor: on an EPYC (Zen 5, 1 MiB of L2 each, 32 MiB of L3) Allreduce and Reduce of 64 KiB to 4 MiB take 1.4
  // times the bound with fragments of 8 KiB, 1.1 with these.
  struct Fragments {
    std::uint32_t parts, least, most;
    // At least, in calls in which everybody, or the root, has to copy all the time: nobody would be idle otherwise, and
    // shorter ones cost turns.
    std::uint32_t least_busy = 0;
    bool operator==(const Fragments&) const = default;
  };
  Fragments fragments = {32, 4 << 10, 8 << 10};
  Fragments fragments_amd = {8, 4 << 10, 32 << 10, 32 << 10};

  // A lane, the ring of a process's payload slots, is as long as the L2 of a processor, where that is known and between
  // these, of eight slots at least. In a shorter one a writer comes round to lines that still lie in the reader's L2,
  // and has to fetch them from there; of a longer one they have gone on to the cache that both share. On the EPYC (L2
  // of 1 MiB) calls of 4 to 512 KiB into warm buffers take 0.6 of the time in the mean with 1 MiB instead of 256 KiB.
  std::size_t lane_least = 256 << 10, lane_most = 2 << 20, lane_unknown = 1 << 20;

  // So many bytes are left between the slots of one message and of the next where readers are near. A reader's
  // processor fetches lines beyond those that it reads; if they are the next slot's, its writer has to take them back.
  // On the EPYC calls of 512 bytes to 4 KiB take 0.85 of the time. Only measured there.
  std::size_t slot_gap = 0, slot_gap_amd = 2 << 10;

  // A line that a reader has just written takes its writer so long where their caches are far apart (shm/distance.hpp);
  // one out of the own cache less than own_cache_ns. On the EPYC 10 to 50 within a core complex, more where much else
  // is under way, 100 to 140 from one to another. Only measured there.
  std::uint64_t far_ns = kNever, far_ns_amd = 95, own_cache_ns = 10;
  std::uint32_t measured_every = 16;  // records
  // A near line takes long now and then; a far one often seems near, where the writer waits for its reader all the time
  // and has just looked.
  unsigned far_in_a_row = 2, near_in_a_row = 6;

  // Whether messages as long as a rank's share of the L3 are stored past the caches where they arrive. On the EPYC
  // Gather, Allgather and Alltoall of 16 MiB take 0.63 to 0.88 of the time, 0.86 to 0.96 with the reading of what has
  // arrived; shorter ones take up to 1.13 times as long with it. Only measured there. With fewer processors than ranks
  // others use the caches before what has arrived is read: there it pays from this length on, with its reading 0.75 to
  // 0.95 of the time.
  bool stores_past = false, stores_past_amd = true;
  std::uint64_t stores_past_crowded_bytes = 64 << 10;

  // Copies of so many bytes go by cache lines (base/copy.hpp): calls take up to 15% less time on the EPYC than with
  // glibc 2.36's memcpy. Up to 256 bytes there is no difference, with 2 KiB they take 8% more.
  std::size_t lines_least = 384, lines_most = 1536;

  // A reader that waits for a message longer than records hold fetches so much of its target. On the EPYC Bcast of 1 to
  // 4 KiB into buffers in no cache takes 0.77 to 0.92 of the time, Reduce 0.79 to 0.94; where they are in a cache it
  // costs nothing.
  std::size_t fetched_bytes = 4 << 10;

  // From this length on readers copy straight out of the sender's memory, where that is possible. With a processor for
  // every rank two overlapping copies are as fast as one by the kernel. Without, half the copying is half the time,
  // unless one rank would do all of it (gather) or the copy in is shared by many readers (bcast, allgather). On the
  // EPYC the kernel's copy takes so long that Gather never gains, and the others only where a lane would have to be
  // emptied again and again, by ever more ranks in turn: with 4 ranks Scatter of 64 to 512 KiB takes 0.65 to 0.9 of the
  // time without it, with 16 ranks from 128 KiB on 1.05 to 1.4.
  struct SingleCopyFrom {
    std::uint64_t bcast, gather, scatter, allgather, alltoall;
  };
  SingleCopyFrom single_copy = {kNever, kNever, kNever, kNever, kNever};
  SingleCopyFrom single_copy_crowded = {kNever, 1 << 20, 64 << 10, kNever, 64 << 10};
  // Up to so many ranks; with more, Scatter's and Alltoall's are shorter by the square of their number, but not shorter
  // than the least.
  SingleCopyFrom single_copy_crowded_amd = {kNever, kNever, 1 << 20, kNever, 128 << 10};
  std::uint64_t single_copy_ranks = 4, single_copy_least = 64 << 10;
  std::size_t single_copy_piece_bytes = 1 << 20;  // read at once, before the host is looked after
  // So many readers of one rank's memory at a time; with two processors there are never more. Who has looked in vain so
  // often no longer asks: a reader may have died.
  unsigned single_copy_readers = 4;
  unsigned single_copy_looks = 256;

  // Reductions up to this length are combined by everybody from everybody's boards.
  std::size_t flat_reduce_bytes = 4 << 10;

  // Up to so many members a Barrier is one line each, read by all; beyond it goes in rounds.
  int barrier_flat_ranks = 32;

  // The members of a communicator agree on what serves it after so many collectives in which every
  // rank waits for all others anyway, and after so many of any kind at the latest. Until then its
  // calls go to the MPI: a communicator that lives for a few calls costs no agreement.
  std::uint32_t agree_calls_world = 1, agree_calls = 4;
  std::uint32_t agree_calls_of_any_kind = 257;

  // What the system grants in processor time is read again when it is so old: that takes some 100
  // us, and milliseconds where many file systems are mounted.
  std::uint64_t quota_again_ns = 10'000'000'000;

  // Schedules: so many segments at most. Which schedule when: select/across_nodes.cpp; it was measured with 8 ranks,
  // and is trusted automatically up to so many.
  int schedule_most_segments = 512;
  int schedule_automatic_ranks = 64;
  // Messages up to this length go between nodes by connections of the communicator's own (transport/tcp.hpp), from
  // this call of it on: those that live shorter are not worth the opening, some milliseconds. With more members than
  // that there would be too many connections.
  std::uint32_t socket_bytes = 16 << 10;
  std::uint64_t socket_calls = 32;
  std::uint64_t socket_calls_of_any_kind = 1024;  // later, where no call makes all ranks wait for one another
  int socket_ranks = 64;
  std::uint32_t socket_messages_per_ack = 4;
  std::uint32_t socket_segment_bytes = 1400;  // in an Ethernet frame; more than that is acknowledged at once
  std::uint32_t socket_looks_per_round = 4;   // one of them asks about all connections
  std::uint32_t socket_looks_per_poke = 64;   // 0.3 us each
  std::size_t scratch_kept_bytes = 16 << 20;  // a communicator's, between calls

  // Waiting (shm/wait.hpp). With a processor for every rank:
  std::uint32_t spin_bare = 100;    // looks without a pause: a flag on its way arrives within these
  std::uint32_t spin_total = 1000;  // looks before the host MPI is driven and the clock is read
  std::uint64_t spin_yield_after_ns = 50'000;
  // With fewer processors than ranks: look a little, then give the processor away.
  std::uint32_t crowded_spins = 20;
  std::uint32_t crowded_steps_per_poke = 8;  // a poke may yield as well, and each yield costs a round of all ranks
  std::uint32_t crowded_seldom_until = 64;   // steps
  std::uint64_t long_wait_ns = 1'000'000;
  std::uint32_t long_wait_steps_per_yield = 16;
  std::uint64_t nap_after_ns = 10'000'000;  // sooner, and readers nap between the fragments of a long Scatter
  std::uint64_t nap_limit_ns = 100'000;
  std::uint32_t nap_fraction = 16;           // a nap is this part of the time already waited
  std::uint32_t pokes_per_nap = 64;          // with one, a rendezvous of 16 MiB takes seconds
  std::uint64_t poke_moved_ns = 100;         // a poke this much above twice an idle one (30 to 1100 ns) moved something
  std::uint64_t serve_ns = 50'000;           // and for so long the next nap waits
  std::uint64_t serve_limit_ns = 1'000'000;  // but no longer
  // After so long a wait a rank looks at what its peers are doing, then ever more seldom; from look_every_ns on it also
  // asks the system whether they are alive.
  std::uint64_t look_first_ns = 1'000'000;
  std::uint64_t look_every_ns = 100'000'000;
  unsigned polls_per_look =
      512;  // of a rank in a schedule, for queues between ranks of a node that have moved, or should
  std::uint64_t refusal_told_ns = 1'000'000'000;       // after so long it says which peers' calls were refused
  std::uint64_t launcher_patience_ns = 1'000'000'000;  // launchers end the job when a rank ends badly: they go first
};

inline constexpr Tuning kTuning{};

}  // namespace stretto
