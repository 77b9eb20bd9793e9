// SPDX-License-Identifier: BSD-3-Clause
// What STRETTO_STATS learns of a call costs beside the clock (observe/call_profile.hpp). It makes
// calls as four places of a program would, of several sizes, and times a million of them.
//   cmake --build build/release --target profile-cost && build/release/profile-cost
// It prints nanoseconds of processor time a call: the median and the least of several rounds.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>

#include "observe/call_profile.hpp"

namespace {

using namespace stretto;

constexpr int kRounds = 15;
constexpr std::uint32_t kCalls = 1'000'000;

// Of this process: others on the machine do not count.
double now_ns() { return static_cast<double>(std::clock()) * (1e9 / CLOCKS_PER_SEC); }

double round_ns(observe::CallProfile& profile, std::uint32_t first) {
  const double begin = now_ns();
  for (std::uint32_t n = first; n < first + kCalls; ++n) {
    const auto collective = static_cast<Collective>(n % 4);
    (void)profile.record(
        {collective, false, n % 8 == 0, 0, n, std::uint64_t{8} << n % 12, 0x401000 + n % 4 * 64, 2000ULL * n, 1500});
  }
  return (now_ns() - begin) / kCalls;
}

}  // namespace

int main() {
  const auto profile = std::make_unique<observe::CallProfile>(0);
  (void)profile->add_communicator(1, 8, 0);
  double ns[kRounds];
  for (int i = 0; i < kRounds; ++i) ns[i] = round_ns(*profile, static_cast<std::uint32_t>(i) * kCalls);
  std::sort(ns, ns + kRounds);
  std::printf("%.1f ns a call, least %.1f\n", ns[kRounds / 2], ns[0]);
}
