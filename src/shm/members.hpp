// SPDX-License-Identifier: BSD-3-Clause
// The members of a team, and where this rank finds what they share with it: their member lines,
// directories and ack lines (protocol: lines.hpp). This rank's own ack lines, one for each member,
// are made here at their first use.
//
// A tier's members are some of the communicator's. They have ranks of their own, and the
// communicator's lines.
#pragma once
#include <atomic>
#include <cstdint>

#include "shm/distance.hpp"
#include "shm/line_space.hpp"
#include "shm/lines.hpp"
#include "shm/queue.hpp"

namespace stretto::shm {

class Members;

// Where a member's lines are. This rank knows it of all members.
struct Peer {
  const char* segment = nullptr;
  const char* block = nullptr;
  std::uint64_t instance = 0;  // the instance that its lines have as long as it has not left
  std::uint64_t started = 0;   // when that process began; 0: it cannot be watched

  [[nodiscard]] const MemberLine& line() const { return *reinterpret_cast<const MemberLine*>(block); }
  [[nodiscard]] const ProgressLine& progress_line() const {
    return *reinterpret_cast<const ProgressLine*>(block + BlockLayout::progress_line());
  }
  [[nodiscard]] const Note* call_descriptors() const {
    return reinterpret_cast<const Note*>(block + BlockLayout::call_descriptors());
  }
  // Where its memory can be read.
  [[nodiscard]] int pid() const { return segment == nullptr ? 0 : static_cast<int>(header()->pid); }
  [[nodiscard]] const SegmentHeader* header() const { return reinterpret_cast<const SegmentHeader*>(segment); }
  [[nodiscard]] const Note* notes() const;  // its flight recorder
  // Whether its lines still serve this communicator. The instance is loaded last: what was loaded
  // from a later owner's line comes with that owner's instance.
  [[nodiscard]] bool is_here() const { return line().generation.load_acquire() == instance; }
};

// What this rank keeps of a member with which it shares queues in use.
struct Member {
  InQueue board;
  Members* members = nullptr;  // of which it is one
  Channels* channels = nullptr;
  const char* segment = nullptr;
  Ack* own = nullptr;  // our ack line for what it writes, once there is one
  // That member's ack line for what we write, once this rank has seen it: see Members::line_of. Any
  // thread that asks for a slot may find it.
  std::atomic<const Ack*> ack{nullptr};
  std::uint64_t heard = 0;  // records of our board that it was last seen to have read
  Distance distance;
};

inline const char* InQueue::slot(const Record* record) const { return from->segment + record->slot_offset; }

class Members {
 public:
  Members() = default;
  ~Members();
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  // `block` is this rank's block in `segment`, its own. Puts its lines in order, with `instance`:
  // then peers may read them. False: there is no memory.
  [[nodiscard]] bool open(int rank, int size, std::uint64_t instance, char* block, char* segment);
  // The members of a tier, which `ranks` names among those of `whole`. The caller keeps `ranks`.
  [[nodiscard]] bool open_tier(int index, int size, const int* ranks, char* block, Members& whole);
  // Puts a tier's block in order: then peers may read it.
  static void reset_tier(char* block, unsigned most_members);
  void connect(int member, const Peer& peer) { peers_[member] = peer; }
  void connect_tier(int member, const char* block) { directories_[member] = block; }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool is_tier() const { return whole_ != nullptr; }
  // A member's rank in the communicator.
  [[nodiscard]] int rank_of(int member) const { return ranks_ == nullptr ? member : ranks_[member]; }
  [[nodiscard]] const Peer& peer(int rank) const {
    return whole_ == nullptr ? peers_[rank] : whole_->peers_[ranks_[rank]];
  }
  [[nodiscard]] Member& member(int rank) const {
    Member* const known = known_member(rank);
    return known != nullptr ? *known : make_member(rank);
  }
  // Null: this rank has used none of its queues.
  [[nodiscard]] Member* known_member(int rank) const { return members_[rank].load(std::memory_order_acquire); }

