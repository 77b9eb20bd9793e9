// SPDX-License-Identifier: BSD-3-Clause
// The collectives as function tables: the names a program is linked to (ours, under preload) and
// the host's own.
#pragma once
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace differential {

using Counts = std::vector<std::int64_t>;

// clang-format off
#define DIFFERENTIAL_COUNTED(X)                                                                            \
  X(Bcast) X(Gather) X(Gatherv) X(Scatter) X(Scatterv) X(Allgather) X(Allgatherv) X(Alltoall) X(Alltoallv) \
  X(Alltoallw) X(Reduce) X(Allreduce) X(Reduce_scatter) X(Reduce_scatter_block) X(Scan) X(Exscan)
// clang-format on
#if MPI_VERSION >= 4
// clang-format off
#define DIFFERENTIAL_FUNCTIONS(X)                                                                                  \
  X(Barrier) DIFFERENTIAL_COUNTED(X)                                                                               \
  X(Bcast_c) X(Gather_c) X(Gatherv_c) X(Scatter_c) X(Scatterv_c) X(Allgather_c) X(Allgatherv_c) X(Alltoall_c)      \
  X(Alltoallv_c) X(Alltoallw_c) X(Reduce_c) X(Allreduce_c) X(Reduce_scatter_c) X(Reduce_scatter_block_c) X(Scan_c) \
  X(Exscan_c)
// clang-format on
#else
#define DIFFERENTIAL_FUNCTIONS(X) X(Barrier) DIFFERENTIAL_COUNTED(X)
#endif

struct Functions {
#define DIFFERENTIAL_POINTER(name) decltype(&MPI_##name) name;
  DIFFERENTIAL_FUNCTIONS(DIFFERENTIAL_POINTER)
#undef DIFFERENTIAL_POINTER
};

inline Functions linked_functions() {
  Functions f{};
#define DIFFERENTIAL_TAKE(name) f.name = &MPI_##name;
  DIFFERENTIAL_FUNCTIONS(DIFFERENTIAL_TAKE)
#undef DIFFERENTIAL_TAKE
  return f;
}

inline int find_host_library(dl_phdr_info* info, std::size_t, void* found) {
  const char* slash = std::strrchr(info->dlpi_name, '/');
  const std::string name = slash ? slash + 1 : info->dlpi_name;
  for (const char* start : {"libmpi.so", "libmpich.so", "libmpi_abi.so"}) {
    if (name.rfind(start, 0) != 0) continue;
    *static_cast<std::string*>(found) = info->dlpi_name;
    return 1;
  }
  return 0;
}

// The host's PMPI_ functions, from its own object: the preload library has PMPI_ names, too.
inline bool host_functions(Functions& f) {
  std::string path;
  dl_iterate_phdr(find_host_library, &path);
  void* host = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!host) return false;
#define DIFFERENTIAL_FIND(name)                                            \
  f.name = reinterpret_cast<decltype(f.name)>(dlsym(host, "PMPI_" #name)); \
  if (!f.name) return false;
  DIFFERENTIAL_FUNCTIONS(DIFFERENTIAL_FIND)
#undef DIFFERENTIAL_FIND
  return true;
}

template <class Entry>
std::vector<Entry> narrowed(const Counts* counts) {
  return counts ? std::vector<Entry>(counts->begin(), counts->end()) : std::vector<Entry>();
}

// One buffer argument, and one with a block per rank (null arrays where they are not significant).
struct One {
  void* buffer;
  std::int64_t count;
  MPI_Datatype type;
};
struct Many {
  void* buffer;
  const Counts* counts;
  const Counts* displs;
  MPI_Datatype type;
  [[nodiscard]] std::int64_t regular_count() const { return counts ? (*counts)[0] : 0; }
};

struct Typed {
  void* buffer;
  const Counts* counts;
  const Counts* displs;  // in bytes
  const MPI_Datatype* types;
};
struct Reduced {
  const void* own;
  void* out;
  std::int64_t count;
  MPI_Datatype type;
  MPI_Op op;
};

// Calls by either family of functions. Empty vectors' data() are null: counts that are not
// significant.
struct Caller {
  const Functions& f;
  bool large;

  int barrier(MPI_Comm comm) const { return f.Barrier(comm); }

#if MPI_VERSION >= 4
#define DIFFERENTIAL_EITHER(name, ...) (large ? f.name##_c(__VA_ARGS__) : f.name(__VA_ARGS__))
#else
#define DIFFERENTIAL_EITHER(name, ...) f.name(__VA_ARGS__)
#endif
  using Int = int;

  int bcast(One b, int root, MPI_Comm comm) const {
    return DIFFERENTIAL_EITHER(Bcast, b.buffer, Int(b.count), b.type, root, comm);
  }
  int gather(One s, Many r, int root, MPI_Comm comm) const {
    return DIFFERENTIAL_EITHER(Gather, s.buffer, Int(s.count), s.type, r.buffer, Int(r.regular_count()), r.type, root,
                               comm);
  }
  int scatter(Many s, One r, int root, MPI_Comm comm) const {
    return DIFFERENTIAL_EITHER(Scatter, s.buffer, Int(s.regular_count()), s.type, r.buffer, Int(r.count), r.type, root,
                               comm);
  }
  int allgather(One s, Many r, MPI_Comm comm) const {
    return DIFFERENTIAL_EITHER(Allgather, s.buffer, Int(s.count), s.type, r.buffer, Int(r.regular_count()), r.type,
                               comm);
  }
  int alltoall(Many s, Many r, MPI_Comm comm) const {
    return DIFFERENTIAL_EITHER(Alltoall, s.buffer, Int(s.regular_count()), s.type, r.buffer, Int(r.regular_count()),
                               r.type, comm);
  }
  int reduce(Reduced v, int root, MPI_Comm comm) const {
    return DIFFERENTIAL_EITHER(Reduce, v.own, v.out, Int(v.count), v.type, v.op, root, comm);
  }
  int allreduce(Reduced v, MPI_Comm comm) const {
    return DIFFERENTIAL_EITHER(Allreduce, v.own, v.out, Int(v.count), v.type, v.op, comm);
  }
  int reduce_scatter_block(Reduced v, MPI_Comm comm) const {
    return DIFFERENTIAL_EITHER(Reduce_scatter_block, v.own, v.out, Int(v.count), v.type, v.op, comm);
  }
  int scan(Reduced v, MPI_Comm comm) const {
    return DIFFERENTIAL_EITHER(Scan, v.own, v.out, Int(v.count), v.type, v.op, comm);
  }
  int exscan(Reduced v, MPI_Comm comm) const {
    return DIFFERENTIAL_EITHER(Exscan, v.own, v.out, Int(v.count), v.type, v.op, comm);
  }
#undef DIFFERENTIAL_EITHER

  int reduce_scatter(Reduced v, const Counts& all, MPI_Comm comm) const {
#if MPI_VERSION >= 4
    if (large) {
      const auto counts = narrowed<MPI_Count>(&all);
      return f.Reduce_scatter_c(v.own, v.out, counts.data(), v.type, v.op, comm);
    }
#endif
    const auto counts = narrowed<int>(&all);
    return f.Reduce_scatter(v.own, v.out, counts.data(), v.type, v.op, comm);
  }
  // In place (send.buffer), what is sent has no counts.
  int alltoallv(Many s, Many r, MPI_Comm comm) const {
#if MPI_VERSION >= 4
    if (large) {
      const auto give = narrowed<MPI_Count>(s.counts), take = narrowed<MPI_Count>(r.counts);
      const auto from = narrowed<MPI_Aint>(s.displs), to = narrowed<MPI_Aint>(r.displs);
      return f.Alltoallv_c(s.buffer, give.data(), from.data(), s.type, r.buffer, take.data(), to.data(), r.type, comm);
    }
#endif
    const auto give = narrowed<int>(s.counts), take = narrowed<int>(r.counts);
    const auto from = narrowed<int>(s.displs), to = narrowed<int>(r.displs);
    return f.Alltoallv(s.buffer, give.data(), from.data(), s.type, r.buffer, take.data(), to.data(), r.type, comm);
  }
  int alltoallw(Typed s, Typed r, MPI_Comm comm) const {
#if MPI_VERSION >= 4
    if (large) {
      const auto give = narrowed<MPI_Count>(s.counts), take = narrowed<MPI_Count>(r.counts);
      const auto from = narrowed<MPI_Aint>(s.displs), to = narrowed<MPI_Aint>(r.displs);
      return f.Alltoallw_c(s.buffer, give.data(), from.data(), s.types, r.buffer, take.data(), to.data(), r.types,
                           comm);
    }
#endif
    const auto give = narrowed<int>(s.counts), take = narrowed<int>(r.counts);
    const auto from = narrowed<int>(s.displs), to = narrowed<int>(r.displs);
    return f.Alltoallw(s.buffer, give.data(), from.data(), s.types, r.buffer, take.data(), to.data(), r.types, comm);
  }
  int gatherv(One s, Many r, int root, MPI_Comm comm) const {
#if MPI_VERSION >= 4
    if (large) {
      const auto counts = narrowed<MPI_Count>(r.counts);
      const auto displs = narrowed<MPI_Aint>(r.displs);
      return f.Gatherv_c(s.buffer, s.count, s.type, r.buffer, counts.data(), displs.data(), r.type, root, comm);
    }
#endif
    const auto counts = narrowed<int>(r.counts);
    const auto displs = narrowed<int>(r.displs);
    return f.Gatherv(s.buffer, Int(s.count), s.type, r.buffer, counts.data(), displs.data(), r.type, root, comm);
  }
  int scatterv(Many s, One r, int root, MPI_Comm comm) const {
#if MPI_VERSION >= 4
    if (large) {
      const auto counts = narrowed<MPI_Count>(s.counts);
      const auto displs = narrowed<MPI_Aint>(s.displs);
      return f.Scatterv_c(s.buffer, counts.data(), displs.data(), s.type, r.buffer, r.count, r.type, root, comm);
    }
#endif
    const auto counts = narrowed<int>(s.counts);
    const auto displs = narrowed<int>(s.displs);
    return f.Scatterv(s.buffer, counts.data(), displs.data(), s.type, r.buffer, Int(r.count), r.type, root, comm);
  }
  int allgatherv(One s, Many r, MPI_Comm comm) const {
#if MPI_VERSION >= 4
    if (large) {
      const auto counts = narrowed<MPI_Count>(r.counts);
      const auto displs = narrowed<MPI_Aint>(r.displs);
      return f.Allgatherv_c(s.buffer, s.count, s.type, r.buffer, counts.data(), displs.data(), r.type, comm);
    }
#endif
    const auto counts = narrowed<int>(r.counts);
    const auto displs = narrowed<int>(r.displs);
    return f.Allgatherv(s.buffer, Int(s.count), s.type, r.buffer, counts.data(), displs.data(), r.type, comm);
  }
};

}  // namespace differential
