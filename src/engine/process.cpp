// SPDX-License-Identifier: BSD-3-Clause
#include "engine/process.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/policy.hpp"
#include "observe/process_info.hpp"

namespace stretto::engine {

shm::Attachment* Attachments::find(std::uint64_t identity) const {
  shm::Attachment* longest = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    if (entries[i].identity == identity && (!longest || entries[i].bytes > longest->bytes)) longest = &entries[i];
  }
  return longest;
}

void Attachments::drop_unused() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (entries[i].used) {
      entries[kept++] = entries[i];
    } else {
      shm::attachment_unmap(&entries[i]);
    }
  }
  count = kept;
}

bool Attachments::add(const shm::Attachment& attachment) {
  if (count == capacity) {
    const std::size_t wanted = capacity == 0 ? 16 : 2 * capacity;
    auto* grown = static_cast<shm::Attachment*>(std::realloc(entries, wanted * sizeof(shm::Attachment)));
    if (!grown) return false;
    entries = grown;
    capacity = wanted;
  }
  entries[count++] = attachment;
  return true;
}

void Meetings::forget() {
  std::fill(std::begin(of), std::end(of), 0);
  last = most = 0;
}

void Meetings::add(std::uint64_t generation, int members) {
  if (members > most) {
    most = members;
    of[0] = generation;
    return;
  }
  last = last % (kKept - 1) + 1;
  of[last] = generation;
}

const SystemFacts& system_facts(Process& process) {
  SystemFacts& facts = process.facts;
  const std::uint64_t now_ns = sys::now_ns();
  if (facts.host == 0) facts.host = sys::host_id();  // 0 means unknown, so Stretto asks again
  if (facts.pid_namespace == 0) facts.pid_namespace = sys::pid_namespace();
  if (facts.pid == 0) facts.pid = sys::process_id();
  if (facts.read_ns == 0 || now_ns - facts.read_ns >= kTuning.quota_again_ns) {
    facts.cpus = sys::usable_cpus();
    facts.read_ns = now_ns;
  } else {
    sys::affinity_again(&facts.cpus);
  }
  return facts;
}

topo::Binding binding_of(Process& process) {
  if (process.settings.binding != nullptr) return *process.settings.binding;
  SystemFacts& facts = process.facts;
  const std::uint64_t mask = system_facts(process).cpus.mask_hash;
  if (facts.bound_by == mask) return facts.binding;
  facts.bound_by = mask;
  return facts.binding = topo::binding_of(sys::cpu_place());
}

namespace {

std::size_t lanes_bytes(const Process& process) {
  return shm::Lanes::area_bytes(slots_of(process.settings), process.settings.slot_bytes, process.lanes.wanted());
}

// The segment is shorter if the address space of the process is limited.
std::size_t segment_bytes(const Process& process) {
  constexpr std::uint64_t kPart = 32, kUnit = 1 << 20;
  const std::uint64_t left = sys::address_space().left, least = shm::Segment::least_extent(lanes_bytes(process));
  return std::min<std::uint64_t>(process.settings.segment_bytes, std::max(left / kPart, least) / kUnit * kUnit + kUnit);
}

observe::ProcessInfo process_info_of(const Settings& settings) {
  observe::ProcessInfo info{settings.job, settings.job_rank, settings.job_ranks, "", ""};
  std::snprintf(info.version, sizeof info.version, "%s", settings.version);
  char host[sys::kHostNameBytes];
  sys::host_name(host, sizeof host);
  const std::size_t bytes = strnlen(host, sizeof info.host - 1);
  std::memcpy(info.host, host, bytes);
  return info;
}

}  // namespace

std::uint64_t address_space_wanted(const Process& process, int ranks) {
  const std::size_t peers = static_cast<std::size_t>(ranks) - 1, there = process.attachments.count;
  const std::uint64_t missing = peers > there ? peers - there : 0;
  return (has_segment(process) ? 0 : segment_bytes(process)) +
         missing * shm::Segment::least_extent(lanes_bytes(process));
}