  // This rank's own lines.
  [[nodiscard]] MemberLine& line() const { return *reinterpret_cast<MemberLine*>(block_); }
  [[nodiscard]] ProgressLine& progress_line() const {
    return *reinterpret_cast<ProgressLine*>(block_ + BlockLayout::progress_line());
  }
  [[nodiscard]] Note* call_descriptors() const {
    return reinterpret_cast<Note*>(block_ + BlockLayout::call_descriptors());
  }
  [[nodiscard]] Directory& own_directory() const { return *directory_; }
  [[nodiscard]] const Directory& directory(int rank) const {
    const BlockLayout layout{static_cast<unsigned>(size_)};
    const char* const at = whole_ == nullptr ? peers_[rank].block + layout.directory() : directories_[rank];
    return *reinterpret_cast<const Directory*>(at);
  }

  // This rank's ack line for what that member writes. Null: there is no memory.
  [[nodiscard]] Ack* own_line(Member& m) { return m.own != nullptr ? m.own : make_line(m); }
  // That member's ack line for what this rank writes. Null: it has none yet, or has left.
  [[nodiscard]] const Ack* line_of(int member) const {
    Member* const m = known_member(member);
    const Ack* const known = m == nullptr ? nullptr : m->ack.load(std::memory_order_acquire);
    return known != nullptr ? known : find_line(member, m);
  }
  // How many records of this rank's board, or of its channel to that member, that member has read.
  [[nodiscard]] std::uint64_t acked_by(int reader, bool board) const;
  // Where that member has its board, as Moved::ring. 0: there is none yet.
  [[nodiscard]] std::uint64_t board_ring(int member) const {
    const std::uint64_t ring = directory(member).board_ring.load_acquire();
    return ring != 0 && peer(member).is_here() ? ring : 0;
  }
  // The same of its channel to this rank.
  [[nodiscard]] std::uint64_t channel_ring(int member) const {
    const Ack* const line = line_of(member);
    const std::uint64_t ring = line == nullptr ? 0 : line->channel_ring.load_acquire();
    return ring != 0 && peer(member).is_here() ? ring : 0;
  }

  // Memory of this rank's segment for a ring. Null: there is none.
  [[nodiscard]] std::uint64_t take_ring(std::size_t bytes) { return whole().space_.take_ring(bytes); }
  [[nodiscard]] char* at(std::uint64_t offset) const { return segment_ + offset; }
  // Rings and lines for which the block has no room go to the place of this memory.
  void go_on(const RingMemory& memory) { space_.go_on({static_cast<unsigned>(size_)}, memory); }
  // Whether there was no memory for a ring or line of this rank, so that its call cannot go on.
  [[nodiscard]] bool lacks_memory() const { return whole_ != nullptr ? whole_->lacks_memory_ : lacks_memory_; }
  void note_no_memory() { whole().lacks_memory_ = true; }
  // Tells the members, which ask lacks_memory(). The next call may find memory.
  void tell_no_memory(std::uint64_t call) {
    line().no_memory.store_release(call);
    whole().lacks_memory_ = false;
  }
  [[nodiscard]] bool lacks_memory(int member, std::uint64_t call) const {
    const Peer& p = peer(member);
    return p.line().no_memory.load_acquire() == call && p.is_here();
  }

 private:
  [[nodiscard]] bool allocate(int rank, int size);
  [[nodiscard]] Members& whole() { return whole_ != nullptr ? *whole_ : *this; }
  Member& make_member(int rank) const;
  Ack* make_line(Member& m);
  const Ack* find_line(int member, Member* m) const;

  int rank_ = 0;
  int size_ = 0;
  const int* ranks_ = nullptr;  // of a tier's members
  Members* whole_ = nullptr;    // of a tier: the communicator's
  std::uint64_t instance_ = 0;  // of our block
  char* segment_ = nullptr;     // our own
  char* block_ = nullptr;       // the communicator's
  Directory* directory_ = nullptr;
  LineSpace space_;  // the communicator's; like lacks_memory_ not used in tiers
  bool lacks_memory_ = false;
  Peer* peers_ = nullptr;               // of a communicator
  const char** directories_ = nullptr;  // of a tier
  std::atomic<Member*>* members_ = nullptr;
};

}  // namespace stretto::shm
