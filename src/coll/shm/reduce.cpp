// SPDX-License-Identifier: BSD-3-Clause
#include "coll/shm/reduce.hpp"

#include "base/tuning.hpp"
#include "coll/shm/paths.hpp"

namespace stretto::coll_shm {

namespace {

// What a rank of a chain does with its predecessor's prefix.
class KernelLink {
 public:
  // `forward`: what the successor gets, perhaps the same memory as `v.out`. Null: the end of the
  // chain.
  KernelLink(const KernelArgs& v, const KernelOp& reduction, char* forward, bool exclusive)
      : v_(v), reduction_(reduction), forward_(forward), exclusive_(exclusive) {}

  void pass(const char* prefix, std::size_t bytes) {
    const std::size_t count = bytes / reduction_.element_bytes;
    if (forward_) reduction_.fold(forward_ + ready_, prefix, v_.own + ready_, count);
    if (exclusive_) {
      if (bytes != 0) std::memcpy(v_.out + ready_, prefix, bytes);  // no bytes: both may be null
    } else if (forward_ != v_.out) {
      reduction_.fold(v_.out + ready_, prefix, v_.own + ready_, count);
    }
    ready_ += bytes;
  }
  [[nodiscard]] std::uint64_t ready() const { return ready_; }

 private:
  const KernelArgs& v_;
  const KernelOp& reduction_;
  char* forward_;
  bool exclusive_;
  std::uint64_t ready_ = 0;
};

// Slices of a vector begin at multiples of 64 bytes: no element is split, no line shared.
class KernelParts {
 public:
  using Combiner = coll_shm::Combiner;
  using Link = KernelLink;

  KernelParts(const KernelArgs& v, const KernelOp& reduction) : v_(v), reduction_(reduction) {}

  // The same reduction of what is at `own`.
  [[nodiscard]] KernelParts with(const Region& own, const Region& out) const {
    return {{own.base, out.base, own.bytes(), v_.good}, reduction_};
  }
  [[nodiscard]] bool in_order() const { return !reduction_.commutative; }
  [[nodiscard]] bool rounds() const { return reduction_.rounds; }
  // out = left op right; both are of this length.
  void join(const Region& out, const Region& left, const Region& right) const {
    reduction_.fold(out.base, left.base, right.base, v_.bytes / reduction_.element_bytes);
  }

  [[nodiscard]] std::uint64_t bytes() const { return v_.bytes; }
  [[nodiscard]] bool in_place() const { return v_.own == v_.out; }
  [[nodiscard]] bool good() const { return v_.good; }
  [[nodiscard]] static int least_ranks_to_split() { return kRanksToSplitByKernels; }
  [[nodiscard]] std::uint64_t begin(int rank, int size) const {
    constexpr std::uint64_t kUnit = 64;
    const std::uint64_t at = (v_.bytes + kUnit - 1) / kUnit * rank / size * kUnit;
    return at < v_.bytes ? at : v_.bytes;
  }
  [[nodiscard]] static shm::Cut cut(const shm::Team& team, std::uint64_t bytes, bool busy) {
    return {team.fragment_bytes(bytes, busy), 0};
  }
  [[nodiscard]] Region own(std::uint64_t begin, std::uint64_t end) const { return plain(v_.own + begin, end - begin); }
  [[nodiscard]] Region out(std::uint64_t begin, std::uint64_t end) const { return plain(v_.out + begin, end - begin); }
  [[nodiscard]] Combiner combiner(shm::Team& team, From from, int first, int last, std::uint64_t at,
                                  const Region& to) const {
    return {team, from, first, last, v_.own + at, to.base, to.count, reduction_};
  }
  // Combines short contributions that come in one piece, without a combiner. Waits for them. False:
  // a wait is long or a message comes in another way, and nothing has been read.
  bool combine_whole(shm::Call& call, From from, std::uint64_t at, const Region& to) const {
    constexpr std::size_t kMostBytes = 4 << 10;
    constexpr int kMostRanks = 256;
    shm::Team& team = call.team();
    const std::uint64_t bytes = to.bytes();
    if (bytes > kMostBytes || team.size() > kMostRanks) return false;
    const char* pieces[kMostRanks];
    static_assert(2 * kMostBytes <= shm::Team::kScratchBytes);
    char* const apart = team.scratch();
    if (apart == nullptr) return false;
    char* const aside = apart + kMostBytes;  // contributions that come in a few records each
    const bool fit = bytes * static_cast<unsigned>(team.size()) <= kMostBytes;
    shm::Waiter waiter(team.policy());
    shm::fetch_target(to.base, bytes);
    bool all = true;
    pieces[team.rank()] = v_.own + at;
    for_each_peer(team, [&](int r) {
      char* const place = fit ? aside + static_cast<std::size_t>(r) * bytes : nullptr;
      if (all) all = (pieces[r] = shm::peek_whole(call, queue_of(team, from, r), bytes, waiter, place)) != nullptr;
    });
    if (!all) return false;
    const int overwritten = pieces[team.rank()] == to.base ? team.rank() : 0;
    if (bytes != 0)
      fold_ranks(reduction_, 0, team.size(), overwritten, [&](int r) { return pieces[r]; }, to.base, apart, bytes);
    for (int r = 0; r < team.size(); ++r) {
      if (r != team.rank()) shm::take_whole(call, queue_of(team, from, r), bytes);
    }
    return true;
  }
  [[nodiscard]] Link link(const Region& forward, bool exclusive) const {
    return {v_, reduction_, forward.base, exclusive};
  }

 private:
  KernelArgs v_;
  const KernelOp& reduction_;
};

}  // namespace

void allreduce(shm::Call& call, const KernelArgs& v, const KernelOp& reduction, const Selection& selection) {
  allreduce_parts(call, KernelParts(v, reduction), selection);
}

void reduce(shm::Call& call, const KernelArgs& v, const KernelOp& reduction, int root, const Selection& selection) {
  reduce_parts(call, KernelParts(v, reduction), root, selection);
}

void reduce_scatter(shm::Call& call, const KernelArgs& v, const KernelOp& reduction, const std::uint64_t* begins,
                    const Selection& selection) {
  reduce_scatter_parts(call, KernelParts(v, reduction), [&](int rank) { return begins[rank]; }, selection);
}

void scan(shm::Call& call, const KernelArgs& v, const KernelOp& reduction, bool exclusive, const Selection& selection) {
  scan_parts(call, KernelParts(v, reduction), exclusive, selection);
}

}  // namespace stretto::coll_shm
