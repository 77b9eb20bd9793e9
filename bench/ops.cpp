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
  return f.scatterv(c.send, c.shape->counts.data(), c.shape->displs.data(), MPI_BYTE, c.receive, count_of(c, c.rank), MPI_BYTE,
                    c.root, MPI_COMM_WORLD);
}
int mpi_gather(const Functions& f, const Call& c) {
  return f.gather(c.send, count_of(c, 0), MPI_BYTE, c.receive, count_of(c, 0), MPI_BYTE, c.root, MPI_COMM_WORLD);
}
int mpi_gatherv(const Functions& f, const Call& c) {
  return f.gatherv(c.send, count_of(c, c.rank), MPI_BYTE, c.receive, c.shape->counts.data(), c.shape->displs.data(), MPI_BYTE,
                   c.root, MPI_COMM_WORLD);
}
int mpi_allgather(const Functions& f, const Call& c) {
  return f.allgather(c.send, count_of(c, 0), MPI_BYTE, c.receive, count_of(c, 0), MPI_BYTE, MPI_COMM_WORLD);
}
int mpi_allgatherv(const Functions& f, const Call& c) {
  return f.allgatherv(c.send, count_of(c, c.rank), MPI_BYTE, c.receive, c.shape->counts.data(), c.shape->displs.data(), MPI_BYTE,
                      MPI_COMM_WORLD);
}

void bound_barrier(Bound& b, const Call&) { b.barrier(); }
void bound_bcast(Bound& b, const Call& c) {
  b.bcast(c.rank == c.root ? c.send : c.receive, static_cast<std::size_t>(count_of(c, 0)), c.root);
}
void bound_scatter(Bound& b, const Call& c) { b.scatter(c.send, c.receive, *c.shape, c.root); }
void bound_gather(Bound& b, const Call& c) { b.gather(c.send, c.receive, *c.shape, c.root); }
void bound_allgather(Bound& b, const Call& c) { b.allgather(c.send, c.receive, *c.shape); }

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
void expect_gather(const Call& c, char* image) {
  if (c.rank == c.root) expect_allgather(c, image);
}

// clang-format off
constexpr Op kOps[] = {
    // name        irregular  data   send        receive     mpi             bound            expect
    {"barrier",    false,     false, nothing,    nothing,    mpi_barrier,    bound_barrier,   expect_nothing},
    {"bcast",      false,     true,  one_block,  one_block,  mpi_bcast,      bound_bcast,     expect_bcast},
    {"scatter",    false,     true,  all_blocks, one_block,  mpi_scatter,    bound_scatter,   expect_scatter},
    {"scatterv",   true,      true,  all_blocks, one_block,  mpi_scatterv,   bound_scatter,   expect_scatter},
    {"gather",     false,     true,  one_block,  all_blocks, mpi_gather,     bound_gather,    expect_gather},
    {"gatherv",    true,      true,  one_block,  all_blocks, mpi_gatherv,    bound_gather,    expect_gather},
    {"allgather",  false,     true,  one_block,  all_blocks, mpi_allgather,  bound_allgather, expect_allgather},
    {"allgatherv", true,      true,  one_block,  all_blocks, mpi_allgatherv, bound_allgather, expect_allgather},
};
// clang-format on

template <class F>
void look_up(const HostLibrary& host, F& function, const char* name) {
  function = reinterpret_cast<F>(host.function(name));
}

}  // namespace

Functions linked_functions() {
  return {MPI_Barrier, MPI_Bcast, MPI_Scatter, MPI_Scatterv, MPI_Gather, MPI_Gatherv, MPI_Allgather, MPI_Allgatherv};
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
