// SPDX-License-Identifier: BSD-3-Clause
#include "job_critical.hpp"

#include <algorithm>

namespace stretto::modelling {

Path Waits::path_to(std::size_t rank, double end) const {
  Path path(of_.size());
  for (std::size_t waits = of_[rank].size(); waits > 0;) {
    const Cause& cause = of_[rank][waits - 1];
    path[rank].push_back({cause.time, end});  // a message's own time is that of the rank that waits
    end = cause.time;
    rank = static_cast<std::size_t>(cause.rank);
    waits = cause.waits;
  }
  path[rank].push_back({0, end});
  for (std::vector<Stretch>& each : path) std::reverse(each.begin(), each.end());
  return path;
}

OnPath::OnPath(int rank, std::vector<Stretch> path, std::uint32_t terms) : path_(std::move(path)), by_term_(terms) {
  for (std::uint32_t term = 0; term < terms; ++term) by_term_[term] = {rank, term};
}

void OnPath::add(std::uint32_t term, double computes_from, double called, double end) {
  if (path_.empty()) return;
  by_term_[term].compute += part(computes_from, called);
  by_term_[term].in_call += part(called, end);
}

double OnPath::part(double begin, double end) {
  double sum = 0;
  while (next_ < path_.size() && path_[next_].end <= begin) ++next_;
  for (std::size_t i = next_; i < path_.size() && path_[i].begin < end; ++i)
    sum += std::max(0.0, std::min(end, path_[i].end) - std::max(begin, path_[i].begin));
  return sum;
}

void OnPath::tell(std::vector<Critical>& all) const {
  for (const Critical& each : by_term_) {
    if (each.compute + each.in_call > 0) all.push_back(each);
  }
}

}  // namespace stretto::modelling
