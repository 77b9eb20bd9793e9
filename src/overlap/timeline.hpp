// SPDX-License-Identifier: BSD-3-Clause
// When a site's calls took their time. The run is cut into bins of one length, which doubles when
// the bins are full. So any run fits, and all sites and ranks have bins that make up each other's.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace stretto::overlap {

class Timeline {
 public:
  static constexpr std::size_t kBins = 128;
  static constexpr std::uint64_t kFirstBinNs = 1 << 20;
  struct Bin {
    std::uint64_t in_call_ns = 0, late_ns = 0, waited_ns = 0;  // as SiteCounts
  };

  // From `begin_ns` on, since the beginning.
  void add(std::uint64_t Bin::* what, std::uint64_t begin_ns, std::uint64_t ns) {
    const std::uint64_t end_ns = begin_ns + ns;
    while (end_ns > kBins * bin_ns_) fold();
    for (std::uint64_t at = begin_ns; at < end_ns;) {
      const std::uint64_t bin = at / bin_ns_, until = std::min(end_ns, (bin + 1) * bin_ns_);
      bins_[bin].*what += until - at;
      used_ = std::max<std::size_t>(used_, bin + 1);
      at = until;
    }
  }
  [[nodiscard]] std::uint64_t bin_ns() const { return bin_ns_; }
  [[nodiscard]] std::size_t used() const { return used_; }  // bins, the last of which is not empty
  [[nodiscard]] const Bin& bin(std::size_t i) const { return bins_[i]; }

 private:
  void fold() {
    for (std::size_t i = 0; i < kBins / 2; ++i) {
      const Bin &one = bins_[2 * i], &next = bins_[2 * i + 1];
      bins_[i] = {one.in_call_ns + next.in_call_ns, one.late_ns + next.late_ns, one.waited_ns + next.waited_ns};
    }
    std::fill(bins_ + kBins / 2, bins_ + kBins, Bin{});
    used_ = (used_ + 1) / 2;
    bin_ns_ *= 2;
  }

  Bin bins_[kBins];
  std::size_t used_ = 0;
  std::uint64_t bin_ns_ = kFirstBinNs;
};

}  // namespace stretto::overlap
