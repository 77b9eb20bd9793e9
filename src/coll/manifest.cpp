// SPDX-License-Identifier: BSD-3-Clause
// The algorithms: one line each. A line serves what it does not exclude: any number of members, any
// root, operations that do not commute, the v-form, segments.
#include <cstring>

#include "coll/algorithms.hpp"

namespace stretto::coll {
namespace {

using enum Algorithm::Needs;
constexpr std::uint8_t kSubtrees = whole_parts | every_length;

// clang-format off
constexpr Algorithm kManifest[] = {
    // collective, name, function, needs, k, window, is
    {Collective::barrier,   "dissemination",      barrier_dissemination,            nothing,                   2, false},
    {Collective::barrier,   "recursive_doubling", barrier_recursive_doubling,       nothing,                   0, false},
    {Collective::barrier,   "tree",               barrier_tree,                     nothing,                   2, false},

    {Collective::bcast,     "flat",               bcast_flat,                       nothing,                   0, false},
    {Collective::bcast,     "binomial",           bcast_binomial,                   nothing,                   0, false},
    {Collective::bcast,     "knomial",            bcast_knomial,                    nothing,                   4, false},
    {Collective::bcast,     "chain",              bcast_chain,                      nothing,                   0, false},
    {Collective::bcast,     "kchain",             bcast_kchain,                     nothing,                  -1, false},
    {Collective::bcast,     "binary",             bcast_binary,                     nothing,                   0, false},
    {Collective::bcast,     "scatter_ring",       bcast_scatter_ring,               nothing,                   2, false},
    {Collective::bcast,     "scatter_bruck",      bcast_scatter_bruck,              nothing,                   2, false},
    {Collective::bcast,     "circulant",          bcast_circulant,                  nothing,                   0, false},
    {Collective::bcast,     "pipeline",           bcast_chain,                      in_pieces,                 0, false},

    {Collective::gather,    "flat",               gather_flat,                      nothing,                   0, true},
    {Collective::gather,    "binomial",           gather_binomial,                  kSubtrees,                 0, false},
    {Collective::gather,    "knomial",            gather_knomial,                   kSubtrees,                 4, false},

    {Collective::scatter,   "flat",               scatter_flat,                     nothing,                   0, true},
    {Collective::scatter,   "binomial",           scatter_binomial,                 kSubtrees,                 0, false},
    {Collective::scatter,   "knomial",            scatter_knomial,                  kSubtrees,                 4, false},

    {Collective::allgather, "ring",               allgather_ring,                   nothing,                   0, false},
    {Collective::allgather, "bruck",              allgather_bruck,                  whole_parts,               0, false},
    {Collective::allgather, "recursive_doubling", allgather_recursive_doubling,     whole_parts,               0, false},
    {Collective::allgather, "linear",             allgather_linear,                 nothing,                   0, true},
    {Collective::allgather, "bine",               allgather_bine,                   whole_parts,               0, false},
    {Collective::allgather, "pipeline",           allgather_ring,                   in_pieces,                 0, false},

    {Collective::alltoall,  "linear",             alltoall_linear,                  nothing,                   0, true},
    {Collective::alltoall,  "pairwise",           alltoall_pairwise,                nothing,                   0, false},
    {Collective::alltoall,  "bruck",              alltoall_bruck,                   equal_parts,               0, false},

    {Collective::reduce,    "flat",               reduce_flat,                      nothing,                   0, false},
    {Collective::reduce,    "binomial",           reduce_binomial,                  nothing,                   0, false},
    {Collective::reduce,    "knomial",            reduce_knomial,                   nothing,                   4, false},
    {Collective::reduce,    "chain",              reduce_chain,                     nothing,                   0, false},
    {Collective::reduce,    "kchain",             reduce_kchain,                    nothing,                  -1, false},
    {Collective::reduce,    "kchain_long_first",  reduce_kchain_long_first,         nothing,                  -1, false},
    {Collective::reduce,    "binary",             reduce_binary,                    nothing,                   0, false},
    {Collective::reduce,    "scatter_gather",     reduce_scatter_gather,            nothing,                   0, false},
    {Collective::reduce,    "circulant",          reduce_circulant,                 commutative,               0, false},
    {Collective::reduce,    "pipeline",           reduce_chain,                     in_pieces,                 0, false},

    {Collective::allreduce, "recursive_doubling", allreduce_recursive_doubling,     nothing,                   0, false, "recursive_multiplying with k = 2"},
    {Collective::allreduce, "recursive_multiplying", allreduce_recursive_multiplying, nothing,                 4, false},
    {Collective::allreduce, "halving_doubling",   allreduce_halving_doubling,       nothing,                   0, false},
    {Collective::allreduce, "ring",               allreduce_ring,                   commutative,               0, false},
    {Collective::allreduce, "reduce_bcast",       allreduce_reduce_bcast,           nothing,                   2, false},
    {Collective::allreduce, "circulant",          allreduce_circulant,              commutative,               0, false},
    {Collective::allreduce, "bine",               allreduce_bine,                   commutative,               0, false},
    {Collective::allreduce, "pipeline",           allreduce_ring_in_order,          commutative | in_pieces,   0, false},

    {Collective::reduce_scatter, "ring",               reduce_scatter_ring,              commutative,               0, false},
    {Collective::reduce_scatter, "pairwise",           reduce_scatter_pairwise,          nothing,                   0, false},
    {Collective::reduce_scatter, "recursive_halving",  reduce_scatter_recursive_halving, commutative | whole_parts, 0, false},
    {Collective::reduce_scatter, "reduce_scatterv",    reduce_scatter_reduce_scatterv,   whole_parts,               2, false},
    {Collective::reduce_scatter, "circulant",          reduce_scatter_circulant,         commutative | whole_parts, 0, false},
    {Collective::reduce_scatter, "bine",               reduce_scatter_bine,              commutative | whole_parts, 0, false},
    {Collective::reduce_scatter, "pipeline",           reduce_scatter_ring,              commutative | in_pieces,   0, false},

    {Collective::scan,      "chain",              scan_chain,                       nothing,                   0, false},
    {Collective::scan,      "doubling",           scan_doubling,                    nothing,                   0, false},
    {Collective::scan,      "pipeline",           scan_chain,                       in_pieces,                 0, false},
    {Collective::exscan,    "chain",              exscan_chain,                     nothing,                   0, false},
    {Collective::exscan,    "doubling",           exscan_doubling,                  nothing,                   0, false},
};
// clang-format on

}  // namespace

std::span<const Algorithm> manifest() { return kManifest; }

Collective regular_form(Collective collective) {
  switch (collective) {
    case Collective::gatherv: return Collective::gather;
    case Collective::scatterv: return Collective::scatter;
    case Collective::allgatherv: return Collective::allgather;
    case Collective::alltoallv:
    case Collective::alltoallw: return Collective::alltoall;
    case Collective::neighbor_allgatherv: return Collective::neighbor_allgather;
    case Collective::neighbor_alltoallv:
    case Collective::neighbor_alltoallw: return Collective::neighbor_alltoall;
    case Collective::reduce_scatter_block: return Collective::reduce_scatter;
    default: return collective;
  }
}

bool has_root(Collective collective) {
  switch (regular_form(collective)) {
    case Collective::bcast:
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter: return true;
    default: return false;
  }
}

const Algorithm* find_algorithm(Collective collective, const char* name) {
  const Collective regular = regular_form(collective);
  for (const Algorithm& algorithm : kManifest) {
    if (algorithm.collective == regular && std::strcmp(algorithm.name, name) == 0) return &algorithm;
  }
  return nullptr;
}

}  // namespace stretto::coll
