// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/record/recorder.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "base/output_path.hpp"
#include "mpi/host/call_sites.hpp"
#include "mpi/host/entry.hpp"
#include "mpi/job/world.hpp"
#include "mpi/job/world_ranks.hpp"
#include "mpi/state/neighborhood.hpp"
#include "sys/hash.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {

constinit Recorder* g_recorder = nullptr;

namespace {

constexpr std::size_t kPathBytes = 4096;

// Ranks as runs of (first, step, count).
void add_runs(Array<std::int64_t>& to, const Array<int>& ranks) {
  for (std::size_t i = 0; i < ranks.size();) {
    const std::int64_t step = i + 1 < ranks.size() ? ranks[i + 1] - ranks[i] : 0;
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] - ranks[end - 1] == step) ++end;
    to.push(ranks[i]);
    to.push(step);
    to.push(static_cast<std::int64_t>(end - i));
    i = end;
  }
}

// The file of a rank of MPI_COMM_WORLD, or of the `spawned`-th world that others have spawned.
// False, after a warning: it can have no name.
bool file_of(int spawned, int rank, char (&path)[kPathBytes]) {
  char name[kPathBytes], world[32] = "";
  if (spawned > 0) std::snprintf(world, sizeof world, ".spawned%d", spawned);
  std::snprintf(name, sizeof name, "%s%s.%d", options().record_path, world, rank);
  if (output_path(name, path, sizeof path)) return true;
  log_line(LogLevel::warn, "STRETTO_RECORD: no file can have the name %s", name);
  return false;
}

bool is_spawned() {
  MPI_Comm parent = host().constants.comm_null;
  return host().Comm_get_parent(&parent) == MPI_SUCCESS && parent != host().constants.comm_null;
}

// The number of this spawned world. Rank 0 takes the first one that has no file.
int spawned_number() {
  int number = 1;
  char path[kPathBytes];
  if (g_world.rank == 0) {
    if (file_of(number, 0, path)) (void)sys::folders_make(path);
    while (file_of(number, 0, path) && sys::file_claim(path) == EEXIST) ++number;
  }
  host().Bcast(&number, 1, host().constants.int_, 0, host().constants.comm_world);
  return number;
}

}  // namespace

bool Recorder::begin(bool complete) {
  char path[kPathBytes];
  const bool spawned = is_spawned();
  if (spawned && !complete) {
    log_line(LogLevel::warn, "STRETTO_RECORD: no recording of spawned processes, of which some lack the library");
    return false;
  }
  if (!file_of(spawned ? spawned_number() : 0, g_world.rank, path)) return false;
  char host_text[record::kTextBytes], version[record::kTextBytes], program[record::kTextBytes];
  char processors[record::kTextBytes];
  sys::host_name(host_text, sizeof host_text);
  host_version(version, sizeof version);
  sys::command_line(program, sizeof program);
  sys::processors_text(processors, sizeof processors);
  (void)sys::folders_make(path);
  record::About about{g_world.rank, g_world.size, options().record_bound() / 100.0, host_text, version,
                      program,      processors};
  if (const int error = writer.open(path, about)) {
    log_line(LogLevel::warn, "STRETTO_RECORD: %s cannot be written: %s", path, std::strerror(error));
    return false;
  }
  int level = MPI_THREAD_SINGLE;
  host().Query_thread(&level);
  threaded = level == MPI_THREAD_MULTIPLE;
  first_counter_ = sys::counter();
  first_ns_ = sys::now_ns();
  (void)comm(host().constants.comm_world);
  (void)comm(host().constants.comm_self);
  return true;
}

std::uint64_t Recorder::ticks(std::uint64_t ns) const {
  const std::uint64_t passed = sys::now_ns() - first_ns_;
  if (passed == 0) return ns;
  return static_cast<std::uint64_t>(static_cast<double>(sys::counter() - first_counter_) / static_cast<double>(passed) *
                                    static_cast<double>(ns));
}

