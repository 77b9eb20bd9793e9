// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/narrow.hpp"

#include <pthread.h>

#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/locked.hpp"
#include "mpi/state/neighborhood.hpp"
#include "sys/hash.hpp"

namespace stretto::mpi {
namespace {

constexpr int kErrCount = 2;  // MPI_ERR_COUNT: the same number in every ABI

// MPI_ROOT is -3 or -4, MPI_PROC_NULL -1 or -2.
bool is_mpi_root(int root) { return root <= -3; }

// Calls the host's PMPI_ function. If the host has no PMPI_ names, its MPI_ function.
template <class... Arguments>
int call_host(const char* name, Arguments... arguments) {
  void* const function = host_symbol(name);
  return reinterpret_cast<int (*)(Arguments...)>(function != nullptr ? function : host_symbol(name + 1))(arguments...);
}

// ---- Arrays that requests of the host may use ----

struct Kept {
  Kept* next;
  int* entries;
  std::size_t bytes;
};
constexpr std::size_t kBuckets = 256;
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Kept* g_kept[kBuckets] = {};

// Returns an array with the same entries that stays, and takes `entries`. Null: no memory.
const int* keep(int* entries, std::size_t bytes) {
  const Locked locked(g_lock);
  Kept*& bucket = g_kept[sys::hash(entries, bytes) % kBuckets];
  Kept* kept = bucket;
  while (kept != nullptr && (kept->bytes != bytes || std::memcmp(kept->entries, entries, bytes) != 0))
    kept = kept->next;
  if (kept == nullptr && (kept = static_cast<Kept*>(std::malloc(sizeof(Kept)))) != nullptr) {
    *kept = {bucket, entries, bytes};
    bucket = kept;
    return entries;
  }
  std::free(entries);
  return kept != nullptr ? kept->entries : nullptr;
}

}  // namespace

Narrow::Narrow(Handle comm, Arrays arrays) : comm_(comm), keeps_(arrays == Arrays::kept) {
  int inter = 0;
  call_host("PMPI_Comm_test_inter", comm, &inter);
  inter_ = inter != 0;
  call_host("PMPI_Comm_rank", comm, &rank_);
  call_host(inter_ ? "PMPI_Comm_remote_size" : "PMPI_Comm_size", comm, &size_);
}

Narrow::~Narrow() {
  for (int* array : arrays_) std::free(array);
}

int Narrow::operator()(std::int64_t count) {
  const bool fits = count >= INT_MIN && count <= INT_MAX;
  fits_ = fits_ && fits;
  return fits ? static_cast<int>(count) : -1;
}

int Narrow::neighbors(bool sources) const {
  int counts[2] = {-1, -1};
  neighborhood_count(comm_, &counts[0], &counts[1]);
  return counts[sources ? 0 : 1];
}

// No array has -1 entries: their number is not known.
const int* Narrow::array(const std::int64_t* wide, int entries) {
  if (wide == nullptr) return nullptr;
  auto* const narrow =
      entries < 0 ? nullptr : static_cast<int*>(std::malloc((static_cast<std::size_t>(entries) + 1) * sizeof(int)));
  if (narrow == nullptr) {
    fits_ = false;
    return nullptr;
  }
  for (int r = 0; r < entries; ++r) narrow[r] = (*this)(wide[r]);
  if (!keeps_) return arrays_[used_++] = narrow;
  const int* const kept = keep(narrow, static_cast<std::size_t>(entries) * sizeof(int));
  fits_ = fits_ && kept != nullptr;
  return kept;
}

bool Narrow::is_root(int root) const { return inter_ ? is_mpi_root(root) : rank_ == root; }

int Narrow::verdict() {
  if (fits_) return 0;
  call_host("PMPI_Comm_call_errhandler", comm_, kErrCount);
  return kErrCount;
}

}  // namespace stretto::mpi
