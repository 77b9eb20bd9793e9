// SPDX-License-Identifier: BSD-3-Clause
// A process's one segment: a memfd that only its owner writes. It holds the lanes of payload slots,
// which belong to the process, the flight recorder, the ledger, notes of calls whose data are under
// way and of calls that the host serves, and where calls come from. It also holds a block of
// control lines for every communicator. Nothing has a name in the file system, so nothing is left
// behind. Pages are reserved before use: a full tmpfs or a memory limit is an error here, not a
// SIGBUS later.
//
// Peers map a part of it, its extent. That is the lanes, and the blocks that were handed out when
// the peer attached the segment. Where a new communicator's block lies further on, its members map
// more in its agreement. Mappings never move, so an older communicator's members go on in the
// shorter one. What peers are told outside an agreement lies in the extent of that agreement.
//
// A core dump of the owner has the header, the flight recorder, the ledger and the blocks, once. It
// has no lanes. No core dump has anything of peers' segments.
//
// Not thread-safe: callers hold the process's lock.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/array.hpp"
#include "base/status.hpp"
#include "shm/call_sites.hpp"
#include "shm/deferred.hpp"
#include "shm/host_calls.hpp"
#include "shm/journal.hpp"
#include "shm/ledger.hpp"
#include "shm/lines.hpp"
#include "shm/stack_note.hpp"
#include "sys/sys.hpp"

namespace stretto::shm {

class Segment {
 public:
  // Sets `lanes_bytes` of the segment aside for lanes. The rest serves blocks. Invalid: there is no
  // rest.
  Status create(std::size_t bytes, std::size_t lanes_bytes);
  void destroy();
  // Tells peers, which keep the segment mapped, that nothing more comes.
  void retire() {
    if (base_) reinterpret_cast<SegmentHeader*>(base_)->left.store_release(1);
  }

