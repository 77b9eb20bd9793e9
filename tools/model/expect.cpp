// SPDX-License-Identifier: BSD-3-Clause
// Estimates how much work a job is for the timer, before the job begins.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <span>

#include "report.hpp"

namespace stretto::modelling {
namespace {

// Of the timer, measured by `stretto model bench`. A machine is rarely twice as fast or slow.
constexpr double kRankBytes = 250, kStepBytes = 50, kStepsPerSecond = 2e6;
constexpr double kLongSeconds = 5;

std::string rounded(double number, const char* unit) {
  char text[32];
  std::snprintf(text, sizeof text, number < 9.5 ? "%.1g %s" : "%.0f %s", number, unit);
  return text;
}
std::string lasting(double seconds) {
  if (seconds < 100) return rounded(seconds, "s");
  return seconds < 6000 ? rounded(seconds / 60, "minutes") : rounded(seconds / 3600, "hours");
}
// The memory that this machine has left.
double memory_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return 1024 * std::strtod(line.c_str() + line.find(':') + 1, nullptr);
  }
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}
std::string gibibytes(double bytes) { return rounded(bytes / (1 << 30), "GiB"); }

// The steps of all ranks, estimated from a few of them. A few ranks, as a root, have more to do
// than the others; they are left out. Where one rank stands for all, one is enough.
double steps_of(const select::Machine& machine, const select::Shape& shape, const select::Candidate& candidate,
                int period) {
  sched::Builder builder;
  std::size_t least = ~std::size_t{0};
  const int few[] = {shape.ranks / 3, shape.ranks / 2, shape.ranks - 1 - shape.ranks / 3};
  for (const int rank : std::span(few, period == 1 ? 1 : std::size(few))) {
    sched::Schedule schedule = select::build(builder, machine, shape, candidate, rank);
    least = std::min<std::size_t>(least, schedule.steps.size());
    builder.recycle(static_cast<sched::Schedule&&>(schedule));
  }
  return static_cast<double>(least) * (period > 0 ? period : shape.ranks);
}

}  // namespace

void expect_ranks(int ranks) {
  const double memory = kRankBytes * ranks;
  if (memory > memory_bytes())
    stop(std::to_string(ranks) + " ranks take " + gibibytes(memory) + " of memory: fewer, please");
}

void expect(double steps, double at_once, const std::string& what) {
  const std::string length = what + ": some " + rounded(steps / 1e6, "million steps");
  const double memory = at_once * kStepBytes;  // ranks need little beside
  if (memory > memory_bytes() || at_once > sched::Timer::kNone) {
    stop(length + ", which take " + gibibytes(memory) + " of memory and would run for " +
         lasting(steps / kStepsPerSecond) + ": fewer ranks or segments, please");
  }
  if (steps < kLongSeconds * kStepsPerSecond) return;
  std::fprintf(stderr, "note %s, about %s\n", length.c_str(), lasting(steps / kStepsPerSecond).c_str());
}

void expect(const select::Machine& machine, const select::Shape& shape, const select::Candidate& candidate,
            int period) {
  const double steps = steps_of(machine, shape, candidate, period);
  expect(steps, steps,
         std::string(kCollectiveNames[static_cast<int>(shape.collective)]) + " by " + candidate.name() + " on " +
             std::to_string(shape.ranks) + " ranks");
}

}  // namespace stretto::modelling
