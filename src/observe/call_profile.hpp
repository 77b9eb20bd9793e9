// SPDX-License-Identifier: BSD-3-Clause
// What one process learns of its own collectives while they are timed (STRETTO_STATS): how large
// they are, where the program calls them, and when in the run they take their time. It also keeps a
// sample of calls, with the time at which this process came to each. The members' samples are
// compared when the job ends (arrivals.hpp).
//
// Every member numbers the calls of a communicator alike, and a hash of communicator and number
// decides whether a call is kept. So all members keep the same calls without a word to each other.
// When the room is full, a process keeps half as many as before. What two processes keep differs
// then, but the one keeps a part of what the other keeps.
//
// Cost of a call: some additions, one probe of a table, a hash. No clock: the caller has the times.
// bench/profile_cost.cpp measures it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/binned_time.hpp"
#include "base/collective.hpp"

namespace stretto::observe {

// By powers of two: sizes[0] of 0 bytes, sizes[n] of 2^(n-1) up to 2^n - 1 bytes.
struct SizeCounts {
  static constexpr unsigned kSizes = 42;  // the last has all larger ones, too
  struct Size {
    std::uint64_t calls, ns;
  };
  Size of[kSizes];

  void add(std::uint64_t bytes, std::uint64_t ns) {
    const unsigned size = bytes == 0 ? 0 : 64 - static_cast<unsigned>(__builtin_clzll(bytes));
    Size& it = of[size < kSizes ? size : kSizes - 1];
    ++it.calls;
    it.ns += ns;
  }
};

struct ProfileBin {
  std::uint64_t in_call_ns = 0;
  std::uint64_t compared_ns = 0, waiting_ns = 0;  // of calls that have been compared; set at the end
  ProfileBin& operator+=(const ProfileBin& more) {
    in_call_ns += more.in_call_ns;
    compared_ns += more.compared_ns;
    waiting_ns += more.waiting_ns;
    return *this;
  }
};
using ProfileTime = BinnedTime<ProfileBin, 200>;

// A place in the program that calls a collective.
struct ProfileSite {
  static constexpr std::size_t kTextBytes = 224;
  std::uint64_t caller;  // where the call returns to. Of a line behind a binding: a hash of `text`
  Collective collective;
  std::uint16_t behind;   // 1 + the site of the binding through which the call came; 0: none
  std::uint64_t calls;    // of a line behind a binding only those that were kept, as in `ns`
  std::uint64_t by_host;  // of these; not known of a line behind a binding, nor are `bytes`
  std::uint64_t bytes;    // as ProfiledCall
  std::uint64_t ns, longest_ns;
  char text[kTextBytes];  // "solve.py:33 in step"; empty: the address says all
};

// A call that was kept.
struct KeptCall {
  std::uint64_t began_ns, ns;
  std::uint32_t number;
  std::uint16_t site;
  std::uint8_t communicator;
  std::uint8_t collective_and_root;

  [[nodiscard]] Collective collective() const { return static_cast<Collective>(collective_and_root >> 1); }
  [[nodiscard]] bool is_root() const { return (collective_and_root & 1) != 0; }
};
static_assert(sizeof(KeptCall) == 24);

// A communicator whose calls are compared.
struct ProfileCommunicator {
  std::uint64_t members;  // a hash of who they are
  std::uint32_t nth;      // of the communicators with these members
  std::uint32_t size, rank;
  std::uint32_t calls;  // that have ended
};

struct ProfiledCall {
  Collective collective;
  bool by_host;
  bool is_root;
  std::int16_t communicator;  // as add_communicator() has returned it; negative: not compared
  std::uint32_t number;       // of the call on its communicator
  std::uint64_t bytes;        // what the rank gives, or gets from the root; for one peer where they differ
  std::uint64_t caller;
  std::uint64_t began_ns, ns;
};

class CallProfile {
 public:
  static constexpr unsigned kSites = 256, kCommunicators = 64;
  static constexpr std::uint16_t kNoSite = 0xffff;
  static constexpr std::uint32_t kKept = 8192;

  explicit CallProfile(std::uint64_t now_ns) : origin_ns_(now_ns) {}

  // Times in the run count from here.
  void start_at(std::uint64_t now_ns) { origin_ns_ = now_ns; }

