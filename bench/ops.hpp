// SPDX-License-Identifier: BSD-3-Clause
// The collectives that can be measured: one row each. A row knows how long its buffers are and how
// to call MPI. It also has the bound for comparison, and what the receive buffer must hold
// afterwards.
#pragma once
#include <mpi.h>

#include <string>

#include "bound.hpp"
#include "team.hpp"

namespace bench {

// The same functions twice: as the program links them, which a preloaded library intercepts, and
// the host's own.
struct Functions {
  decltype(&MPI_Barrier) barrier;
  decltype(&MPI_Bcast) bcast;
  decltype(&MPI_Scatter) scatter;
  decltype(&MPI_Scatterv) scatterv;
  decltype(&MPI_Gather) gather;
  decltype(&MPI_Gatherv) gatherv;
  decltype(&MPI_Allgather) allgather;
  decltype(&MPI_Allgatherv) allgatherv;
  decltype(&MPI_Alltoall) alltoall;
  decltype(&MPI_Alltoallv) alltoallv;
  decltype(&MPI_Alltoallw) alltoallw;
  decltype(&MPI_Reduce) reduce;
  decltype(&MPI_Allreduce) allreduce;
  decltype(&MPI_Reduce_scatter) reduce_scatter;
  decltype(&MPI_Reduce_scatter_block) reduce_scatter_block;
  decltype(&MPI_Scan) scan;
  decltype(&MPI_Exscan) exscan;
};
Functions linked_functions();
Functions host_functions(const HostLibrary& host);

// One call: the buffers of this rank and the root.
struct Call {
  const Shape* shape;
  char* send;
  char* receive;
  int root;
  int rank;
};

// Byte `index` of what rank `origin` sends.
inline char pattern(int origin, std::size_t index) {
  return static_cast<char>(index * 31 + (index >> 8) * 7 + static_cast<std::size_t>(origin) * 101 + 13);
}

enum class Receivers { all, root, others };

struct Op {
  const char* name;
  bool irregular;  // takes counts and displacements
  bool has_data;
  Receivers receivers;
  // Bytes of the buffers of the rank that needs most (the root, where there is one).
  std::size_t (*send_bytes)(const Shape&);
  std::size_t (*receive_bytes)(const Shape&);
  int (*mpi)(const Functions&, const Call&);
  void (*bound)(Bound&, const Call&);
  // Writes what the call must put into this rank's receive buffer over `image`. Before, `image` has
  // the buffer's old content.
  void (*expect)(const Call&, char* image);
  // The same work on private data, without any peer, for comparison. Null: there is none.
  void (*plain)(const Call&, const char* other) = nullptr;
};

const Op* find_op(const std::string& name);

// Equal blocks. With `spread` s, blocks of (1-s) to (1+s) times `bytes`, growing with the rank, the
// same in total.
Shape make_shape(std::size_t bytes, int ranks, double spread);

}  // namespace bench
