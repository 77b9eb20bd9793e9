// SPDX-License-Identifier: BSD-3-Clause
// The members of one communicator, their control lines as this rank sees them, and the two kinds of
// queue between them (protocol: lines.hpp). A Team is this rank's private view. Only control lines
// and slots are shared.
//
// A tier is a team of a few members of a communicator, with ranks of their own. Each member has a
// board, which all others read, and a channel to the first one, which leads the tier. Its calls are
// the communicator's: they have its numbers, and its progress lines say where members stand.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "base/array.hpp"
#include "base/collective.hpp"
#include "base/status.hpp"
#include "base/tuning.hpp"
#include "shm/call_check.hpp"
#include "shm/distance.hpp"
#include "shm/line_space.hpp"
#include "shm/lines.hpp"
#include "shm/queues.hpp"
#include "shm/wait.hpp"

namespace stretto::shm {

class Team;
class Lanes;

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
  Team* team = nullptr;
  Channels* channels = nullptr;
  const char* segment = nullptr;
  Ack* own = nullptr;  // our ack line for what it writes, once there is one
  // That member's ack line for what we write, once this rank has seen it: see Team::line_of. Any
  // thread that asks for a slot may find it.
  std::atomic<const Ack*> ack{nullptr};
  std::uint64_t heard = 0;  // records of our board that it was last seen to have read
  Distance distance;
};

inline const char* InQueue::slot(const Record* record) const { return from->segment + record->slot_offset; }

// A message on its way out or in: see message.hpp.
struct MessageState;

// Why messages do not go by single copy, or not any more.
struct Refusal {
  int rank = -1;           // which may not read its peers' memory; -1: no rank has been refused
  int error = 0;           // errno value; 0: the members' process ids mean nothing to each other
  std::uint64_t call = 0;  // in which it was refused; 0: from the start
};

// How long the fragments of a message are. It is the same on all members, so that all cut alike,
// and no longer than any member's slot.
using Fragments = Tuning::Fragments;

class Team {
 public:
  // `block` is this rank's block in its own segment. create() puts its lines in order, with
  // `instance`: then peers may read them. settle() and connect() follow. Returns null if memory is
  // short.
  static Team* create(int rank, int size, std::uint64_t instance, char* block, Lanes* lanes);
  // Sets what members agree on: all name the communicator by one generation.
  void settle(std::uint64_t generation, const WaitPolicy& policy, Fragments fragments);
  // Puts a tier's block in order: then peers may read it.
  static void reset_tier(char* block, unsigned most_members);
  // Makes a tier of this communicator in such a block. `ranks` are its members, of which this rank
  // is number `index`; the caller keeps them. This team destroys it.
  Team* create_tier(int index, const int* ranks, int size, char* block);
  // Call them when the communicator has settled and connected. `block` is that member's block.
  void settle_tier();
  void connect_tier(int member, const char* block) { directories_[member] = block; }
  void connect(int member, const Peer& peer) { peers_[member] = peer; }
  static void destroy(Team* team);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  // A member's rank in the communicator.
  [[nodiscard]] int rank_of(int member) const { return ranks_ == nullptr ? member : ranks_[member]; }
  // The next tier of the communicator that this rank is in, in some order; its team comes first.
  [[nodiscard]] Team* next_tier() const { return next_tier_; }
  [[nodiscard]] const WaitPolicy& policy() const { return policy_; }
  [[nodiscard]] WaitPolicy& policy() { return policy_; }
  [[nodiscard]] Lanes& lanes() const { return *lanes_; }
  [[nodiscard]] OutQueue& board() { return board_; }
  [[nodiscard]] const Peer& peer(int rank) const {
    return whole_ == nullptr ? peers_[rank] : whole_->peers_[ranks_[rank]];
  }
  [[nodiscard]] Member& member(int rank) const {
    Member* const known = known_member(rank);
    return known != nullptr ? *known : make_member(rank);
  }
  // Null: this rank has used none of its queues.
  [[nodiscard]] Member* known_member(int rank) const { return members_[rank].load(std::memory_order_acquire); }
  // Null: nothing has come on that member's board.
  [[nodiscard]] InQueue* board_if_any(int rank) const {
    const bool any = known_member(rank) != nullptr || directory(rank).board_ring.load_acquire() != 0;
    return any ? &member(rank).board : nullptr;
  }
  [[nodiscard]] OutQueue& to(int rank) const { return channels(rank).to; }
  [[nodiscard]] InQueue& channel(int rank) const { return channels(rank).from; }
  // Null: nothing has come through the channel from that member.
  [[nodiscard]] InQueue* channel_if_any(int rank) const {
    const Member* const m = known_member(rank);
    return (m != nullptr && m->channels != nullptr) || channel_ring(rank) != 0 ? &channel(rank) : nullptr;
  }
  // Its calls are made beside those of other teams, by another thread (Call::stay_apart).
  void stay_apart() { apart_ = true; }
  // Of the messages of the call that this rank is in; give_states_back() ends that.
  [[nodiscard]] MessageState* states() const {
    if (states_ == nullptr) [[unlikely]]
      borrow_states();
    return states_;
  }
  // For this team and its tiers. `clean`: all their messages are done.
  void give_states_back(bool clean) {
    for (Team* team = this; team != nullptr; team = team->next_tier_) {
      if (team->states_ != nullptr) team->give_back(clean);
    }
  }
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  std::uint64_t next_call() { return ++calls_; }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

