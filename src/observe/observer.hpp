// SPDX-License-Identifier: BSD-3-Clause
// Reads a process' segment from outside its job. The mapping is read-only. The observer may look at
// any time, and the owner does not know of it.
//
// The observer trusts nothing in the segment:
//
// - The layout stamp tells it whether another version wrote the segment.
// - It checks offsets against what the owner has backed with memory. So it neither touches nor
//   allocates pages that are not there.
// - It follows a chain for a bounded number of lines.
//
// What it reads may be a moment old, and its parts may be from different moments. Yet each note is
// whole, and each counter has had the value that the observer reads.
#pragma once
#include "observe/process_info.hpp"
#include "shm/deferred.hpp"
#include "shm/host_calls.hpp"
#include "shm/journal.hpp"
#include "shm/ledger.hpp"
#include "shm/lines.hpp"

namespace stretto::observe {

enum class Attached : std::uint8_t {
  ok,
  other_file,    // no segment, or one that is not the engine's
  other_layout,  // of another version
  no_memory,     // it cannot be mapped
};

// A communicator of the process.
struct Membership {
  std::uint64_t generation = 0;
  std::uint32_t members = 0, rank = 0;
  std::uint64_t begun = 0, ended = 0;  // numbers of its calls
};

class Observer {
 public:
  Observer() = default;
  ~Observer() { detach(); }
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  // Maps the file of `fd`, and takes ownership of `fd`.
  Attached attach(int fd);
  // Looks at the caller's mapping. The caller keeps it.
  Attached view(const char* base, std::size_t bytes);
  void detach();

  [[nodiscard]] const ProcessInfo& process_info() const { return process_info_; }
  [[nodiscard]] std::uint64_t identity() const { return header().identity; }
  // The owner makes no more calls.
  [[nodiscard]] bool left() const { return header().left.load_acquire() != 0; }
  // Reads the latest call that the owner noted. Returns false if there is none, or if the owner is
  // writing its note.
  bool latest(shm::NoteCopy* note) const;
  // Returns 0 if the owner does not wait, or has not waited for long.
  [[nodiscard]] std::uint64_t waiting_since_ns() const { return ledger().activity.waiting_since_ns.load_relaxed(); }
  // Calls whose data are under way.
  [[nodiscard]] const shm::DeferredNotes& deferred() const {
    return *reinterpret_cast<const shm::DeferredNotes*>(base_ + shm::Segment::kDeferredOffset);
  }
  // Calls that the host serves, with a watchdog.
  [[nodiscard]] const shm::HostCalls& host_calls() const {
    return *reinterpret_cast<const shm::HostCalls*>(base_ + shm::Segment::kHostCallsOffset);
  }
  [[nodiscard]] const char* base() const { return base_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // Where calls come from.
  [[nodiscard]] shm::CallSite call_site(const shm::NoteCopy& note) const {
    return {*reinterpret_cast<const shm::CallSites*>(base_ + shm::Segment::kCallSitesOffset), note.number, note.caller};
  }
  [[nodiscard]] const shm::Tally& tally(int collective) const { return ledger().of[collective]; }

  // Calls each(membership) for the communicators that the process has, the newest first.
  template <class Each>
  void communicators(Each each) const {
    std::uint64_t at = ledger().activity.communicators.load_acquire();
    Membership membership;
    for (std::uint64_t most = blocks_end() / sizeof(shm::ProgressLine); most != 0 && read(&at, &membership); --most) {
      if ((membership.generation & 1) != 0) each(membership);
    }
  }

 private:
  [[nodiscard]] const shm::SegmentHeader& header() const { return *reinterpret_cast<const shm::SegmentHeader*>(base_); }
  [[nodiscard]] const shm::Ledger& ledger() const {
    return *reinterpret_cast<const shm::Ledger*>(base_ + shm::Segment::kLedgerOffset);
  }
  [[nodiscard]] std::uint64_t blocks_end() const;
  bool read(std::uint64_t* at, Membership* membership) const;

  const char* base_ = nullptr;
  std::size_t bytes_ = 0;
  bool mapped_ = false;  // by us
  ProcessInfo process_info_;
};

}  // namespace stretto::observe
