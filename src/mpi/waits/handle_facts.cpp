// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/waits/handle_facts.hpp"

#include <cstdio>
#include <cstdlib>

#include "mpi/state/state.hpp"
#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi {

using shm::Awaited;

constinit pthread_mutex_t HandleLock::g_mutex = PTHREAD_MUTEX_INITIALIZER;
constinit KnownHandles g_known_requests, g_known_files;

namespace {

constexpr std::uint64_t kWorld = 2, kSelf = 4;  // generations are odd

// A handle that is freed may name another communicator: then all are forgotten.
constexpr unsigned kKept = 32;
constinit CommFacts g_comms[kKept] = {};
struct RankFacts {
  MPI_Comm handle{};
  int rank = -1, world = Awaited::kUnknown;
};
constinit RankFacts g_ranks[4 * kKept] = {};

unsigned place_of(MPI_Comm comm) {
  const auto bits = (std::uintptr_t)comm;
  return static_cast<unsigned>((bits ^ bits >> 4 ^ bits >> 9) % kKept);
}

}  // namespace

const Awaited* KnownHandles::find(std::uintptr_t handle) const {
  if (capacity_ == 0) return nullptr;
  const Entry& entry = entries_[place_of(handle)];
  return entry.handle == handle ? &entry.said : nullptr;
}

void KnownHandles::put(std::uintptr_t handle, const Awaited& said) {
  if (handle == 0 || (2 * count_ >= capacity_ && !grow())) return;
  Entry& entry = entries_[place_of(handle)];
  if (entry.handle == 0) ++count_;
  entry = {handle, said};
}

std::size_t KnownHandles::place_of(std::uintptr_t handle) const {
  std::size_t at = (handle ^ handle >> 7 ^ handle >> 17) % capacity_;
  while (entries_[at].handle != 0 && entries_[at].handle != handle) at = (at + 1) % capacity_;
  return at;
}

bool KnownHandles::grow() {
  KnownHandles larger;
  larger.capacity_ = capacity_ == 0 ? 64 : 2 * capacity_;
  larger.entries_ = static_cast<Entry*>(std::calloc(larger.capacity_, sizeof(Entry)));
  if (larger.entries_ == nullptr) return false;
  for (std::size_t i = 0; i < capacity_; ++i) {
    if (entries_[i].handle != 0) larger.put(entries_[i].handle, entries_[i].said);
  }
  std::free(entries_);
  *this = larger;
  return true;
}

bool is_comm(MPI_Comm comm) { return comm != MPI_Comm{} && comm != host().constants.comm_null; }

int size_of(MPI_Group group) {
  int size = 0;
  host().Group_size(group, &size);
  host().Group_free(&group);
  return size;
}

const CommFacts& facts_of(MPI_Comm comm) {
  CommFacts& kept = g_comms[place_of(comm)];
  if (kept.known && kept.handle == comm) return kept;
  int inter = 0, length = 0;
  char name[MPI_MAX_OBJECT_NAME] = "";
  kept = {comm, true};
  host().Comm_test_inter(comm, &inter);
  kept.inter = inter != 0;
  MPI_Group remote{};
  if (!kept.inter)
    host().Comm_size(comm, &kept.size);
  else if (host().Comm_remote_group(comm, &remote) == MPI_SUCCESS)
    kept.size = size_of(remote);
  host().Comm_get_name(comm, name, &length);
  copy_name(kept.name, name);
  return kept;
}

// Its rank in the job. `group` is given back.
int world_of(MPI_Group group, int rank) {
  MPI_Group world{};
  int there = MPI_UNDEFINED;
  if (host().Comm_group(host().constants.comm_world, &world) == MPI_SUCCESS) {
    host().Group_translate_ranks(group, 1, &rank, world, &there);
    host().Group_free(&world);
  }
  host().Group_free(&group);
  return there == MPI_UNDEFINED ? Awaited::kUnknown : there;
}

int world_of(const CommFacts& facts, int rank) {
  if (facts.handle == host().constants.comm_world) return rank;
  RankFacts& kept = g_ranks[(place_of(facts.handle) + static_cast<unsigned>(rank)) % (4 * kKept)];
  if (kept.handle == facts.handle && kept.rank == rank) return kept.world;
  MPI_Group group{};
  const int code =
      facts.inter ? host().Comm_remote_group(facts.handle, &group) : host().Comm_group(facts.handle, &group);
  if (code != MPI_SUCCESS) return Awaited::kUnknown;
  kept = {facts.handle, rank, world_of(group, rank)};
  return kept.world;
}

// Names that hosts give by themselves may be the same for different communicators.
std::uint64_t identity_of(MPI_Comm comm) {
  if (comm == host().constants.comm_world) return kWorld;
  if (comm == host().constants.comm_self) return kSelf;
  return communicator_generation(comm);
}

void name_comm(MPI_Comm comm, char (&where)[sizeof Awaited::where]) {
  const CommFacts& facts = facts_of(comm);
  const std::uint64_t serial = facts.name[0] == 0 ? communicator_serial(comm) : 0;
  if (facts.name[0] != 0)
    std::memcpy(where, facts.name, sizeof where);
  else if (serial != 0)
    std::snprintf(where, sizeof where, "communicator %llu of %d ranks", static_cast<unsigned long long>(serial),
                  facts.size);
  else
    std::snprintf(where, sizeof where, "a communicator of %d ranks", facts.size);
}

std::uint64_t bytes_of(std::int64_t count, Handle type) {
  MPI_Count bytes = 0;
  if (count < 0 || !vendor::is_datatype((MPI_Datatype)type, host().constants.datatype_null)) return Awaited::kNoBytes;
  if (host().Type_size_x((MPI_Datatype)type, &bytes) != MPI_SUCCESS || bytes < 0) return Awaited::kNoBytes;
  return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(bytes);
}

void forget_communicators() {
  for (CommFacts& each : g_comms) each = {};
  for (RankFacts& each : g_ranks) each = {};
}

}  // namespace stretto::mpi
