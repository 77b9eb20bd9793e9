// SPDX-License-Identifier: BSD-3-Clause
#include "job_gaps.hpp"

#include <algorithm>
#include <cmath>

namespace stretto::modelling {
namespace {

constexpr std::size_t kMost = 256;  // times of a place

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
  value = (value ^ value >> 27) * 0x94D049BB133111EBu;
  return value ^ value >> 31;
}
constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15u;

double gap_of(const record::Calls::Call& call, bool by_processor) {
  return by_processor && call.processor >= 0 ? std::min(call.gap, call.processor) : call.gap;
}

}  // namespace

// Each time is kept with the same chance (Vitter 1985, algorithm R). Then all of a place are scaled
// so that their mean is that of all its times.
GapSample::GapSample(const record::Recording& recording, bool by_processor) : by_term_(recording.terms()) {
  struct Sum {
    std::uint64_t count = 0;
    double seconds = 0;
  };
  std::vector<Sum> sums(recording.terms());
  record::Calls calls(recording);
  for (record::Calls::Call call; calls.next(&call);) {
    std::vector<float>& kept = by_term_[call.term];
    Sum& sum = sums[call.term];
    const double gap = gap_of(call, by_processor);
    sum.seconds += gap;
    ++sum.count;
    const std::uint64_t place = mixed(sum.count * kStep) % sum.count;
    if (kept.size() < kMost)
      kept.push_back(static_cast<float>(gap));
    else if (place < kMost)
      kept[place] = static_cast<float>(gap);
  }
  for (std::size_t term = 0; term < sums.size(); ++term) {
    double kept = 0;
    for (const float each : by_term_[term]) kept += static_cast<double>(each);
    if (kept <= 0) continue;
    const double mean = sums[term].seconds / static_cast<double>(sums[term].count);
    for (float& each : by_term_[term])
      each = static_cast<float>(each * mean * static_cast<double>(by_term_[term].size()) / kept);
  }
}

Gaps::Gaps(const GapOptions& options, const record::Recording& recording, double factor)
    : options_(options),
      sample_(options.samples == nullptr ? nullptr
                                         : &(*options.samples)[static_cast<std::size_t>(recording.header().rank)]),
      factor_(factor * options.compute),
      state_(mixed(options.seed * kStep + static_cast<std::uint64_t>(recording.header().rank))) {}

std::uint64_t Gaps::chance() { return mixed(state_ += kStep); }

double Gaps::next(const record::Calls::Call& call) {
  double gap = sample_ != nullptr ? sample_->of(call.term, chance()) : gap_of(call, options_.by_processor);
  if (options_.noise > 0) {
    const double uniform = static_cast<double>((chance() >> 11) + 1) * 0x1p-53;  // above 0, at most 1
    gap *= 1 - options_.noise * std::log(uniform);
  }
  return gap * factor_;
}

}  // namespace stretto::modelling
