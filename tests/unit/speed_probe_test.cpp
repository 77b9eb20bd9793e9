// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/overlap/speed_probe.hpp"

#include <gtest/gtest.h>

namespace stretto::mpi {
namespace {

struct Probed {
  int trips = 0;
  std::uint64_t last_bytes = 0, ns = 0;
  bool suffices = false;
};

// Either way takes a latency and so long for each KiB; now and then ours is disturbed.
Probed probe(std::uint64_t ours_latency_ns, std::uint64_t ours_ns, std::uint64_t host_latency_ns,
             std::uint64_t host_ns) {
  Probed made;
  SpeedProbe probe(0);
  for (std::uint64_t bytes = SpeedProbe::kLeastBytes; bytes != 0; ++made.trips) {
    made.last_bytes = bytes;
    const std::uint64_t kib = 2 * bytes >> 10;
    KeptTimes trip{2 * ours_latency_ns + kib * ours_ns, 2 * host_latency_ns + kib * host_ns};
    if (made.trips % 2 == 0) trip.ours_ns *= 4;
    made.ns += trip.ours_ns + trip.host_ns;
    bytes = probe.add(trip, made.ns);
  }
  made.suffices = SpeedProbe::suffice(probe.best());
  return made;
}

TEST(SpeedProbe, SlowLinksAreMeasuredByShortMessages) {
  const Probed made = probe(100'000, 41'000, 80'000, 41'000);  // 0.2 Gbit/s
  EXPECT_TRUE(made.suffices);
  EXPECT_EQ(made.last_bytes, SpeedProbe::kLeastBytes);
  EXPECT_LE(made.trips, 4);
}

TEST(SpeedProbe, LatenciesDoNotDecideAtTenGigabits) {
  const Probed made = probe(90'000, 900, 25'000, 850);
  EXPECT_TRUE(made.suffices);
  EXPECT_GE(made.last_bytes, 64u << 10);
}

TEST(SpeedProbe, FasterNetworksStayWithTheMpi) {
  const Probed made = probe(40'000, 400, 2'000, 85);
  EXPECT_FALSE(made.suffices);
  EXPECT_EQ(made.last_bytes, SpeedProbe::kMostBytes);
}

}  // namespace
}  // namespace stretto::mpi
