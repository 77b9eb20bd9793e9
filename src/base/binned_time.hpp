// SPDX-License-Identifier: BSD-3-Clause
// When a run took its time. The run is cut into bins of one length, which doubles when the bins are
// full. So any run fits, and all bins of all ranks begin at multiples of a common length.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace stretto {

// `Bin` has times, and operator+=.
template <class Bin, std::size_t bins>
class BinnedTime {
  static_assert(bins % 2 == 0);

 public:
  static constexpr std::size_t kBins = bins;
  static constexpr std::uint64_t kFirstBinNs = 1 << 20;

  // From `begin_ns` on, since the beginning.
  void add(std::uint64_t Bin::* what, std::uint64_t begin_ns, std::uint64_t ns) {
    const std::uint64_t end_ns = begin_ns + ns;
    while (end_ns > kBins << shift_) fold();
    const std::uint64_t first = begin_ns >> shift_;
    if (end_ns <= (first + 1) << shift_) [[likely]] {
      bins_[first].*what += ns;
      if (first >= used_ && ns != 0) [[unlikely]]
        used_ = first + 1;
      return;
    }
    for (std::uint64_t at = begin_ns; at < end_ns;) {
      const std::uint64_t bin = at >> shift_, until = std::min(end_ns, (bin + 1) << shift_);
      bins_[bin].*what += until - at;
      used_ = std::max<std::size_t>(used_, bin + 1);
      at = until;
    }
  }
  [[nodiscard]] std::uint64_t bin_ns() const { return std::uint64_t{1} << shift_; }
  [[nodiscard]] std::size_t used() const { return used_; }  // bins, the last of which is not empty
  [[nodiscard]] const Bin& bin(std::size_t i) const { return bins_[i]; }
  // Whether a copy of another process's memory holds together.
  [[nodiscard]] bool is_sound() const { return used_ <= kBins && shift_ >= 20 && shift_ < 64; }

 private:
  void fold() {
    for (std::size_t i = 0; i < kBins / 2; ++i) {
      bins_[i] = bins_[2 * i];
      bins_[i] += bins_[2 * i + 1];
    }
    std::fill(bins_ + kBins / 2, bins_ + kBins, Bin{});
    used_ = (used_ + 1) / 2;
    ++shift_;
  }

  Bin bins_[kBins];
  std::size_t used_ = 0;
  unsigned shift_ = 20;
};

}  // namespace stretto
