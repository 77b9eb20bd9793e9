// SPDX-License-Identifier: BSD-3-Clause
#include "job_export.hpp"

#include <cmath>
#include <map>
#include <string>

#include "job_clocks.hpp"
#include "job_replay.hpp"
#include "job_walk.hpp"
#include "request.hpp"

namespace stretto::modelling {
namespace {

// Tags of messages of schedules begin here: no program's tag is so high.
constexpr std::int64_t kScheduleTag = 1 << 24;

long long nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

std::string quoted(const record::Text& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size; ++i) {
    const char c = text.text[i];
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out;
}

// The schedule that stands for a collective of one rank.
sched::Schedule schedule_of(const Action& action, int ranks, int me) {
  select::Shape shape;
  shape.collective = scheduled_form(action.collective);
  shape.ranks = ranks;
  shape.bytes = action.bytes;
  shape.root = action.root >= 0 && action.root < ranks ? static_cast<int>(action.root) : 0;
  shape.commutative = action.commutes;
  static const select::Machine flat;
  static sched::Builder builder;
  const std::vector<select::Candidate> candidates = select::candidates(flat, shape);
  if (candidates.empty()) return {};
  return select::build(builder, flat, shape, candidates.front(), me);
}

class Goal : public Visitor {
 public:
  explicit Goal(std::FILE* to) : to_(to) {}

  void computes(double seconds) override {
    std::fprintf(to_, "l%zu: calc %lld\n", ++label_, nanoseconds(seconds));
    follows();
    last_ = label_;
  }
  void sends(const WalkedMessage& message) override { passes("send", "to", message); }
  void receives(const WalkedMessage& message) override { passes("recv", "from", message); }
  void waits(std::size_t message) override {
    // An operation that is complete when both are.
    std::fprintf(to_, "l%zu: calc 0\nl%zu requires l%zu\n", label_ + 1, label_ + 1, labels_[message]);
    ++label_;
    follows();
    last_ = label_;
    labels_.erase(message);
  }
  void meets(const Action& action, const std::vector<int>& members, int me) override {
    const sched::Schedule schedule = schedule_of(action, static_cast<int>(members.size()), me);
    if (!schedule.complete || schedule.steps.empty()) return;
    const std::size_t first = label_ + 1;
    for (const sched::Step& step : schedule.steps) one_step(step, members);
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
      bool begins = true;
      for (const std::uint32_t on : schedule.dependencies_of(schedule.steps[i])) {
        std::fprintf(to_, "l%zu requires l%zu\n", first + i, first + on);
        begins = false;
      }
      if (begins && last_ != 0) std::fprintf(to_, "l%zu requires l%zu\n", first + i, last_);
    }
    std::fprintf(to_, "l%zu: calc 0\n", ++label_);
    for (std::size_t i = 0; i < schedule.steps.size(); ++i)
      std::fprintf(to_, "l%zu requires l%zu\n", label_, first + i);
    last_ = label_;
  }

 private:
  void follows() {
    if (last_ != 0) std::fprintf(to_, "l%zu requires l%zu\n", label_, last_);
  }
  void passes(const char* verb, const char* way, const WalkedMessage& message) {
    std::fprintf(to_, "l%zu: %s %llub %s %d tag %lld\n", ++label_, verb, static_cast<unsigned long long>(message.bytes),
                 way, message.peer, static_cast<long long>(message.tag));
    follows();
    labels_[message.number] = label_;
  }
  void one_step(const sched::Step& step, const std::vector<int>& members) {
    const bool sends = step.kind == sched::Kind::send;
    if (!sends && step.kind != sched::Kind::recv && step.kind != sched::Kind::recv_reduce) {
      std::fprintf(to_, "l%zu: calc 0\n", ++label_);
      return;
    }
    std::fprintf(to_, "l%zu: %s %llub %s %d tag %lld\n", ++label_, sends ? "send" : "recv",
                 static_cast<unsigned long long>(step.length), sends ? "to" : "from",
                 members[static_cast<std::size_t>(step.peer)],
                 static_cast<long long>(kScheduleTag + step.message_index));
  }

  std::FILE* to_;
  std::size_t label_ = 0, last_ = 0;
  std::map<std::size_t, std::size_t> labels_;  // of messages that nobody has waited for
};

class TimeIndependent : public Visitor {
 public:
  TimeIndependent(std::FILE* to, int rank, int ranks) : to_(to), rank_(rank), ranks_(ranks) {}

