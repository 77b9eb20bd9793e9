// SPDX-License-Identifier: BSD-3-Clause
#include "job_lines.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

#include "job_clocks.hpp"
#include "job_comms.hpp"
#include "job_walk.hpp"

namespace stretto::modelling {
namespace {

// A rank's call ended because another rank did something.
struct Waited {
  double begin, end;  // of the call
  std::uint32_t by;
  double at;  // when that one did it
};

class Joiner {
 public:
  explicit Joiner(const JobFile& job) : job_(job), comms_(static_cast<std::size_t>(job.ranks())) {}

  JoinedRanks run();

 private:
  using MessageKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::int64_t>;  // comm, from, to, tag
  using MeetingKey = std::pair<std::uint32_t, std::uint32_t>;                                // comm, serial
  struct Sent {
    double begin;
    std::uint64_t bytes;
  };
  struct Received {
    double begin, end;  // of the call that has waited
  };
  struct Channel {
    std::deque<Sent> sends;
    std::deque<Received> receives;
  };
  struct Member {
    std::uint32_t rank;
    double begin, end;
  };
  struct Met {
    std::vector<Member> members;
    const Member* last = nullptr;
    bool from_root = false;
    std::uint32_t root = 0;
  };

  class RankVisitor;

  void add_messages();
  void add_meetings();
  [[nodiscard]] std::vector<PathPart> path() const;

  const JobFile& job_;
  Communicators comms_;
  std::map<MessageKey, Channel> channels_;
  std::map<MeetingKey, Met> meetings_;
  std::vector<std::vector<Waited>> waits_;
  std::vector<double> ends_;
  JoinedRanks found_;
};

class Joiner::RankVisitor : public Visitor {
 public:
  RankVisitor(Joiner& all, std::uint32_t rank)
      : all_(all), rank_(rank), recording_(all.job_.of(static_cast<int>(rank))) {}

  void enters(const Action& action, std::uint32_t /*term*/, double time, double end) override {
    begin_ = time;
    end_ = end;
    makes_ = makes_comm(action) ? &action : nullptr;
  }
  void leaves(double time) override {
    all_.ends_[rank_] = time;
    if (makes_ != nullptr) all_.comms_.make(rank_, recording_, makes_->comm, makes_->made_comm);
  }
  void computes(double /*seconds*/) override {}
  void sends(const WalkedMessage& message) override {
    const auto to = static_cast<std::uint32_t>(message.peer);
    all_.channels_[{name(message.comm), rank_, to, message.tag}].sends.push_back({begin_, message.bytes});
  }
  void receives(const WalkedMessage& message) override {
    const auto from = static_cast<std::uint32_t>(message.peer);
    std::deque<Received>& its = all_.channels_[{name(message.comm), from, rank_, message.tag}].receives;
    its.push_back({-1, -1});
    open_[message.number] = &its.back();  // a deque moves nothing
  }
  void waits(std::size_t message) override {
    const auto found = open_.find(message);
    if (found == open_.end()) return;
    *found->second = {begin_, end_};
    open_.erase(found);
  }
  void meets(const Action& action, const std::vector<int>& members, int /*me*/) override {
    if (is_neighborhood(action.collective)) return;
    CommState& comm = all_.comms_.of(rank_, recording_, action.comm);
    Met& met = all_.meetings_[{comm.name, comm.meetings++}];
    met.from_root = is_rooted(action.collective) && !goes_to_root(action.collective);
    if (action.root >= 0 && static_cast<std::size_t>(action.root) < members.size())
      met.root = static_cast<std::uint32_t>(members[static_cast<std::size_t>(action.root)]);
    const bool goes_on = is_rooted(action.collective) && (rank_ == met.root) != goes_to_root(action.collective);
    met.members.push_back({rank_, begin_, goes_on ? begin_ : end_});
  }

 private:
  std::uint32_t name(std::int64_t comm) { return all_.comms_.of(rank_, recording_, comm).name; }

  Joiner& all_;
  std::uint32_t rank_;
  const record::Recording& recording_;
  double begin_ = 0, end_ = 0;
  const Action* makes_ = nullptr;
  std::unordered_map<std::size_t, Received*> open_;
};

void Joiner::add_messages() {
  for (auto& [key, channel] : channels_) {
    const auto [comm, from, to, tag] = key;
    const std::size_t count = std::min(channel.sends.size(), channel.receives.size());
    for (std::size_t i = 0; i < count; ++i) {
      const Sent& sent = channel.sends[i];
      const Received& received = channel.receives[i];
      if (received.end < 0) continue;  // nobody has waited for it
      found_.messages.push_back({from, to, sent.begin, received.end, sent.bytes});
      if (sent.begin > received.begin) waits_[to].push_back({received.begin, received.end, from, sent.begin});
    }
  }
  std::sort(found_.messages.begin(), found_.messages.end(),
            [](const DrawnMessage& a, const DrawnMessage& b) { return a.sent < b.sent; });
}

void Joiner::add_meetings() {
  for (auto& [key, met] : meetings_) {
    for (const Member& each : met.members) {
      if (met.from_root ? each.rank == met.root : met.last == nullptr || each.begin > met.last->begin) met.last = &each;
    }
    if (met.last == nullptr) continue;
    for (const Member& each : met.members) {
      if (each.begin < met.last->begin && each.end > each.begin)
        waits_[each.rank].push_back({each.begin, each.end, met.last->rank, met.last->begin});
    }
  }
}

std::vector<PathPart> Joiner::path() const {
  std::vector<PathPart> parts;
  auto rank = static_cast<std::uint32_t>(std::max_element(ends_.begin(), ends_.end()) - ends_.begin());
  double now = ends_[rank];
  while (true) {
    const std::vector<Waited>& waits = waits_[rank];
    // The last wait that had ended by then. Clocks of hosts differ: the path never goes forward.
    auto wait = std::upper_bound(waits.begin(), waits.end(), now,
                                 [](double time, const Waited& each) { return time < each.end; });
    while (wait != waits.begin() && (wait - 1)->at >= now) --wait;
    if (wait == waits.begin()) break;
    --wait;
    parts.push_back({rank, std::min(wait->at, now), now});
    now = wait->at;
    rank = wait->by;
  }
  parts.push_back({rank, 0, now});
  std::reverse(parts.begin(), parts.end());
  return parts;
}

JoinedRanks Joiner::run() {
  waits_.resize(static_cast<std::size_t>(job_.ranks()));
  ends_.resize(waits_.size(), 0);
  const std::vector<double> begin = starts_of(job_);
  for (std::uint32_t rank = 0; rank < waits_.size(); ++rank) {
    RankVisitor visitor(*this, rank);
    walk(job_, static_cast<int>(rank), visitor, begin[rank]);
  }
  add_messages();
  add_meetings();
  for (std::vector<Waited>& each : waits_)
    std::sort(each.begin(), each.end(), [](const Waited& a, const Waited& b) { return a.end < b.end; });
  found_.path = path();
  return std::move(found_);
}

}  // namespace

JoinedRanks join_ranks(const JobFile& job) { return Joiner(job).run(); }

}  // namespace stretto::modelling
