// SPDX-License-Identifier: BSD-3-Clause
#include "shm/team.hpp"

#include <cstdlib>
#include <new>
#include <utility>

#include "shm/message_states.hpp"

namespace stretto::shm {

Team* Team::allocate(const TeamMemory& memory) {
  void* const at = std::malloc(sizeof(Team));
  return at == nullptr ? nullptr : new (at) Team(memory);
}

// Later there are some to borrow, unless several threads call at the same time.
bool Team::hold_states() {
  states_ = memory_.states->borrow(size(), false);
  if (states_ == nullptr) return false;
  give_back(true);
  return true;
}

// A rank that has begun a call cannot go on without these few kilobytes.
void Team::borrow_states() const {
  states_ = memory_.states->borrow(size(), apart_);
  if (states_ == nullptr) std::abort();
}

void Team::give_back(bool clean) { memory_.states->give_back(std::exchange(states_, nullptr), clean); }

Team* Team::create(int rank, int size, std::uint64_t instance, char* block, const TeamMemory& memory) {
  Team* const team = allocate(memory);
  if (team == nullptr || !team->members_.open(rank, size, instance, block, memory.segment) || !team->hold_states()) {
    destroy(team);
    return nullptr;
  }
  team->queues_.open({static_cast<unsigned>(size)});
  team->calls_.open();
  return team;
}

Team* Team::create_tier(int index, const int* ranks, int size, char* block) {
  Team* const tier = allocate(memory_);
  if (tier == nullptr || !tier->members_.open_tier(index, size, ranks, block, members_) || !tier->hold_states()) {
    destroy(tier);
    return nullptr;
  }
  tier->whole_ = this;
  tier->queues_.open({static_cast<unsigned>(size), true});
  tier->calls_.open();
  tier->next_tier_ = next_tier_;
  next_tier_ = tier;
  return tier;
}

void Team::settle_tier() {
  calls_.settle_as(whole_->calls_);
  queues_.settle_as(whole_->queues_);
  policy_ = whole_->policy_;
  fragments_ = whole_->fragments_;
  past_bytes_ = whole_->past_bytes_;
}

void Team::settle(std::uint64_t generation, const WaitPolicy& policy, Fragments fragments) {
  policy_ = policy;
  fragments_ = fragments;
  calls_.settle(generation);
}

void Team::destroy(Team* team) {
  while (team != nullptr) {
    Team* const next = team->next_tier_;
    team->~Team();
    std::free(team);
    team = next;
  }
}

bool Team::is_past(int reader, std::uint64_t position, std::uint64_t number) const {
  const bool board = reader == OutQueue::kEverybody;
  for (int r = board ? 0 : reader; r < (board ? size() : reader + 1); ++r) {
    if (r != rank() && members_.acked_by(r, board) <= position && !calls_.has_left(r, number)) return false;
  }
  return true;
}

bool Team::is_past(const OutQueue& queue) const {
  return queue.written == 0 || is_past(queue.reader, queue.written - 1, MemberCalls::kEvery);
}

// An unread record keeps the block until its reader has freed the communicator, even if the reader
// has left the call: it may still look. A call that this rank gave up keeps the block until all
// have left that call: a rank that is late may want to know.
bool Team::is_drained_itself() {
  if (is_drained.load(std::memory_order_acquire)) return true;
  if (!queues_.each_written([&](const OutQueue& queue) { return is_past(queue); })) return false;
  const std::uint64_t gave_up = calls_.given_up();
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    if ((gave_up != 0 && !calls_.has_left(r, gave_up)) || !has_read_claims(r)) return false;
  }
  is_drained.store(true, std::memory_order_release);
  return true;
}

// A member that has not ended our last call may still read our description of it. A tier has none.
bool Team::has_read_claims(int member) const {
  if (whole_ != nullptr || calls_.check() < CheckLevel::strict || calls_.has_left(member, calls_.made())) return true;
  const CallPlace place = calls_.place_of(member);
  return !place.known || place.freed || place.ended >= calls_.made();
}

}  // namespace stretto::shm
