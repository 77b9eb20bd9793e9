// SPDX-License-Identifier: BSD-3-Clause
// Exchanges 0 and 1: where members are, who they are, and whether each can take part.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/agreement.hpp"

namespace stretto::engine {
namespace {

// What a member says before its Introduction, where members may be on several nodes.
struct Place {
  std::uint64_t host;
  std::uint64_t layout_version;
};

// The reason with the numbers of its first occurrence, because a user wants to know how high the
// limit must be. The text is static, because reasons outlive engine processes.
const char* limit_reason(const Introduction& member) {
  static constinit char text[200] = "";
  static constinit std::atomic<int> written{0};  // 1: being written, 2: written
  const auto mib = [](std::uint64_t bytes) { return static_cast<unsigned long long>(bytes >> 20); };
  int expected = 0;
  if (written.compare_exchange_strong(expected, 1)) {
    std::snprintf(text, sizeof text, "%s: RLIMIT_AS is %llu MiB, %llu MiB of that are free, twice %llu MiB are wanted",
                  "a member's limit of address space (ulimit -v) leaves no room for the members' shared memory",
                  mib(member.address_limit), mib(member.address_left), mib(member.address_wanted) + 1);
    written.store(2, std::memory_order_release);
  }
  return written.load(std::memory_order_acquire) == 2 ? text : words_of(Reason::address_space);
}

}  // namespace

// ---- Exchange 0 ----

bool Agreement::is_on_one_node() {
  const Place mine = [&]() -> Place {
    const Locked locked(process_.lock);
    return {system_facts(process_).host, shm::kLayoutVersion};
  }();
  auto* const all = static_cast<Place*>(std::malloc(bootstrap_.size * sizeof(Place)));
  if (!all) std::abort();  // as in introduce()
  bool fine = bootstrap_.allgather(bootstrap_.context, &mine, all, sizeof mine);
  if (!fine) decline(bootstrap_.rank, Reason::none);
  for (int r = 0; fine && r < bootstrap_.size; ++r) {
    if (all[r].layout_version != mine.layout_version)
      fine = decline(r, Reason::version);
    else if (all[r].host != all[0].host)
      fine = decline(r, Reason::other_node);
  }
  std::free(all);
  return fine;
}

// ---- Exchange 1 ----

// Whether the address space has room for this process's segment and its peers'. It is
// asked before anything is mapped, so that nothing must be undone. Half of what the limit
// leaves is the program's.
bool Agreement::has_room() {
  mine_.address_wanted = address_space_wanted(process_, bootstrap_.size);
  if (mine_.address_wanted == 0) return true;
  const sys::AddressSpace space = sys::address_space();
  mine_.address_limit = space.limit;
  mine_.address_left = space.left;
  return mine_.address_wanted <= space.left / 2;
}

// Makes our lines ready. They must be so before the exchange, because peers read them after it.
void Agreement::prepare() {
  const Locked locked(process_.lock);
  reap(process_);
  if (!has_room()) {
    mine_.reason = Reason::address_space;
    return;
  }
  const Status made = make_segment(process_);
  if (made != Status::ok) {
    mine_.reason = made == Status::unavailable ? Reason::no_memfd
                   : made == Status::invalid   ? Reason::too_small
                                               : Reason::no_memory;
    return;
  }
  mine_.identity = process_.segment.identity();
  mine_.instance = (process_.segment.identity() ^ ++process_.instances << 1) | 1;  // never 0
  mine_.descriptor = process_.segment.descriptor();
  mine_.slot_bytes = process_.settings.slot_bytes;
  mine_.fragments = process_.settings.fragments;
  process_.probe = mine_.identity;
  mine_.probe = reinterpret_cast<std::uintptr_t>(&process_.probe);
  const shm::BlockLayout layout{static_cast<unsigned>(bootstrap_.size)};
  void* const memory = std::malloc(sizeof(Comm));
  if (memory) comm_ = new (memory) Comm;
  if (comm_ && process_.lanes.open_first()) mine_.block_offset = process_.segment.block_allocate(layout.bytes());
  if (mine_.block_offset != 0) comm_->place_offset = process_.segment.place_allocate(layout.place_bytes());
  process_.lanes.reserve_apart();
  const bool reserved = mine_.block_offset != 0 && comm_->place_offset != 0 && reserve_tiers();
  const std::size_t extent = process_.segment.extent(shm::rings_bytes(layout.size));
  mine_.segment_bytes = extent > process_.announced ? extent : process_.announced;
  // Members of earlier agreements have mapped less of the segment.
  if (mine_.segment_bytes != process_.announced) process_.meetings.forget();
  process_.announced = mine_.segment_bytes;
  if (reserved) {
    comm_->process = &process_;
    comm_->block_offset = mine_.block_offset;
    char* const block = process_.segment.base() + mine_.block_offset;
    comm_->team =
        shm::Team::create(bootstrap_.rank, bootstrap_.size, mine_.instance, block, process_.lanes.team_memory());
  }
  if (!comm_ || !comm_->team) mine_.reason = Reason::no_memory;
}

// Which tiers this rank is in follows from what members say in this exchange. So it makes blocks
// ready for all that it may be in, and gives the others back.
bool Agreement::reserve_tiers() {
  mine_.tier_members = process_.settings.tier_members;
  mine_.tiers_wanted = process_.settings.tiers_from_ranks != kTuning.tiers_from_ranks;
  // A watchdog says for which ranks a schedule waits. Tiers do not tell.
  const bool wants = mine_.collectives != 0 || (serves_node_ && process_.settings.watchdog_seconds == 0);
  if (!wants || bootstrap_.size < process_.settings.tiers_from_ranks) return true;
  mine_.binding = binding_of(process_);
  bool all = true;
  mine_.blocks.each(bootstrap_.size, [&](std::uint64_t& offset, int members) {
    const auto most = static_cast<unsigned>(members);
    if (all) all = (offset = process_.segment.block_allocate(shm::Directory::bytes(most))) != 0;
    if (all) shm::Team::reset_tier(process_.segment.base() + offset, most);
  });
  return all;
}

bool Agreement::introduce(std::uint32_t wanted) {
  all_ = static_cast<Introduction*>(std::malloc(bootstrap_.size * (sizeof(Introduction) + sizeof *words_)));
  if (!all_) std::abort();  // without these few kilobytes nothing can be agreed, and peers must not hang
  words_ = reinterpret_cast<std::uint32_t*>(all_ + bootstrap_.size);
  mine_.collectives = wanted;
  prepare();
  const SystemFacts facts = [&] {
    const Locked locked(process_.lock);
    std::memcpy(mine_.meetings, process_.meetings.of, sizeof mine_.meetings);
    mine_.was_refused = process_.meetings.was_refused;
    return system_facts(process_);
  }();
  const sys::Cpus& cpus = facts.cpus;
  mine_.host = facts.host;
  mine_.pid_namespace = facts.pid_namespace;
  mine_.pid = facts.pid;
  mine_.layout_version = shm::kLayoutVersion;
  mine_.mask_hash = cpus.mask_hash;
  mine_.cpus = cpus.quota < cpus.count ? static_cast<std::uint32_t>(std::ceil(cpus.quota)) : cpus.count;
  mine_.cpus_online = cpus.online;
  mine_.ranks_on_node = process_.ranks_on_node;
  mine_.check = process_.settings.check;
  mine_.single_copy = process_.settings.single_copy != SingleCopyChoice::off;
  if (!bootstrap_.allgather(bootstrap_.context, &mine_, all_, sizeof mine_)) {
    return decline(bootstrap_.rank, Reason::none);
  }
  return judge_hellos();
}

bool Agreement::judge_hellos() {
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (all_[r].layout_version != shm::kLayoutVersion) return decline(r, Reason::version);
    if (all_[r].reason == Reason::address_space)
      verdict_ = {r, limit_reason(all_[r])};
    else if (all_[r].reason != Reason::none)
      decline(r, all_[r].reason);
    if (all_[r].reason != Reason::none) return false;
    if (all_[r].host != all_[0].host) return decline(r, Reason::other_node);
  }
  return true;
}

// Whether all members were in one earlier agreement, and none was refused single copy if all want
// it. All members find the same.
bool Agreement::have_met() const {
  bool all_want = true;
  for (int r = 0; r < bootstrap_.size; ++r) all_want = all_want && all_[r].single_copy != 0;
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (all_want && all_[r].was_refused != 0) return false;
  }
  for (const std::uint64_t meeting : all_[0].meetings) {
    const auto was_there = [&](const Introduction& member) {
      bool found = false;
      for (const std::uint64_t other : member.meetings) found = found || other == meeting;
      return found;
    };
    bool together = meeting != 0;
    for (int r = 1; r < bootstrap_.size && together; ++r) together = was_there(all_[r]);
    if (together) return true;
  }
  return false;
}

}  // namespace stretto::engine
