// SPDX-License-Identifier: BSD-3-Clause
// What this rank learns of a call that the program makes again and again: in which order it uses
// the blocks, and what returning early was good for.
//
// A *site* is a communicator, a collective, a buffer and a length. The order is local: it says
// which source is asked first, not which messages there are.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/array.hpp"
#include "overlap/timeline.hpp"
#include "shm/deferred.hpp"

namespace stretto::overlap {

struct SiteKey {
  std::uint64_t comm = 0;
  const char* name = "";  // of the collective; static
  const void* buffer = nullptr;
  std::uint64_t bytes = 0;
  bool operator==(const SiteKey&) const = default;
};

// What the driver's thread did for calls that returned early.
struct DriverWork {
  std::uint64_t faults = 0;     // pages that a thread waited for, as often as the kernel told of them
  std::uint64_t hurries = 0;    // requests to a source: this next
  std::uint64_t publishes = 0;  // runs of pages that it brought home
  std::uint64_t moves = 0;      // calls of the kernel for that
  // From the call to the last page: processor time of the thread, how often it slept, and how often
  // another thread took its processor.
  std::uint64_t driver_ns = 0, sleeps = 0, preemptions = 0;
  DriverWork& operator-=(const DriverWork& before) {
    faults -= before.faults;
    hurries -= before.hurries;
    publishes -= before.publishes;
    moves -= before.moves;
    driver_ns -= before.driver_ns;
    sleeps -= before.sleeps;
    preemptions -= before.preemptions;
    return *this;
  }
  DriverWork& operator+=(const DriverWork& more) {
    faults += more.faults;
    hurries += more.hurries;
    publishes += more.publishes;
    moves += more.moves;
    driver_ns += more.driver_ns;
    sleeps += more.sleeps;
    preemptions += more.preemptions;
    return *this;
  }
};

struct SiteCounts {
  std::uint64_t calls = 0, early = 0;
  std::uint64_t in_call_ns = 0;  // of all calls
  std::uint64_t late_ns = 0;     // of those that returned early: until all data were there
  std::uint64_t waited_ns = 0;   // of that: a thread waited for data
  std::uint64_t waits = 0;       // calls whose data a thread waited for
  std::uint64_t first_ns = 0;    // of these: until the first such wait began
  DriverWork work;
};

// At most kMost sites; the one that was used least lately makes room. Its owner locks.
class Sites {
 public:
  static constexpr std::size_t kMost = 64;
  struct Site {
    SiteKey key;
    SiteCounts counts;
    char place[sizeof shm::DeferredCall::place] = "";  // of its latest call
    std::uint64_t used = 0;
    Timeline timeline;
    Array<std::uint32_t> order;  // receives in the order in which they were wanted; empty: not known
  };
  ~Sites() {
    for (Site* const site : sites_) {
      site->~Site();
      std::free(site);
    }
  }
  // Null: no memory.
  Site* find(const SiteKey& key) {
    Site* oldest = nullptr;
    for (Site* const site : sites_) {
      if (site->key == key) {
        site->used = ++uses_;
        return site;
      }
      if (oldest == nullptr || site->used < oldest->used) oldest = site;
    }
    if (sites_.size() < kMost) {
      void* const memory = std::malloc(sizeof(Site));
      oldest = memory != nullptr ? new (memory) Site : nullptr;
      if (oldest == nullptr || !sites_.push(oldest)) return nullptr;
    }
    oldest->key = key;
    oldest->counts = {};
    oldest->place[0] = 0;
    oldest->timeline = {};
    oldest->order.clear();
    oldest->used = ++uses_;
    return oldest;
  }
  template <class Visit>
  void each(const Visit& visit) const {
    for (const Site* const site : sites_) visit(*site);
  }

 private:
  Array<Site*> sites_;
  std::uint64_t uses_ = 0;
};

}  // namespace stretto::overlap
