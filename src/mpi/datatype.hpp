// SPDX-License-Identifier: BSD-3-Clause
// From MPI datatypes to layouts: what the engine reads and writes instead of typemaps.
//
// A datatype is flattened once, by walking its constructors (envelope and contents), into runs in the order in which
// MPI sends them; neighbouring runs are merged. Predefined types are learnt once and kept for good. A derived type's
// layout hangs on the type as an attribute and goes with it; where a program makes types for a call or two, most do
// without one, and their layout goes with the call. Each thread remembers the few it used last, and a global epoch that
// every deletion advances tells it when to forget (handle values are reused).
//
// Cost of layout_acquire: predefined or remembered, a few ns and no host call; known to the type, one
// PMPI_Type_get_attr; new, a walk of its constructors.
//
// A type with more than kRunLimit runs is *opaque*: its layout knows size and extent but has no runs. Its data are
// staged (staging.hpp), as device memory is; the engine never sees the layout itself.
#pragma once
#include <mpi.h>

#include "base/region.hpp"

namespace stretto::mpi {

inline constexpr std::size_t kRunLimit = std::size_t{1} << 22;  // 64 MiB of runs

// Called once per initialisation of MPI, before the first layout_acquire. `concurrent`: MPI_THREAD_MULTIPLE is granted.
void datatypes_start(bool concurrent);
// Before the host is finalized: gives the keyval back. Layouts of types that are still alive stay until they are freed.
void datatypes_stop();

// The layout of a type; null for MPI_DATATYPE_NULL, one that is not committed, a handle the host does not take, or want
// of memory. It stays valid until layout_release, even if another thread frees the type meanwhile (as MPI allows during
// a call).
const Layout* layout_acquire(MPI_Datatype type);
void layout_release(const Layout* layout);  // null is allowed

// The predefined type without gaps that this thread used last: such layouts are there for good and need no release.
struct PlainType {
  MPI_Datatype type;
  const Layout* layout;
};
[[gnu::tls_model("initial-exec")]] extern thread_local constinit PlainType t_plain_type;
inline const Layout* plain_layout(MPI_Datatype type) {
  return t_plain_type.type == type ? t_plain_type.layout : nullptr;
}

inline bool layout_is_opaque(const Layout& layout) { return layout.run_count == 0 && layout.size != 0; }

}  // namespace stretto::mpi
