// SPDX-License-Identifier: BSD-3-Clause
// Jobs for the verifier, and schedules that are broken on purpose.
#pragma once
#include <functional>
#include <string>

#include "coll/postcondition.hpp"

namespace stretto::test {

using coll::Algorithm;
using coll::Job;
using coll::Parameters;
using sched::Schedule;
using sched::Step;

inline Job make_job(Collective collective, int size, std::uint64_t count, int root = 0, bool commutative = true) {
  Job job;
  job.problem.collective = collective;
  job.problem.size = size;
  job.problem.count = count;
  job.problem.root = root;
  job.problem.commutative = commutative;
  return job;
}

// Verifies an algorithm after `change` has changed the schedule of each rank. Returns what was
// found, "" for nothing.
using Change = std::function<void(int rank, Schedule& schedule)>;
inline std::string verify(const Job& job, const Algorithm& algorithm, const Parameters& parameters = {},
                          const Change& change = {}) {
  sched::Verifier verifier;
  coll::Builder builder;
  const bool good = coll::keeps_promise(verifier, job, [&](const coll::Problem& problem) {
    Schedule schedule = coll::build(builder, algorithm, problem, parameters);
    if (change) change(problem.rank, schedule);
    return schedule;
  });
  EXPECT_EQ(good, verifier.failure().empty());
  return verifier.failure();
}
inline std::string verify(const Job& job, coll::Emit emit, const Parameters& parameters = {},
                          const Change& change = {}) {
  const Collective collective = coll::regular_form(job.problem.collective);
  return verify(job, Algorithm{collective, "tested", emit, Algorithm::nothing, 2, false}, parameters, change);
}

}  // namespace stretto::test