  // ---- Checks (call_check.hpp) ----
  [[nodiscard]] CheckLevel check() const { return check_; }
  void set_check(CheckLevel level) { check_ = level; }
  // Tells peers where this rank stands.
  void stand(std::uint64_t call_number, std::uint64_t note) {
    progress_line_->call.store_release(call_number << 8 | note % kNotes);
  }
  void stand_down(std::uint64_t call_number, std::uint64_t note) {
    progress_line_->call.store_release(call_number << 8 | ProgressLine::kEnded | note % kNotes);
  }
  // Readers of one process's private memory hold each other up: each pins pages under that
  // process's lock. So a rank counts them before it begins. Two may look at once, and one may end
  // while another counts: a hint, not a lock.
  [[nodiscard]] unsigned readers_of(int member) const;
  void start_reading(int member) { progress_line_->reading.store_relaxed(static_cast<std::uint64_t>(member) + 1); }
  void stop_reading() { progress_line_->reading.store_relaxed(0); }
  // A call of this rank was refused before it began. Tells peers that wait for its next one.
  void refuse_call(Collective collective, Mistake mistake) {
    progress_line_->refused.store_release(Refused{calls_ + 1, collective, mistake}.packed());
  }
  // That rank's last refused call.
  [[nodiscard]] Refused refused(int rank) const;
  // The list of this process's communicators, for observers. Used under the process's lock.
  [[nodiscard]] std::uint64_t listed_next() const { return progress_line_->next.load_relaxed(); }
  void list_next(std::uint64_t standing_offset) { progress_line_->next.store_release(standing_offset); }
  // Call it before our block goes to another communicator: no reader must take that one's progress
  // line for ours.
  void leave() { progress_line_->generation.store_release(~generation_); }
  [[nodiscard]] Note* call_descriptors() const { return call_descriptors_; }
  // A call failed here: from then on queues may hold records that no rank reads.
  [[nodiscard]] bool troubled() const { return troubled_; }
  void set_troubled() {
    for (Team* team = this; team != nullptr; team = team->next_tier_) team->troubled_ = true;
  }

  // Bytes of each fragment of a message. They are few enough that copying in and out overlap, and
  // so many that records do not cost more than they hide. The same on all members. `busy`: see
  // Tuning::Fragments.
  [[nodiscard]] std::size_t fragment_bytes(std::uint64_t message_bytes, bool busy = false) const {
    const std::uint64_t part = message_bytes / fragments_.parts;
    const std::uint64_t least =
        busy && fragments_.least_busy > fragments_.least ? fragments_.least_busy : fragments_.least;
    const std::uint64_t wanted = part > least ? (part + 63) & ~std::uint64_t{63} : least;
    return wanted < fragments_.most ? static_cast<std::size_t>(wanted) : fragments_.most;
  }

