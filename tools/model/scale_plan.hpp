// SPDX-License-Identifier: BSD-3-Clause
// What the calls of a program have in common on any number of ranks: its loops, and a law for all
// that changes.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "job_file.hpp"
#include "job_laws.hpp"
#include "job_loops.hpp"
#include "job_peers.hpp"
#include "scale_comms.hpp"

namespace stretto::modelling {

// Ranks that make the same calls: a partition of all ranks.
struct RankClasses {
  const char* name;
  int (*of)(int ranks, int rank);
};

struct ScaleStep {
  std::uint32_t term = 0;
  double gap = 0, duration = 0;
};

// A rank of one of the recordings.
struct ScaledRank {
  std::vector<ScaleStep> steps;
  LoopBody body;
};
struct ScaledJob {
  const JobFile* file = nullptr;
  std::vector<ScaledRank> ranks;
};

// Values of a role that are no peers: lengths of lists and slots.
struct SlotRule {
  enum class Form : std::uint8_t { as_recorded, turn, range } form = Form::as_recorded;
  Count first, length;  // of a turn: first + turn
};
struct TagRule {
  enum class Form : std::uint8_t { constant, turn, me, peer } form = Form::constant;
  std::int64_t beside = 0;
};

// A call at one place in the loops.
struct ScaledCall {
  std::string function, place;
  Law gap, duration;
  Law bytes;  // of the longest list, or of the vector
  std::optional<PeerRule> destination, source, root;
  TagRule send_tag, receive_tag;
  std::map<record::Role, SlotRule> slots;
  double seconds = 0;  // of computation before it, in the recording of most ranks, of all ranks
};
// A loop at one place: its turns.
struct ScaledLoop {
  std::optional<Count> turns;
  bool as_recorded = false;  // they differ from time to time, but are the same for all numbers of ranks
  Law about;                 // else, where they follow no count
};

struct ScaledClass {
  std::vector<ScaledCall> calls;  // in the order of the loops, each body once
  std::vector<ScaledLoop> loops;
};

class ScalePlan {
 public:
  // Ends the program, with the reason, if there is none. The last job has most ranks.
  ScalePlan(const std::vector<const JobFile*>& jobs, int ranks);

  [[nodiscard]] const ScaledJob& reference() const { return jobs_.back(); }
  [[nodiscard]] const RankClasses& classes() const { return *classes_; }
  [[nodiscard]] const ScaledClass& of(int of_class) const { return found_.at(of_class); }
  [[nodiscard]] const std::map<int, ScaledClass>& all() const { return found_; }
  // Loops of few turns, always as many: each turn has laws of its own.
  [[nodiscard]] bool unrolls(const LoopNode& loop) const { return unrolled_.count(loop.number) != 0; }
  [[nodiscard]] const CommRule& comm(std::int64_t id) const { return comms_.at(id); }
  [[nodiscard]] const std::map<std::int64_t, CommRule>& comms() const { return comms_; }

 private:
  void read(const std::vector<const JobFile*>& jobs);
  void find_unrolled();
  bool same_loops(const RankClasses& classes, int ranks, std::string* why) const;
  void find_comms(const std::vector<const JobFile*>& jobs);

  std::vector<ScaledJob> jobs_;
  const RankClasses* classes_ = nullptr;
  std::map<int, ScaledClass> found_;
  std::set<std::uint32_t> unrolled_;
  std::map<std::int64_t, CommRule> comms_;
};

// The laws of one class. False: a call follows none.
class ClassLaws {
 public:
  ClassLaws(const ScalePlan& plan, const std::vector<ScaledJob>& jobs, const RankClasses& classes, int of_class);
  bool find(ScaledClass& found, std::string* why);

 private:
  struct Sample {
    std::size_t job;
    int rank, turn;
    std::uint32_t term;
    bool operator<(const Sample& other) const;
  };
  struct CallSamples {
    std::map<Sample, std::uint64_t> named;    // how often
    std::vector<double> gaps, counts, bytes;  // sums by job
    std::vector<std::vector<double>> least;   // durations by job, and how often the call has come
  };

  struct LoopSamples {
    std::vector<std::map<std::int64_t, std::uint64_t>> turns;  // by job: how often so many
  };

  void add(std::size_t job, int rank, const LoopBody& body, int turn, std::size_t& call, std::size_t& loop);
  bool find_call(std::size_t number, ScaledCall& call, std::string* why);
  bool find_loop(std::size_t number, ScaledLoop& loop, std::string* why);
  bool find_peer(const CallSamples& samples, record::Role role, std::optional<PeerRule>& rule, std::string* why);
  bool find_tag(const CallSamples& samples, record::Role role, record::Role peer, TagRule& rule);
  bool find_slots(const CallSamples& samples, record::Role role, SlotRule& rule);
  [[nodiscard]] record::Values values(const Sample& sample, record::Role role) const;
  [[nodiscard]] int comm_size(const Sample& sample) const;
  [[nodiscard]] int comm_rank(const Sample& sample) const;

  const ScalePlan& plan_;
  const std::vector<ScaledJob>& jobs_;
  const RankClasses& classes_;
  int class_;
  std::vector<CallSamples> calls_;
  std::vector<LoopSamples> loops_;
  std::vector<std::size_t> came_;  // of one rank: how often each call has come
};

}  // namespace stretto::modelling
