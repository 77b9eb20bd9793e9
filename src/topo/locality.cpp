// SPDX-License-Identifier: BSD-3-Clause
#include "topo/locality.hpp"

#include <cstring>

#include "sys/hash.hpp"
#include "topo/numbering.hpp"

namespace stretto::topo {
namespace {

std::uint64_t hash(const char* name) {
  const std::uint64_t hash = sys::hash(name, std::strlen(name));
  return hash == 0 ? 1 : hash;
}

// Finds a node by its full name, otherwise by the part before the first dot. Files and machines
// differ in which of the two they use.
int find_node(const Network& network, const char* name) {
  const int node = network.node(name);
  if (node >= 0) return node;
  char brief[sys::kHostNameBytes] = {};
  for (std::size_t i = 0; i + 1 < sizeof brief && name[i] != 0 && name[i] != '.'; ++i) brief[i] = name[i];
  return network.node(brief);
}

}  // namespace

int locality_level(const char* name, std::size_t length) {
  for (int level = 0; level < kLocalityLevelCount; ++level) {
    if (std::strlen(kLocalityLevels[level]) == length && std::memcmp(kLocalityLevels[level], name, length) == 0)
      return level;
  }
  return -1;
}

Locality find_locality(const sys::CpuPlace& place, std::uint64_t host, const char* host_name, const Network* network) {
  static constexpr sys::CpuDomain kMachine[] = {sys::CpuDomain::core, sys::CpuDomain::l2, sys::CpuDomain::l3,
                                                sys::CpuDomain::numa, sys::CpuDomain::package};
  static_assert(sizeof kMachine / sizeof *kMachine == kNodeLevel);
  Locality locality;
  for (int level = 0; level < kNodeLevel; ++level) {
    locality.domains[level] = static_cast<std::uint64_t>(place.domains[static_cast<int>(kMachine[level])] + 1);
  }
  locality.domains[kNodeLevel] = host;
  if (!network) return locality;
  const int node = find_node(*network, host_name);
  for (int level = kNodeLevel + 1; level < kLocalityLevelCount; ++level) {
    const int above = node >= 0 ? network->switch_over(node, level - kNodeLevel - 1) : -1;
    // A node without a known switch is a domain of its own, so that its ranks stay together.
    locality.domains[level] = above >= 0 ? hash(network->switch_name(above)) : host;
  }
  return locality;
}

Known known_of(int ranks, const Localities& localities) {
  Known known;
  for (int level = 0; level < kLocalityLevelCount; ++level) {
    const std::uint64_t first = localities.domain(localities.context, 0, level);
    bool splits = false;
    for (int r = 1; r < ranks && !splits; ++r) splits = localities.domain(localities.context, r, level) != first;
    known.levels |= splits ? 1u << level : 0;
  }
  for (int r = 0; r < ranks && !known.cards; ++r) known.cards = localities.nics(localities.context, r).nearest != 0;
  return known;
}

bool place(Placement* placement, const Localities& localities, const Known& known, const int* members, int count) {
  placement->start(count);
  const auto rank = [&](int member) { return members != nullptr ? members[member] : member; };
  Numbering numbers;
  for (int level = 0; level < kLocalityLevelCount; ++level) {
    if ((known.levels >> level & 1) == 0) continue;
    if (!placement->add_level(kLocalityLevels[level])) return false;
    numbers.clear();
    for (int i = 0; i < count; ++i) {
      const std::uint64_t domain = localities.domain(localities.context, rank(i), level);
      if (domain == 0) continue;
      placement->at(placement->levels - 1, i) =
          numbers.number(static_cast<std::int32_t>(domain >> 32), static_cast<std::int32_t>(domain));
    }
    if (numbers.failed()) return false;
  }
  for (int i = 0; i < count && known.cards; ++i) placement->nics.push(localities.nics(localities.context, rank(i)));
  return !placement->nics.failed();
}

}  // namespace stretto::topo
