// SPDX-License-Identifier: BSD-3-Clause
#include "kv/node.hpp"

#include <cstdlib>
#include <new>

#include "kv/lock/machine.hpp"
#include "sys/sys.hpp"

namespace stretto::kv {
namespace {

constexpr std::uint64_t stamp_of(std::size_t header, std::size_t entry) {
  return 0x4e6f64652e310000u ^ header << 20 ^ entry;
}

// The owner of an entry whose member has left. No living process has this identity, so another
// member may take the entry when there is no fresh one. Until then the entry says which barriers
// the member has reached.
constexpr std::uint64_t kLeft = 1;

}  // namespace

Status Node::open(const char* path) {
  int fd = -1;
  if (const int error = sys::shared_file_open(path, kBytes, &fd))
    return error == ENOSPC ? Status::no_memory : Status::unavailable;
  void* address = nullptr;
  const int error = sys::map_shared(fd, kBytes, sys::Access::read_write, &address);
  sys::close_descriptor(fd);
  if (error != 0) return Status::no_memory;
  base_ = static_cast<char*>(address);
  attached_ = static_cast<Attached*>(std::calloc(kMostMembers, sizeof(Attached)));
  const std::uint64_t stamp = stamp_of(sizeof(Header), sizeof(Entry));
  if (!attached_ || (!header().stamp.compare_exchange(0, stamp) && header().stamp.load_acquire() != stamp)) {
    close();
    return attached_ ? Status::unavailable : Status::no_memory;
  }
  return Status::ok;
}

// Takes a free entry, or a dead member's, by one exchange. A process that looks at an entry half
// filled in finds no segment of that identity and looks again later.
Node::Entry* Node::take_entry() {
  const std::uint64_t me = Machine::identity();
  for (unsigned pass = 0; pass < 2; ++pass) {
    for (unsigned i = 0; i < kMostMembers; ++i) {
      const std::uint64_t owner = entry(i).owner.load_acquire();
      if (owner != 0 && (pass == 0 || !Machine::gone(owner))) continue;
      if (!entry(i).owner.compare_exchange(owner, me)) continue;
      for (std::uint64_t high = header().high.load_acquire(); high <= i; high = header().high.load_acquire()) {
        header().high.compare_exchange(high, i + 1);
      }
      return &entry(i);
    }
  }
  return nullptr;
}

Status Node::join(std::uint32_t rank, const Table& table) {
  Entry* const mine = take_entry();
  if (!mine) return Status::unavailable;
  mine->announced.store_release(0);
  mine->rank.store_relaxed(rank);
  mine->descriptor.store_relaxed(static_cast<std::uint64_t>(table.segment().descriptor()));
  mine->bytes.store_relaxed(table.segment().bytes());
  mine->table.store_relaxed(table.view().header);
  mine->barriers.store_relaxed(0);
  mine->announced.store_release(table.segment().identity());  // pairs with table_of()
  entry_ = mine;
  return Status::ok;
}

void Node::leave() {
  if (!entry_) return;
  entry_->announced.store_release(0);
  entry_->owner.store_release(kLeft);
  entry_ = nullptr;
}

void Node::close() {
  leave();
  for (unsigned i = 0; attached_ && i < kMostMembers; ++i) {
    if (attached_[i].good) shm::attachment_unmap(&attached_[i].attachment);
  }
  std::free(attached_);
  sys::unmap(base_, kBytes);
  *this = Node{};
}

bool Node::is_alive(unsigned i) const {
  const std::uint64_t owner = entry(i).owner.load_acquire();
  return owner != 0 && !Machine::gone(owner);
}

bool Node::attach(Attached& attached, const Entry& from, std::uint64_t announced) {
  int fd = -1;
  const int pid = static_cast<int>(from.owner.load_acquire() >> 32);
  const std::uint64_t bytes = from.bytes.load_relaxed();
  if (pid <= 0 || sys::peer_descriptor_open(pid, static_cast<int>(from.descriptor.load_relaxed()), &fd) != 0)
    return false;
  if (sys::memory_file_bytes(fd) < bytes || bytes == 0) {  // any other file could shrink under the mapping
    sys::close_descriptor(fd);
    return false;
  }
  if (shm::attachment_map(fd, bytes, announced, &attached.attachment) != Status::ok) return false;
  attached.view = {attached.attachment.base, bytes, from.table.load_relaxed()};
  if (attached.view.is_valid()) return true;
  shm::attachment_unmap(&attached.attachment);
  return false;
}

const TableView* Node::table_of(unsigned i) {
  const std::uint64_t announced = entry(i).announced.load_acquire();  // pairs with join()
  Attached& attached = attached_[i];
  if (announced != attached.announced && announced != 0) {
    // This entry has a new member. The old mapping stays, because values that were found may lie
    // there.
    Attached fresh;
    fresh.good = attach(fresh, entry(i), announced);
    if (fresh.good) attached = fresh;
    attached.announced = announced;
  }
  return attached.good ? &attached.view : nullptr;
}

unsigned Node::entries() const {
  const std::uint64_t high = header().high.load_acquire();
  return high < kMostMembers ? static_cast<unsigned>(high) : kMostMembers;
}

void Node::reach_barrier() { entry_->barriers.store_release(entry_->barriers.load_relaxed() + 1); }
std::uint64_t Node::barriers() const { return entry_->barriers.load_relaxed(); }

}  // namespace stretto::kv
