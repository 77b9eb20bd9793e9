// SPDX-License-Identifier: BSD-3-Clause
// The members of one communicator as this rank sees them (protocol: lines.hpp). A Team is this
// rank's private view. Only control lines and slots are shared. It consists of
//
//   members      who they are, and where their lines lie
//   queues       what they send each other
//   calls        how far each has come, and what it gave up
//   single_copy  who may read whose memory
//
// A tier is a team of a few members of a communicator, with ranks of their own. Each member has a
// board, which all others read, and a channel to the first one, which leads the tier. Its calls are
// the communicator's: they have its numbers, and its progress lines say where members stand.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "base/tuning.hpp"
#include "shm/member_calls.hpp"
#include "shm/members.hpp"
#include "shm/message_states.hpp"
#include "shm/queues.hpp"
#include "shm/single_copy.hpp"
#include "shm/waiter.hpp"

namespace stretto::shm {

class Lanes;
// A message on its way out or in: see message.hpp.
struct MessageState;

// What the teams of a process use of it.
struct TeamMemory {
  char* segment = nullptr;
  MessageStates* states = nullptr;
  Lanes* lanes = nullptr;
};

// How long the fragments of a message are. It is the same on all members, so that all cut alike,
// and no longer than any member's slot.
using Fragments = Tuning::Fragments;

class Team {
 public:
  // `block` is this rank's block in its own segment. create() puts its lines in order, with
  // `instance`: then peers may read them. settle() and connect() follow. Returns null if memory is
  // short.
  static Team* create(int rank, int size, std::uint64_t instance, char* block, const TeamMemory& memory);
  // Sets what members agree on: all name the communicator by one generation.
  void settle(std::uint64_t generation, const WaitPolicy& policy, Fragments fragments);
  // Puts a tier's block in order: then peers may read it.
  static void reset_tier(char* block, unsigned most_members) { Members::reset_tier(block, most_members); }
  // Makes a tier of this communicator in such a block. `ranks` are its members, of which this rank
  // is number `index`; the caller keeps them. This team destroys it.
  Team* create_tier(int index, const int* ranks, int size, char* block);
  // Call them when the communicator has settled and connected. `block` is that member's block.
  void settle_tier();
  void connect_tier(int member, const char* block) { members_.connect_tier(member, block); }
  void connect(int member, const Peer& peer) { members_.connect(member, peer); }
  static void destroy(Team* team);

  [[nodiscard]] Members& members() { return members_; }
  [[nodiscard]] const Members& members() const { return members_; }
  [[nodiscard]] Queues& queues() { return queues_; }
  [[nodiscard]] const Queues& queues() const { return queues_; }
  [[nodiscard]] MemberCalls& calls() { return calls_; }
  [[nodiscard]] const MemberCalls& calls() const { return calls_; }
  [[nodiscard]] SingleCopy& single_copy() { return single_copy_; }
  [[nodiscard]] const SingleCopy& single_copy() const { return single_copy_; }

  // ---- What collectives ask for most ----
  [[nodiscard]] int rank() const { return members_.rank(); }
  [[nodiscard]] int size() const { return members_.size(); }
  [[nodiscard]] int rank_of(int member) const { return members_.rank_of(member); }
  [[nodiscard]] const Peer& peer(int rank) const { return members_.peer(rank); }
  [[nodiscard]] Member& member(int rank) const { return members_.member(rank); }
  [[nodiscard]] OutQueue& board() { return queues_.board(); }
  [[nodiscard]] OutQueue& to(int rank) const { return queues_.channels(members_.member(rank)).to; }
  [[nodiscard]] InQueue& channel(int rank) const { return queues_.channels(members_.member(rank)).from; }
  [[nodiscard]] std::uint64_t generation() const { return calls_.generation(); }
  [[nodiscard]] const WaitPolicy& policy() const { return policy_; }
  [[nodiscard]] WaitPolicy& policy() { return policy_; }
  [[nodiscard]] Lanes& lanes() const { return *memory_.lanes; }

