// SPDX-License-Identifier: BSD-3-Clause
#include "job_host.hpp"

#include <bit>

namespace stretto::modelling {
namespace {

constexpr std::uint64_t kKi = 1024;

// Of short messages few hops count, of long ones how often the data pass a port.
const char* name_of(Collective collective, const select::Shape& shape) {
  const std::uint64_t bytes = shape.bytes, all = bytes * static_cast<std::uint64_t>(shape.ranks);
  const bool power_of_two = std::has_single_bit(static_cast<unsigned>(shape.ranks));
  switch (collective) {
    case Collective::barrier: return "dissemination";
    case Collective::bcast:
      if (bytes < 12 * kKi || shape.ranks < 8) return "binomial";
      return bytes < 512 * kKi && power_of_two ? "scatter_bruck" : "scatter_ring";
    case Collective::gather:
    case Collective::scatter: return "binomial";
    case Collective::gatherv:
    case Collective::scatterv: return "flat";
    case Collective::allgather:
    case Collective::allgatherv:
      if (all < 512 * kKi && power_of_two) return "recursive_doubling";
      return all < 80 * kKi ? "bruck" : "ring";
    case Collective::alltoall:
      if (bytes <= 256 && shape.ranks >= 8) return "bruck";
      return bytes <= 32 * kKi ? "linear" : "pairwise";
    case Collective::alltoallv:
    case Collective::alltoallw: return "linear";
    case Collective::reduce: return bytes <= 2 * kKi ? "binomial" : "scatter_gather";
    case Collective::allreduce: return bytes <= 2 * kKi ? "recursive_doubling" : "halving_doubling";
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
      return shape.commutative && all < 512 * kKi ? "recursive_halving" : "pairwise";
    default: return "doubling";  // scans
  }
}

}  // namespace

const coll::Algorithm& host_algorithm(Collective collective, const select::Shape& shape) {
  return *coll::find_algorithm(collective, name_of(collective, shape));
}

}  // namespace stretto::modelling