Status make_segment(Process& process) {
  if (has_segment(process)) return Status::ok;
  const Settings& s = process.settings;
  const unsigned slots = slots_of(s), lanes = process.lanes.wanted();
  const Status status = process.segment.create(segment_bytes(process), lanes_bytes(process));
  if (status != Status::ok) return status;
  shm::Ledger& ledger = process.segment.ledger();
  std::memcpy(ledger.of, process.early, sizeof ledger.of);
  process.lanes.init(&process.segment, slots, s.slot_bytes, slot_gap(), lanes);
  if (past_by_l3(s.streaming)) process.l3 = sys::l3_cache();
  if (process.sources.modules != nullptr) process.segment.call_sites().modules.follow(*process.sources.modules);
  process.journal.attach(process.segment.notes(), &ledger.activity);
  observe::process_info_put(process.segment, process_info_of(s));
  process.has_segment.store(true, std::memory_order_release);  // pairs with has_segment
  return Status::ok;
}

void list(Comm& comm) {
  shm::Atomic<std::uint64_t>& newest = comm.process->segment.ledger().activity.communicators;
  comm.team->calls().list_next(newest.load_relaxed());
  newest.store_release(comm.block_offset + shm::BlockLayout::progress_line());
}

// An observer that reads the line of the communicator that leaves still finds the next one in it,
// until its block serves another communicator.
void unlist(const Comm& comm, const Comm* before) {
  const std::uint64_t next = comm.team->calls().listed_next();
  if (before) return before->team->calls().list_next(next);
  comm.process->segment.ledger().activity.communicators.store_release(next);
}

void release_lines(Process& process, std::uint64_t block_offset, std::uint64_t place_offset, int size) {
  const shm::BlockLayout layout{static_cast<unsigned>(size)};
  process.segment.block_release(block_offset, layout.bytes());
  if (place_offset != 0) process.segment.place_release(place_offset, layout.place_bytes());
}

void release_tiers(Process& process, TierBlocks& blocks, int ranks) {
  blocks.each(ranks, [&](std::uint64_t& offset, int members) {
    if (offset != 0) process.segment.block_release(offset, shm::Directory::bytes(static_cast<unsigned>(members)));
    offset = 0;
  });
}

void destroy(Comm* comm) {
  shm::Team::destroy(comm->team);
  if (comm->tiers != nullptr) {
    group_sets_give_back(comm->process->group_sets, comm->tiers->of);
    comm->tiers->~CommTiers();
  }
  std::free(comm->tiers);
  comm->~Comm();
  std::free(comm);
}

void reap(Process& process) {
  Comm** link = &process.leaving;
  while (*link) {
    Comm* comm = *link;
    if (comm->block_offset != 0 && comm->team->drained()) {
      process.segment.ledger().departures.add(comm->team->generation(), comm->team->calls().made());
      comm->team->calls().unlist();
      comm->team->each_ring(
          [&](std::uint64_t offset, std::size_t bytes) { process.segment.block_release(offset, bytes); });
      release_lines(process, comm->block_offset, comm->place_offset, comm->team->size());
      if (comm->tiers != nullptr) release_tiers(process, comm->tiers->blocks, comm->team->size());
      comm->block_offset = 0;
    }
    // A lane may still hold a lease of this communicator. The lane's next user drops it.
    if (comm->block_offset == 0 && !comm->team->has_leases()) {
      *link = comm->next;
      destroy(comm);
    } else {
      link = &comm->next;
    }
  }
}

// Spinning pays only if every rank that may run has a processor.
shm::WaitPolicy wait_policy(const Process& process, bool crowded) {
  shm::WaitPolicy policy;
  if (has_segment(process)) policy.activity = &process.segment.ledger().activity;
  policy.host = process.progress.context;
  policy.poke = process.progress.poke;
  policy.poke_every = process.progress.every == 0 ? 1 : process.progress.every;
  policy.has_windows = process.progress.has_windows;
  policy.locator = const_cast<Process*>(&process);
  policy.locate = [](void* self) { locate_call(*static_cast<Process*>(self)); };
  const WaitMode mode = wait_mode(process.settings.wait, crowded);
  if (mode == WaitMode::spin) return policy;
  policy.crowd();
  if (mode == WaitMode::nap) policy.nap_after_ns = 0;
  return policy;
}

