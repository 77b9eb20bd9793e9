// SPDX-License-Identifier: BSD-3-Clause
// What handles stand for, in words of the notes (noted.hpp): communicators by name, ranks there and
// in the job; requests and files by what made them. The caller holds a HandleLock.
#pragma once
#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mpi/host/entry.hpp"
#include "mpi/host/host.hpp"
#include "shm/host_calls.hpp"

namespace stretto::mpi {

// Guards all facts of this file.
class HandleLock {
 public:
  HandleLock() { pthread_mutex_lock(&g_mutex); }
  ~HandleLock() { pthread_mutex_unlock(&g_mutex); }
  HandleLock(const HandleLock&) = delete;
  HandleLock& operator=(const HandleLock&) = delete;

 private:
  static pthread_mutex_t g_mutex;
};

// What is known of a handle. An entry stays when its object is gone: the next object with that
// handle has another one. So there are as many as the program has had different handles.
class KnownHandles {
 public:
  // Null: nothing.
  [[nodiscard]] const shm::Awaited* find(std::uintptr_t handle) const;
  void put(std::uintptr_t handle, const shm::Awaited& said);

 private:
  struct Entry {
    std::uintptr_t handle;
    shm::Awaited said;
  };
  [[nodiscard]] std::size_t place_of(std::uintptr_t handle) const;
  bool grow();

  Entry* entries_ = nullptr;
  std::size_t capacity_ = 0, count_ = 0;
};
extern constinit KnownHandles g_known_requests, g_known_files;

struct CommFacts {
  MPI_Comm handle{};
  bool known = false, inter = false;
  int size = 0;  // of the ranks that messages go to
  char name[sizeof shm::Awaited::where] = "";
};
bool is_comm(MPI_Comm comm);
const CommFacts& facts_of(MPI_Comm comm);
// The handle of a communicator may name another one from now on.
void forget_communicators();
// Their ranks in the job; Awaited::kUnknown: they are of another one. `group` is given back.
int world_of(MPI_Group group, int rank);
int world_of(const CommFacts& facts, int rank);
// It is given back.
int size_of(MPI_Group group);
// As Awaited::comm.
std::uint64_t identity_of(MPI_Comm comm);
void name_comm(MPI_Comm comm, char (&where)[sizeof shm::Awaited::where]);
std::uint64_t bytes_of(std::int64_t count, Handle type);

// As much of a name as there is room for.
template <std::size_t n>
void copy_name(char (&to)[n], const char* from) {
  const std::size_t length = std::strlen(from), bytes = length < n - 1 ? length : n - 1;
  std::memcpy(to, from, bytes);
  to[bytes] = 0;
}

}  // namespace stretto::mpi
