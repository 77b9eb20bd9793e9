// SPDX-License-Identifier: BSD-3-Clause
// Which communicators this thread is freeing. Calls on them then come from callbacks, and the host
// serves them. This is so on all ranks, whether or not our attribute is still there.
#pragma once
#include "mpi/host/entry.hpp"
#include "mpi/host/host.hpp"

namespace stretto::mpi {

class Freeing {
 public:
  explicit Freeing(MPI_Comm comm) : comm_(comm), outer_(t_freeing) { t_freeing = this; }
  ~Freeing() { t_freeing = outer_; }
  Freeing(const Freeing&) = delete;
  Freeing& operator=(const Freeing&) = delete;

  static bool has(MPI_Comm comm) {
    const Freeing* at = t_freeing;
    while (at != nullptr && at->comm_ != comm) at = at->outer_;
    return at != nullptr;
  }

 private:
  static thread_local constinit const Freeing* t_freeing STRETTO_TLS;
  MPI_Comm comm_;
  const Freeing* outer_;
};
inline thread_local constinit const Freeing* Freeing::t_freeing STRETTO_TLS = nullptr;

inline bool is_being_freed(MPI_Comm comm) { return Freeing::has(comm); }

}  // namespace stretto::mpi
