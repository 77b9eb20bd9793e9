// SPDX-License-Identifier: BSD-3-Clause
// Measured constants, in one place. Unless a comment says otherwise, they come from a 2-core
// virtual machine: a Xeon at 2.5 GHz, 1 MiB of L2 each, 33 MiB of shared L3. "The EPYC" has Zen 5
// cores, 1 MiB of L2 each and 32 MiB of L3. `stretto bench` reproduces the measurements.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto {

struct Tuning {
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  // A message travels inside at most this many records; a longer one goes through a slot. A reader
  // knows where the next records will be, so it fetches them while it waits for the first. It
  // learns a slot's address only from a record.
  unsigned inline_records = 4;
  // The same for readers whose caches are far: three lines from there take longer than one slot
  // past the caches.
  unsigned inline_records_far = 2;
  // By the model of a node: the same for the boards of tiers and rails. One record is the most in
  // their channels, and on a board that more than `inline_records_readers` members read.
  unsigned inline_records_tier = 2;
  int inline_records_readers = 8;

  // Longer messages go in fragments of 1/parts of the message, at least `least` and at most `most`
  // bytes (or a slot). From the second fragment on, copying in and copying out overlap. The cost of
  // starting a copy differs by processor. On the EPYC, Allreduce and Reduce of 64 KiB to 4 MiB take
  // 1.4 times the bound with fragments of 8 KiB. With `fragments_amd` they take 1.1 times.
  struct Fragments {
    std::uint32_t parts, least, most;
    // The least length in calls in which every rank, or the root, copies all the time. No rank
    // would be idle in such calls, and shorter fragments cost turns.
    std::uint32_t least_busy = 0;
    bool operator==(const Fragments&) const = default;
  };
  Fragments fragments = {32, 4 << 10, 8 << 10};
  Fragments fragments_amd = {8, 4 << 10, 32 << 10, 32 << 10};

  // A lane is the ring of a process's payload slots. It is twice as long as a processor's L2,
  // between `lane_least` and `lane_most`, and has at least eight slots. If the L2 is unknown, the
  // lane has `lane_unknown` bytes. In a shorter lane the writer comes round to lines that still lie
  // in the reader's L2, and has to take them back. In a longer lane these lines have moved on to
  // the cache that both share. A reader's L2 that holds nothing else holds as much as it has room
  // for: so it is where one rank always sends. There, on the EPYC with an L2 of 1 MiB, Bcasts of 4
  // to 256 KiB take 0.65 of the time with 2 MiB, as against 1 MiB. With another root at each call
  // they take as long.
  std::size_t lane_least = 256 << 10, lane_most = 2 << 20, lane_unknown = 1 << 20;

  // The bytes left free between the slots of one message and those of the next, where readers are
  // near. A reader's processor prefetches lines beyond those that it reads. If these are the next
  // slot's, its writer has to take them back. On the EPYC, calls of 512 bytes to 4 KiB take 0.85 of
  // the time. This was measured on the EPYC only.
  std::size_t slot_gap = 0, slot_gap_amd = 2 << 10;

  // Loading a line that a reader has just written takes its writer `far_ns` or more where their
  // caches are far apart (shm/distance.hpp). Loading a line from the writer's own cache takes less
  // than `own_cache_ns`. On the EPYC it takes 10 to 50 ns within a core complex, more under load,
  // and 100 to 140 ns between complexes. This was measured on the EPYC only.
  std::uint64_t far_ns = kNever, far_ns_amd = 95, own_cache_ns = 10;
  std::uint32_t measured_every = 16;  // in records
  // Now and then a near line takes long. A far line often seems near: a writer that waits for its
  // reader all the time has just looked at the line.
  unsigned far_in_a_row = 2, near_in_a_row = 6;

  // Whether a message as long as a rank's share of the L3 is stored past the caches where it
  // arrives. On the EPYC, Gather, Allgather and Alltoall of 16 MiB then take 0.63 to 0.88 of the
  // time. Including the reading of the arrived data they take 0.86 to 0.96. Shorter messages take
  // up to 1.13 times as long. This was measured on the EPYC only. With fewer processors than ranks,
  // other ranks use the caches before the arrived data are read. There it pays from
  // `stores_past_crowded_bytes` on: calls take 0.75 to 0.95 of the time, reading included.
  bool stores_past = false, stores_past_amd = true;
  std::uint64_t stores_past_crowded_bytes = 64 << 10;