  // Returns the kept call, or null if it is not kept. It is valid until the next call.
  KeptCall* record(const ProfiledCall& call) {
    const auto collective = static_cast<unsigned>(call.collective);
    sizes_[collective].add(call.bytes, call.ns);
    if (call.began_ns >= origin_ns_) time_.add(&ProfileBin::in_call_ns, call.began_ns - origin_ns_, call.ns);
    const std::uint16_t at = site(call.caller, call.collective);
    if (at != kNoSite) [[likely]] {
      ProfileSite& it = sites_[at];
      ++it.calls;
      if (call.by_host) ++it.by_host;
      it.bytes += call.bytes;
      it.ns += call.ns;
      if (call.ns > it.longest_ns) it.longest_ns = call.ns;
    }
    if (call.communicator < 0) return nullptr;
    communicators_[call.communicator].calls = call.number + 1;
    return hash_of(call.communicator, call.number) <= keep_up_to_ ? keep(call, at) : nullptr;
  }
  // Counts the time of a call that has not ended. Returns it as a kept call, which is not kept.
  KeptCall record_open(const ProfiledCall& call);
  // The call came through a binding of the MPI from this line, or from this address of the program.
  void set_line(KeptCall& call, const char* text, std::uint64_t caller);

  // Returns its number, or -1: there is no room, so its calls are not compared.
  std::int16_t add_communicator(std::uint64_t members, std::uint32_t size, std::uint32_t rank);
  // So that at most `most` calls are kept.
  void thin(std::uint32_t most);

  [[nodiscard]] std::uint64_t origin_ns() const { return origin_ns_; }
  [[nodiscard]] const SizeCounts& sizes(unsigned collective) const { return sizes_[collective]; }
  [[nodiscard]] const ProfileTime& time() const { return time_; }
  [[nodiscard]] std::span<const KeptCall> kept() const { return {kept_, kept_count_}; }
  [[nodiscard]] const ProfileCommunicator* communicators() const { return communicators_; }
  [[nodiscard]] unsigned communicator_count() const { return communicator_count_; }
  [[nodiscard]] const ProfileSite& at(unsigned site) const { return sites_[site]; }
  [[nodiscard]] bool is_used(unsigned site) const { return sites_[site].calls != 0; }
  // Calls from more places than there is room for have none.
  [[nodiscard]] std::uint64_t calls_without_site() const { return without_site_; }
  // Whether a copy of another process's profile holds together.
  [[nodiscard]] bool is_sound() const;

 private:
  static std::uint64_t mixed(std::uint64_t x) {  // the finalizer of MurmurHash3
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return x ^ x >> 33;
  }
  [[nodiscard]] std::uint64_t hash_of(int communicator, std::uint32_t number) const {
    const ProfileCommunicator& its = communicators_[communicator];
    return mixed(its.members + its.nth + (std::uint64_t{number} << 32));
  }
  // The site, made at its first call.
  std::uint16_t site(std::uint64_t caller, Collective collective) {
    const std::uint64_t key = caller * 32 + static_cast<unsigned>(collective);
    auto at = static_cast<unsigned>(key * 0x9e3779b97f4a7c15ULL >> 32) % kSites;
    for (unsigned probes = 0; probes < kProbes; ++probes) {
      ProfileSite& it = sites_[at];
      if (it.caller == caller && it.collective == collective && it.calls != 0) [[likely]]
        return static_cast<std::uint16_t>(at);
      if (it.calls == 0) {
        it.caller = caller;
        it.collective = collective;
        return static_cast<std::uint16_t>(at);
      }
      at = at + 1 == kSites ? 0 : at + 1;
    }
    ++without_site_;
    return kNoSite;
  }
  [[gnu::noinline]] KeptCall* keep(const ProfiledCall& call, std::uint16_t site);

  static constexpr unsigned kProbes = 32;

  static KeptCall kept_of(const ProfiledCall& call, std::uint16_t site);

  std::uint64_t origin_ns_ = 0;
  std::uint64_t keep_up_to_ = ~std::uint64_t{0};
  std::uint64_t without_site_ = 0;
  std::uint32_t communicator_count_ = 0, kept_count_ = 0;
  ProfileCommunicator communicators_[kCommunicators] = {};
  SizeCounts sizes_[kCollectives] = {};
  ProfileSite sites_[kSites] = {};
  ProfileTime time_;
  KeptCall kept_[kKept];  // memory that is zero, as all of it
};

}  // namespace stretto::observe
