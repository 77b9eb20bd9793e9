// SPDX-License-Identifier: BSD-3-Clause
#include "scale_comms.hpp"

#include <algorithm>

#include "job_comms.hpp"
#include "job_peers.hpp"

namespace stretto::modelling {
namespace {

struct CommSample {
  int ranks, rank;
  std::vector<int> members;
};

struct ExtentForm {
  int (*of)(int ranks, int parameter);
  int (*parameter)(int ranks, int value);
};
int same_value(int /*ranks*/, int value) { return value; }
int share_of(int ranks, int value) { return value > 0 ? ranks / value : 1; }

template <int dimensions, int along>
int extent_of(int ranks, int /*parameter*/) {
  return grid_extents(ranks, dimensions)[along];
}
template <int along>
int behind_of(int ranks, int /*parameter*/) {
  const std::vector<int> extents = grid_extents(ranks, 3);
  return along == 0 ? extents[1] * extents[2] : extents[2];
}

constexpr ExtentForm kExtents[] = {
    {[](int, int p) { return p; }, same_value},
    {[](int n, int p) { return std::max(1, n / std::max(1, p)); }, share_of},
    {extent_of<2, 0>, same_value},
    {extent_of<2, 1>, same_value},
    {extent_of<3, 0>, same_value},
    {extent_of<3, 1>, same_value},
    {extent_of<3, 2>, same_value},
    {behind_of<0>, same_value},
};

// False: why it has no rule.
bool comm_samples(const std::vector<const JobFile*>& jobs, std::int64_t id, std::vector<CommSample>& samples,
                  std::string* why) {
  for (const JobFile* const job : jobs) {
    for (int rank = 0; rank < job->ranks(); ++rank) {
      const record::Communicator* const comm = job->of(rank).communicator(id);
      if (comm == nullptr) continue;
      if (comm->remote_size > 0 || comm->flags != 0) *why = "of two groups, or has members from outside";
      if (!why->empty()) return false;
      samples.push_back({job->ranks(), rank, members_of(job->of(rank), *comm)});
    }
  }
  return true;
}

}  // namespace

int CommRule::size(int ranks) const { return kExtents[size_form_].of(ranks, size_parameter_); }
int CommRule::step(int ranks) const { return kExtents[step_form_].of(ranks, step_parameter_); }

bool CommRule::find(const std::vector<const JobFile*>& jobs, std::int64_t id, std::string* why) {
  std::vector<CommSample> samples;
  if (!comm_samples(jobs, id, samples, why)) return false;
  const auto follows = [&](const CommSample& each) {
    const int step = this->step(each.ranks), size = this->size(each.ranks), first = this->first(each.ranks, each.rank);
    if (static_cast<int>(each.members.size()) != size) return false;
    for (int i = 0; i < size; ++i) {
      if (each.members[static_cast<std::size_t>(i)] != first + i * step) return false;
    }
    return true;
  };
  const auto largest = std::max_element(
      samples.begin(), samples.end(), [](const auto& a, const auto& b) { return a.members.size() < b.members.size(); });
  const std::vector<int>& members = largest->members;
  const int step = members.size() > 1 ? members[1] - members[0] : 1;
  if (step < 1) {
    *why = "has ranks in an order that follows no rule";
    return false;
  }
  // All ranks before a part of them, whose number stays.
  for (const std::size_t form : {1, 2, 3, 4, 5, 6, 0}) {
    if (members.size() == 1 && form != 0) continue;
    for (step_form_ = 0; step_form_ < std::size(kExtents); ++step_form_) {
      size_form_ = form;
      size_parameter_ = kExtents[form].parameter(largest->ranks, static_cast<int>(members.size()));
      step_parameter_ = kExtents[step_form_].parameter(largest->ranks, step);
      if (std::all_of(samples.begin(), samples.end(), follows)) return true;
    }
  }
  *why = "has members that follow no rule";
  return false;
}

}  // namespace stretto::modelling
