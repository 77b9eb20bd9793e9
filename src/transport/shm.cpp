// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm.hpp"

#include "base/tuning.hpp"
#include "shm/call_check.hpp"

namespace stretto::transport {
namespace {

constexpr shm::CallDescriptor kNoDescriptor{};

bool fits_records(std::uint64_t bytes) { return bytes <= shm::kMostInlineBytes; }

}  // namespace

bool ShmTransport::join(shm::Team& team, const int* ranks, int size) {
  const auto members = static_cast<std::size_t>(team.size());
  if (!members_.resize(static_cast<std::size_t>(size), -1) || !out_.resize(members, {}) || !in_.resize(members, {}))
    return false;
  for (std::size_t member = 0; member < members; ++member)
    members_[static_cast<std::size_t>(ranks[member])] = static_cast<int>(member);
  team_ = &team;
  return true;
}

void ShmTransport::begin(Collective collective) {
  call_.emplace(*team_, collective, kNoDescriptor);
  if (apart_) call_->stay_apart();
  lost_ = -1;
  posted_.clear();
  for (Direction& direction : out_) direction = {};
  for (Direction& direction : in_) direction = {};
}

Transport ShmTransport::transport() {
  return {this,
          [](void* self, int peer, std::uint32_t, const char* data, std::uint64_t bytes, std::uint32_t ticket) {
            ShmTransport& t = *static_cast<ShmTransport*>(self);
            const int member = t.members_[static_cast<std::size_t>(peer)];
            Posted::Queue& queue = t.out_[static_cast<std::size_t>(member)].queue;
            if (!t.posted_.push(queue, const_cast<char*>(data), bytes, ticket)) return false;
            (void)t.step_out(member);
            return true;
          },
          [](void* self, int peer, std::uint32_t, char* data, std::uint64_t bytes, std::uint32_t ticket) {
            ShmTransport& t = *static_cast<ShmTransport*>(self);
            const int member = t.members_[static_cast<std::size_t>(peer)];
            Posted::Queue& queue = t.in_[static_cast<std::size_t>(member)].queue;
            if (!t.posted_.push(queue, data, bytes, ticket)) return false;
            if (!fits_records(bytes)) t.team_->make_ready(member, t.call_->number(), queue.posted);
            return true;
          },
          [](void* self, std::uint32_t* tickets, int capacity) {
            return static_cast<ShmTransport*>(self)->poll(tickets, capacity);
          },
          [](void* self) { return static_cast<const ShmTransport*>(self)->call_->status(); },
          [](void* self, int peer, std::uint64_t) {
            return static_cast<const ShmTransport*>(self)->members_[static_cast<std::size_t>(peer)] >= 0;
          },
          [](void* self, Collective collective) { static_cast<ShmTransport*>(self)->begin(collective); },
          [](void* self) { static_cast<ShmTransport*>(self)->end(); },
          [](void* self, Status why, int) { static_cast<ShmTransport*>(self)->abort(why); }};
}

void ShmTransport::abort(Status why) {
  team_->give_up(call_->number(),
                 why == Status::peer_lost || why == Status::peer_gone ? shm::GivenUp::lost : shm::GivenUp::failed);
  team_->set_troubled();
}

bool ShmTransport::awaits(int member) const {
  return !in_[static_cast<std::size_t>(member)].queue.empty() || !out_[static_cast<std::size_t>(member)].queue.empty();
}

// A member may have done its part before it went, or gave up: what it has left is taken first. That
// may lie where its queue has moved.
void ShmTransport::check_peers(std::uint64_t waited_ns) {
  if (!joined()) return;
  for (int member = 0; member < team_->size(); ++member) {
    if (member == team_->rank() || !awaits(member)) continue;
    const Status gave_up = team_->calls().given_up(member, call_->number());
    const bool gone = shm::CallCheck(*call_).has_ended(member, waited_ns);
    if (gave_up == Status::ok && !gone) continue;
    (void)team_->follow();
    if (step()) continue;
    if (gave_up != Status::ok) return call_->fail(gave_up);
    for (std::size_t rank = 0; rank < members_.size(); ++rank)
      lost_ = members_[rank] == member ? static_cast<int>(rank) : lost_;
    return call_->peer_died(member);
  }
}

void ShmTransport::pop(Direction& direction) {
  if (!posted_.pop(direction.queue)) call_->fail(Status::no_memory);
  direction.begun = direction.ready = false;
}

// Moves on what goes to that member, until it is a fragment further with a message that goes in
// several. False: nothing moved.
bool ShmTransport::step_out(int member) {
  Direction& direction = out_[static_cast<std::size_t>(member)];
  shm::Outgoing& out = team_->states()[member].out;
  for (bool moved = false;; moved = true) {
    if (direction.queue.empty()) return moved;
    const Posted::Message& message = posted_.first(direction.queue);
    if (!direction.begun) out.start(plain(message.data, message.bytes), false);
    direction.begun = true;
    if (!direction.ready) {
      direction.ready =
          fits_records(message.bytes) || team_->is_ready(member, call_->number(), direction.queue.through + 1);
      if (!direction.ready && call_->lane_ahead() == nullptr) return moved;
      out.go_ahead(!direction.ready);
    }
    if (!out.step(*call_, team_->to(member))) return moved;
    if (!out.done()) return true;
    pop(direction);
  }
}

bool ShmTransport::step_in(int member) {
  Direction& direction = in_[static_cast<std::size_t>(member)];
  shm::Incoming& in = team_->states()[member].in;
  for (bool moved = false;; moved = true) {
    if (direction.queue.empty()) return moved;
    if (!direction.begun) {
      const Posted::Message& message = posted_.first(direction.queue);
      in.start(plain(message.data, message.bytes), false);
      direction.begun = true;
    }
    if (!in.step(*call_, team_->channel(member))) return moved;
    if (!in.done()) return true;
    pop(direction);
  }
}

bool ShmTransport::step() {
  bool moved = false;
  for (int member = 0; member < team_->size(); ++member) {
    moved = step_out(member) || moved;
    moved = step_in(member) || moved;
  }
  return moved;
}

int ShmTransport::poll(std::uint32_t* tickets, int capacity) {
  while (!posted_.any_through() && step()) {
  }
  if (call_->status() != Status::ok) return -1;
  if (posted_.any_through()) {
    idle_ = 0;
    return posted_.hand_out(tickets, capacity);
  }
  if (posted_.any_left() && ++idle_ % kTuning.polls_per_look == 0) {  // as check_peers
    (void)team_->make_room();
    (void)team_->follow();
  }
  return 0;
}

}  // namespace stretto::transport
