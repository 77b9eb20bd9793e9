// SPDX-License-Identifier: BSD-3-Clause
#include "sched/critical_path.hpp"

namespace stretto::sched {
namespace {

void add_work(CriticalPath& path, const Timer::View& step) {
  const double rest = step.end - step.begin - step.overhead;
  path.overhead += step.overhead;
  (step.kind == Kind::copy ? path.copy : path.reduce) += rest;
}

// Adds the time between a step and what it waited for.
void add_wait(CriticalPath& path, const Timer::View& step, const Timer::View& before) {
  if (step.cause == Cause::processor) path.overhead += step.begin - before.end;  // handling
  if (step.cause == Cause::gap) path.gap += step.begin - before.end;
  const bool came = step.cause == Cause::message || (step.cause == Cause::crowd && step.rank != before.rank);
  const double rest = step.begin - before.end - (came ? before.latency + before.bytes_time : 0);
  if (step.cause == Cause::crowd) path.crowd += rest;
  if (!came) return;
  ++path.messages;
  path.latency += before.latency;
  path.bytes += before.bytes_time;
  if (step.cause == Cause::message) path.port += rest;
}

}  // namespace

CriticalPath critical_path(const Timer& timer) {
  CriticalPath path;
  std::uint32_t at = timer.final_step();
  if (at != Timer::kNone) path.overhead += timer.end() - timer.step(at).end;
  while (at != Timer::kNone) {
    const Timer::View step = timer.step(at);
    path.steps.push(at);
    add_work(path, step);
    const std::uint32_t before = timer.cause_of(at);
    if (before == Timer::kNone) {
      path.entry = timer.rank(step.rank).start;
      path.overhead += step.begin - path.entry;
    } else {
      add_wait(path, step, timer.step(before));
    }
    at = before;
  }
  return path;
}

}  // namespace stretto::sched
