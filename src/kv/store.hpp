// SPDX-License-Identifier: BSD-3-Clause
// The store of one process: its own table and the tables of the node's other processes.
//
// A get looks first into the process's own table, then into that of the rank asked for, then into
// all others. It reads committed data without a lock, by bounds-checked accesses to read-only
// mappings. The process's own lock only keeps its threads apart. remote_tables.hpp serves ranks on
// other nodes, if the job has some.
#pragma once
#include <pthread.h>

#include <cstdint>

#include "base/status.hpp"
#include "kv/deadline.hpp"
#include "kv/node.hpp"
#include "kv/remote_tables.hpp"
#include "kv/table.hpp"
#include "shm/waiter.hpp"

namespace stretto::kv {

enum class Scope : std::uint16_t { local, remote, global };

class Store {
 public:
  static constexpr std::size_t kTableBytes = std::size_t{256} << 20;  // address space; memory as needed

  Status open(const char* directory, const char* nspace, std::uint32_t rank, unsigned local_ranks,
              std::size_t table_bytes = kTableBytes);
  // Extends an open store to a job on several nodes, which `exchange` connects.
  Status reach(const char* directory, const Places& places, const RemoteExchange& exchange,
               std::size_t table_bytes = kTableBytes);
  void close();
  // The path of a job's file. False: it is too long.
  static bool path_of(const char* directory, const char* nspace, char* path, std::size_t capacity);

  Status put(Scope scope, const char* key, const Value& value);
  Status commit();
  Outcome fence(bool collect, std::uint64_t timeout_ns);

  // Calls take(value) while the value is sure to be there. With timeout_ns 0 it looks only at what
  // is there now. `refresh` concerns ranks on other nodes.
  template <class Take>
  Outcome get(const Name& name, std::uint64_t timeout_ns, bool refresh, Take take) {
    if (remote_.has(name.rank) && is_own(name)) {
      Value value;
      const Outcome outcome = remote_.get(name, timeout_ns, refresh, &value);
      if (outcome == Outcome::found) take(value);
      return outcome;
    }
    const Deadline deadline(timeout_ns);
    shm::Waiter waiter(policy_);
    for (bool lost = false;;) {
      lock();
      Value value;
      const bool found = find(name, &value);
      if (found) take(value);
      unlock();
      if (found) return Outcome::found;
      if (timeout_ns == 0) return Outcome::not_found;
      if (lost) return Outcome::peer_gone;
      lost = waiter.step() && is_lost(name.rank);
      if (deadline.left_ns() == 0) return Outcome::timed_out;
    }
  }
  [[nodiscard]] const char* nspace() const { return nspace_; }
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t ranks() const { return remote_.is_open() ? remote_.ranks() : local_ranks_; }

 private:
  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }
  [[nodiscard]] bool is_own(const Name& name) const;
  Outcome barrier(std::uint64_t timeout_ns, const shm::WaitPolicy& policy);
  bool find(const Name& name, Value* value);
  bool find_at(unsigned seat, const Name& name, Value* value);
  // Whether this rank has been here and is here no more. The caller then looks a last time at what
  // the rank has left.
  bool is_lost(std::uint32_t rank);
  unsigned count_arrived(std::uint64_t barrier, bool* dead);

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  Table table_;
  Node node_;
  RemoteTables remote_;
  char nspace_[256] = {};
  std::uint32_t rank_ = 0;
  unsigned local_ranks_ = 0;
  shm::WaitPolicy policy_;
};

}  // namespace stretto::kv
