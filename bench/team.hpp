// SPDX-License-Identifier: BSD-3-Clause
// The ranks of the measuring program, and what they share beside the MPI that is measured. They
// share one memory segment, a barrier on bare flags, and a place where every rank leaves its times.
// Nothing here uses the library under test.
#pragma once
#include <mpi.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace bench {

// Two cache lines: the adjacent-line prefetcher fetches pairs.
inline constexpr std::size_t kLine = 128;
inline constexpr std::size_t kMaxCalls = 4096;  // timed calls of one contender in one round

// Lines lie in one or another slice of the last-level cache, near or far. One line alone would
// measure where it lies.
inline constexpr int kFlags = 64;

using Sequence = std::atomic<std::uint64_t>;
static_assert(Sequence::is_always_lock_free);

struct alignas(kLine) Flag {
  Sequence value;
  // When the rank arrived, in a barrier's lines: of even and odd epochs.
  std::uint64_t stamp_ns[2];
};

inline std::uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000U + static_cast<std::uint64_t>(t.tv_nsec);
}

inline void cpu_relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// The host's own functions, looked up in its library by handle: a plain PMPI_ name may be
// interposed, too.
struct HostLibrary {
  void* handle = nullptr;
  const char* path = nullptr;
  [[nodiscard]] void* function(const char* name) const;  // ends the program when the host lacks it
};
HostLibrary find_host_library();

// Ends all ranks with a message.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

class Team {
 public:
  // `file`: what the ranks share in the place of rank 0's memory file. It is for hosts of one
  // kernel that see the same file but not each other's processes. It is made if it does not exist.
  // Null: the ranks are on one host.
  explicit Team(const HostLibrary& host, const char* file = nullptr);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool oversubscribed() const { return oversubscribed_; }
  [[nodiscard]] int cpus() const { return cpus_; }

  // Flat: every rank writes its own line and reads all the others. One line transfer deep, the same
  // for all contenders.
  void barrier() {
    const std::uint64_t epoch = ++epoch_;
    arrivals_[rank_].value.store(epoch, std::memory_order_release);
    for (int peer = 0; peer < size_; ++peer) {
      // Acquires the peer's arrival.
      if (peer != rank_) wait_at_least<true>(arrivals_[peer].value, epoch);
    }
  }

  // A barrier whose ranks leave at the same moment, and the result is that moment. It is a little
  // after the last arrival, by the clock that all processors of a machine share. Ranks leave a
  // plain barrier as many nanoseconds apart as a flag needs to travel. At small sizes that is as
  // long as the call. With more ranks than processors it is a plain barrier.
  std::uint64_t common_start() {
    // Written again two barriers later: a rank that has come to the next barrier has read this
    // one's stamps.
    const std::uint64_t odd = (epoch_ + 1) % 2;
    arrivals_[rank_].stamp_ns[odd] = now_ns();
    barrier();
    if (oversubscribed_) return now_ns();
    std::uint64_t last = 0;
    for (int peer = 0; peer < size_; ++peer) last = std::max(last, arrivals_[peer].stamp_ns[odd]);
    const std::uint64_t start = last + start_delay_ns_;
    std::uint64_t now = now_ns();
    while (now < start) now = now_ns();
    return now;
  }

  // Returns when `flag` holds at least `value` (acquire). With `kPoke` it drives the host MPI now
  // and then: another rank may still be inside one of the host's calls, and this rank may owe it a
  // message.
  template <bool kPoke = false>
  void wait_at_least(const Sequence& flag, std::uint64_t value) {
    for (int spin = 0; spin < tight_spins_; ++spin) {
      if (flag.load(std::memory_order_acquire) >= value) return;
    }
    wait_slowly(flag, value, kPoke);
  }

  // Rank 0's value, on all ranks. Collective.
  double agree(double mine);
  // True on all ranks if `mine` is true on all ranks. Collective.
  bool all(bool mine);

  // Nanoseconds of a step of `chain(steps)`, from a barrier to a barrier. Collective.
  template <class Chain>
  double per_step_ns(int steps, Chain chain) {
    barrier();
    const std::uint64_t start = now_ns();
    chain(steps);
    barrier();
    return static_cast<double>(now_ns() - start) / steps;
  }

  // How many nanoseconds a bare flag takes from rank 0 to rank 1 or back: half a round trip.
  // Collective; needs at least two ranks.
  double flag_ns();

  // Every rank's times of one round in nanoseconds: times(rank)[call].
  [[nodiscard]] double* times(int of_rank) const { return times_ + static_cast<std::size_t>(of_rank) * kMaxCalls; }

  // Collective, last: takes back what the team has asked of the host.
  void finish();

  // A zeroed piece of the segment, the same on all ranks if all ask in the same order. Pages come
  // on first touch.
  void* allocate(std::size_t bytes);

 private:
  void map_segment(const HostLibrary& host, const char* file);
  void wait_slowly(const Sequence& flag, std::uint64_t value, bool poke);
  void poke_host();
  void exchange_flags(int steps);

  int rank_ = 0, size_ = 1, cpus_ = 1;
  bool oversubscribed_ = false;
  int tight_spins_ = 0;
  std::uint64_t start_delay_ns_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t agreements_ = 0;
  char* segment_ = nullptr;
  std::size_t used_ = 0;
  Flag* arrivals_ = nullptr;
  Flag* flags_ = nullptr;
  std::uint64_t flag_number_ = 0;
  double* agreed_ = nullptr;
  double* times_ = nullptr;
  MPI_Request never_ = MPI_REQUEST_NULL;
  decltype(&MPI_Test) host_test_ = nullptr;
  decltype(&MPI_Grequest_complete) host_complete_ = nullptr;
};

}  // namespace bench
