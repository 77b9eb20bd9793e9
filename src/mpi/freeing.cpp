// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/freeing.hpp"

#include "mpi/communicator.hpp"
#include "mpi/entry.hpp"
#include "mpi/noted.hpp"

namespace stretto::mpi {
namespace {

class Freeing {
 public:
  explicit Freeing(MPI_Comm comm) : comm_(comm), outer_(t_freeing) {
    t_freeing = this;
    communicator_being_freed(comm);
  }
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
thread_local constinit const Freeing* Freeing::t_freeing STRETTO_TLS = nullptr;

int freed(Entry entry, void* comm) {
  const auto host_function = reinterpret_cast<int (*)(void*)>(host_entry(entry));
  if (comm == nullptr) return host_function(comm);
  const Freeing freeing(*static_cast<const MPI_Comm*>(comm));
  const int code = host_function(comm);
  noted_comm_freed();
  return code;
}

}  // namespace

bool is_being_freed(MPI_Comm comm) { return Freeing::has(comm); }

int comm_free(void* comm) { return freed(Entry::comm_free, comm); }
int comm_disconnect(void* comm) { return freed(Entry::comm_disconnect, comm); }

}  // namespace stretto::mpi
