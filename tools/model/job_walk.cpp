// SPDX-License-Identifier: BSD-3-Clause
#include "job_walk.hpp"

#include <algorithm>

#include "job_comms.hpp"

namespace stretto::modelling {
namespace {

using record::Calls;
using record::Communicator;
using record::Recording;

struct WalkedSlot {
  std::vector<std::size_t> messages;  // that a wait for it waits for
  const Action* persistent = nullptr;
  std::size_t wild = 0;  // number of the receive with wildcards that it stands for, plus 1
};

class Walk {
 public:
  Walk(const JobFile& job, int rank, Visitor& visitor)
      : recording_(job.of(rank)), actions_(actions_of(recording_)), visitor_(visitor) {}

  std::uint64_t run(double now) {
    find_taken();
    Calls calls(recording_);
    for (Calls::Call call; calls.next(&call);) {
      computed_ += call.gap;
      now += call.gap;
      visitor_.enters(actions_[call.term], call.term, now, now + call.duration);
      act(actions_[call.term], call.duration);
      now += call.duration;
      visitor_.leaves(now);
    }
    tell_computation();
    return unknown_;
  }

 private:
  // What each receive with wildcards took, in the order in which they were posted.
  void find_taken() {
    std::vector<WalkedSlot> slots;
    Calls calls(recording_);
    for (Calls::Call call; calls.next(&call);) {
      const Action& action = actions_[call.term];
      const auto posts = [&](const Action& posted, std::int64_t slot) {
        if (!posted.receive.there || !posted.receive.any) return;
        taken_.push_back({});
        at(slots, slot).wild = taken_.size();
      };
      if (action.act == Act::init) {
        for (const std::int64_t slot : action.made) at(slots, slot).persistent = &action;
      } else if (action.act == Act::post) {
        for (const std::int64_t slot : action.made) posts(action, slot);
      } else if (action.act == Act::start) {
        for (const std::int64_t slot : action.named) {
          if (slot >= 0 && at(slots, slot).persistent != nullptr) posts(*at(slots, slot).persistent, slot);
        }
      }
      if (action.act != Act::wait) continue;
      for (const Got& got : action.got) {
        if (got.position >= action.waited.size() || action.waited[got.position] < 0) continue;
        WalkedSlot& slot = at(slots, action.waited[got.position]);
        if (slot.wild != 0) taken_[slot.wild - 1] = got;
        slot.wild = 0;
      }
    }
  }

  static WalkedSlot& at(std::vector<WalkedSlot>& slots, std::int64_t slot) {
    const auto place = static_cast<std::size_t>(std::max<std::int64_t>(0, slot));
    if (slots.size() <= place) slots.resize(place + 1);
    return slots[place];
  }

  void tell_computation() {
    if (computed_ > 0) visitor_.computes(computed_);
    computed_ = 0;
  }

  void send(const Action& action, std::vector<std::size_t>& messages) {
    const int to = world_peer(recording_, action.comm, action.send.peer);
    if (to < 0) return;
    tell_computation();
    messages.push_back(++count_);
    visitor_.sends({to, action.comm, action.send.tag, action.send.bytes, count_});
  }

  void receive(const Action& action, const Half& half, std::vector<std::size_t>& messages) {
    const int from = world_peer(recording_, action.comm, half.peer);
    if (from < 0) return;
    tell_computation();
    messages.push_back(++count_);
    visitor_.receives({from, action.comm, half.tag, half.bytes, count_});
  }

  void post(const Action& action, WalkedSlot& slot) {
    slot.messages.clear();
    if (action.send.there) send(action, slot.messages);
    if (!action.receive.there) return;
    if (!action.receive.any) return receive(action, action.receive, slot.messages);
    const Got& got = taken_[next_taken_++];
    if (got.peer != -1 || got.tag != 0) receive(action, taken(action.receive, got), slot.messages);
  }

  void wait(std::vector<std::size_t>& messages) {
    for (const std::size_t each : messages) visitor_.waits(each);
    messages.clear();
  }

  void meet(const Action& action, double duration) {
    const Communicator* const known = recording_.communicator(action.comm);
    if (known == nullptr || known->remote_size > 0 || (known->flags & record::kForeign) != 0) return unknown(duration);
    tell_computation();
    visitor_.meets(action, members_of(recording_, *known), static_cast<int>(known->rank));
  }

  void unknown(double duration) {
    ++unknown_;
    computed_ += duration;
  }

  void act(const Action& action, double duration) {
    std::vector<std::size_t> messages;
    switch (action.act) {
      case Act::local:
      case Act::transfer:
      case Act::expose:
      case Act::access:
      case Act::complete:
      case Act::unexpose:
        if (duration > 0) unknown(duration);
        break;
      case Act::test: break;
      case Act::init:
      case Act::init_collective:
        for (const std::int64_t slot : action.made) at(slots_, slot).persistent = &action;
        break;
      case Act::message:
        if (action.send.there) send(action, messages);
        if (action.receive.there && !action.receive.any) receive(action, action.receive, messages);
        for (const Got& got : action.got) receive(action, taken(action.receive, got), messages);
        wait(messages);
        break;
      case Act::post:
        for (const std::int64_t slot : action.made) post(action, at(slots_, slot));
        break;
      case Act::start:
        for (const std::int64_t slot : action.named) {
          WalkedSlot& its = at(slots_, slot);
          if (slot < 0 || its.persistent == nullptr) continue;
          if (its.persistent->act == Act::init)
            post(*its.persistent, its);
          else
            meet(*its.persistent, duration);
        }
        break;
      case Act::wait:
        for (const std::int64_t slot : action.ended) {
          if (slot >= 0) wait(at(slots_, slot).messages);
        }
        break;
      case Act::collective:
      case Act::post_collective: meet(action, duration); break;
    }
  }

  const Recording& recording_;
  std::vector<Action> actions_;
  Visitor& visitor_;
  std::vector<WalkedSlot> slots_;
  std::vector<Got> taken_;
  std::size_t next_taken_ = 0, count_ = 0;
  double computed_ = 0;
  std::uint64_t unknown_ = 0;
};

}  // namespace

std::uint64_t walk(const JobFile& job, int rank, Visitor& visitor, double begin) {
  return Walk(job, rank, visitor).run(begin);
}

}  // namespace stretto::modelling
