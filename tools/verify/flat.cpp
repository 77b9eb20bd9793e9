// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "trials.hpp"

namespace stretto::verifying {
namespace {

using coll::Algorithm;
using coll::Job;
using coll::Parameters;

constexpr int kSegments[] = {1, 2, 3, 7};

Collective other_form(const Algorithm& algorithm) {
  if (algorithm.needs & Algorithm::equal_parts) return Collective::count_;
  switch (algorithm.collective) {
    case Collective::gather: return Collective::gatherv;
    case Collective::scatter: return Collective::scatterv;
    case Collective::allgather: return Collective::allgatherv;
    case Collective::alltoall: return Collective::alltoallv;
    case Collective::reduce_scatter: return Collective::reduce_scatter_block;
    default: return Collective::count_;
  }
}

// All trials of one algorithm on one number of ranks.
class Trials {
 public:
  Trials(Findings& findings, const Algorithm& algorithm) : findings_(findings), algorithm_(algorithm) {}

  void run(Collective collective, int ranks) {
    Job job;
    job.problem.collective = collective;
    job.problem.size = ranks;
    const bool in_place_exists = collective != Collective::bcast && collective != Collective::barrier;
    for (int root = 0; root < (job.is_rooted() ? ranks : 1); ++root) {
      job.problem.root = root;
      for (int in_place = 0; in_place <= (in_place_exists ? 1 : 0); ++in_place) {
        job.problem.in_place = in_place != 0;
        for (int commutative = job.is_reduction() ? 0 : 1; commutative <= 1; ++commutative) {
          if (!commutative && algorithm_.needs & Algorithm::commutative) continue;
          job.problem.commutative = commutative != 0;
          parameters(job);
        }
      }
    }
  }

 private:
  // Parameters change from trial to trial. At root 0 all of them are tried.
  void parameters(Job& job) {
    const int size = job.problem.size;
    const int ks[] = {0, 2, 3, std::max(2, size - 1), 5};
    const int windows[] = {0, 1, 3};
    for (const int segments : kSegments) {
      if (segments > 1 && !algorithm_.segmentable()) break;
      const std::size_t some =
          mixed(static_cast<std::uint64_t>(size * 64 + job.problem.root) * 8 + static_cast<std::uint64_t>(segments));
      const bool all = job.problem.root == 0;
      for (std::size_t i = 0; i < std::size(ks); ++i) {
        if (algorithm_.k == 0 ? i != 0 : !all && i != some % std::size(ks)) continue;
        for (std::size_t w = 0; w < std::size(windows); ++w) {
          if (!algorithm_.window ? w != 0 : !all && w != some % std::size(windows)) continue;
          trial(job, {segments, ks[i], windows[w]}, some);
        }
      }
    }
  }

  void trial(Job& job, const Parameters& p, std::size_t some) {
    lengths(job, some);
    const auto build_rank = [&](const coll::Problem& problem) {
      return coll::build(findings_.builder, algorithm_, problem, p);
    };
    findings_.judge(job, build_rank, [&] {
      std::string name = describe(job) + " algorithm=" + algorithm_.name + " segments=" + std::to_string(p.segments);
      if (p.k) name += " k=" + std::to_string(p.k);
      if (p.window) name += " window=" + std::to_string(p.window);
      return name;
    });
  }

  // Lengths that can be cut everywhere, or so short that some ranks get nothing.
  void lengths(Job& job, std::size_t some) const {
    const auto size = static_cast<std::uint64_t>(job.problem.size);
    const Collective form = coll::regular_form(job.problem.collective);
    const bool vector = form == Collective::bcast || (job.is_reduction() && form != Collective::reduce_scatter);
    const std::uint64_t counts[] = {vector ? 16 * size + 5 : 11, vector ? size + 1 : 8, vector ? 3u : 1u, 1021};
    job.problem.count = counts[some / 16 % std::size(counts)];
    uneven_parts(job, some);
    if ((algorithm_.needs & Algorithm::in_pieces) == 0) return;
    constexpr std::uint64_t kLong = 2000;  // messages that are cut
    job.problem.count *= kLong;
    for (std::uint64_t& begin : job.begins) begin *= kLong;
  }

  Findings& findings_;
  const Algorithm& algorithm_;
};

bool wanted(const Arguments& arguments, const Algorithm& algorithm) {
  if (arguments.algorithms.empty()) return true;
  const std::string collective = kCollectiveNames[static_cast<int>(algorithm.collective)];
  return std::any_of(arguments.algorithms.begin(), arguments.algorithms.end(), [&](const std::string& name) {
    return name == collective || name == collective + ":" + algorithm.name;
  });
}

}  // namespace

std::vector<Unit> flat_units(const Arguments& arguments) {
  std::vector<Unit> units;
  const auto add = [&](const Algorithm& algorithm, Collective collective, int ranks) {
    Job job;
    job.problem.collective = collective;
    const double weight = static_cast<double>(ranks) * ranks * (job.is_rooted() ? ranks : 1);
    units.push_back(
        {weight, [&algorithm, collective, ranks](Findings& f) { Trials(f, algorithm).run(collective, ranks); }});
  };
  for (const Algorithm& algorithm : coll::manifest()) {
    if (!wanted(arguments, algorithm)) continue;
    for (int ranks = arguments.least_ranks; ranks <= arguments.most_ranks; ++ranks) {
      add(algorithm, algorithm.collective, ranks);
      if (other_form(algorithm) != Collective::count_) add(algorithm, other_form(algorithm), ranks);
    }
  }
  return units;
}

}  // namespace stretto::verifying
