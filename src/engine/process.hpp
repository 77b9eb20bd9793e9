// SPDX-License-Identifier: BSD-3-Clause
// What a rank has once. Private to src/engine.
#pragma once
#include <pthread.h>

#include <atomic>

#include "base/array.hpp"
#include "base/locked.hpp"
#include "coll/shm/selection.hpp"
#include "engine/engine.hpp"
#include "engine/group_sets.hpp"
#include "engine/settings.hpp"
#include "select/shm_rules.hpp"
#include "shm/journal.hpp"
#include "shm/lane.hpp"
#include "shm/message.hpp"
#include "shm/segment.hpp"
#include "shm/team.hpp"
#include "topo/hosts.hpp"

namespace stretto::engine {

class Watchdog;

// Where a rank has the directories of its groups, by plan and level: offsets in its segment. 0:
// nowhere.
struct TierBlocks {
  static constexpr int kLevels = topo::Groups::kMostLevels;
  std::uint64_t placed[kLevels]{}, deep[kLevels]{}, ranked[kLevels]{}, rails[kLevels]{};

  // Calls visit(offset, members) with the most members that each may have among so many ranks.
  template <class Visit>
  void each(int ranks, Visit visit) {
    for (int level = 0; level < kLevels; ++level) {
      const int most = level == 0 ? topo::Groups::kMostRanks : topo::Groups::kMostLeaders;
      visit(placed[level], most);
      visit(deep[level], most);
      visit(ranked[level], most);
      visit(rails[level], level == 0 ? most : ranks);
    }
  }
};

// The teams of a communicator's groups, by plan.
struct CommTiers {
  explicit CommTiers(GroupSets& sets)
      : of(&sets), placed(sets.placed), deep(sets.deep), ranked(sets.ranked), rails(sets.rails) {}

  GroupSets* of;
  coll_shm::Tiers placed, deep, ranked, rails;
  TierBlocks blocks;
};

struct Comm {
  Process* process = nullptr;
  shm::Team* team = nullptr;
  CommTiers* tiers = nullptr;        // null: there are none
  coll_shm::TierChoice tier_choice;  // of those
  std::uint64_t block_offset = 0;
  std::uint64_t place_offset = 0;
  std::uint64_t announced_bytes = 0;  // how much of our segment all members have mapped
  std::uint32_t collectives = 0;
  bool noted = false;       // its calls are written to the journal
  bool crowded = false;     // fewer processors than ranks that may run
  bool types_told = false;  // the user has been warned of datatypes that do not match
  select::ShmRules rules;   // which algorithms they name
  const Neighborhood* neighborhood = nullptr;
  Comm* next = nullptr;  // in Process::active, later in leaving
};

// Peers' segments, by identity. A used segment stays attached as long as the process lives, for
// two reasons. Programs make and free communicators among the same few processes. And a lease may
// read a peer's ack line long after its communicator was freed. A segment that has grown is in
// the list several times.
struct Attachments {
  shm::Attachment* entries = nullptr;
  std::size_t count = 0;
  std::size_t capacity = 0;

  // The longest attachment of that segment.
  [[nodiscard]] shm::Attachment* find(std::uint64_t identity) const;
  bool add(const shm::Attachment& attachment);
  void drop_unused();
};

// A process of this job on this host, which the watchdog can look at before a communicator has it.
struct Neighbour {
  ProcessAddress address;
  shm::Attachment seen;
  bool tried = false;

  // Null: it cannot be seen.
  const shm::Attachment* attach();
};

// What the operating system says of this process.
struct SystemFacts {
  std::uint64_t host = 0, pid_namespace = 0;
  int pid = 0;
  sys::Cpus cpus{};
  std::uint64_t read_ns = 0;  // when; 0: not yet
  topo::Binding binding;
  std::uint64_t bound_by = 0;  // the mask of processors of which the binding was found; 0: none
};

// The generations of agreements in which this process has attached all other members. If all
// members of a communicator were in one of these, they need not try to attach again. The agreement
// with the most members stays. The others are replaced, the oldest first.
struct Meetings {
  static constexpr int kKept = 4;
  std::uint64_t of[kKept] = {};  // the one with the most members first
  int most = 0;                  // members of the first
  int last = 0;                  // index of the newest of the others
  bool was_refused = false;      // in some agreement the system refused to read a peer's memory

