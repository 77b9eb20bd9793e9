// SPDX-License-Identifier: BSD-3-Clause
// Every algorithm's function, for the manifest and for algorithms made of others.
#pragma once
#include "coll/algorithm.hpp"

namespace stretto::coll {

void barrier_dissemination(Builder&, const Call&);
void barrier_recursive_doubling(Builder&, const Call&);
void barrier_tree(Builder&, const Call&);

void bcast_flat(Builder&, const Call&);
void bcast_binomial(Builder&, const Call&);
void bcast_knomial(Builder&, const Call&);
void bcast_chain(Builder&, const Call&);
void bcast_kchain(Builder&, const Call&);
void bcast_binary(Builder&, const Call&);
void bcast_scatter_ring(Builder&, const Call&);
void bcast_scatter_bruck(Builder&, const Call&);
void bcast_circulant(Builder&, const Call&);

void reduce_flat(Builder&, const Call&);
void reduce_binomial(Builder&, const Call&);
void reduce_knomial(Builder&, const Call&);
void reduce_chain(Builder&, const Call&);
void reduce_kchain(Builder&, const Call&);
void reduce_kchain_long_first(Builder&, const Call&);
void reduce_binary(Builder&, const Call&);
void reduce_scatter_gather(Builder&, const Call&);
void reduce_circulant(Builder&, const Call&);

void allreduce_recursive_doubling(Builder&, const Call&);
void allreduce_recursive_multiplying(Builder&, const Call&);
void allreduce_halving_doubling(Builder&, const Call&);
void allreduce_ring(Builder&, const Call&);
void allreduce_ring_in_order(Builder&, const Call&);
void allreduce_reduce_bcast(Builder&, const Call&);
void allreduce_circulant(Builder&, const Call&);
void allreduce_bine(Builder&, const Call&);

void gather_flat(Builder&, const Call&);
void gather_binomial(Builder&, const Call&);
void gather_knomial(Builder&, const Call&);

void scatter_flat(Builder&, const Call&);
void scatter_binomial(Builder&, const Call&);
void scatter_knomial(Builder&, const Call&);

void allgather_ring(Builder&, const Call&);
void allgather_bruck(Builder&, const Call&);
void allgather_recursive_doubling(Builder&, const Call&);
void allgather_linear(Builder&, const Call&);
void allgather_bine(Builder&, const Call&);

void alltoall_linear(Builder&, const Call&);
void alltoall_pairwise(Builder&, const Call&);
void alltoall_bruck(Builder&, const Call&);

void reduce_scatter_ring(Builder&, const Call&);
void reduce_scatter_pairwise(Builder&, const Call&);
void reduce_scatter_recursive_halving(Builder&, const Call&);
void reduce_scatter_reduce_scatterv(Builder&, const Call&);
void reduce_scatter_circulant(Builder&, const Call&);
void reduce_scatter_bine(Builder&, const Call&);

void scan_chain(Builder&, const Call&);
void scan_doubling(Builder&, const Call&);
void exscan_chain(Builder&, const Call&);
void exscan_doubling(Builder&, const Call&);

}  // namespace stretto::coll