  // Copies of `lines_least` to `lines_most` bytes go by cache lines (base/copy.hpp). On the EPYC,
  // calls take up to 15% less time than with the memcpy of glibc 2.36. Up to 256 bytes there is no
  // difference. With 2 KiB calls take 8% more.
  std::size_t lines_least = 384, lines_most = 1536;

  // A reader that waits for a message too long for records fetches this much of its target
  // meanwhile. On the EPYC, Bcast of 1 to 4 KiB into uncached buffers takes 0.77 to 0.92 of the
  // time, and Reduce 0.79 to 0.94. For cached buffers it costs nothing.
  std::size_t fetched_bytes = 4 << 10;

  // From these lengths on readers copy straight out of the sender's memory, where that is possible.
  // With a processor for every rank, two overlapping copies are as fast as one copy by the kernel.
  // With fewer processors, half the copying is half the time. There are two exceptions: in a gather
  // one rank would do all of it, and in a bcast or allgather many readers share the copy in.
  //
  // On the EPYC the kernel's copy is so slow that Gather never gains. Scatter and Alltoall gain
  // only where the ranks would have to empty a lane again and again, more ranks taking turns. With
  // 4 ranks, Scatter of 64 to 512 KiB takes 0.65 to 0.9 of the time when it does not use single
  // copy. With 16 ranks, from 128 KiB on, it takes 1.05 to 1.4 of the time.
  struct SingleCopyFrom {
    std::uint64_t bcast, gather, scatter, allgather, alltoall;
  };
  SingleCopyFrom single_copy = {kNever, kNever, kNever, kNever, kNever};
  SingleCopyFrom single_copy_crowded = {kNever, 1 << 20, 64 << 10, kNever, 64 << 10};
  // These hold up to `single_copy_ranks` ranks. With more ranks the lengths for Scatter and
  // Alltoall shrink with the square of their number, down to `single_copy_least`.
  SingleCopyFrom single_copy_crowded_amd = {kNever, kNever, 1 << 20, kNever, 128 << 10};
  std::uint64_t single_copy_ranks = 4, single_copy_least = 64 << 10;
  std::size_t single_copy_piece_bytes = 1 << 20;  // read at once; then the reader drives the host MPI
  // At most this many readers copy from one rank's memory at a time; with two processors there are
  // never more. A reader that finds no place `single_copy_looks` times no longer asks, because
  // another reader may have died.
  unsigned single_copy_readers = 4;
  unsigned single_copy_looks = 256;

  // In reductions up to this length every rank combines the contributions on all ranks' boards.
  std::size_t flat_reduce_bytes = 4 << 10;

  // Up to this many members, each member of a Barrier writes one line that all read. With more, a
  // Barrier goes in rounds.
  int barrier_flat_ranks = 32;

  // From so many ranks of a node on, a communicator has tiers and rails (topo/groups.hpp): lowest
  // groups have at most `tier_members` ranks. Among up to `flat_ranks` ranks, vectors of up to
  // `flat_bytes` go another way. Reductions up to `tiers_reduce_bytes` go by tiers. All this is by
  // the model of a node (docs/model/node.md).
  int tiers_from_ranks = 9, tier_members = 8;
  int flat_ranks = 16;
  std::size_t flat_bytes = 128;
  std::size_t tiers_reduce_bytes = 32 << 10;
  // With fewer processors than ranks, and more than `crowded_flat_ranks`, short vectors go by rank
  // 0, and `crowded_owners` ranks combine slices of long ones. That makes no line for each pair.
  int crowded_flat_ranks = 8, crowded_owners = 16;
  // Longer vectors than these go by rails; those of a Reduce_scatter always do among more than
  // `flat_ranks` ranks. The highest groups exchange slices as they are, if these have at most
  // `rails_flat_bytes` together.
  std::size_t rails_reduce_bytes = 128, rails_scatter_bytes = 2 << 10;
  std::size_t rails_flat_bytes = 1 << 10;
  // Of this many ranks on, parts go by tiers to the root: those of up to so many bytes, and those
  // from `from` to `to`. In between, a record has a part, and what a leader has is longer.
  struct GatherTiers {
    int least_ranks;
    std::size_t short_to, from, to;
  } gather_tiers = {64, 32, 65, 1 << 10};
  // Of this many ranks on, parts of an Allgather go by rails up to `rails_gather_bytes`, and from
  // `from` bytes to `to`; to `to_uneven` where an L3 cache has several groups or some ranks have no
  // slice. In between, one slot that all read takes less than one on each level. Longer ones would
  // be copied once more where no cache holds them. Parts of an Alltoall do up to
  // `rails_alltoall_bytes`.
  int rails_gather_ranks = 32, rails_alltoall_ranks = 24;
  std::size_t rails_gather_bytes = 64, rails_alltoall_bytes = 16;
  struct RailsGatherLong {
    std::size_t from, to, to_uneven;
  } rails_gather_long = {512, 4 << 10, 1 << 10};
  // Bcasts of few bytes go by tiers where many ranks would read one board, in particular from a
  // cache that they share. Long ones do so from these lengths on, between sockets and within one.
  struct BcastTiers {
    int least_ranks;
    std::size_t short_bytes;
  };
  BcastTiers bcast_tiers = {96, 128}, bcast_tiers_wide = {32, 512};
  std::size_t bcast_far_bytes = 4 << 10, bcast_long_bytes = 16 << 10;

