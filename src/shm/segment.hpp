// SPDX-License-Identifier: BSD-3-Clause
// A process's one segment: a memfd that only its owner writes. It holds the lanes of payload slots, which belong to the
// process, the flight recorder, the ledger, and a block of control lines for every communicator. Nothing has a name in
// the file system, so nothing is left behind. Pages are reserved before use: a full tmpfs or a memory limit is an error
// here, not a SIGBUS later.
//
// Peers map a part of it, its extent: all lanes, and blocks as far as they were handed out when the
// peer attached it. Where a new communicator's block lies further on, its members map more in its
// agreement. Mappings are never moved, so an older communicator's members go on in the shorter one.
// Whatever peers are told outside an agreement lies in the extent of that agreement.
//
// Core dumps have the header, the flight recorder, the ledger and the blocks, once, in their
// owner's; no lanes, and nothing of peers.
//
// Not thread-safe: callers hold the process's lock.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "shm/journal.hpp"
#include "shm/ledger.hpp"
#include "shm/lines.hpp"
#include "sys/sys.hpp"

namespace stretto::shm {

class Segment {
 public:
  // `lanes_bytes` of the segment are set aside for lanes; the rest serves blocks. Invalid: there is no rest.
  Status create(std::size_t bytes, std::size_t lanes_bytes);
  void destroy();
  // Tells peers, who keep it mapped, that nothing more comes.
  void retire() {
    if (base_) reinterpret_cast<SegmentHeader*>(base_)->left.store_release(1);
  }

  [[nodiscard]] bool exists() const { return base_ != nullptr; }
  [[nodiscard]] char* base() const { return base_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // So much of it peers need to map as things are: it grows.
  // `room` bytes beyond what is handed out are within it, if the segment is that long.
  [[nodiscard]] std::size_t extent(std::size_t room = 0) const;
  [[nodiscard]] static std::size_t least_extent(std::size_t lanes_bytes);
  [[nodiscard]] int descriptor() const { return fd_; }
  [[nodiscard]] std::uint64_t identity() const { return identity_; }

  // Backs a part of the lanes area with pages.
  Status reserve_lane(std::uint64_t offset, std::size_t bytes);
  static constexpr std::uint64_t kNotesOffset = sizeof(SegmentHeader);
  static constexpr std::uint64_t kLedgerOffset = kNotesOffset + kNotes * sizeof(Note);
  static constexpr std::uint64_t kLanesOffset = kLedgerOffset + sizeof(Ledger);
  static_assert(kLedgerOffset % alignof(Ledger) == 0);
  [[nodiscard]] Note* notes() const { return reinterpret_cast<Note*>(base_ + kNotesOffset); }
  [[nodiscard]] Ledger& ledger() const { return *reinterpret_cast<Ledger*>(base_ + kLedgerOffset); }

  // A zeroed block of at least `bytes` bytes, as an offset; 0 if there is no room.
  std::uint64_t block_allocate(std::size_t bytes);
  void block_release(std::uint64_t offset, std::size_t bytes);

  static constexpr unsigned kStepsPerDoubling = 16;  // of the sizes that blocks have

 private:
  static constexpr unsigned kClasses = 40 * kStepsPerDoubling;  // up to 64 TiB
  std::uint64_t grow(std::size_t bytes);
  // Backs a part of the file with pages. EBADF: its descriptor leads elsewhere by now.
  int reserve(std::uint64_t offset, std::size_t bytes);

  char* base_ = nullptr;
  std::size_t bytes_ = 0;
  int fd_ = -1;
  sys::FileId file_;
  std::uint64_t identity_ = 0;
  std::uint64_t blocks_ = 0;        // where their area begins
  std::uint64_t next_ = 0;          // first byte never handed out
  std::uint64_t reserved_ = 0;      // blocks area is backed up to here
  std::uint64_t free_[kClasses]{};  // heads of free lists; a free block's first word is the next one's offset
};

// A peer's segment, or its beginning, as this process sees it: mapped read-only.
struct Attachment {
  std::uint64_t identity = 0;
  const char* base = nullptr;
  std::size_t bytes = 0;      // 0: all of it, in a mapping that is not ours
  std::uint64_t started = 0;  // when its process began; 0: unknown
  bool tried = false;         // whether its process' memory can be read
  bool readable = false;
  int error = 0;      // why not
  bool used = false;  // by a communicator, now or in former times

  [[nodiscard]] bool covers(std::size_t extent) const { return bytes == 0 || bytes >= extent; }
};

// Maps `bytes` bytes of the segment behind `fd` and checks that it is the one announced as
// `identity`. Takes ownership of `fd`. no_memory: the system refuses the mapping.
Status attachment_map(int fd, std::size_t bytes, std::uint64_t identity, Attachment* attachment);
// Maps more of it, beside what is mapped.
Status attachment_extend(const Attachment& attachment, std::size_t bytes, Attachment* longer);
void attachment_unmap(Attachment* attachment);

}  // namespace stretto::shm
