// SPDX-License-Identifier: BSD-3-Clause
#include "job_clocks.hpp"

#include <algorithm>
#include <cmath>

#include "job_actions.hpp"

namespace stretto::modelling {
namespace {

struct Stay {
  double came, left;  // in seconds from the rank's own begin
};

// In calls of MPI_COMM_WORLD in which all wait for all: the n-th of each rank is the same call.
std::vector<Stay> stays_of(const record::Recording& recording) {
  const std::vector<Action> actions = actions_of(recording);
  const auto counts = [](const Action& action) {
    return action.act == Act::collective && action.comm == 0 && action.collective != Collective::count_ &&
           waits_for_all(action.collective) && !is_neighborhood(action.collective);
  };
  std::vector<Stay> stays;
  record::Calls calls(recording);
  double now = 0;
  for (record::Calls::Call call; calls.next(&call); now += call.duration) {
    now += call.gap;
    if (counts(actions[call.term])) stays.push_back({now, now + call.duration});
  }
  return stays;
}

}  // namespace

std::vector<double> starts_of(const JobFile& job) {
  if (job.has_one_clock()) return job.starts();
  std::vector<double> starts(static_cast<std::size_t>(job.ranks()), 0);
  const std::vector<Stay> first = stays_of(job.of(0));
  for (int r = 1; r < job.ranks(); ++r) {
    const std::vector<Stay> own = stays_of(job.of(r));
    double least = -INFINITY, most = INFINITY;
    std::vector<double> ahead;
    for (std::size_t i = 0; i < std::min(first.size(), own.size()); ++i) {
      least = std::max(least, first[i].came - own[i].left);
      most = std::min(most, first[i].left - own[i].came);
      ahead.push_back(first[i].left - own[i].left);
    }
    if (ahead.empty()) continue;
    const auto middle = ahead.begin() + static_cast<std::ptrdiff_t>(ahead.size() / 2);
    std::nth_element(ahead.begin(), middle, ahead.end());
    // Kept times are not exact: the range may be empty.
    starts[static_cast<std::size_t>(r)] = least > most ? (least + most) / 2 : std::clamp(*middle, least, most);
  }
  const double earliest = *std::min_element(starts.begin(), starts.end());
  for (double& start : starts) start -= earliest;
  return starts;
}

}  // namespace stretto::modelling
