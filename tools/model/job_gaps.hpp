// SPDX-License-Identifier: BSD-3-Clause
// How long a rank of a replay computes before each call: as recorded, or otherwise. All random
// numbers follow from the seed, the rank, and the number of the call.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "job_file.hpp"

namespace stretto::modelling {

// What a rank has computed between the same two calls, as some times by chance.
class GapSample {
 public:
  static constexpr std::uint32_t kBegin = ~std::uint32_t{0};  // in place of the term before the first one
  GapSample(const record::Recording& recording, bool by_processor);
  // A time between calls of these terms, in seconds.
  [[nodiscard]] double of(std::uint32_t before, std::uint32_t term, std::uint64_t chance) const {
    const std::vector<float>& all = times_.at(key(before, term));
    return all[chance % all.size()];
  }

 private:
  static std::uint64_t key(std::uint32_t before, std::uint32_t term) { return std::uint64_t{before} << 32 | term; }

  std::unordered_map<std::uint64_t, std::vector<float>> times_;
};

struct GapOptions {
  double compute = 1;         // a factor
  bool by_processor = false;  // without the time without a processor
  double noise = 0;           // computation takes longer by this part of it in the mean, exponentially
  std::uint64_t seed = 0;
  // By rank. Each gap is another one between the same calls. Null: as recorded.
  const std::vector<GapSample>* samples = nullptr;
};

class Gaps {
 public:
  // `factor`: beside that of the options.
  Gaps(const GapOptions& options, const record::Recording& recording, double factor);
  // The gap before this call, which is the rank's next one, in seconds.
  double next(const record::Calls::Call& call);

 private:
  std::uint64_t chance();

  const GapOptions& options_;
  const GapSample* sample_;
  double factor_;
  std::uint64_t state_;
  std::uint32_t before_ = GapSample::kBegin;
};

}  // namespace stretto::modelling
