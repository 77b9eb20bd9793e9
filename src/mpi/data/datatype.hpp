// SPDX-License-Identifier: BSD-3-Clause
// From MPI datatypes to layouts, which the engine reads and writes by.
//
// Stretto flattens a datatype once: it walks the type's constructors (envelope and contents) and
// lists runs of bytes in the order in which MPI sends them. It merges neighbouring runs. The
// layout of a predefined type stays for good. The layout of a derived type is an attribute of the
// type and is freed with it. If a program makes types for a call or two, most of them get no
// attribute, and their layout is freed with the call. Each thread remembers the few types that it
// used last. Handle values are used again, so every deletion advances a global epoch, which tells
// the threads to forget.
//
// Cost of layout_acquire:
//   predefined or remembered type:   a few ns, no call of the host
//   type with an attribute:          one PMPI_Type_get_attr
//   new type:                        a walk of its constructors
//
// A type with more than kRunLimit runs is *opaque*: its layout has size and extent, but no runs.
// Its data are staged (staging.hpp), as device memory is. The engine never sees such a layout.
#pragma once
#include <mpi.h>

#include "base/region.hpp"

namespace stretto::mpi {

inline constexpr std::size_t kRunLimit = std::size_t{1} << 22;  // 64 MiB of runs

// Called once per initialisation of MPI, before the first layout_acquire. `concurrent` says that
// MPI_THREAD_MULTIPLE is granted.
void datatypes_start(bool concurrent);
// Called before the host is finalized. Gives the keyval back. The layouts of types that are still
// alive stay until the types are freed.
void datatypes_stop();

// The layout of a type. It is null for MPI_DATATYPE_NULL, for a type that is not committed, for a
// handle that the host refuses, and if there is no memory. It stays valid until layout_release,
// even if another thread frees the type meanwhile, which MPI allows during a call.
const Layout* layout_acquire(MPI_Datatype type);
void layout_release(const Layout* layout);  // null is allowed

// The predefined type without gaps that this thread used last. Its layout stays for good and
// needs no layout_release.
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
