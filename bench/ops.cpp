// SPDX-License-Identifier: BSD-3-Clause
#include "ops.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace bench {
namespace {

std::size_t nothing(const Shape&) { return 0; }
std::size_t one_block(const Shape& s) {
  return static_cast<std::size_t>(*std::max_element(s.counts.begin(), s.counts.end()));
}
std::size_t all_blocks(const Shape& s) { return s.total; }
// The longest block for every rank.
std::size_t most_each(const Shape& s) { return one_block(s) * s.counts.size(); }

int count_of(const Call& c, int rank) { return c.shape->counts[static_cast<std::size_t>(rank)]; }
int displ_of(const Call& c, int rank) { return c.shape->displs[static_cast<std::size_t>(rank)]; }

void expect_block(char* target, int origin, std::size_t from, int count) {
  for (int i = 0; i < count; ++i) target[i] = pattern(origin, from + static_cast<std::size_t>(i));
}

int mpi_barrier(const Functions& f, const Call&) { return f.barrier(MPI_COMM_WORLD); }
int mpi_bcast(const Functions& f, const Call& c) {
  return f.bcast(c.rank == c.root ? c.send : c.receive, count_of(c, 0), MPI_BYTE, c.root, MPI_COMM_WORLD);
}
int mpi_scatter(const Functions& f, const Call& c) {
  return f.scatter(c.send, count_of(c, 0), MPI_BYTE, c.receive, count_of(c, 0), MPI_BYTE, c.root, MPI_COMM_WORLD);
}
int mpi_scatterv(const Functions& f, const Call& c) {
  return f.scatterv(c.send, c.shape->counts.data(), c.shape->displs.data(), MPI_BYTE, c.receive, count_of(c, c.rank),
                    MPI_BYTE, c.root, MPI_COMM_WORLD);
}
int mpi_gather(const Functions& f, const Call& c) {
  return f.gather(c.send, count_of(c, 0), MPI_BYTE, c.receive, count_of(c, 0), MPI_BYTE, c.root, MPI_COMM_WORLD);
}
int mpi_gatherv(const Functions& f, const Call& c) {
  return f.gatherv(c.send, count_of(c, c.rank), MPI_BYTE, c.receive, c.shape->counts.data(), c.shape->displs.data(),
                   MPI_BYTE, c.root, MPI_COMM_WORLD);
}
int mpi_allgather(const Functions& f, const Call& c) {
  return f.allgather(c.send, count_of(c, 0), MPI_BYTE, c.receive, count_of(c, 0), MPI_BYTE, MPI_COMM_WORLD);
}
int mpi_allgatherv(const Functions& f, const Call& c) {
  return f.allgatherv(c.send, count_of(c, c.rank), MPI_BYTE, c.receive, c.shape->counts.data(), c.shape->displs.data(),
                      MPI_BYTE, MPI_COMM_WORLD);
}

int mpi_alltoall(const Functions& f, const Call& c) {
  return f.alltoall(c.send, count_of(c, 0), MPI_BYTE, c.receive, count_of(c, 0), MPI_BYTE, MPI_COMM_WORLD);
}
// Every rank sends as much to rank r as rank r sends to it. What it gets lies as what it gives.
struct Exchange {
  std::vector<int> counts, displs;
  std::vector<MPI_Datatype> types;
};
const Exchange& exchange_of(const Call& c) {
  static Exchange e;
  e.counts.assign(c.shape->counts.size(), count_of(c, c.rank));
  e.displs.resize(e.counts.size());
  e.types.assign(e.counts.size(), MPI_BYTE);
  for (std::size_t r = 0; r < e.displs.size(); ++r) e.displs[r] = static_cast<int>(r) * count_of(c, c.rank);
  return e;
}
int mpi_alltoallv(const Functions& f, const Call& c) {
  const Exchange& give = exchange_of(c);
  return f.alltoallv(c.send, give.counts.data(), give.displs.data(), MPI_BYTE, c.receive, c.shape->counts.data(),
                     c.shape->displs.data(), MPI_BYTE, MPI_COMM_WORLD);
}
int mpi_alltoallw(const Functions& f, const Call& c) {
  const Exchange& give = exchange_of(c);
  return f.alltoallw(c.send, give.counts.data(), give.displs.data(), give.types.data(), c.receive,
                     c.shape->counts.data(), c.shape->displs.data(), give.types.data(), MPI_COMM_WORLD);
}

// Reductions add 32-bit integers, whose sum is the same in every order. If the length is no
// multiple of 4, they combine bits.
bool adds_words(const Shape& s) { return s.bytes % sizeof(std::uint32_t) == 0; }
MPI_Datatype unit(const Call& c) { return adds_words(*c.shape) ? MPI_UNSIGNED : MPI_BYTE; }
MPI_Op op_of(const Call& c) { return adds_words(*c.shape) ? MPI_SUM : MPI_BXOR; }
int units(const Call& c) {
  return static_cast<int>(c.shape->bytes / (adds_words(*c.shape) ? sizeof(std::uint32_t) : 1));
}
int mpi_reduce(const Functions& f, const Call& c) {
  return f.reduce(c.send, c.receive, units(c), unit(c), op_of(c), c.root, MPI_COMM_WORLD);
}
int mpi_allreduce(const Functions& f, const Call& c) {
  return f.allreduce(c.send, c.receive, units(c), unit(c), op_of(c), MPI_COMM_WORLD);
}
int mpi_reduce_scatter(const Functions& f, const Call& c) {
  static std::vector<int> counts;
  counts.assign(c.shape->counts.size(), units(c));
  return f.reduce_scatter(c.send, c.receive, counts.data(), unit(c), op_of(c), MPI_COMM_WORLD);
}
int mpi_reduce_scatter_block(const Functions& f, const Call& c) {
  return f.reduce_scatter_block(c.send, c.receive, units(c), unit(c), op_of(c), MPI_COMM_WORLD);
}
int mpi_scan(const Functions& f, const Call& c) {
  return f.scan(c.send, c.receive, units(c), unit(c), op_of(c), MPI_COMM_WORLD);
}
int mpi_exscan(const Functions& f, const Call& c) {
  return f.exscan(c.send, c.receive, units(c), unit(c), op_of(c), MPI_COMM_WORLD);
}

void copy_by_one(const Call& c, const char*) {
  if (c.rank == 0) std::memcpy(c.receive, c.send, c.shape->bytes);
}
void add_by_all(const Call& c, const char* other) {
  combine(c.receive, c.send, other, c.shape->bytes, adds_words(*c.shape));
}

void bound_barrier(Bound& b, const Call&) { b.barrier(); }
void bound_bcast(Bound& b, const Call& c) {
  b.bcast(c.rank == c.root ? c.send : c.receive, static_cast<std::size_t>(count_of(c, 0)), c.root);
}
void bound_scatter(Bound& b, const Call& c) { b.scatter(c.send, c.receive, *c.shape, c.root); }
void bound_gather(Bound& b, const Call& c) { b.gather(c.send, c.receive, *c.shape, c.root); }
void bound_allgather(Bound& b, const Call& c) { b.allgather(c.send, c.receive, *c.shape); }

void bound_alltoall(Bound& b, const Call& c) { b.alltoall(c.send, c.receive, *c.shape); }
void bound_reduce(Bound& b, const Call& c) { b.reduce(c.send, c.receive, c.shape->bytes, c.root); }
void bound_allreduce(Bound& b, const Call& c) { b.allreduce(c.send, c.receive, c.shape->bytes); }
void bound_reduce_scatter(Bound& b, const Call& c) { b.reduce_scatter(c.send, c.receive, c.shape->bytes); }
void bound_scan(Bound& b, const Call& c) { b.scan(c.send, c.receive, c.shape->bytes, false); }
void bound_exscan(Bound& b, const Call& c) { b.scan(c.send, c.receive, c.shape->bytes, true); }

void expect_nothing(const Call&, char*) {}
void expect_bcast(const Call& c, char* image) {
  if (c.rank != c.root) expect_block(image, c.root, 0, count_of(c, 0));
}
void expect_scatter(const Call& c, char* image) {
  expect_block(image, c.root, static_cast<std::size_t>(displ_of(c, c.rank)), count_of(c, c.rank));
}
void expect_allgather(const Call& c, char* image) {
  for (int origin = 0; origin < static_cast<int>(c.shape->counts.size()); ++origin) {
    expect_block(image + displ_of(c, origin), origin, 0, count_of(c, origin));
  }
}
void expect_alltoall(const Call& c, char* image) {
  int at = 0;
  for (int origin = 0; origin < static_cast<int>(c.shape->counts.size()); at += count_of(c, origin++)) {
    const auto from = static_cast<std::size_t>(c.rank) * static_cast<std::size_t>(count_of(c, origin));
    expect_block(image + at, origin, from, count_of(c, origin));
  }
}
// The combination of bytes [from, from + bytes) of the first `ranks` ranks.
void expect_combined(const Call& c, char* image, std::size_t from, int ranks) {
  std::vector<char> other(c.shape->bytes);
  for (int origin = 0; origin < ranks; ++origin) {
    expect_block(origin == 0 ? image : other.data(), origin, from, static_cast<int>(c.shape->bytes));
    if (origin != 0) combine(image, image, other.data(), c.shape->bytes, adds_words(*c.shape));
  }
}
int ranks_of(const Call& c) { return static_cast<int>(c.shape->counts.size()); }
void expect_allreduce(const Call& c, char* image) { expect_combined(c, image, 0, ranks_of(c)); }
void expect_reduce(const Call& c, char* image) {
  if (c.rank == c.root) expect_allreduce(c, image);
}
void expect_reduce_scatter(const Call& c, char* image) {
  expect_combined(c, image, static_cast<std::size_t>(c.rank) * c.shape->bytes, ranks_of(c));
}
void expect_scan(const Call& c, char* image) { expect_combined(c, image, 0, c.rank + 1); }
void expect_exscan(const Call& c, char* image) { expect_combined(c, image, 0, c.rank); }
void expect_gather(const Call& c, char* image) {
  if (c.rank == c.root) expect_allgather(c, image);
}

using enum Receivers;

// clang-format off
constexpr Op kOps[] = {
    // name, irregular, data, by, send, receive, mpi, bound, expect, plain
    {"barrier",    false,     false, all,    nothing,    nothing,    mpi_barrier,    bound_barrier,   expect_nothing},
    {"bcast",      false,     true,  others, one_block,  one_block,  mpi_bcast,      bound_bcast,     expect_bcast, copy_by_one},
    {"scatter",    false,     true,  all,    all_blocks, one_block,  mpi_scatter,    bound_scatter,   expect_scatter},
    {"scatterv",   true,      true,  all,    all_blocks, one_block,  mpi_scatterv,   bound_scatter,   expect_scatter},
    {"gather",     false,     true,  root,   one_block,  all_blocks, mpi_gather,     bound_gather,    expect_gather},
    {"gatherv",    true,      true,  root,   one_block,  all_blocks, mpi_gatherv,    bound_gather,    expect_gather},
    {"allgather",  false,     true,  all,    one_block,  all_blocks, mpi_allgather,  bound_allgather, expect_allgather},
    {"allgatherv", true,      true,  all,    one_block,  all_blocks, mpi_allgatherv, bound_allgather, expect_allgather},
    {"alltoall",   false,     true,  all,    all_blocks, all_blocks, mpi_alltoall,   bound_alltoall,  expect_alltoall},
    {"alltoallv",  true,      true,  all,    most_each,  all_blocks, mpi_alltoallv,  bound_alltoall,  expect_alltoall},
    {"alltoallw",  true,      true,  all,    most_each,  all_blocks, mpi_alltoallw,  bound_alltoall,  expect_alltoall},
    {"reduce",     false,     true,  root,   one_block,  one_block,  mpi_reduce,     bound_reduce,    expect_reduce},
    {"allreduce",  false,     true,  all,    one_block,  one_block,  mpi_allreduce,  bound_allreduce, expect_allreduce, add_by_all},
    {"reduce_scatter", false, true,  all, all_blocks, one_block,  mpi_reduce_scatter, bound_reduce_scatter, expect_reduce_scatter},
    {"reduce_scatter_block", false, true, all, all_blocks, one_block, mpi_reduce_scatter_block, bound_reduce_scatter,
                                                                                              expect_reduce_scatter},
    {"scan",       false,     true,  all,    one_block,  one_block,  mpi_scan,       bound_scan,      expect_scan},
    {"exscan",     false,     true,  all,    one_block,  one_block,  mpi_exscan,     bound_exscan,    expect_exscan},
};
// clang-format on

template <class F>
void look_up(const HostLibrary& host, F& function, const char* name) {
  function = reinterpret_cast<F>(host.function(name));
}

}  // namespace