  // Whether there was no memory for a ring or line of this rank, so that its call cannot go on.
  [[nodiscard]] bool lacks_memory() const { return whole_ != nullptr ? whole_->lacks_memory_ : lacks_memory_; }
  void note_no_memory() { whole().lacks_memory_ = true; }
  // Tells the members, which ask lacks_memory(). The next call may find memory.
  void tell_no_memory(std::uint64_t call) {
    line_->no_memory.store_release(call);
    whole().lacks_memory_ = false;
  }
  [[nodiscard]] bool lacks_memory(int member, std::uint64_t call) const {
    const Peer& p = peer(member);
    return p.line().no_memory.load_acquire() == call && p.is_here();
  }
  // This rank's ack line for what that member writes. Null: there is no memory.
  [[nodiscard]] Ack* own_line(Member& m) { return m.own != nullptr ? m.own : make_line(m); }
  // That member's ack line for what this rank writes. Null: it has none yet, or has left.
  [[nodiscard]] const Ack* line_of(int member) const {
    Member* const m = known_member(member);
    const Ack* const known = m == nullptr ? nullptr : m->ack.load(std::memory_order_acquire);
    return known != nullptr ? known : find_line(member, m);
  }
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
  // The record to fill next. Null: readers have not left it, or there is no memory for the queue,
  // which then has no records.
  Record* claim(OutQueue& queue) {
    if (queue.written - queue.acked >= queue.records && !has_room(queue)) return nullptr;
    return queue.ring + (queue.written & (queue.records - 1));
  }
  // Asks the readers of one of our queues how far they are.
  std::uint64_t refresh(OutQueue& queue) {
    if (queue.written >= queue.measure_at && queue.written != queue.looked_at) measure(queue);
    queue.looked_at = queue.written;
    const std::uint64_t now = hear(queue);
    return queue.acked = now < queue.written ? now : queue.written;
  }
  // Whether slots for this queue are written past the caches: at least half of its readers are far.
  void far_from(std::uint64_t ns);
  [[nodiscard]] bool is_far(const OutQueue& queue) const {
    if (far_ns_ == 0) return true;
    return queue.reader == OutQueue::kEverybody ? far_members_ != 0 && 2 * far_members_ >= size_ - 1
                                                : member(queue.reader).distance.is_far();
  }
  // Messages of so many bytes are stored past the caches where they arrive. Caches would have no
  // room for them until they are used.
  void store_past_from(std::uint64_t bytes) { past_bytes_ = bytes; }
  [[nodiscard]] bool stores_past(std::uint64_t message_bytes) const { return message_bytes >= past_bytes_; }
  static void publish(OutQueue& queue, Record* record) { record->sequence.store_release(++queue.written); }

  // Queues that move go to blocks of this memory, and rings and lines for which the block has no
  // room to its place.
  void move_to(const RingMemory& memory) {
    memory_ = memory;
    space_.go_on({static_cast<unsigned>(size_)}, memory);
  }
  // For a rank that has waited long. Moves our full queues to longer rings, those of the tiers too.
  // True: something has changed.
  bool make_room();
  // Reads on in the new rings of peers' queues that have moved, in the tiers too. True: something
  // has changed.
  bool follow();
  bool follow(InQueue& queue);
  // Calls visit(offset, bytes) for each block that queues have moved to.
  template <class Visit>
  void each_ring(Visit visit) const {
    for (const Team* team = this; team != nullptr; team = team->next_tier_) {
      for (const Ring& ring : team->rings_) visit(ring.offset, ring.bytes);
    }
  }

