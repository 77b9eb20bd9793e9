// SPDX-License-Identifier: BSD-3-Clause
// All spellings of a collective: blocking, nonblocking and persistent, with int and with MPI_Count.
#pragma once
#include <mpi.h>

#include <cstdint>
#include <vector>

namespace sequences {

// Entries that MPI takes as ints, as MPI_Count or as MPI_Aint.
struct Entries {
  std::vector<std::int64_t> wide;
  std::vector<int> narrow;

  void push_back(std::int64_t value) {
    wide.push_back(value);
    narrow.push_back(static_cast<int>(value));
  }
  template <class T>
  operator const T*() const {  // NOLINT(google-explicit-constructor): the call's spelling chooses
    if constexpr (sizeof(T) == sizeof(int)) {
      return reinterpret_cast<const T*>(narrow.data());
    } else {
      return reinterpret_cast<const T*>(wide.data());
    }
  }
};

// clang-format off
#define SEQUENCES_KINDS(X)                                                                            \
  X(Barrier) X(Bcast) X(Gather) X(Gatherv) X(Scatter) X(Scatterv) X(Allgather) X(Allgatherv)          \
  X(Alltoall) X(Alltoallv) X(Alltoallw) X(Reduce) X(Allreduce) X(Reduce_scatter)                      \
  X(Reduce_scatter_block) X(Scan) X(Exscan)                                                           \
  X(Neighbor_allgather) X(Neighbor_allgatherv) X(Neighbor_alltoall) X(Neighbor_alltoallv)             \
  X(Neighbor_alltoallw)
// clang-format on

#define SEQUENCES_NAME(name) name,
enum Kind { SEQUENCES_KINDS(SEQUENCES_NAME) kKinds };
#undef SEQUENCES_NAME
#define SEQUENCES_TEXT(name) #name,
inline const char* const kNames[] = {SEQUENCES_KINDS(SEQUENCES_TEXT)};
#undef SEQUENCES_TEXT
inline constexpr int kCollectives = Neighbor_allgather;  // those that need no topology

inline bool is_reduction(Kind k) { return k >= Reduce && k <= Exscan; }
inline bool is_neighbor(Kind k) { return k >= Neighbor_allgather; }
inline bool has_root(Kind k) { return (k >= Bcast && k <= Scatterv) || k == Reduce; }

enum class Form { blocking, nonblocking, persistent };

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
inline constexpr bool kHasPersistent = true;
#define SEQUENCES_INIT(name, ...) MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request)
#else
inline constexpr bool kHasPersistent = false;
#define SEQUENCES_INIT(name, ...) MPI_ERR_OTHER
#endif

struct Side {
  void* at = nullptr;
  std::int64_t count = 0;
  Entries counts, displs;  // displs of the w-forms are in bytes
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::vector<MPI_Datatype> types;
};

struct Arguments {
  Kind kind = Barrier;
  Side send, receive;
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
  MPI_Comm comm = MPI_COMM_NULL;
};

#define SEQUENCES_NARROW(name, lower, ...)                          \
  (form == Form::blocking      ? MPI_##name(__VA_ARGS__)            \
   : form == Form::nonblocking ? MPI_I##lower(__VA_ARGS__, request) \
                               : SEQUENCES_INIT(name, __VA_ARGS__))
#if MPI_VERSION >= 4
#define SEQUENCES_FORMS(name, lower, ...)                                       \
  case name:                                                                    \
    if (!wide) return SEQUENCES_NARROW(name, lower, __VA_ARGS__);               \
    return form == Form::blocking      ? MPI_##name##_c(__VA_ARGS__)            \
           : form == Form::nonblocking ? MPI_I##lower##_c(__VA_ARGS__, request) \
                                       : MPI_##name##_init_c(__VA_ARGS__, MPI_INFO_NULL, request);
#else
#define SEQUENCES_FORMS(name, lower, ...) \
  case name: return SEQUENCES_NARROW(name, lower, __VA_ARGS__);
#endif

using N = int;  // counts fit

inline int call(const Arguments& a, Form form, bool wide, MPI_Request* request) {
  const Side &s = a.send, &r = a.receive;
  const MPI_Datatype *st = s.types.data(), *rt = r.types.data();
  (void)wide;
  switch (a.kind) {
    case Barrier:
      return SEQUENCES_NARROW(Barrier, barrier, a.comm);
      SEQUENCES_FORMS(Bcast, bcast, r.at, N(r.count), r.type, a.root, a.comm)
      SEQUENCES_FORMS(Gather, gather, s.at, N(s.count), s.type, r.at, N(r.count), r.type, a.root, a.comm)
      SEQUENCES_FORMS(Gatherv, gatherv, s.at, N(s.count), s.type, r.at, r.counts, r.displs, r.type, a.root, a.comm)
      SEQUENCES_FORMS(Scatter, scatter, s.at, N(s.count), s.type, r.at, N(r.count), r.type, a.root, a.comm)
      SEQUENCES_FORMS(Scatterv, scatterv, s.at, s.counts, s.displs, s.type, r.at, N(r.count), r.type, a.root, a.comm)
      SEQUENCES_FORMS(Allgather, allgather, s.at, N(s.count), s.type, r.at, N(r.count), r.type, a.comm)
      SEQUENCES_FORMS(Allgatherv, allgatherv, s.at, N(s.count), s.type, r.at, r.counts, r.displs, r.type, a.comm)
      SEQUENCES_FORMS(Alltoall, alltoall, s.at, N(s.count), s.type, r.at, N(r.count), r.type, a.comm)
      SEQUENCES_FORMS(Alltoallv, alltoallv, s.at, s.counts, s.displs, s.type, r.at, r.counts, r.displs, r.type, a.comm)
      SEQUENCES_FORMS(Alltoallw, alltoallw, s.at, s.counts, s.displs, st, r.at, r.counts, r.displs, rt, a.comm)
      SEQUENCES_FORMS(Reduce, reduce, s.at, r.at, N(r.count), r.type, a.op, a.root, a.comm)
      SEQUENCES_FORMS(Allreduce, allreduce, s.at, r.at, N(r.count), r.type, a.op, a.comm)
      SEQUENCES_FORMS(Reduce_scatter, reduce_scatter, s.at, r.at, r.counts, r.type, a.op, a.comm)
      SEQUENCES_FORMS(Reduce_scatter_block, reduce_scatter_block, s.at, r.at, N(r.count), r.type, a.op, a.comm)
      SEQUENCES_FORMS(Scan, scan, s.at, r.at, N(r.count), r.type, a.op, a.comm)
      SEQUENCES_FORMS(Exscan, exscan, s.at, r.at, N(r.count), r.type, a.op, a.comm)
      SEQUENCES_FORMS(Neighbor_allgather, neighbor_allgather, s.at, N(s.count), s.type, r.at, N(r.count), r.type,
                      a.comm)
      SEQUENCES_FORMS(Neighbor_allgatherv, neighbor_allgatherv, s.at, N(s.count), s.type, r.at, r.counts, r.displs,
                      r.type, a.comm)
      SEQUENCES_FORMS(Neighbor_alltoall, neighbor_alltoall, s.at, N(s.count), s.type, r.at, N(r.count), r.type, a.comm)
      SEQUENCES_FORMS(Neighbor_alltoallv, neighbor_alltoallv, s.at, s.counts, s.displs, s.type, r.at, r.counts,
                      r.displs, r.type, a.comm)
      SEQUENCES_FORMS(Neighbor_alltoallw, neighbor_alltoallw, s.at, s.counts, s.displs, st, r.at, r.counts, r.displs,
                      rt, a.comm)
    default: return MPI_ERR_OTHER;
  }
}
#undef SEQUENCES_FORMS
#undef SEQUENCES_NARROW
#undef SEQUENCES_INIT

}  // namespace sequences