  // The members of a communicator agree on what serves it after this many collectives in which
  // every rank waits for all others anyway. They agree after `agree_calls_of_any_kind` of any kind
  // at the latest. Until then the communicator's calls go to the MPI, so a short-lived communicator
  // costs no agreement.
  std::uint32_t agree_calls_world = 1, agree_calls = 4;
  std::uint32_t agree_calls_of_any_kind = 257;
  // A member that waits for others to attach or to connect looks again after `opening_pause_ns`.
  // Descriptors that come by mail have `mail_patience_ns`: a member that lacks one then declines.
  std::uint64_t opening_pause_ns = 20'000;
  std::uint64_t mail_patience_ns = 5'000'000'000;

  // The ranks of a node look whether all of them have the library (engine/attendance.hpp). A rank
  // looks again after the first of these pauses, then less and less often, at last after the second
  // one. Where ranks may not have come to MPI_Init yet, the rank that counts waits
  // `attendance_patience_ns` for them.
  std::uint64_t attendance_pause_ns = 20'000, attendance_longest_pause_ns = 1'000'000;
  std::uint64_t attendance_patience_ns = 2'000'000'000;

  // Stretto reads the granted processor time again when its figure is this old. Reading takes some
  // 100 us, and milliseconds where many file systems are mounted.
  std::uint64_t quota_again_ns = 10'000'000'000;

  // A schedule has at most `schedule_most_segments` segments. select/across_nodes.cpp says which
  // schedule is taken when. Its rows for all nodes were measured or simulated with up to
  // `schedule_few_nodes` (docs/results/simulated.md). Those for more nodes were timed with up to
  // `schedule_automatic_nodes` (experiment 41). There a communicator has at most
  // `schedule_automatic_ranks`, as each of its ranks keeps some 72 bytes for each.
  int schedule_most_segments = 512;
  int schedule_few_nodes = 64, schedule_automatic_nodes = 16'384, schedule_automatic_ranks = 16'384;
  int schedule_few_ranks = 32;  // the measured rows hold up to here; for more ranks, simulated ones
  // Where an Alltoallv goes by carriers, blocks up to this length do (coll/hierarchy/alltoall.cpp).
  std::uint64_t carried_bytes = 4 << 10;
  // Between nodes, messages up to `tcp_bytes` go by the communicator's own connections
  // (transport/tcp.hpp). They do so from the communicator's call number `tcp_calls` on: opening
  // takes some milliseconds, which short-lived communicators would not regain. Among more than
  // `tcp_ranks` members, only the leaders of nodes connect, if these are not more.
  std::uint32_t tcp_bytes = 16 << 10;
  std::uint64_t tcp_calls = 32;
  std::uint64_t tcp_calls_of_any_kind = 1024;  // later, if no call makes all ranks wait for one another
  int tcp_ranks = 64;
  // All connections of a communicator have so long to open. They are used if a round trip takes
  // less than `tcp_worth` per cent of the MPI's: the median of `tcp_trips`, after
  // `tcp_first_trips` that do not count. The best of `tcp_rounds` medians counts.
  std::uint64_t tcp_patience_ns = 1'000'000'000;
  std::uint64_t tcp_worth = 90;
  int tcp_trips = 24, tcp_first_trips = 4, tcp_rounds = 3;
  std::uint64_t tcp_tail_ns = 10'000'000;  // a connection that closes waits so long for a last byte
  std::uint32_t tcp_messages_per_ack = 4;
  std::uint32_t tcp_segment_bytes = 1400;     // fits an Ethernet frame; a receiver acknowledges more at once
  std::uint32_t tcp_looks_per_round = 4;      // one look in this many asks about all connections
  std::uint32_t tcp_looks_per_poke = 64;      // a look takes 0.3 us
  std::size_t scratch_kept_bytes = 16 << 20;  // bytes that a communicator keeps between calls

