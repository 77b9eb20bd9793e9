// SPDX-License-Identifier: BSD-3-Clause
#include "engine/edges.hpp"

#include "base/profile.hpp"
#include "engine/process.hpp"

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
  if (!seats_.resize(static_cast<std::size_t>(size), -1) || !out_.resize(members, {}) || !in_.resize(members, {})) return false;
  for (std::size_t seat = 0; seat < members; ++seat) seats_[static_cast<std::size_t>(ranks[seat])] = static_cast<int>(seat);
  node_ = node;
  team_ = node->team;
  return true;
}

void Edges::begin(Collective collective) {
  if (!joined()) return;
  call_.emplace(*team_, collective, kNoFacts);
  messages_.clear();
  done_.clear();
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
            if (!e.push(e.out_[static_cast<std::size_t>(seat)], const_cast<char*>(data), bytes, ticket)) return false;
            (void)e.step_out(seat);
            return true;
          },
          [](void* edges, int peer, std::uint32_t edge, char* data, std::uint64_t bytes, std::uint32_t ticket) {
            Edges& e = *static_cast<Edges*>(edges);
            const int seat = e.seats_[static_cast<std::size_t>(peer)];
            if (seat < 0) return e.beyond_.recv(e.beyond_.context, peer, edge, data, bytes, ticket);
            Line& line = e.in_[static_cast<std::size_t>(seat)];
            if (!e.push(line, data, bytes, ticket)) return false;
            if (!fits_records(bytes)) e.team_->make_ready(seat, e.call_->number(), line.posted);
            return true;
          },
          [](void* edges, std::uint32_t* tickets, int capacity) { return static_cast<Edges*>(edges)->poll(tickets, capacity); }};
}

bool Edges::push(Line& line, char* data, std::uint64_t bytes, std::uint32_t ticket) {
  const auto at = static_cast<std::uint32_t>(messages_.size());
  if (!messages_.push({data, bytes, ticket, kNone})) return false;
  if (line.first == kNone) line.first = at;
  else messages_[line.last].next = at;
  line.last = at;
  ++line.posted;
  return true;
}

void Edges::pop(Line& line) {
  const Message& message = messages_[line.first];
  if (!done_.push(message.ticket)) call_->fail(Status::no_memory);
  line.first = message.next;
  ++line.through;
  line.begun = line.ready = false;
}

// Moves on what goes to that member, until it is a fragment further with a message that goes in several. False: nothing moved.
bool Edges::step_out(int seat) {
  Line& line = out_[static_cast<std::size_t>(seat)];
  shm::Outgoing& out = team_->states()[seat].out;
  for (bool moved = false;; moved = true) {
    if (line.first == kNone) return moved;
    const Message& message = messages_[line.first];
    if (!line.begun) out.start(plain(message.data, message.bytes), false);
    line.begun = true;
    if (!line.ready) {
      line.ready = fits_records(message.bytes) || team_->is_ready(seat, call_->number(), line.through + 1);
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
    if (line.first == kNone) return moved;
    if (!line.begun) {
      const Message& message = messages_[line.first];
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
  while (done_.empty() && step()) {
  }
  if (call_->status() != Status::ok) return -1;
  if (done_.empty()) return beyond_.poll(beyond_.context, tickets, capacity);
  return sched::hand_out(done_, tickets, capacity);
}

}  // namespace stretto::engine