std::uint32_t Recorder::comm(MPI_Comm handle) {
  std::uint32_t number = comms.find((std::uintptr_t)handle);
  if (number != Numbers::kNone) return comm_ids_[number];
  number = comms.add((std::uintptr_t)handle);
  if (number == Numbers::kNone || (number >= comm_ids_.size() && !comm_ids_.resize(number + std::size_t{1}, 0)))
    return 0;
  const Inside inside;
  return comm_ids_[number] = add_comm(handle);
}

void Recorder::comm_goes(std::uintptr_t handle) {
  const std::uint32_t number = comms.take(handle);
  if (number == Numbers::kNone) return;
  comm_facts[comm_ids_[number]].alive = false;
  comms.release(number);
}

// A loop that makes and frees communicators uses the same ids in each turn.
std::uint32_t Recorder::add_comm(MPI_Comm handle) {
  RecordedComm made{};
  int inter = 0;
  host().Comm_test_inter(handle, &inter);
  host().Comm_rank(handle, &made.rank);
  made.inter = inter != 0;
  made.alive = true;
  Array<int> own, remote, sources, destinations;
  MPI_Group group{};
  bool known = host().Comm_group(handle, &group) == MPI_SUCCESS && translate_to_world(group, own);
  if (made.inter)
    known = known && host().Comm_remote_group(handle, &group) == MPI_SUCCESS && translate_to_world(group, remote);
  else if (neighbors_read(handle, made.rank, sources, destinations))
    made.sources = static_cast<int>(sources.size()), made.destinations = static_cast<int>(destinations.size());
  made.peers = static_cast<int>(made.inter ? remote.size() : own.size());
  for (auto* const list : {&own, &remote}) {
    for (int& rank : *list) {
      known = known && rank != MPI_UNDEFINED;
      if (rank == MPI_UNDEFINED) rank = -1;
    }
  }
  Array<std::int64_t> values, neighbors;
  for (const std::int64_t value :
       {std::int64_t{0}, (made.inter ? record::kInter : 0) | (known ? 0 : record::kForeign), std::int64_t{made.rank},
        static_cast<std::int64_t>(own.size()), static_cast<std::int64_t>(remote.size())})
    values.push(value);
  add_runs(values, own);
  add_runs(values, remote);
  neighbors.push(0);
  for (const auto* const list : {&sources, &destinations}) {
    neighbors.push(static_cast<std::int64_t>(list->size()));
    for (const int rank : *list) neighbors.push(rank < 0 ? -1 : rank);
  }
  if (values.failed() || neighbors.failed()) return 0;
  made.hash = sys::hash(neighbors.data(), neighbors.size() * sizeof neighbors[0],
                        sys::hash(values.data(), values.size() * sizeof values[0]));
  for (std::size_t id = 0; id < comm_facts.size(); ++id) {
    if (comm_facts[id].alive || comm_facts[id].hash != made.hash) continue;
    comm_facts[id].alive = true;
    return static_cast<std::uint32_t>(id);
  }
  const auto id = static_cast<std::uint32_t>(comm_facts.size());
  if (!comm_facts.push(made)) return 0;
  values[0] = neighbors[0] = id;
  writer.define(record::Definition::comm, values.data(), values.size());
  if (neighbors.size() > 3) writer.define(record::Definition::neighbors, neighbors.data(), neighbors.size());
  return id;
}

std::uint32_t Recorder::function(int entry) {
  std::uint64_t& word = functions_[entry / 64];
  const std::uint64_t bit = std::uint64_t{1} << entry % 64;
  if ((word & bit) == 0) {
    word |= bit;
    writer.define(record::Definition::function, static_cast<std::uint64_t>(entry), kEntryFacts[entry].name);
  }
  return static_cast<std::uint32_t>(entry);
}

std::uint32_t Recorder::place(std::uintptr_t caller) {
  std::uint32_t number = places_.find(caller);
  if (number != Numbers::kNone) return number;
  number = places_.add(caller);
  shm::SourceLine line;
  const bool located = call_site_locate(caller, &line);
  const shm::CallSite site(g_call_modules, located && line.caller != 0 ? line.caller : caller);
  writer.define(record::Definition::place, number, located && line.text[0] != 0 ? line.text : site.text);
  return number;
}

}  // namespace stretto::mpi
