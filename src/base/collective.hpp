// SPDX-License-Identifier: BSD-3-Clause
// The names of the collectives and of the paths that a call can take. Options, statistics, headers
// in shared memory and the generated wrappers all use this order.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace stretto {

enum class Collective : std::uint8_t {
  barrier,
  bcast,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  alltoall,
  alltoallv,
  alltoallw,
  neighbor_allgather,
  neighbor_allgatherv,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
  reduce,
  allreduce,
  reduce_scatter,
  reduce_scatter_block,
  scan,
  exscan,
  count_
};
constexpr Collective scan_kind(bool exclusive) { return exclusive ? Collective::exscan : Collective::scan; }
// Collectives in which every rank, or the root, copies its own block and other ranks' blocks. That
// rank is never idle.
constexpr bool keeps_busy(Collective c) { return c >= Collective::gather && c <= Collective::neighbor_alltoallw; }
// Collectives in which ranks exchange data with their neighbours alone (neighborhood.hpp).
constexpr bool is_neighborhood(Collective c) {
  return c >= Collective::neighbor_allgather && c <= Collective::neighbor_alltoallw;
}
// Collectives in which many ranks send to one.
constexpr bool goes_to_root(Collective c) {
  return c == Collective::gather || c == Collective::gatherv || c == Collective::reduce;
}
// Collectives in which no rank can leave before every other rank has come, if there are data at
// all.
constexpr bool waits_for_all(Collective c) {
  return c == Collective::barrier || (c >= Collective::allgather && c <= Collective::alltoallw) ||
         (c >= Collective::allreduce && c <= Collective::reduce_scatter_block);
}
// Collectives in which a rank does not wait for others as long as there is room for its data. It
// may be many calls ahead of a rank that has not come yet.
constexpr bool runs_ahead(Collective c) {
  return c == Collective::bcast || c == Collective::scatter || c == Collective::scatterv || goes_to_root(c) ||
         is_neighborhood(c);
}
// Collectives in which the sender alone may know the length of a message. Receivers may have
// declared more.
constexpr bool lengths_are_senders(Collective c) { return c == Collective::gatherv || c == Collective::scatterv; }
inline constexpr int kCollectives = static_cast<int>(Collective::count_);
inline constexpr const char* kCollectiveNames[kCollectives] = {"barrier",
                                                               "bcast",
                                                               "gather",
                                                               "gatherv",
                                                               "scatter",
                                                               "scatterv",
                                                               "allgather",
                                                               "allgatherv",
                                                               "alltoall",
                                                               "alltoallv",
                                                               "alltoallw",
                                                               "neighbor_allgather",
                                                               "neighbor_allgatherv",
                                                               "neighbor_alltoall",
                                                               "neighbor_alltoallv",
                                                               "neighbor_alltoallw",
                                                               "reduce",
                                                               "allreduce",
                                                               "reduce_scatter",
                                                               "reduce_scatter_block",
                                                               "scan",
                                                               "exscan"};

// A collective's name in MPI, such as "MPI_Reduce_scatter". The name of an unknown one is "MPI_?".
struct MpiName {
  char text[32];
  explicit MpiName(Collective collective) {
    const char* const name = collective < Collective::count_ ? kCollectiveNames[static_cast<int>(collective)] : "?";
    std::snprintf(text, sizeof text, "MPI_%c%s", name[0] >= 'a' ? name[0] - 'a' + 'A' : name[0], name + 1);
  }
};

// Returns Collective::count_ when no collective has that name.
inline Collective collective_named(const char* name) {
  int at = 0;
  while (at < kCollectives && std::strcmp(name, kCollectiveNames[at]) != 0) ++at;
  return static_cast<Collective>(at);
}

// The collectives that this build serves itself, as a bit set by Collective.
inline constexpr std::uint32_t kNativeCollectives = (1u << kCollectives) - 1;

inline constexpr std::uint32_t kNeighborhoods = std::uint32_t{0x1f} << static_cast<int>(Collective::neighbor_allgather);
static_assert(is_neighborhood(Collective::neighbor_alltoallw) && !is_neighborhood(Collective::reduce));
inline constexpr std::uint32_t kReductions = kNativeCollectives & ~((1u << static_cast<int>(Collective::reduce)) - 1);
constexpr bool is_reduction(Collective c) { return (kReductions >> static_cast<int>(c) & 1) != 0; }

// What carried a call.
enum class Path : std::uint8_t { inlined, cico, single, schedule, deferred, host, count_ };
inline constexpr int kPaths = static_cast<int>(Path::count_);
inline constexpr const char* kPathNames[kPaths] = {"inline", "cico", "single", "schedule", "deferred", "host"};

}  // namespace stretto