void process_want_lanes_apart(Process& process) { process.lanes.want_apart(); }
std::uint64_t process_calls_without_lane(const Process& process) { return process.lanes.refused(); }

void process_set_concurrent(Process& process, bool concurrent) {
  process.lanes.set_concurrent(concurrent);
  process.journal.set_concurrent(concurrent);
}

bool process_follow_modules(Process& process) {
  if (pthread_mutex_trylock(&process.lock) != 0) return false;
  if (has_segment(process)) process.segment.call_sites().modules.follow(*process.sources.modules);
  pthread_mutex_unlock(&process.lock);
  return true;
}

void locate_call(Process& process) {
  shm::ThisCall& call = shm::t_call;
  if (call.located || call.note == 0 || process.sources.locate == nullptr || !has_segment(process)) return;
  call.located = true;
  shm::SourceLine line;
  if (process.sources.locate(call.caller, &line)) process.segment.call_sites().lines.write(call.note, line);
}

shm::Tally* process_tally(Process& process) {
  return has_segment(process) ? process.segment.ledger().of : process.early;
}

namespace {
bool is_noted(const Process& process) {
  return (process.settings.check != 0 || process.settings.watchdog_seconds != 0) && has_segment(process);
}
}  // namespace

std::uint64_t process_note_agreement(Process& process, Collective collective, std::uint64_t communicator, int size) {
  if (!is_noted(process)) return 0;
  return process.journal.begin(shm::kInAgreement, communicator << 8 | static_cast<std::uint64_t>(collective),
                               {static_cast<std::uint64_t>(size)});
}

std::uint64_t process_note(Process& process, Collective collective, bool by_schedule) {
  shm::t_call.note = 0;
  if (!is_noted(process)) return 0;
  const std::uint64_t note =
      process.journal.begin(by_schedule ? shm::kBySchedule : shm::kByHost, static_cast<std::uint64_t>(collective), {});
  // Within the MPI the thread cannot say later where it is.
  if (!by_schedule && process.settings.watchdog_seconds != 0) locate_call(process);
  return note;
}

void process_note_left(Process& process, std::uint64_t note) {
  if (note == 0) return;
  process.journal.move(note, shm::kByHost);
  if (process.settings.watchdog_seconds != 0) locate_call(process);
}

void process_note_end(Process& process, std::uint64_t note) {
  if (note != 0) process.journal.end(note, shm::Progress::ended);
}

ProcessAddress process_address(Process& process) {
  const Locked locked(process.lock);
  if (!has_segment(process)) return {};
  const SystemFacts& facts = system_facts(process);
  return {facts.host, facts.pid_namespace, process.segment.identity(), facts.pid, process.segment.descriptor()};
}

void process_meet(Process& process, const ProcessAddress& peer) {
  const Locked locked(process.lock);
  const SystemFacts& facts = system_facts(process);
  const bool is_near = peer.identity != 0 && peer.host == facts.host && peer.pid_namespace == facts.pid_namespace;
  if (is_near && peer.pid != facts.pid) (void)process.neighbours.push({peer, {}, false});
}

// The other process may have ended, and another one may have its number: its segment is another.
const shm::Attachment* Neighbour::attach() {
  if (tried) return seen.base != nullptr ? &seen : nullptr;
  tried = true;
  int fd = -1;
  const int pid = static_cast<int>(address.pid);
  if (sys::peer_descriptor_open(pid, static_cast<int>(address.descriptor), &fd) != 0) return nullptr;
  if (shm::attachment_map(fd, sys::memory_file_bytes(fd), address.identity, &seen) != Status::ok) return nullptr;
  seen.started = sys::start_time(pid);
  return &seen;
}

shm::HostCalls* process_host_calls(Process& process) {
  return process.settings.watchdog_seconds != 0 && has_segment(process) ? &process.segment.host_calls() : nullptr;
}

shm::DeferredNotes* process_deferred(Process& process, const topo::Hosts& hosts) {
  const Locked locked(process.lock);
  process.hosts = &hosts;
  return make_segment(process) == Status::ok ? &process.segment.deferred() : nullptr;
}

}  // namespace stretto::engine
