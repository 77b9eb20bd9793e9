// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/waits/noted.hpp"

#include <cstdio>
#include <cstring>

#include "base/array.hpp"
#include "base/log.hpp"
#include "engine/engine.hpp"
#include "mpi/host/call_sites.hpp"
#include "mpi/job/world.hpp"
#include "mpi/requests/persistent.hpp"
#include "mpi/vendor/vendor.hpp"
#include "mpi/waits/handle_facts.hpp"
#include "mpi/waits/wait_loop.hpp"
#include "shm/segment.hpp"

namespace stretto::mpi {

constinit std::atomic<shm::HostCalls*> g_host_calls{nullptr};

namespace {

using shm::Awaited;
using shm::HostCallKind;

// Processes of one host learn where their segments are. Collective: a rank without one takes part.
void meet(engine::Process* process) {
  const engine::ProcessAddress mine = process != nullptr ? engine::process_address(*process) : engine::ProcessAddress{};
  Array<engine::ProcessAddress> all;
  int size = 0;
  host().Comm_size(host().constants.comm_world, &size);
  MPI_Comm world = host().constants.comm_world;
  if (!all.resize(static_cast<std::size_t>(size), {})) {
    log_line(LogLevel::error, "watchdog: no memory to learn where %d ranks are", size);
    host().Abort(world, 1);
  }
  if (!allgather_bytes(&world, &mine, all.data(), sizeof mine) || process == nullptr) return;
  for (const engine::ProcessAddress& each : all) engine::process_meet(*process, each);
}

}  // namespace

void noted_begin(engine::Process* process, bool all) {
  if (all) meet(process);
  shm::HostCalls* const calls = process != nullptr ? engine::process_host_calls(*process) : nullptr;
  if (calls != nullptr) calls->kept.store_release(1);
  g_host_calls.store(calls, std::memory_order_release);
}

void noted_end() { g_host_calls.store(nullptr, std::memory_order_release); }

void noted_comm_freed() {
  if (!notes_are_kept()) return;
  const HandleLock locked;
  forget_communicators();
}

Noted::Noted(Entry entry, const void* caller) : entry_(entry) {
  shm::HostCalls* const calls = g_host_calls.load(std::memory_order_acquire);
  if (calls == nullptr || !may_serve(caller)) return;
  call_.number = calls->calls.fetch_add(1) + 1;
  note_ = calls->take(call_.number);
  if (note_ == nullptr) return;
  call_.caller = reinterpret_cast<std::uintptr_t>(caller);
  call_.after = shm::Segment::ledger_beside(*calls).activity.calls.load_relaxed();
  call_.open = true;
  copy_name(call_.name, kEntryFacts[static_cast<int>(entry)].name);
}

Noted::~Noted() {
  if (note_ != nullptr) note_->end();
}

void Noted::add(const Awaited& part) {
  if (call_.awaited < shm::HostCall::kParts) call_.parts[call_.awaited] = part;
  ++call_.awaited;
}

void Noted::message(Awaited::What what, int rank, int tag, Handle handle, std::int64_t count, Handle type) {
  const auto comm = (MPI_Comm)handle;
  if (rank == MPI_PROC_NULL || !is_comm(comm)) return;
  const Inside inside;
  const HandleLock locked;
  const CommFacts& facts = facts_of(comm);
  if (rank != MPI_ANY_SOURCE && (rank < 0 || rank >= facts.size)) return;
  Awaited part;
  part.what = what;
  part.rank = rank == MPI_ANY_SOURCE ? Awaited::kAny : rank;
  part.tag = tag == MPI_ANY_TAG ? Awaited::kAny : tag;
  if (part.rank >= 0) part.world = world_of(facts, rank);
  part.bytes = bytes_of(count, type);
  part.comm = identity_of(comm);
  name_comm(comm, part.where);
  add(part);
}

void Noted::sends(int target, int tag, Handle comm, std::int64_t count, Handle type) {
  message(Awaited::What::send, target, tag, comm, count, type);
}

void Noted::receives(int source, int tag, Handle comm, std::int64_t count, Handle type) {
  message(Awaited::What::receive, source, tag, comm, count, type);
}

void Noted::window(Handle handle) {
  call_.kind = HostCallKind::other;
  if (handle == 0) return;
  const Inside inside;
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (host().Win_get_name((MPI_Win)handle, name, &length) != MPI_SUCCESS || name[0] == 0)
    std::snprintf(name, sizeof name, "a window");
  copy_name(call_.where, name);
}

void Noted::at_target(int rank, Handle handle) {
  window(handle);
  if (rank == MPI_PROC_NULL || handle == 0) return;
  const Inside inside;
  MPI_Group group{};
  if (host().Win_get_group((MPI_Win)handle, &group) != MPI_SUCCESS) return;
  Awaited part;
  part.what = Awaited::What::target;
  part.rank = rank;
  part.world = world_of(group, rank);
  std::memcpy(part.where, call_.where, sizeof part.where);
  call_.kind = HostCallKind::message;
  add(part);
}

void Noted::all_of_members(int count) {
  call_.kind = HostCallKind::all;
  call_.members = static_cast<std::uint32_t>(count);
}

void Noted::all_of_window(Handle handle) {
  window(handle);
  const Inside inside;
  MPI_Group group{};
  if (handle != 0 && host().Win_get_group((MPI_Win)handle, &group) == MPI_SUCCESS) all_of_members(size_of(group));
}

void Noted::frees_window(void* handle) {
  if (handle != nullptr) all_of_window((Handle) * static_cast<MPI_Win*>(handle));
}

void Noted::file(Handle handle) {
  call_.kind = HostCallKind::other;
  const HandleLock locked;
  const Awaited* const known = g_known_files.find(handle);
  copy_name(call_.where, known != nullptr ? known->where : "a file");
}

void Noted::all_of_file(Handle handle) {
  file(handle);
  const Inside inside;
  MPI_Group group{};
  if (handle != 0 && host().File_get_group((MPI_File)handle, &group) == MPI_SUCCESS) all_of_members(size_of(group));
}

void Noted::closes(void* handle) {
  if (handle != nullptr) all_of_file((Handle) * static_cast<MPI_File*>(handle));
}

void Noted::opens(void* handle, const char* name, Handle comm) {
  all_of(comm);
  file_ = handle;
  if (name == nullptr) return;
  const char* const slash = std::strrchr(name, '/');
  copy_name(call_.where, slash != nullptr ? slash + 1 : name);
}

void Noted::all_of(Handle handle) {
  const auto comm = (MPI_Comm)handle;
  call_.kind = HostCallKind::other;
  if (!is_comm(comm)) return;
  const Inside inside;
  const HandleLock locked;
  all_of_members(facts_of(comm).size);
  call_.comm = identity_of(comm);
  name_comm(comm, call_.where);
}

void Noted::waits(int count, const void* array, bool any) {
  const auto* const requests = static_cast<const MPI_Request*>(array);
  if (requests == nullptr || count <= 0) return;
  call_.any = any;
  if (entry_ == Entry::waitall) {
    requests_ = array;
    count_ = count;
  }
  say(count, array);
}

void Noted::say(int count, const void* array) {
  const auto* const requests = static_cast<const MPI_Request*>(array);
  const HandleLock locked;
  for (int i = 0; i < count; ++i) {
    if (requests[i] == host().constants.request_null) continue;
    const Awaited* const known = g_known_requests.find((std::uintptr_t)requests[i]);
    Awaited part;
    part.what = Awaited::What::request;
    add(known != nullptr ? *known : part);
  }
}

void Noted::begin() {
  shm::SourceLine line;
  if (call_site_locate(call_.caller, &line)) {
    call_.line_caller = line.caller;
    std::memcpy(call_.line, line.text, sizeof call_.line);
  }
  note_->write(call_);
  if (requests_ != nullptr) wait_for_all();
}

// The wait ends when all are complete, or inactive. Then the host's own function ends at once.
void Noted::wait_for_all() {
  if (!vendor::looks_at_requests() || own_requests_outstanding()) return;
  constexpr std::uint64_t kLongNs = 100'000'000;
  constexpr unsigned kClockEvery = 64;
  const auto* const requests = static_cast<const MPI_Request*>(requests_);
  const auto is_complete = [&](int i) { return vendor::is_complete(persistent_current(requests[i])); };
  int complete = 0;  // so many at the array's begin
  unsigned looks = 0;
  std::uint64_t said_ns = sys::now_ns();
  wait_until([&] {
    while (complete < count_ && is_complete(complete)) ++complete;
    if (complete == count_) return true;
    (void)vendor::drive();
    if (++looks % kClockEvery != 0 || sys::now_ns() - said_ns < kLongNs) return false;
    said_ns = sys::now_ns();
    Array<MPI_Request> left;
    for (int i = complete; i < count_; ++i) {
      if (!is_complete(i)) left.push(requests[i]);
    }
    call_.awaited = 0;
    say(static_cast<int>(left.size()), left.data());
    note_->write(call_);
    return false;
  });
}

void Noted::end() {
  const Awaited& target = call_.parts[0];
  if ((entry_ == Entry::win_lock || entry_ == Entry::win_unlock) && call_.awaited != 0 && target.world >= 0) {
    shm::HostCalls* const calls = g_host_calls.load(std::memory_order_acquire);
    const HandleLock locked;
    if (calls != nullptr && entry_ == Entry::win_lock)
      calls->lock(target.world, target.where, call_.line_caller != 0 ? call_.line_caller : call_.caller);
    else if (calls != nullptr)
      calls->unlock(target.world, target.where);
  }
  if (request_ != nullptr) {
    Awaited part;
    if (call_.awaited > 0) {
      part = call_.parts[0];
    } else {
      part.what = Awaited::What::request;
      copy_name(part.where, call_.name);
    }
    part.caller = call_.line_caller != 0 ? call_.line_caller : call_.caller;
    const HandleLock locked;
    g_known_requests.put((std::uintptr_t)*static_cast<MPI_Request*>(request_), part);
  }
  if (file_ != nullptr) {
    Awaited part;
    std::memcpy(part.where, call_.where, sizeof part.where);
    const HandleLock locked;
    g_known_files.put((std::uintptr_t)*static_cast<MPI_File*>(file_), part);
  }
}

}  // namespace stretto::mpi