  void computes(double seconds) override { std::fprintf(to_, "%d compute %lld\n", rank_, nanoseconds(seconds)); }
  void sends(const WalkedMessage& message) override {
    std::fprintf(to_, "%d isend %d %lld %llu\n", rank_, message.peer, static_cast<long long>(message.tag),
                 static_cast<unsigned long long>(message.bytes));
    pending_[message.number] = {rank_, message.peer, message.tag};
  }
  void receives(const WalkedMessage& message) override {
    std::fprintf(to_, "%d irecv %d %lld %llu\n", rank_, message.peer, static_cast<long long>(message.tag),
                 static_cast<unsigned long long>(message.bytes));
    pending_[message.number] = {message.peer, rank_, message.tag};
  }
  void waits(std::size_t message) override {
    const auto found = pending_.find(message);
    if (found == pending_.end()) return;
    std::fprintf(to_, "%d wait %d %d %lld\n", rank_, found->second.from, found->second.to,
                 static_cast<long long>(found->second.tag));
    pending_.erase(found);
  }
  void meets(const Action& action, const std::vector<int>& members, int me) override {
    if (static_cast<int>(members.size()) == ranks_ && says(action)) return;
    const sched::Schedule schedule = schedule_of(action, static_cast<int>(members.size()), me);
    for (const sched::Step& step : schedule.steps) {
      const bool sends = step.kind == sched::Kind::send;
      if (!sends && step.kind != sched::Kind::recv && step.kind != sched::Kind::recv_reduce) continue;
      std::fprintf(
          to_, "%d %s %d %lld %llu\n", rank_, sends ? "isend" : "recv", members[static_cast<std::size_t>(step.peer)],
          static_cast<long long>(kScheduleTag + step.message_index), static_cast<unsigned long long>(step.length));
      if (!sends) continue;
      const auto number = (std::size_t{1} << 40) + extra_++;
      pending_[number] = {rank_, members[static_cast<std::size_t>(step.peer)], kScheduleTag + step.message_index};
      collective_.push_back(number);
    }
    for (const std::size_t each : collective_) waits(each);
    collective_.clear();
  }

 private:
  struct Ends {
    int from, to;
    std::int64_t tag;
  };
  // The format's own word for a collective.
  bool says(const Action& action) {
    const auto bytes = static_cast<unsigned long long>(action.bytes);
    const int root = static_cast<int>(action.root);
    switch (action.collective) {
      case Collective::barrier:
      case Collective::count_: std::fprintf(to_, "%d barrier\n", rank_); return true;
      case Collective::bcast: std::fprintf(to_, "%d bcast %llu %d\n", rank_, bytes, root); return true;
      case Collective::reduce: std::fprintf(to_, "%d reduce %llu 0 %d\n", rank_, bytes, root); return true;
      case Collective::allreduce: std::fprintf(to_, "%d allreduce %llu 0\n", rank_, bytes); return true;
      case Collective::alltoall: std::fprintf(to_, "%d alltoall %llu %llu\n", rank_, bytes, bytes); return true;
      case Collective::allgather: std::fprintf(to_, "%d allgather %llu %llu\n", rank_, bytes, bytes); return true;
      default: return false;
    }
  }

  std::FILE* to_;
  int rank_, ranks_;
  std::map<std::size_t, Ends> pending_;
  std::vector<std::size_t> collective_;
  std::size_t extra_ = 0;
};

}  // namespace

std::uint64_t export_chrome(const JobFile& job, std::FILE* to) {
  const std::vector<double> begin = starts_of(job);
  std::fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [", to);
  for (int r = 0; r < job.ranks(); ++r) {
    const record::Recording& recording = job.of(r);
    std::fprintf(
        to,
        "%s\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 0, \"tid\": %d, \"args\": {\"name\": \"rank %d\"}}",
        r == 0 ? "" : ",", r, r);
    std::vector<std::string> functions, places;  // by term
    for (std::uint32_t term = 0; term < recording.terms(); ++term) {
      functions.push_back(quoted(recording.function(term)));
      places.push_back(quoted(recording.place(term)));
    }
    record::Calls calls(recording);
    double now = begin[static_cast<std::size_t>(r)];
    for (record::Calls::Call call; calls.next(&call); now += call.duration) {
      now += call.gap;
      std::fprintf(to,
                   ",\n{\"ph\": \"X\", \"name\": \"%s\", \"pid\": 0, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, "
                   "\"args\": {\"place\": \"%s\"}}",
                   functions[call.term].c_str(), r, now * 1e6, call.duration * 1e6, places[call.term].c_str());
    }
  }
  std::fputs("\n]}\n", to);
  return 0;
}

std::uint64_t export_goal(const JobFile& job, std::FILE* to) {
  std::uint64_t unknown = 0;
  std::fprintf(to, "num_ranks %d\n", job.ranks());
  for (int rank = 0; rank < job.ranks(); ++rank) {
    std::fprintf(to, "\nrank %d {\n", rank);
    Goal goal(to);
    unknown += walk(job, rank, goal);
    std::fputs("}\n", to);
  }
  return unknown;
}

std::uint64_t export_ti(const JobFile& job, std::FILE* to) {
  std::uint64_t unknown = 0;
  for (int rank = 0; rank < job.ranks(); ++rank) {
    std::fprintf(to, "%d init\n", rank);
    TimeIndependent writer(to, rank, job.ranks());
    unknown += walk(job, rank, writer);
    std::fprintf(to, "%d finalize\n", rank);
  }
  return unknown;
}

}  // namespace stretto::modelling