  // Waiting (shm/waiter.hpp), with a processor for every rank:
  std::uint32_t spin_bare = 100;    // looks without a pause: a flag on its way arrives within these
  std::uint32_t spin_total = 1000;  // looks before the rank drives the host MPI and reads the clock
  std::uint64_t spin_yield_after_ns = 50'000;
  // With fewer processors than ranks: the rank looks a little, then gives the processor away.
  std::uint32_t crowded_spins = 20;
  std::uint32_t crowded_steps_per_poke = 8;  // a poke may yield as well, and each yield costs a round of all ranks
  std::uint32_t crowded_seldom_until = 64;   // in steps
  std::uint64_t long_wait_ns = 1'000'000;
  std::uint32_t long_wait_steps_per_yield = 16;
  std::uint64_t nap_after_ns = 10'000'000;  // if shorter, readers would nap between a long Scatter's fragments
  std::uint64_t nap_limit_ns = 100'000;
  std::uint32_t nap_fraction = 16;           // a nap is this part of the time already waited
  std::uint32_t pokes_per_nap = 64;          // with one, a rendezvous of 16 MiB takes seconds
  std::uint64_t poke_moved_ns = 100;         // a poke this much above twice an idle one (30 to 1100 ns) moved something
  std::uint64_t serve_ns = 50'000;           // for so long after such a poke the rank does not nap
  std::uint64_t serve_limit_ns = 1'000'000;  // but it naps at the latest this long after its last nap
  // After a wait of `look_first_ns` a rank looks at what its peers are doing, then ever more
  // seldom. From `look_every_ns` on it also asks the system whether they are alive.
  std::uint64_t look_first_ns = 1'000'000;
  std::uint64_t look_every_ns = 100'000'000;
  // Polls of a rank in a schedule between two looks for queues within its node that have moved,
  // or should have.
  unsigned polls_per_look = 512;
  std::uint64_t refusal_told_ns = 1'000'000'000;  // after so long a rank says which peers' calls were refused
  // A launcher ends the job when a rank ends badly. Stretto waits so long for it.
  std::uint64_t launcher_patience_ns = 1'000'000'000;

  // Kind waiting (mpi/waits): tests of a wait before the processor is given away. A ring of
  // 4 ranks on 2 processors takes as long with 2 tests as with 40. A message of a rank that runs
  // comes within 20.
  std::uint32_t kind_looks = 20;
  // Whether the host yields in a function (mpi/waits/host_yields.hpp). `kind_watched_*`: which
  // calls are watched. `kind_switches`: so many switches of the processor decide.
  // `kind_most_held_ns`: a host that yields keeps the processor no longer between two switches.
  // `kind_held_calls`, `kind_held_ns`: a thread that has kept the processor in so many calls, or
  // for so long, while other threads did so too, decides sooner.
  std::uint32_t kind_watched_per_tick = 8, kind_watched_every = 31;
  std::uint64_t kind_switches = 16, kind_most_held_ns = 200'000, kind_held_ns = 4'000'000;
  std::uint32_t kind_held_calls = 4;

  // The thread that drives calls with requests while the program does not (mpi/requests): how
  // long it sleeps between two looks, also after it has moved something, how often it sleeps
  // without a call before it waits for one, and how long MPI_Finalize waits for such calls.
  std::uint64_t requests_nap_ns = 500'000;
  std::uint64_t requests_short_nap_ns = 50'000;
  unsigned requests_idle_naps = 20;
  std::uint64_t requests_finish_ns = 1'000'000'000;
  // Most bytes of contributions that a rank keeps for a function of the program.
  std::uint64_t requests_function_bytes = 8 << 20;

  // From how many received bytes on a call may return early (STRETTO_OVERLAP=on), and how many
  // bytes of pages are worth a guard. Guarding costs some 20 us and 25 us/MiB.
  std::uint64_t overlap_bytes = 256 << 10, overlap_least_guarded = 64 << 10;
};

inline constexpr Tuning kTuning{};

}  // namespace stretto