  // ---- The team and its tiers ----
  // The next tier of the communicator that this rank is in, in some order; its team comes first.
  [[nodiscard]] Team* next_tier() const { return next_tier_; }
  // Queues that move go to blocks of this memory, and rings and lines for which the block has no
  // room to its place.
  void move_to(const RingMemory& memory) {
    queues_.move_to(memory);
    members_.go_on(memory);
  }
  // For a rank that has waited long: see Queues. True: something has changed.
  bool make_room() {
    return any_team([](Team& team) { return team.queues_.make_room(); });
  }
  bool follow() {
    return any_team([](Team& team) { return team.queues_.follow(); });
  }
  // Calls visit(offset, bytes) for each block that queues have moved to.
  template <class Visit>
  void each_ring(Visit visit) const {
    for (const Team* team = this; team != nullptr; team = team->next_tier_) team->queues_.each_ring(visit);
  }
  void set_troubled() {
    for (Team* team = this; team != nullptr; team = team->next_tier_) team->calls_.set_troubled();
  }
  // This rank returns from call `number` in the midst of it. Those that wait in a tier look at the
  // same line.
  void give_up(std::uint64_t number, GivenUp::Why why) {
    calls_.give_up(number, why);
    for (Team* tier = next_tier_; tier != nullptr; tier = tier->next_tier_) tier->calls_.gave_up(number);
  }

  // ---- The messages of a call ----
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

  // Messages of so many bytes are stored past the caches where they arrive. Caches would have no
  // room for them until they are used.
  void store_past_from(std::uint64_t bytes) { past_bytes_ = bytes; }
  [[nodiscard]] bool stores_past(std::uint64_t message_bytes) const { return message_bytes >= past_bytes_; }
  // Tells that member that this rank has places for its first `count` messages in this call;
  // is_ready() asks. Without memory for its line it does not.
  void make_ready(int member, std::uint64_t call, std::uint32_t count) {
    if (Ack* const line = members_.own_line(members_.member(member))) line->ready.store_release(call << 32 | count);
  }
  [[nodiscard]] bool is_ready(int member, std::uint64_t call, std::uint32_t count) const {
    const Ack* const line = members_.line_of(member);
    const std::uint64_t ready = line == nullptr ? 0 : line->ready.load_acquire();  // pairs with make_ready
    return ready >> 32 == (call & 0xffffffff) && static_cast<std::uint32_t>(ready) >= count &&
           members_.peer(member).is_here();
  }
  // Whether those that must have read this record have done so, or have left the call it belongs
  // to. Reads shared lines only.
  [[nodiscard]] bool is_past(int reader, std::uint64_t position, std::uint64_t number) const;
  // True once every peer has read all that this team and its tiers published. Then their blocks may
  // serve another communicator.
  [[nodiscard]] bool drained() {
    bool all = true;
    for (Team* team = this; team != nullptr; team = team->next_tier_) all = team->is_drained_itself() && all;
    return all;
  }

  // Slots that hold data of this team, by lane. Only the holder of a lane writes its counter.
  static constexpr unsigned kLanesApart = 4;  // for calls that the program does not wait for
  static constexpr unsigned kLanes = 64 + kLanesApart;
  std::atomic<std::uint16_t> leases[kLanes]{};  // a lane has at most Lane::kMaxLeases
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
  // allocated when first asked for: once for all teams, or for each if several threads call. Null:
  // there is none. It is not on the stack, which may be a small thread's.
  static constexpr std::size_t kScratchBytes = MessageStates::kScratchBytes;
  char* scratch() {
    char* const shared = apart_ ? nullptr : memory_.states->scratch();
    if (shared != nullptr) [[likely]]
      return shared;
    if (scratch_ == nullptr) [[unlikely]]
      scratch_ = static_cast<char*>(std::aligned_alloc(64, kScratchBytes));
    return scratch_;
  }

 private:
  explicit Team(const TeamMemory& memory) : memory_(memory) {}
  ~Team() { std::free(scratch_); }
  static Team* allocate(const TeamMemory& memory);
  [[nodiscard]] bool hold_states();
  void borrow_states() const;
  void give_back(bool clean);
  [[nodiscard]] bool is_drained_itself();
  [[nodiscard]] bool is_past(const OutQueue& queue) const;
  [[nodiscard]] bool has_read_claims(int member) const;
  template <class Action>
  bool any_team(const Action& action) {
    bool any = false;
    for (Team* team = this; team != nullptr; team = team->next_tier_) any = action(*team) || any;
    return any;
  }

  Members members_;
  Queues queues_{members_};
  MemberCalls calls_{members_};
  SingleCopy single_copy_{members_};
  Team* whole_ = nullptr;  // of a tier: the communicator's team
  Team* next_tier_ = nullptr;
  WaitPolicy policy_;
  TeamMemory memory_;
  Fragments fragments_;
  std::uint64_t past_bytes_ = Tuning::kNever;
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
      if (InQueue* const board = team->queues().board_if_any(r)) visit(*team, *board);
      if (InQueue* const channel = team->queues().channel_if_any(r)) visit(*team, *channel);
    }
  }
}

}  // namespace stretto::shm