  [[nodiscard]] bool exists() const { return base_ != nullptr; }
  [[nodiscard]] char* base() const { return base_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // How much of the segment peers need to map now; it grows. `room` bytes beyond what is handed out
  // are within it, if the segment is that long.
  [[nodiscard]] std::size_t extent(std::size_t room = 0) const;
  [[nodiscard]] static std::size_t least_extent(std::size_t lanes_bytes);
  [[nodiscard]] int descriptor() const { return fd_; }
  [[nodiscard]] std::uint64_t identity() const { return identity_; }

  // Sets more addresses aside for lanes. 0: there is no room.
  std::uint64_t lanes_allocate(std::size_t bytes);
  // Backs a part of a lanes area with pages.
  Status reserve_lane(std::uint64_t offset, std::size_t bytes);
  static constexpr std::uint64_t kNotesOffset = sizeof(SegmentHeader);
  static constexpr std::uint64_t kLedgerOffset = kNotesOffset + kNotes * sizeof(Note);
  static constexpr std::uint64_t kDeferredOffset = kLedgerOffset + sizeof(Ledger);
  static constexpr std::uint64_t kHostCallsOffset = kDeferredOffset + sizeof(DeferredNotes);
  static constexpr std::uint64_t kStackOffset = kHostCallsOffset + sizeof(HostCalls);
  static constexpr std::uint64_t kCallSitesOffset = kStackOffset + sizeof(StackNote);
  static constexpr std::uint64_t kLanesOffset =
      (kCallSitesOffset + sizeof(CallSites) + kLineBytes - 1) / kLineBytes * kLineBytes;
  static_assert(kLedgerOffset % alignof(Ledger) == 0 && kDeferredOffset % alignof(DeferredNotes) == 0 &&
                kHostCallsOffset % alignof(HostCalls) == 0 && kStackOffset % alignof(StackNote) == 0 &&
                kCallSitesOffset % alignof(CallSites) == 0);
  [[nodiscard]] Note* notes() const { return reinterpret_cast<Note*>(base_ + kNotesOffset); }
  [[nodiscard]] Ledger& ledger() const { return *reinterpret_cast<Ledger*>(base_ + kLedgerOffset); }
  [[nodiscard]] DeferredNotes& deferred() const { return *reinterpret_cast<DeferredNotes*>(base_ + kDeferredOffset); }
  [[nodiscard]] HostCalls& host_calls() const { return *reinterpret_cast<HostCalls*>(base_ + kHostCallsOffset); }
  [[nodiscard]] StackNote& stack() const { return *reinterpret_cast<StackNote*>(base_ + kStackOffset); }
  [[nodiscard]] CallSites& call_sites() const { return *reinterpret_cast<CallSites*>(base_ + kCallSitesOffset); }
  // Of the segment that has these notes.
  [[nodiscard]] static const Ledger& ledger_beside(const Note* notes) {
    return *reinterpret_cast<const Ledger*>(reinterpret_cast<const char*>(notes) + (kLedgerOffset - kNotesOffset));
  }
  [[nodiscard]] static const Ledger& ledger_beside(const HostCalls& calls) {
    return *reinterpret_cast<const Ledger*>(reinterpret_cast<const char*>(&calls) - (kHostCallsOffset - kLedgerOffset));
  }
  [[nodiscard]] static const DeferredNotes& deferred_beside(const Note* notes) {
    return *reinterpret_cast<const DeferredNotes*>(reinterpret_cast<const char*>(notes) +
                                                   (kDeferredOffset - kNotesOffset));
  }
  [[nodiscard]] static const HostCalls& host_calls_beside(const Note* notes) {
    return *reinterpret_cast<const HostCalls*>(reinterpret_cast<const char*>(notes) +
                                               (kHostCallsOffset - kNotesOffset));
  }
  [[nodiscard]] static const CallSites& call_sites_beside(const Note* notes) {
    return *reinterpret_cast<const CallSites*>(reinterpret_cast<const char*>(notes) +
                                               (kCallSitesOffset - kNotesOffset));
  }

  // A block of at least `bytes` bytes, as an offset. 0: there is no room.
  std::uint64_t block_allocate(std::size_t bytes);
  // Addresses among those of blocks, without memory. 0: there is no room.
  std::uint64_t place_allocate(std::size_t bytes);
  void place_release(std::uint64_t offset, std::size_t bytes);
  // Backs a part of a place. Its pages stay with the segment. False: there is no memory.
  bool back(std::uint64_t offset, std::size_t bytes);
  void block_release(std::uint64_t offset, std::size_t bytes);

  static constexpr unsigned kStepsPerDoubling = 16;  // of block sizes

 private:
  static constexpr unsigned kClasses = 40 * kStepsPerDoubling;  // up to 64 TiB
  struct Place {
    std::uint64_t offset;
    std::size_t bytes;
  };

  std::uint64_t take(std::size_t bytes);  // addresses never handed out; 0: there are not so many
  std::uint64_t grow(std::size_t bytes);
  // Backs a part of the file with pages. EBADF: the descriptor leads to another file by now.
  int reserve(std::uint64_t offset, std::size_t bytes);

  char* base_ = nullptr;
  std::size_t bytes_ = 0;
  int fd_ = -1;
  sys::FileId file_;
  std::uint64_t identity_ = 0;
  std::uint64_t blocks_ = 0;   // where their area begins
  std::uint64_t next_ = 0;     // the first byte never handed out
  std::uint64_t reached_ = 0;  // blocks lie below; it grows by more than a block
  // Where the next new block begins, and the end of the addresses for new blocks. So blocks lie
  // close together, and places apart from them.
  std::uint64_t block_ = 0, blocks_end_ = 0;
  std::uint64_t first_blocks_ = 0;  // so much of the blocks area peers map at first
  Array<std::uint64_t> backed_;     // a bit for each page of the blocks area
  Array<Place> places_;             // free ones
  // heads of lists; a free block's first word is the next block's offset
  std::uint64_t free_[kClasses]{};
};

// A peer's segment, or its beginning, as this process sees it: mapped read-only.
struct Attachment {
  std::uint64_t identity = 0;
  const char* base = nullptr;
  std::size_t bytes = 0;      // 0: all of it, in a mapping that is not ours
  std::uint64_t started = 0;  // when its process began; 0: unknown
  bool tried = false;         // whether this process has tried to read its process's memory
  bool readable = false;
  int error = 0;      // why its memory is not readable
  bool used = false;  // by a communicator, now or earlier

  [[nodiscard]] bool covers(std::size_t extent) const { return bytes == 0 || bytes >= extent; }
};

// Maps `bytes` bytes of the segment behind `fd` and checks that `identity` is its identity. Takes
// ownership of `fd`. no_memory: the system refuses the mapping. Nothing is read through the mapping
// yet: page tables come with what is read later.
Status attachment_map(int fd, std::size_t bytes, std::uint64_t identity, Attachment* attachment);
// Maps more of the segment; the shorter mapping stays.
Status attachment_extend(const Attachment& attachment, std::size_t bytes, Attachment* longer);
void attachment_unmap(Attachment* attachment);

}  // namespace stretto::shm
