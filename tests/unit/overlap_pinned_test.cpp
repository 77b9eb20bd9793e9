// SPDX-License-Identifier: BSD-3-Clause
// Memory that the kernel has pinned (io_uring's registered buffers), and that KSM has merged.
#include <fstream>

#include "mpi/programs/pinned.h"
#include "unit/overlap_support.hpp"

using namespace stretto;
using namespace stretto::overlap;
using namespace stretto::test;

namespace {

constexpr std::size_t kPage = 4096, kBytes = 64 * kPage;

struct Pinned {
  pinned ring{};
  int error;
  explicit Pinned(sys::Pages pages) : error(pin(&ring, pages.at, pages.bytes)) {}
  ~Pinned() { end(); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  void end() {
    if (error == 0) unpin(&ring);
    error = -1;
  }
};

constexpr GuardSetting kAllModes[] = {{"kernel", sys::FaultMode::kernel, false},
                                      {"user", sys::FaultMode::user, false},
                                      {"nobody", sys::FaultMode::user, true},
                                      {"signal", sys::FaultMode::signal, true}};

class OverlapPinned : public testing::TestWithParam<GuardSetting> {
 public:
  static void run(const std::function<std::string(Guard&, Driver&)>& body) {
    in_child_or_skip(GetParam().as_nobody && geteuid() == 0, [&]() -> std::string {
      Guard guard;
      if (std::string why = open_guard(&guard, GetParam().mode); !why.empty()) return why;
      Driver driver(&guard);
      const std::string why = body(guard, driver);
      driver.stop();
      guard.close();
      return why;
    });
  }
};

INSTANTIATE_TEST_SUITE_P(, OverlapPinned, testing::ValuesIn(kAllModes),
                         [](const auto& named) { return std::string(named.param.name); });

std::string refuse_and_guard(Guard& guard, Driver& driver, sys::Pages pages, sys::Pages part) {
  Pinned io_uring(part);
  if (io_uring.error != 0) return std::string("no io_uring: ") + std::strerror(io_uring.error);
  int cover = -1;
  EXPECT_EQ(guard.cover(pages, &cover), Refusal::pinned);
  EXPECT_FALSE(guard.any_away());
  EXPECT_TRUE(all_are(pages.at, pages.bytes, 7)) << "as it was";
  EXPECT_TRUE(write_by_pin(&io_uring.ring, part.at, 3000));
  EXPECT_TRUE(all_are(part.at, 3000, kByPin)) << "the pin and the program have the same page";
  io_uring.end();
  // The kernel may end a ring's pins, and its threads, some time after it is closed.
  Refusal refused = Refusal::pinned;
  for (int i = 0; i < 1000 && refused != Refusal::none; ++i) {
    sys::nap_ns(5'000'000);
    refused = guard.cover(pages, &cover);
  }
  EXPECT_EQ(refused, Refusal::none);
  if (refused != Refusal::none) return "";
  std::memset(guard.landing(cover), 3, pages.bytes);
  EXPECT_EQ(driver.release(cover), 0);
  EXPECT_TRUE(all_are(pages.at, pages.bytes, 3));
  return "";
}

TEST_P(OverlapPinned, RegisteredBuffersAreRefused) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7);
    return refuse_and_guard(guard, driver, buffer.pages(), {buffer.at() + 20 * kPage, 5 * kPage});
  });
}

TEST_P(OverlapPinned, APinInAHugePage) {
  run([](Guard& guard, Driver& driver) {
    constexpr std::size_t kUnit = 2 << 20;
    const Mapped memory(5 * kUnit);
    const sys::Pages pages{sys::whole_pages(memory.at(), 5 * kUnit, kUnit).at, 4 * kUnit};
    madvise(pages.at, pages.bytes, MADV_HUGEPAGE);
    std::memset(pages.at, 7, pages.bytes);
    return refuse_and_guard(guard, driver, pages, {pages.at + 2 * kUnit + 8 * kPage, 2 * kPage});
  });
}

bool write_file(const char* name, const char* text) {
  std::ofstream file(name);
  file << text << std::flush;
  return file.good();
}
long read_number(const char* name) {
  std::ifstream file(name);
  long number = -1;
  file >> number;
  return number;
}

// Pages of the same content that KSM has made one. It is switched on for this test, by root.
TEST_P(OverlapPinned, MergedPagesAreGuarded) {
  const char *const on = "/sys/kernel/mm/ksm/run", *const pause = "/sys/kernel/mm/ksm/sleep_millisecs";
  const long before = read_number(on), paused = read_number(pause);
  if (before < 0 || geteuid() != 0 || !write_file(pause, "5") || !write_file(on, "1"))
    GTEST_SKIP() << "KSM cannot be switched on";
  run([](Guard& guard, Driver& driver) -> std::string {
    const Mapped buffer(kBytes, 7);
    madvise(buffer.at(), kBytes, MADV_MERGEABLE);
    for (int i = 0; i < 400 && read_number("/sys/kernel/mm/ksm/pages_sharing") < 32; ++i) sys::nap_ns(10'000'000);
    if (read_number("/sys/kernel/mm/ksm/pages_sharing") < 32) return "KSM has merged nothing in four seconds";
    int cover = -1;
    EXPECT_EQ(guard.cover(buffer.pages(), &cover), Refusal::none);
    if (cover < 0) return "";
    std::memset(guard.landing(cover), 3, kBytes / 2);
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_TRUE(all_are(buffer.at(), kBytes / 2, 3));
    EXPECT_TRUE(all_are(buffer.at() + kBytes / 2, kBytes / 2, 7));
    return "";
  });
  (void)write_file(on, before == 1 ? "1" : "2");  // 2: and take merged pages apart
  (void)write_file(on, before == 1 ? "1" : "0");
  (void)write_file(pause, std::to_string(paused).c_str());
}

}  // namespace
