// SPDX-License-Identifier: BSD-3-Clause
// The collectives as function tables: the names a program is linked to (ours, under preload) and the host's own.
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

#if MPI_VERSION >= 4
#define DIFFERENTIAL_FUNCTIONS(X)                                                                                     \
  X(Barrier)                                                                                                          \
  X(Bcast) X(Gather) X(Gatherv) X(Scatter) X(Scatterv) X(Allgather) X(Allgatherv) X(Bcast_c) X(Gather_c) X(Gatherv_c) \
      X(Scatter_c) X(Scatterv_c) X(Allgather_c) X(Allgatherv_c)
#else
#define DIFFERENTIAL_FUNCTIONS(X) \
  X(Barrier) X(Bcast) X(Gather) X(Gatherv) X(Scatter) X(Scatterv) X(Allgather) X(Allgatherv)
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
  if (name.rfind("libmpi.so", 0) != 0 && name.rfind("libmpich.so", 0) != 0) return 0;
  *static_cast<std::string*>(found) = info->dlpi_name;
  return 1;
}

// The host's PMPI_ functions, from its own object: the preload library has PMPI_ names too.
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

// Calls by either family of functions. Empty vectors' data() are null: counts that are not significant.
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
#undef DIFFERENTIAL_EITHER

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