  // Whether that member says that it could not read what we published for single copy in this call.
  [[nodiscard]] bool has_refused(int reader, std::uint64_t call) const {
    const Ack* const line = line_of(reader);
    return line != nullptr && line->refused.load_acquire() == call && peer(reader).is_here();  // Incoming::refuse
  }
  // Tells that member that this rank has places for its first `count` messages in this call;
  // is_ready() asks. Without memory for its line it does not.
  void make_ready(int member, std::uint64_t call, std::uint32_t count) {
    if (Ack* const line = own_line(this->member(member))) line->ready.store_release(call << 32 | count);
  }
  [[nodiscard]] bool is_ready(int member, std::uint64_t call, std::uint32_t count) const {
    const Ack* const line = line_of(member);
    const std::uint64_t ready = line == nullptr ? 0 : line->ready.load_acquire();  // pairs with make_ready
    return ready >> 32 == (call & 0xffffffff) && static_cast<std::uint32_t>(ready) >= count && peer(member).is_here();
  }
  // This rank returns from call `number` in the midst of it (see GivenUp).
  void give_up(std::uint64_t number, GivenUp::Why why);
  // This rank has freed the communicator.
  void retire();
  // Why that member gave that call up; ok if it has not.
  [[nodiscard]] Status given_up(int member, std::uint64_t number) const;
  // Whether it has, or has given up so many calls since that the line does not tell.
  [[nodiscard]] bool may_have_given_up(int member, std::uint64_t number) const;
  [[nodiscard]] bool has_left(int member, std::uint64_t number) const {
    const Peer& p = peer(member);
    const bool left = p.line().left.load_acquire() >= number;  // pairs with leave_calls
    return left || !p.is_here();
  }
  [[nodiscard]] bool has_retired(int member) const { return has_left(member, kEveryCall); }
  // Whether a record left over from an earlier call is a sign of a mistake: its writer had another
  // root, say. Ranks that count otherwise leave records of reductions, and learn of the mistake in
  // other ways. A short Reduce is the exception: no rank may miss its records.
  [[nodiscard]] bool is_odd(int writer, const Record& record) const;
  // Whether those that must have read this record have done so, or have left the call it belongs
  // to. Reads shared lines only.
  [[nodiscard]] bool is_past(int reader, std::uint64_t position, std::uint64_t number) const;

  // Messages of so many bytes and more go by single copy in this collective. Set when all members
  // agree that they can read each other's memory. Reductions do not use it: they combine
  // contributions where they lie.
  [[nodiscard]] std::uint64_t single_copy_from_bytes(Collective c) const {
    return single_copy_from_bytes_[static_cast<int>(c)];
  }
  void set_single_copy_from(const Tuning::SingleCopyFrom& bytes);
  void stop_single_copy();
  [[nodiscard]] const Refusal& refusal() const { return refusal_; }
  void refuse(const Refusal& refusal) {
    if (refusal_.rank < 0) refusal_ = refusal;
  }
  // What the reader said of it.
  [[nodiscard]] int refusal_error(int reader) const { return static_cast<int>(line_of(reader)->error.load_acquire()); }

  // True once every peer has read all that this team and its tiers published. Then their blocks may
  // serve another communicator.
  [[nodiscard]] bool drained();

  // Slots that hold data of this team, by lane. Only the holder of a lane writes its counter.
  static constexpr unsigned kLanesApart = 4;  // for calls that the program does not wait for
  static constexpr unsigned kLanes = 64 + kLanesApart;
  std::atomic<std::uint32_t> leases[kLanes]{};
  // The tiers' slots count.
  [[nodiscard]] bool has_leases() const {
    for (const Team* team = this; team != nullptr; team = team->next_tier_) {
      for (const auto& count : team->leases) {
        if (count.load(std::memory_order_acquire) != 0) return true;  // pairs with Lane::expire
      }
    }
    return false;
  }
  std::atomic<bool> is_drained{false};

  // Memory for what is read here before it goes to its place, for one step of a call. It is
  // allocated when first asked for. Null: there is none. It is not on the stack, which may be a
  // small thread's.
  static constexpr std::size_t kScratchBytes = 16 << 10;
  char* scratch() {
    if (scratch_ == nullptr) [[unlikely]]
      scratch_ = static_cast<char*>(std::aligned_alloc(64, kScratchBytes));
    return scratch_;
  }

 private:
  static constexpr std::uint64_t kEveryCall = ~std::uint64_t{0};
  struct Ring {
    std::uint64_t offset;
    std::size_t bytes;
  };

