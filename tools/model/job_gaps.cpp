// SPDX-License-Identifier: BSD-3-Clause
#include "job_gaps.hpp"

#include <algorithm>
#include <cmath>

namespace stretto::modelling {
namespace {

constexpr std::size_t kMost = 256;  // times between the same calls

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

// Each time is kept with the same chance (Vitter 1985, algorithm R). Then all of a kind are scaled
// so that their mean is that of all times, kept or not.
GapSample::GapSample(const record::Recording& recording, bool by_processor) {
  struct Sum {
    std::uint64_t count = 0;
    double seconds = 0;
  };
  std::unordered_map<std::uint64_t, Sum> sums;
  record::Calls calls(recording);
  std::uint32_t before = kBegin;
  for (record::Calls::Call call; calls.next(&call); before = call.term) {
    const double gap = gap_of(call, by_processor);
    std::vector<float>& kept = times_[key(before, call.term)];
    Sum& sum = sums[key(before, call.term)];
    sum.seconds += gap;
    ++sum.count;
    const std::uint64_t place = mixed(sum.count * kStep) % sum.count;
    if (kept.size() < kMost)
      kept.push_back(static_cast<float>(gap));
    else if (place < kMost)
      kept[place] = static_cast<float>(gap);
  }
  for (auto& [kind, kept] : times_) {
    double seconds = 0;
    for (const float each : kept) seconds += static_cast<double>(each);
    const Sum& sum = sums[kind];
    const double by =
        seconds > 0 ? sum.seconds / static_cast<double>(sum.count) * static_cast<double>(kept.size()) / seconds : 0;
    for (float& each : kept) each = static_cast<float>(each * by);
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
  double gap = sample_ != nullptr ? sample_->of(before_, call.term, chance()) : gap_of(call, options_.by_processor);
  before_ = call.term;
  if (options_.noise > 0) {
    const double uniform = static_cast<double>((chance() >> 11) + 1) * 0x1p-53;  // above 0, at most 1
    gap *= 1 - options_.noise * std::log(uniform);
  }
  return gap * factor_;
}

}  // namespace stretto::modelling
