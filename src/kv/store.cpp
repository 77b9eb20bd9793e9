// SPDX-License-Identifier: BSD-3-Clause
#include "kv/store.hpp"

#include <cstdio>
#include <cstring>

#include "kv/deadline.hpp"
#include "kv/lock/machine.hpp"

namespace stretto::kv {
namespace {

// For waits for the network: the runtime's daemon on this node needs the processor.
constexpr shm::WaitPolicy kPatient = [] {
  shm::WaitPolicy policy;
  policy.bare_spins = policy.spins = 0;
  policy.yield_after_ns = policy.nap_after_ns = 0;
  return policy;
}();

}  // namespace

bool Store::path_of(const char* directory, const char* nspace, char* path, std::size_t capacity) {
  // A namespace may contain characters that a file name may not. They become dots, and the hash
  // tells such names apart.
  Name name;
  if (!name_make(nspace, kWildcard, "stretto", &name)) return false;
  int length =
      std::snprintf(path, capacity, "%s/stretto-kv-%llx-", directory, static_cast<unsigned long long>(name.hash));
  for (const char* c = nspace; length > 0 && *c != 0 && static_cast<std::size_t>(length) + 1 < capacity;
       ++c, ++length) {
    path[length] = *c == '/' ? '.' : *c;
    path[length + 1] = 0;
  }
  return length > 0 && static_cast<std::size_t>(length) + 1 < capacity;
}

Status Store::open(const char* directory, const char* nspace, std::uint32_t rank, unsigned local_ranks,
                   std::size_t table_bytes) {
  char path[1024];
  if (std::strlen(nspace) >= sizeof nspace_ || !path_of(directory, nspace, path, sizeof path)) return Status::invalid;
  if (const Status status = node_.open(path); status != Status::ok) return status;
  Status status = table_.create(table_bytes);
  if (status == Status::ok) status = node_.join(rank, table_);
  if (status != Status::ok) {
    close();
    return status;
  }
  std::strcpy(nspace_, nspace);
  rank_ = rank;
  local_ranks_ = local_ranks;
  if (Machine::crowded(local_ranks)) policy_.crowd();
  return Status::ok;
}

// The file's name differs from that of any other job's file, because its hash differs.
Status Store::reach(const char* directory, const Places& places, const RemoteExchange& exchange,
                    std::size_t table_bytes) {
  char nspace[sizeof nspace_ + 16], path[1024];
  std::snprintf(nspace, sizeof nspace, "%s elsewhere", nspace_);
  if (!path_of(directory, nspace, path, sizeof path)) return Status::invalid;
  return remote_.open(path, nspace_, rank_, places, exchange, table_bytes);
}

void Store::close() {
  remote_.close();
  node_.close();
  table_.destroy();
}

Status Store::put(Scope scope, const char* key, const Value& value) {
  Name name;
  if (!name_make(nspace_, rank_, key, &name)) return Status::invalid;
  Value scoped = value;
  scoped.scope = static_cast<std::uint16_t>(scope);
  lock();
  Status status = table_.put(name, scoped);
  if (status == Status::ok && scope != Scope::local && remote_.is_open()) status = remote_.pack(key, value);
  unlock();
  return status;
}

// Sends first: others on the node must not see a commit that could not be sent.
Status Store::commit() {
  lock();
  const Status status = remote_.is_open() && remote_.has_packed() ? remote_.send() : Status::ok;
  if (status == Status::ok) table_.commit();
  unlock();
  return status;
}

// Counts the ranks that have reached this barrier. With `dead`, also asks whether the others still
// can.
unsigned Store::count_arrived(std::uint64_t barrier, bool* dead) {
  unsigned arrived = 0;
  for (unsigned i = 0; i < node_.entries(); ++i) {
    if (!node_.was_taken(i) || node_.rank_of(i) == kWildcard) continue;
    if (node_.barriers_of(i) >= barrier) {
      ++arrived;
    } else if (dead && !node_.is_alive(i) && node_.barriers_of(i) < barrier) {
      // The second look is needed: the member may have come before it went.
      *dead = true;
    }
  }
  return arrived;
}

Outcome Store::fence(bool collect, std::uint64_t timeout_ns) {
  if (!remote_.is_open()) return barrier(timeout_ns, policy_);
  if (!collect) return remote_.fence(timeout_ns);
  // In the first barrier all processes have sent what they have to send. In the second all have
  // brought their share. No process may wait for one that has failed, here or elsewhere. A process
  // that has failed therefore goes through all three steps without waiting.
  const Deadline deadline(timeout_ns);
  const Outcome sent = barrier(deadline.left_ns(), kPatient);
  const Outcome collected = sent == Outcome::found ? remote_.collect(deadline.left_ns()) : remote_.fence(0);
  const Outcome met = barrier(deadline.left_ns(), kPatient);
  if (sent != Outcome::found) return sent;
  return collected == Outcome::found ? met : collected;
}

Outcome Store::barrier(std::uint64_t timeout_ns, const shm::WaitPolicy& policy) {
  lock();
  node_.reach_barrier();
  const std::uint64_t barrier = node_.barriers();
  unlock();
  const Deadline deadline(timeout_ns);
  shm::Waiter waiter(policy);
  for (;;) {
    bool dead = false;
    const bool look = waiter.step();
    if (count_arrived(barrier, look ? &dead : nullptr) >= local_ranks_) return Outcome::found;
    if (dead) return Outcome::peer_gone;
    if (deadline.left_ns() == 0) return Outcome::timed_out;
  }
}

bool Store::is_own(const Name& name) const { return std::strcmp(name.nspace, nspace_) == 0; }

bool Store::is_lost(std::uint32_t rank) {
  bool was_here = false;
  for (unsigned i = 0; i < node_.entries(); ++i) {
    if (!node_.was_taken(i) || node_.rank_of(i) != rank) continue;
    if (node_.is_alive(i)) return false;
    was_here = true;
  }
  return was_here;
}

bool Store::find_at(unsigned entry, const Name& name, Value* value) {
  const TableView* const view = node_.table_of(entry);
  return view && view->find(name, value) && value->scope != static_cast<std::uint16_t>(Scope::remote);
}

bool Store::find(const Name& name, Value* value) {
  if (table_.view().find(name, value, TableView::kNewest)) return true;
  const unsigned entries = node_.entries();
  for (unsigned i = 0; i < entries; ++i) {
    if (!node_.is_mine(i) && node_.rank_of(i) == name.rank && find_at(i, name, value)) return true;
  }
  for (unsigned i = 0; i < entries; ++i) {
    if (!node_.is_mine(i) && node_.rank_of(i) != name.rank && find_at(i, name, value)) return true;
  }
  return false;
}

}  // namespace stretto::kv
