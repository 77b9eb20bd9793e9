// SPDX-License-Identifier: BSD-3-Clause
// What follows from the agreement for the communicator.
#include "engine/agreement.hpp"
#include "engine/policy.hpp"

namespace stretto::engine {
namespace {

// Whether there are fewer processors than ranks that may run. All members find the same.
bool is_crowded(const Introduction* all, int size) {
  auto ranks = static_cast<std::uint32_t>(size);
  std::uint32_t cpus = 0;
  for (int r = 0; r < size; ++r) {
    if (all[r].ranks_on_node > ranks) ranks = all[r].ranks_on_node;
    bool counted = false;
    for (int q = 0; q < r && !counted; ++q) counted = all[q].mask_hash == all[r].mask_hash;
    if (!counted) cpus += all[r].cpus;
  }
  if (cpus > all[0].cpus_online) cpus = all[0].cpus_online;
  return ranks > cpus;
}

// Memory for a longer ring, 0 if there is none. Peers have mapped what this process announced in
// the agreement, and can read nothing beyond.
std::uint64_t allocate_ring(void* context, std::size_t bytes) {
  const Comm& comm = *static_cast<Comm*>(context);
  const Locked locked(comm.process->lock);
  shm::Segment& segment = comm.process->segment;
  const std::uint64_t offset = segment.block_allocate(bytes);
  if (offset == 0 || offset + bytes <= comm.announced_bytes) return offset;
  segment.block_release(offset, bytes);
  return 0;
}

bool back_ring(void* context, std::uint64_t offset, std::size_t bytes) {
  Process& process = *static_cast<Comm*>(context)->process;
  const Locked locked(process.lock);
  return process.segment.back(offset, bytes);
}

}  // namespace

// Sets up the communicator by the members' words.
void Agreement::settle() {
  comm_->collectives = ~0u;
  std::uint64_t slot_bytes = all_[0].slot_bytes;
  std::uint32_t check = 0;
  for (int r = 0; r < bootstrap_.size; ++r) {
    comm_->collectives &= all_[r].collectives;
    if (all_[r].check > check) check = all_[r].check;
    if (all_[r].slot_bytes < slot_bytes) slot_bytes = all_[r].slot_bytes;
  }
  comm_->crowded = comm_->tier_choice.crowded = is_crowded(all_, bootstrap_.size);
  shm::Fragments fragments = all_[0].fragments;
  const auto slot = static_cast<std::uint32_t>(slot_bytes);
  if (comm_->crowded) {
    // No reader copies out while the writer copies in, so shorter pieces would only cost turns.
    fragments.least = fragments.most = slot;
  } else if (fragments.most > slot) {
    fragments.most = slot;
  }
  comm_->team->settle(all_[0].instance, wait_policy(process_, comm_->crowded), fragments);
  comm_->announced_bytes = mine_.segment_bytes;
  comm_->team->move_to({process_.segment.base(), comm_, allocate_ring, comm_->place_offset, back_ring});
  comm_->team->queues().far_from(far_from_ns(process_.settings.streaming));
  comm_->team->store_past_from(
      past_from_bytes(process_.settings.streaming, process_.l3, bootstrap_.size, comm_->crowded));
  const auto level = static_cast<shm::CheckLevel>(check);
  if (serves_node_) comm_->team->calls().set_check(std::min(level, shm::CheckLevel::usual));
  if (comm_->collectives == 0) return;
  comm_->team->calls().set_check(level);
  comm_->noted = check != 0 || process_.settings.watchdog_seconds != 0;
}

void Agreement::connect() {
  const Locked locked(process_.lock);
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (r == bootstrap_.rank) continue;
    shm::Attachment& peer = *process_.attachments.find(all_[r].identity);
    peer.used = true;
    comm_->team->connect(r, {peer.base, peer.base + all_[r].block_offset, all_[r].instance, peer.started});
  }
  if (process_.ranks_on_node < static_cast<unsigned>(bootstrap_.size)) process_.ranks_on_node = bootstrap_.size;
  comm_->next = process_.active;
  process_.active = comm_;
  if (is_listed(*comm_)) list(*comm_);
  comm_->team->single_copy().note_refusal(refusal_);
  if (!all_read_all_) return;
  comm_->team->single_copy().set_from(single_copy_from(process_.settings.single_copy, bootstrap_.size, comm_->crowded));
}

}  // namespace stretto::engine
