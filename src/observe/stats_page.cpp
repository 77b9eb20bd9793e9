// SPDX-License-Identifier: BSD-3-Clause
#include "observe/stats_page.hpp"

#include <cstdlib>
#include <new>

#include "sys/sys.hpp"

namespace stretto::observe {
namespace {

// Another version of Stretto has another layout, as a rule.
constexpr std::uint64_t kLayout = StatsPage::kMagic ^ sizeof(StatsPage) << 16 ^ offsetof(StatsPage, profile);

// Backed by pages now: a store to it cannot fail later.
void* shared_memory(std::size_t bytes, int* descriptor) {
  int fd = -1;
  void* memory = nullptr;
  if (sys::memfd_open("stretto-stats", bytes, &fd) != 0) return nullptr;
  if (sys::memfd_reserve(fd, 0, bytes) != 0 || sys::map_shared(fd, bytes, sys::Access::read_write, &memory) != 0) {
    sys::close_descriptor(fd);
    return nullptr;
  }
  *descriptor = fd;
  return memory;
}

}  // namespace

StatsPage::StatsPage(std::uint64_t now_ns)
    : layout(kLayout),
      reported{},
      aborts{},
      rank(-1),
      ranks(0),
      began_ns(now_ns),
      clock{},
      open{},
      counters{},
      others{},
      modules{},
      version{},
      abi{},
      host{},
      run{},
      place{},
      profile(now_ns) {}

StatsPage* StatsPage::create(std::uint64_t now_ns, int* descriptor) {
  *descriptor = -1;
  void* memory = shared_memory(sizeof(StatsPage), descriptor);
  if (memory == nullptr) memory = std::malloc(sizeof(StatsPage));
  return memory != nullptr ? new (memory) StatsPage(now_ns) : nullptr;
}

bool StatsPage::is_sound() const {
  const auto ends = [](const auto& text) { return std::memchr(text, 0, sizeof text) != nullptr; };
  return layout == kLayout && rank >= 0 && rank < ranks && open.collective < Collective::count_ && ends(version) &&
         ends(abi) && ends(host) && ends(run) && ends(place) && profile.is_sound();
}

}  // namespace stretto::observe