  [[nodiscard]] bool allocate(int rank, int size, Lanes* lanes);
  [[nodiscard]] Channels& channels(int rank) const {
    Channels* const channels = member(rank).channels;
    return channels != nullptr ? *channels : make_channels(rank);
  }
  Channels& make_channels(int rank) const;
  void borrow_states() const;
  void give_back(bool clean);
  void lay_out(const BlockLayout& layout, char* block);
  [[nodiscard]] Team& whole() { return whole_ != nullptr ? *whole_ : *this; }
  [[nodiscard]] const Moved* moved(const InQueue& queue) const;
  Ack* make_line(Member& m);
  const Ack* find_line(int member, Member* m) const;
  Member& make_member(int rank) const;
  [[nodiscard]] const Directory& directory(int rank) const {
    const BlockLayout layout{static_cast<unsigned>(size_)};
    const char* const at = whole_ == nullptr ? peers_[rank].block + layout.directory() : directories_[rank];
    return *reinterpret_cast<const Directory*>(at);
  }
  [[nodiscard]] bool is_drained_itself();
  bool make_room_itself();
  bool follow_itself();
  bool make_room(OutQueue& queue);
  bool has_room(OutQueue& queue);
  bool open(OutQueue& queue);

  [[nodiscard]] std::uint64_t acked_by(int reader, bool board) const;
  [[nodiscard]] bool is_past(const OutQueue& queue) const;
  [[nodiscard]] bool has_read_claims(int member) const;
  void leave_calls(std::uint64_t number, std::uint64_t gave_up);
  std::uint64_t hear(const OutQueue& queue);  // records that all its readers have read
  void measure(OutQueue& queue);

  int rank_ = 0;
  int size_ = 0;
  const int* ranks_ = nullptr;  // of a tier's members
  Team* whole_ = nullptr;       // of a tier: the communicator's team
  Team* next_tier_ = nullptr;
  std::uint64_t generation_ = 0;
  std::uint64_t instance_ = 0;  // of our block
  MemberLine* line_ = nullptr;
  Directory* directory_ = nullptr;  // of this team
  LineSpace space_;                 // the communicator's; like lacks_memory_ not used in tiers
  unsigned records_ = 0;            // of each queue when it is made
  bool lacks_memory_ = false;
  std::uint64_t calls_ = 0;
  CheckLevel check_ = CheckLevel::none;
  bool troubled_ = false;
  ProgressLine* progress_line_ = nullptr;
  Note* call_descriptors_ = nullptr;
  std::uint64_t given_up_ = 0;  // see GivenUp
  std::uint64_t left_ = 0;      // the last call that this rank gave up
  WaitPolicy policy_;
  Lanes* lanes_ = nullptr;
  Fragments fragments_;
  std::uint64_t single_copy_from_bytes_[kCollectives];
  Refusal refusal_;
  std::uint64_t far_ns_ = Tuning::kNever;
  std::uint64_t past_bytes_ = Tuning::kNever;
  std::uint64_t measure_from_ = Tuning::kNever;  // the first OutQueue::measure_at of a queue
  int far_members_ = 0;
  int measured_ = 0;  // the member whose distance was measured last for the board
  RingMemory memory_;
  Array<Ring> rings_;
  OutQueue board_;
  Peer* peers_ = nullptr;               // of a communicator
  const char** directories_ = nullptr;  // of a tier
  std::atomic<Member*>* members_ = nullptr;
  mutable MessageState* states_ = nullptr;
  bool apart_ = false;
  char* scratch_ = nullptr;
};

// Calls `visit(team, queue)` for each queue that this rank reads in a communicator, those of its
// tiers too.
template <class Visit>
void each_queue(Team& whole, Visit visit) {
  for (Team* team = &whole; team != nullptr; team = team->next_tier()) {
    for (int r = 0; r < team->size(); ++r) {
      if (r == team->rank()) continue;
      if (InQueue* const board = team->board_if_any(r)) visit(*team, *board);
      if (InQueue* const channel = team->channel_if_any(r)) visit(*team, *channel);
    }
  }
}

}  // namespace stretto::shm
