// SPDX-License-Identifier: BSD-3-Clause
// What a rank has once. Private to src/engine.
#pragma once
#include <pthread.h>

#include <atomic>

#include "engine/engine.hpp"
#include "engine/settings.hpp"
#include "engine/watchdog.hpp"
#include "shm/journal.hpp"
#include "shm/lane.hpp"
#include "shm/segment.hpp"
#include "shm/team.hpp"

namespace stretto::engine {

struct Comm {
  Process* process = nullptr;
  shm::Team* team = nullptr;
  std::uint64_t block_offset = 0;
  std::uint64_t announced_bytes = 0;  // of our segment that all members have mapped
  std::uint32_t collectives = 0;
  bool noted = false;       // its calls are written to the journal
  bool types_told = false;  // the user has been warned of datatypes that do not match
  Comm* next = nullptr;     // in Process::active, later in leaving
};

// Peers' segments, by identity. Once used they stay attached as long as the process lives:
// communicators come and go among the same few processes, and a lease may ask a peer's ack line
// long after its communicator was freed. One that has grown is there several times.
struct Attachments {
  shm::Attachment* entries = nullptr;
  std::size_t count = 0;
  std::size_t capacity = 0;

  // The longest of that segment.
  [[nodiscard]] shm::Attachment* find(std::uint64_t identity) const;
  bool add(const shm::Attachment& attachment);
  void drop_unused();
};

// What the system says of this process.
struct SystemFacts {
  std::uint64_t host = 0, pid_namespace = 0;
  int pid = 0;
  sys::Cpus cpus{};
  std::uint64_t read_ns = 0;  // when; 0: not yet
};

// The agreements in which this process has attached all other members, by their generations: whose
// members all were in one of them need not try again. The one with the most members stays, the
// others make way.
struct Meetings {
  static constexpr int kKept = 4;
  std::uint64_t of[kKept] = {};
  int most = 0;              // members of the first
  int last = 0;              // the newest of the others
  bool was_refused = false;  // in one of all agreements: the memory of a peer

  void add(std::uint64_t generation, int members);
  void forget();
};

struct Process {
  Settings settings;
  HostProgress progress;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards all below but the lanes
  shm::Segment segment;
  std::atomic<bool> has_segment{false};  // and all that belongs to it is in place: asked without the lock
  std::uint64_t probe = 0;               // the segment's identity, for peers that try to read our memory
  shm::Lanes lanes;
  sys::SharedCache l3;  // known as soon as there is a segment, if it matters
  Attachments attachments;
  Meetings meetings;
  SystemFacts facts;
  shm::Journal journal;                 // its notes are written without the lock
  shm::Tally early[kCollectives] = {};  // counts of calls before there is a segment
  Watchdog watchdog;
  Comm* active = nullptr;
  Comm* leaving = nullptr;                 // freed, but peers may still read, or slots still be on lease
  std::atomic<unsigned> ranks_on_node{0};  // asked without the lock
  unsigned agreements = 0;                 // under way
  std::size_t announced = 0;               // of its segment, to those of the meetings
  std::uint64_t instances = 0;             // communicators that this process gave a generation to
};

class Locked {
 public:
  explicit Locked(Process& process) : process_(process) { pthread_mutex_lock(&process_.lock); }
  ~Locked() { pthread_mutex_unlock(&process_.lock); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Process& process_;
};

// Another thread may be making it.
inline bool has_segment(const Process& process) { return process.has_segment.load(std::memory_order_acquire); }
// The facts, brought up to date where that can change what is decided. Call with the lock held.
const SystemFacts& system_facts(Process& process);
// Makes this process' segment, unless it exists. Call with the lock held.
Status make_segment(Process& process);
// Address space that this process still wants for communicators of `ranks` ranks, as long as all
// segments are as short as they begin; of what its limit leaves, half is the program's.
std::uint64_t address_space_wanted(const Process& process, int ranks);
// What serves no collective of its own only carries messages of schedules, which nobody looks on at.
inline bool is_listed(const Comm& comm) { return comm.collectives != 0; }
// A communicator joins the chain that observers follow, and leaves it; `before` is the one that names it, null: it is
// the newest.
void list(Comm& comm);
void unlist(const Comm& comm, const Comm* before);

// How this process waits where there are fewer processors than ranks that may run (crowded), or not.
shm::WaitPolicy wait_policy(const Process& process, bool crowded);

// Gives back what freed communicators held and peers have left. Call with the lock held.
void reap(Process& process);

}  // namespace stretto::engine
