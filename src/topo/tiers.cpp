// SPDX-License-Identifier: BSD-3-Clause
#include "topo/tiers.hpp"

#include <algorithm>
#include <cstddef>

namespace stretto::topo {
namespace {

struct Leader {
  std::int32_t domain;
  int rank;
};

constexpr std::int32_t kNode = 0;  // the domain of all

}  // namespace

Binding binding_of(const sys::CpuPlace& place) {
  Binding binding;
  int level = 0;
  for (const sys::CpuDomain domain : {sys::CpuDomain::l3, sys::CpuDomain::numa, sys::CpuDomain::package})
    binding.domains[level++] = place.domains[static_cast<int>(domain)];
  return binding;
}

// Domains of different sockets may have the same number, so a domain is named by its path.
Binding binding_of(const Locality& locality) {
  static_assert(kNodeLevel >= Binding::kLevels, "the levels below the node");
  Binding binding;
  std::uint64_t path = 0;
  for (int level = Binding::kLevels - 1; level >= 0; --level) {
    const std::uint64_t domain = locality.domains[kNodeLevel - Binding::kLevels + level];
    path = (path + domain) * 0x9e3779b97f4a7c15u;
    if (domain != 0) binding.domains[level] = static_cast<std::int32_t>(path >> 33);
  }
  return binding;
}

// The rank is one of `members`.
bool Tiers::join(int rank, const int* members, int size) {
  Tier& tier = tiers_[count_++];
  tier.level = height_;
  tier.size = size;
  tier.index = static_cast<int>(std::find(members, members + size, rank) - members);
  std::copy(members, members + size, tier.members);
  tier.over.clear();
  if (!tier.over.resize(leaders_.size(), Tier::kNobody)) return false;
  for (std::size_t r = 0; r < leaders_.size(); ++r) {
    const int* const member = std::find(members, members + size, leaders_[r]);
    if (member != members + size) tier.over[r] = static_cast<std::uint8_t>(member - members);
  }
  tier.has_all = std::find(tier.over.begin(), tier.over.end(), Tier::kNobody) == tier.over.end();
  return true;
}

// Puts leaders of the same domain into groups. `domain_of(rank)` is kNowhere for a leader that
// stays alone.
template <class DomainOf>
bool Tiers::add_level(int rank, int most_members, DomainOf domain_of) {
  Array<Leader> leaders;
  for (std::size_t r = 0; r < leaders_.size(); ++r) {
    const int ranked = static_cast<int>(r);
    if (leaders_[r] == ranked) leaders.push({domain_of(ranked), ranked});
  }
  if (leaders.failed()) return false;
  std::sort(leaders.begin(), leaders.end(), [](const Leader& a, const Leader& b) {
    return a.domain != b.domain ? a.domain < b.domain : a.rank < b.rank;
  });
  Array<int> above;  // by rank: the new leader of an old one
  if (!above.resize(leaders_.size(), 0)) return false;
  if (height_ > 0) most_members *= 2;
  bool joins = false;
  for (std::size_t first = 0, last = 0; first < leaders.size(); first = last) {
    const std::int32_t domain = leaders[first].domain;
    for (last = first + 1; last < leaders.size() && domain != Binding::kNowhere && leaders[last].domain == domain;)
      ++last;
    const std::size_t size = last - first;
    const std::size_t parts =
        (size + static_cast<std::size_t>(most_members) - 1) / static_cast<std::size_t>(most_members);
    for (std::size_t part = 0; part < parts; ++part) {
      int members[Tier::kMostMembers];
      int count = 0;
      for (std::size_t i = first + part * size / parts; i < first + (part + 1) * size / parts; ++i)
        members[count++] = leaders[i].rank;
      for (int i = 0; i < count; ++i) above[static_cast<std::size_t>(members[i])] = members[0];
      if (count == 1) continue;
      joins = true;
      if (height_ == kMost) return false;
      if (std::find(members, members + count, rank) != members + count && !join(rank, members, count)) return false;
    }
  }
  if (!joins) return true;
  ++height_;
  for (int& leader : leaders_) leader = above[static_cast<std::size_t>(leader)];
  // A leader is the lowest rank of its group, so groups are neighbours where leaders ascend.
  keep_rank_order_ = keep_rank_order_ && std::is_sorted(leaders_.begin(), leaders_.end());
  return true;
}

bool Tiers::find(int rank, int ranks, const Binding* bindings, int most_members) {
  count_ = height_ = 0;
  keep_rank_order_ = true;
  span_sockets_ = bindings != nullptr && std::any_of(bindings, bindings + ranks, [&](const Binding& other) {
                    return other.domains[Binding::kLevels - 1] != bindings->domains[Binding::kLevels - 1];
                  });
  leaders_.clear();
  for (int r = 0; r < ranks; ++r) leaders_.push(r);
  if (leaders_.failed()) return false;
  for (int level = 0; bindings != nullptr && level < Binding::kLevels; ++level) {
    if (!add_level(rank, most_members, [&](int r) { return bindings[r].domains[level]; })) return false;
  }
  while (std::any_of(leaders_.begin(), leaders_.end(), [](int leader) { return leader != 0; })) {
    if (!add_level(rank, most_members, [](int) { return kNode; })) return false;
  }
  return true;
}

}  // namespace stretto::topo
