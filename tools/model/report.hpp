// SPDX-License-Identifier: BSD-3-Clause
// The commands of stretto-model. Each writes one JSON object to stdout; goal writes GOAL text.
#pragma once
#include "json.hpp"
#include "request.hpp"

namespace stretto::modelling {

// Time, critical path and idle time for each algorithm, number of ranks and length. With --per-rank
// also for each rank.
void predict(const Request& request);
// Every step of one job, for diagrams.
void trace(const Request& request);
void write_goal(const Request& request);
// All candidates for each number of ranks and length, the fastest first.
void explain(const Request& request);
// How many rules a file has, and which line of it decides the first call. Line 0: none.
void rules(const Request& request);
// The k-chain's time for every number of chains.
void chains(const Request& request);
// Recorded jobs (job.cpp has the words that follow).
void job(int argc, char** argv);
// How fast the timer itself is.
void benchmark();

// Ends the program where a job's steps do not fit into memory. Says how long a long job will take.
// `period`: as of select::time.
void expect(const select::Machine& machine, const select::Shape& shape, const select::Candidate& candidate,
            int period = 0);
void expect(double steps, double at_once, const std::string& what);
// With --posted: the most messages that are on their way to one rank, or domain of each level, at a
// time.
void write_posted(Json& json, const sched::Timer& timer, const select::Machine& machine, const select::Shape& shape,
                  const select::Candidate& candidate);
void write_path(Json& json, const sched::CriticalPath& path);

}  // namespace stretto::modelling
