// SPDX-License-Identifier: BSD-3-Clause
#include "scale_plan.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "job_words.hpp"

namespace stretto::modelling {
namespace {

using record::Recording;
using record::Role;

constexpr std::size_t kFewTurns = 12;

int border(int at, int extent) { return at == 0 ? 0 : at == extent - 1 ? 2 : 1; }

int grid_border(int ranks, int rank) {
  const std::vector<int> extents = grid_extents(ranks, 2);
  return 3 * border(rank / extents[1], extents[0]) + border(rank % extents[1], extents[1]);
}

// Those with fewer classes first.
constexpr RankClasses kClasses[] = {
    {"all ranks", [](int, int) { return 0; }},
    {"rank 0, and the others", [](int, int rank) { return rank == 0 ? 0 : 1; }},
    {"the last rank, and the others", [](int ranks, int rank) { return rank == ranks - 1 ? 1 : 0; }},
    {"even and odd ranks", [](int, int rank) { return rank % 2; }},
    {"the first rank, the last one, and those between", [](int ranks, int rank) { return border(rank, ranks); }},
    {"borders of a grid of 2 dimensions", grid_border},
};

// A step's number: what is called, and where.
class SiteNumbers {
 public:
  std::uint32_t of(const Recording& recording, std::uint32_t term) {
    return numbers_
        .try_emplace({text_of(recording.function(term)), text_of(recording.place(term))},
                     static_cast<std::uint32_t>(numbers_.size()))
        .first->second;
  }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(numbers_.size()); }

 private:
  std::map<std::pair<std::string, std::string>, std::uint32_t> numbers_;
};

// Looks in vain are time of the call behind them: how often a rank looks is chance.
std::vector<ScaleStep> steps_of(const Recording& recording) {
  std::vector<ScaleStep> steps;
  record::Calls calls(recording);
  double in_vain = 0;
  for (record::Calls::Call call; calls.next(&call);) {
    const record::Values flag = recording.values(call.term, Role::flag);
    if (flag && flag.one() == 0) {
      in_vain += call.gap + call.duration;
      continue;
    }
    steps.push_back({call.term, call.gap, call.duration + in_vain});
    in_vain = 0;
  }
  return steps;
}

bool same_numbers(const LoopBody& a, const LoopBody& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const LoopNode& x, const LoopNode& y) { return x.number == y.number; });
}

}  // namespace

void ScalePlan::read(const std::vector<const JobFile*>& jobs) {
  SiteNumbers sites;
  std::vector<std::vector<std::vector<std::uint32_t>>> numbers(jobs.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    jobs_.push_back({jobs[j], {}});
    for (int rank = 0; rank < jobs[j]->ranks(); ++rank) {
      const Recording& recording = jobs[j]->of(rank);
      ScaledRank its;
      its.steps = steps_of(recording);
      numbers[j].emplace_back();
      for (const ScaleStep& step : its.steps) numbers[j].back().push_back(sites.of(recording, step.term));
      jobs_[j].ranks.push_back(std::move(its));
    }
  }
  Folder folder(sites.count());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    for (std::size_t rank = 0; rank < numbers[j].size(); ++rank)
      jobs_[j].ranks[rank].body = folder.fold(numbers[j][rank]);
  }
}

void ScalePlan::find_unrolled() {
  std::map<std::uint32_t, std::set<std::size_t>> turns;
  const std::function<void(const LoopBody&)> look = [&](const LoopBody& body) {
    for (const LoopNode& node : body) {
      if (!node.is_loop()) continue;
      turns[node.number].insert(node.turns.size());
      for (const LoopBody& turn : node.turns) look(turn);
    }
  };
  for (const ScaledJob& job : jobs_) {
    for (const ScaledRank& rank : job.ranks) look(rank.body);
  }
  for (const auto& [number, its] : turns) {
    if (its.size() == 1 && *its.begin() <= kFewTurns) unrolled_.insert(number);
  }
}

void ScalePlan::find_comms(const std::vector<const JobFile*>& jobs) {
  std::set<std::int64_t> ids;
  for (const JobFile* const job : jobs) {
    for (int rank = 0; rank < job->ranks(); ++rank) {
      for (const record::Communicator& comm : job->of(rank).communicators()) ids.insert(comm.id);
    }
  }
  for (const std::int64_t id : ids) {
    std::string why;
    if (!comms_[id].find(jobs, id, &why)) stop("communicator " + std::to_string(id) + " " + why);
  }
}

// Whether the ranks of each class make the same calls in the same loops, in all recordings.
bool ScalePlan::same_loops(const RankClasses& classes, int ranks, std::string* why) const {
  std::map<int, const LoopBody*> bodies;
  for (const ScaledJob& job : jobs_) {
    const int of_ranks = job.file->ranks();
    std::set<int> here;
    for (int rank = 0; rank < of_ranks; ++rank) {
      const LoopBody& body = job.ranks[static_cast<std::size_t>(rank)].body;
      const int of_class = classes.of(of_ranks, rank);
      here.insert(of_class);
      const auto [known, is_new] = bodies.try_emplace(of_class, &body);
      if (is_new || same_numbers(*known->second, body)) continue;
      *why = "rank " + std::to_string(rank) + " of " + std::to_string(of_ranks) +
             " makes other calls, or in other loops, than the ranks before it";
      return false;
    }
    for (int rank = 0; rank < ranks; ++rank) {
      if (here.count(classes.of(ranks, rank)) == 0) {
        *why = "no rank of " + std::to_string(of_ranks) + " stands for rank " + std::to_string(rank) + " of " +
               std::to_string(ranks);
        return false;
      }
    }
  }
  return true;
}

ScalePlan::ScalePlan(const std::vector<const JobFile*>& jobs, int ranks) {
  read(jobs);
  find_unrolled();
  find_comms(jobs);
  std::string first_why;
  for (const RankClasses& classes : kClasses) {
    std::string why;
    bool good = same_loops(classes, ranks, &why);
    found_.clear();
    for (int rank = 0; good && rank < ranks; ++rank) {
      const int of_class = classes.of(ranks, rank);
      if (found_.count(of_class) != 0) continue;
      good = ClassLaws(*this, jobs_, classes, of_class).find(found_[of_class], &why);
    }
    if (good) {
      classes_ = &classes;
      return;
    }
    // A reason within the laws says more than one of the classes.
    if (first_why.empty() || (classes.of(2, 0) == classes.of(2, 1))) first_why = why;
  }
  stop("the recordings follow no law of the number of ranks: " + first_why);
}

}  // namespace stretto::modelling
