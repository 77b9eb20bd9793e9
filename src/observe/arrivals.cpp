// SPDX-License-Identifier: BSD-3-Clause
#include "observe/arrivals.hpp"

#include <algorithm>
#include <tuple>

namespace stretto::observe {

ClockOffset clock_offset(const ClockRound* mine, const ClockRound* root) {
  std::int64_t least = INT64_MIN, most = INT64_MAX;
  for (unsigned i = 0; i < kClockRounds; ++i) {
    least = std::max(least, static_cast<std::int64_t>(mine[i].enter_ns - root[i].leave_ns));
    most = std::min(most, static_cast<std::int64_t>(mine[i].leave_ns - root[i].enter_ns));
  }
  const std::uint64_t at = mine[kClockRounds - 1].leave_ns;
  if (least <= 0 && most >= 0) return {at, 0, 0};
  const std::int64_t width = most - least;
  return {at, least + width / 2, static_cast<std::uint64_t>(width < 0 ? -width : width) / 2};
}

// Clocks of different nodes drift apart. What lies between the two measurements is on a line.
std::int64_t Arrivals::by_clock_of_root(const Rank& rank, std::uint64_t ns) const {
  const ClockOffset &begin = rank.head.begin, &end = rank.head.end;
  auto more = static_cast<double>(begin.more_ns);
  if (begin.at_ns == 0) {
    more = static_cast<double>(end.more_ns);
  } else if (end.at_ns > begin.at_ns) {
    const double part =
        static_cast<double>(static_cast<std::int64_t>(ns - begin.at_ns)) / static_cast<double>(end.at_ns - begin.at_ns);
    more += part * static_cast<double>(end.more_ns - begin.more_ns);
  }
  return static_cast<std::int64_t>(ns) - static_cast<std::int64_t>(more);
}

void Arrivals::add(const KeptHead& head, const ProfileCommunicator* communicators, const KeptCall* calls) {
  const Rank rank = {head, communicators, calls};
  const auto number = static_cast<std::int32_t>(of_.size());
  (void)of_.push(rank);
  for (std::uint32_t i = 0; i < head.calls; ++i) {
    if (calls[i].communicator >= head.communicators) continue;
    const ProfileCommunicator& its = communicators[calls[i].communicator];
    (void)entries_.push({its.members, its.nth, calls[i].number, number, its.rank,
                         by_clock_of_root(rank, calls[i].began_ns), &calls[i]});
  }
}

void Arrivals::wait(const Entry& waiting, const Entry& late, RankWaits* waits) {
  const std::int64_t until = std::min(late.came_ns - waiting.came_ns, static_cast<std::int64_t>(waiting.call->ns));
  if (until <= 0 || waiting.rank == late.rank) return;
  const auto ns = static_cast<std::uint64_t>(until);
  RankWaits &mine = waits[waiting.rank], &theirs = waits[late.rank];
  mine.of[static_cast<int>(waiting.call->collective())].waiting_ns += ns;
  if (waiting.call->site < CallProfile::kSites) mine.site[waiting.call->site].waiting_ns += ns;
  const std::uint64_t origin = of_[waiting.rank].head.origin_ns;
  if (waiting.call->began_ns >= origin) mine.time.add(&ProfileBin::waiting_ns, waiting.call->began_ns - origin, ns);
  theirs.caused_ns += ns;
  theirs.late_calls += late.call != blamed_ ? 1 : 0;
  blamed_ = late.call;
  if (late.call->site < CallProfile::kSites) theirs.site_caused_ns[late.call->site] += ns;
  if (table_.empty()) return;
  WaitedFor& pair = table_[static_cast<std::size_t>(waiting.rank) * ranks_ + late.rank];
  pair.rank = late.rank;
  ++pair.calls;
  pair.ns += ns;
}

// The entries are those of one call, in the order of the members.
void Arrivals::compare_call(const Entry* entries, std::size_t count, RankWaits* waits) {
  const auto collective = entries[0].call->collective();
  const Entry *last = entries, *root = nullptr;
  for (const Entry* e = entries; e != entries + count; ++e) {
    if (e->call->collective() != collective) return;  // the ranks do not count alike
    if (e->came_ns > last->came_ns) last = e;
    if (e->call->is_root()) root = e;
  }
  for (const Entry* e = entries; e != entries + count; ++e) {
    RankWaits& mine = waits[e->rank];
    for (Compared* sum : {&mine.of[static_cast<int>(collective)],
                          e->call->site < CallProfile::kSites ? &mine.site[e->call->site] : nullptr}) {
      if (sum == nullptr) continue;
      ++sum->calls;
      sum->ns += e->call->ns;
    }
    const std::uint64_t origin = of_[e->rank].head.origin_ns;
    if (e->call->began_ns >= origin) mine.time.add(&ProfileBin::compared_ns, e->call->began_ns - origin, e->call->ns);
  }
  if (is_neighborhood(collective)) return;  // it is not known who waits for whom
  switch (collective) {
    case Collective::bcast:
    case Collective::scatter:
    case Collective::scatterv:
      for (const Entry* e = entries; root != nullptr && e != entries + count; ++e) wait(*e, *root, waits);
      break;
    case Collective::gather:
    case Collective::gatherv:
    case Collective::reduce:
      if (root != nullptr) wait(*root, *last, waits);
      break;
    case Collective::scan:
    case Collective::exscan:
      last = entries;
      for (const Entry* e = entries; e != entries + count; ++e) {
        wait(*e, *last, waits);
        if (e->came_ns > last->came_ns) last = e;
      }
      break;
    default:
      for (const Entry* e = entries; e != entries + count; ++e) wait(*e, *last, waits);
  }
}

void Arrivals::tell(RankWaits* waits) const {
  for (int r = 0; r < ranks_; ++r) {
    unsigned told = 0;
    Array<WaitedFor> row;
    for (int late = 0; late < ranks_ && !table_.empty(); ++late) {
      const WaitedFor& pair = table_[static_cast<std::size_t>(r) * ranks_ + late];
      if (pair.calls != 0) (void)row.push(pair);
    }
    std::sort(row.begin(), row.end(), [](const WaitedFor& a, const WaitedFor& b) { return a.ns > b.ns; });
    for (const WaitedFor& pair : row) {
      if (told < RankWaits::kRanks) waits[r].waited_for[told++] = pair;
    }
    while (told < RankWaits::kRanks) waits[r].waited_for[told++] = {-1, 0, 0};
  }
}

bool Arrivals::compare(RankWaits* waits) {
  for (int r = 0; r < ranks_; ++r) waits[r] = RankWaits();
  if (entries_.failed() || of_.failed() || of_.size() != static_cast<std::size_t>(ranks_)) return false;
  if (ranks_ <= kMostRanks) (void)table_.resize(static_cast<std::size_t>(ranks_) * ranks_, WaitedFor{-1, 0, 0});
  const auto key = [](const Entry& e) { return std::tuple(e.members, e.nth, e.number); };
  std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
    return std::tuple_cat(key(a), std::tuple(a.member)) < std::tuple_cat(key(b), std::tuple(b.member));
  });
  for (std::size_t at = 0; at < entries_.size();) {
    std::size_t end = at + 1;
    while (end < entries_.size() && key(entries_[end]) == key(entries_[at])) ++end;
    const Rank& rank = of_[entries_[at].rank];
    if (end - at == rank.communicators[entries_[at].call->communicator].size) {
      compare_call(&entries_[at], end - at, waits);
    }
    at = end;
  }
  tell(waits);
  return true;
}

}  // namespace stretto::observe