  void add(std::uint64_t generation, int members);
  void forget();
};

struct Process {
  Settings settings;
  HostProgress progress;
  Sources sources;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards all below except the lanes
  shm::Segment segment;
  std::atomic<bool> has_segment{false};  // the segment and all that belongs to it are ready; read without the lock
  std::uint64_t probe = 0;               // the segment's identity, for peers that try to read our memory
  shm::Lanes lanes{shm::kMessageStates};
  sys::SharedCache l3;  // set with the segment, if streaming depends on it
  Attachments attachments;
  Array<Neighbour> neighbours;
  Meetings meetings;
  SystemFacts facts;
  shm::Journal journal;                 // writes its notes without the lock
  shm::Tally early[kCollectives] = {};  // counts of calls before there is a segment
  Watchdog* watchdog = nullptr;         // null: there is none
  GroupSets* group_sets = nullptr;
  Comm* active = nullptr;
  Comm* leaving = nullptr;                 // freed, but peers may still read them, or slots are still on lease
  std::atomic<unsigned> ranks_on_node{0};  // read without the lock
  const topo::Hosts* hosts = nullptr;      // of the job's ranks, if calls may return early
  unsigned agreements = 0;                 // how many are under way
  std::size_t announced = 0;               // how many bytes of the segment the members of the meetings know
  std::uint64_t instances = 0;             // how many communicators got their generation from this process
};

// Visits the segments of the peers that this process can see. The caller holds the lock.
template <class Visit>
void each_peer(Process& process, const Visit& visit) {
  for (std::size_t i = 0; i < process.attachments.count; ++i) visit(process.attachments.entries[i]);
  for (Neighbour& each : process.neighbours) {
    if (process.attachments.find(each.address.identity) != nullptr) continue;
    if (const shm::Attachment* const seen = each.attach()) visit(*seen);
  }
}

// Asked without the lock: another thread may be making the segment.
inline bool has_segment(const Process& process) { return process.has_segment.load(std::memory_order_acquire); }
// The facts. Those that may have changed and on which decisions depend are read again. The
// caller holds the lock.
const SystemFacts& system_facts(Process& process);
// Where this process is bound. The caller holds the lock.
topo::Binding binding_of(Process& process);
// Makes this process's segment, unless it exists. The caller holds the lock.
Status make_segment(Process& process);
// How much more address space this process needs for communicators of `ranks` ranks, while all
// segments have their first length. Stretto takes at most half of what the process's limit leaves:
// the other half is the program's.
std::uint64_t address_space_wanted(const Process& process, int ranks);
// A communicator that serves no collective carries messages of schedules: observers do not see it.
inline bool is_listed(const Comm& comm) { return comm.collectives != 0; }
// A communicator joins or leaves the chain that observers follow. `before` is the one that leads to
// it, null if it is the newest.
void list(Comm& comm);
void unlist(const Comm& comm, const Comm* before);

// Lets this thread say where its call comes from, once a call.
void locate_call(Process& process);

// How this process waits. `crowded`: there are fewer processors than ranks that may run.
shm::WaitPolicy wait_policy(const Process& process, bool crowded);

// Gives back the block of a communicator of `size` members, and the place of its channels, if there
// is one. The caller holds the lock.
void release_lines(Process& process, std::uint64_t block_offset, std::uint64_t place_offset, int size);
// Gives back the blocks of the tiers of a communicator of so many ranks. The caller holds the lock.
void release_tiers(Process& process, TierBlocks& blocks, int ranks);
// Gives back what a communicator has of this process's own memory.
void destroy(Comm* comm);
// Releases the memory of freed communicators that no peer reads any more. The caller
// holds the lock.
void reap(Process& process);

}  // namespace stretto::engine
