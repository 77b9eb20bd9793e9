// SPDX-License-Identifier: BSD-3-Clause
#include "engine/edges.hpp"

#include "base/profile.hpp"
#include "engine/process.hpp"
#include "shm/roll.hpp"

namespace stretto::engine {
namespace {

constexpr shm::Facts kNoFacts{};

Region plain(char* data, std::uint64_t bytes) { return {data, bytes, &kPlainByte}; }
bool fits_records(std::uint64_t bytes) { return bytes <= shm::kMostInlineBytes; }

}  // namespace

Edges::~Edges() {
  end();
  comm_free(node_);
}

bool Edges::join(Comm* node, const int* ranks, int size) {
  const auto members = static_cast<std::size_t>(comm_size(*node));
  if (!seats_.resize(static_cast<std::size_t>(size), -1) || !out_.resize(members, {}) || !in_.resize(members, {}))
    return false;
  for (std::size_t seat = 0; seat < members; ++seat)
    seats_[static_cast<std::size_t>(ranks[seat])] = static_cast<int>(seat);
  node_ = node;
  team_ = node->team;
  return true;
}

void Edges::begin(Collective collective) {
  if (!joined()) return;
  call_.emplace(*team_, collective, kNoFacts);
  lost_ = -1;
  posted_.clear();
  for (Line& line : out_) line = {};
  for (Line& line : in_) line = {};
}

sched::Transport Edges::transport() {
  if (!joined()) return beyond_;
  return {this,
          [](void* edges, int peer, std::uint32_t edge, const char* data, std::uint64_t bytes, std::uint32_t ticket) {
            Edges& e = *static_cast<Edges*>(edges);
            const int seat = e.seats_[static_cast<std::size_t>(peer)];
            if (seat < 0) return e.beyond_.send(e.beyond_.context, peer, edge, data, bytes, ticket);
            if (!e.posted_.push(e.out_[static_cast<std::size_t>(seat)].queue, const_cast<char*>(data), bytes, ticket))
              return false;
            (void)e.step_out(seat);
            return true;
          },
          [](void* edges, int peer, std::uint32_t edge, char* data, std::uint64_t bytes, std::uint32_t ticket) {
            Edges& e = *static_cast<Edges*>(edges);
            const int seat = e.seats_[static_cast<std::size_t>(peer)];
            if (seat < 0) return e.beyond_.recv(e.beyond_.context, peer, edge, data, bytes, ticket);
            Posted::Queue& queue = e.in_[static_cast<std::size_t>(seat)].queue;
            if (!e.posted_.push(queue, data, bytes, ticket)) return false;
            if (!fits_records(bytes)) e.team_->make_ready(seat, e.call_->number(), queue.posted);
            return true;
          },
          [](void* edges, std::uint32_t* tickets, int capacity) {
            return static_cast<Edges*>(edges)->poll(tickets, capacity);
          },
          [](void* edges) { return static_cast<const Edges*>(edges)->failure(); }};
}

Status Edges::failure() const { return call_->status() != Status::ok ? call_->status() : beyond_.why_broken(); }

void Edges::give_up(Status status) {
  if (!joined()) return;
  team_->give_up(call_->number(), status == Status::peer_lost || status == Status::peer_gone ? shm::GivenUp::lost
                                                                                             : shm::GivenUp::failed);
  team_->set_troubled();
}

bool Edges::awaits(int seat) const {
  return !in_[static_cast<std::size_t>(seat)].queue.empty() || !out_[static_cast<std::size_t>(seat)].queue.empty();
}

// A member may have done its part before it went, or gave up: what it has left is taken first. That
// may lie where its queue has moved.
void Edges::look_around(std::uint64_t waited_ns) {
  if (!joined()) return;
  for (int seat = 0; seat < team_->size(); ++seat) {
    if (seat == team_->rank() || !awaits(seat)) continue;
    const Status gave_up = team_->given_up(seat, call_->number());
    const bool gone = shm::has_ended(*call_, seat, waited_ns);
    if (gave_up == Status::ok && !gone) continue;
    (void)team_->follow();
    if (step()) continue;
    if (gave_up != Status::ok) return call_->fail(gave_up);
    for (std::size_t rank = 0; rank < seats_.size(); ++rank)
      lost_ = seats_[rank] == seat ? static_cast<int>(rank) : lost_;
    return call_->lose(seat);
  }
}

void Edges::pop(Line& line) {
  if (!posted_.pop(line.queue)) call_->fail(Status::no_memory);
  line.begun = line.ready = false;
}

// Moves on what goes to that member, until it is a fragment further with a message that goes in several. False: nothing
// moved.
bool Edges::step_out(int seat) {
  Line& line = out_[static_cast<std::size_t>(seat)];
  shm::Outgoing& out = team_->states()[seat].out;
  for (bool moved = false;; moved = true) {
    if (line.queue.empty()) return moved;
    const Posted::Message& message = posted_.first(line.queue);
    if (!line.begun) out.start(plain(message.data, message.bytes), false);
    line.begun = true;
    if (!line.ready) {
      line.ready = fits_records(message.bytes) || team_->is_ready(seat, call_->number(), line.queue.through + 1);
      if (!line.ready && call_->lane_ahead() == nullptr) return moved;
      out.go_ahead(!line.ready);
    }
    if (!out.step(*call_, team_->member(seat).to)) return moved;
    if (!out.done()) return true;
    pop(line);
  }
}

bool Edges::step_in(int seat) {
  Line& line = in_[static_cast<std::size_t>(seat)];
  shm::Incoming& in = team_->states()[seat].in;
  for (bool moved = false;; moved = true) {
    if (line.queue.empty()) return moved;
    if (!line.begun) {
      const Posted::Message& message = posted_.first(line.queue);
      in.start(plain(message.data, message.bytes), false);
      line.begun = true;
    }
    if (!in.step(*call_, team_->member(seat).channel)) return moved;
    if (!in.done()) return true;
    pop(line);
  }
}

bool Edges::step() {
  bool moved = false;
  for (int seat = 0; seat < team_->size(); ++seat) {
    moved = step_out(seat) || moved;
    moved = step_in(seat) || moved;
  }
  return moved;
}

// What lies in shared memory first: to ask beyond costs more.
int Edges::poll(std::uint32_t* tickets, int capacity) {
  while (!posted_.any_through() && step()) {
  }
  if (call_->status() != Status::ok) return -1;
  if (posted_.any_through()) {
    idle_ = 0;
    return posted_.hand_out(tickets, capacity);
  }
  if (posted_.any_left() && ++idle_ % kProfile.polls_per_look == 0) {  // as look_around
    (void)team_->make_room();
    (void)team_->follow();
  }
  return beyond_.poll(beyond_.context, tickets, capacity);
}

}  // namespace stretto::engine