Functions linked_functions() {
  return {MPI_Barrier,   MPI_Bcast,     MPI_Scatter,    MPI_Scatterv,       MPI_Gather,
          MPI_Gatherv,   MPI_Allgather, MPI_Allgatherv, MPI_Alltoall,       MPI_Alltoallv,
          MPI_Alltoallw, MPI_Reduce,    MPI_Allreduce,  MPI_Reduce_scatter, MPI_Reduce_scatter_block,
          MPI_Scan,      MPI_Exscan};
}

Functions host_functions(const HostLibrary& host) {
  Functions f{};
  look_up(host, f.barrier, "PMPI_Barrier");
  look_up(host, f.bcast, "PMPI_Bcast");
  look_up(host, f.scatter, "PMPI_Scatter");
  look_up(host, f.scatterv, "PMPI_Scatterv");
  look_up(host, f.gather, "PMPI_Gather");
  look_up(host, f.gatherv, "PMPI_Gatherv");
  look_up(host, f.allgather, "PMPI_Allgather");
  look_up(host, f.allgatherv, "PMPI_Allgatherv");
  look_up(host, f.alltoall, "PMPI_Alltoall");
  look_up(host, f.alltoallv, "PMPI_Alltoallv");
  look_up(host, f.alltoallw, "PMPI_Alltoallw");
  look_up(host, f.reduce, "PMPI_Reduce");
  look_up(host, f.allreduce, "PMPI_Allreduce");
  look_up(host, f.reduce_scatter, "PMPI_Reduce_scatter");
  look_up(host, f.reduce_scatter_block, "PMPI_Reduce_scatter_block");
  look_up(host, f.scan, "PMPI_Scan");
  look_up(host, f.exscan, "PMPI_Exscan");
  return f;
}

const Op* find_op(const std::string& name) {
  for (const Op& op : kOps) {
    if (name == op.name) return &op;
  }
  return nullptr;
}

Shape make_shape(std::size_t bytes, int ranks, double spread) {
  Shape s;
  s.bytes = bytes;
  const auto n = static_cast<std::size_t>(ranks);
  for (std::size_t r = 0; r < n; ++r) {
    const double tilt = n > 1 ? 2 * static_cast<double>(r) / static_cast<double>(n - 1) - 1 : 0;
    s.counts.push_back(static_cast<int>(std::lround(static_cast<double>(bytes) * (1 + spread * tilt))));
    s.displs.push_back(static_cast<int>(s.total));
    s.total += static_cast<std::size_t>(s.counts.back());
  }
  return s;
}

}  // namespace bench
