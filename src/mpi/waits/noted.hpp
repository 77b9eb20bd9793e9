// SPDX-License-Identifier: BSD-3-Clause
// What the program waits for in a call that the host serves, as the watchdog, peers and `stretto
// top` read it (shm/host_calls.hpp).
//
// Only with a watchdog (STRETTO_WATCHDOG, STRETTO_TIMEOUT). Then the entry keeps the host's
// functions of such calls in a table of its own (g_noted_entries), and the table that a wrapper
// reads stays empty. So each call takes the wrapper's slow path, where it leaves its note. Without
// a watchdog a wrapper is what it would be without notes: it costs nothing.
//
// The wrappers are generated, with a function that gets a call's arguments and says here what they
// mean. Wrong arguments are for the host to judge: nothing is said of them. This file does not
// include mpi.h.
#pragma once
#include <atomic>

#include "mpi/host/entry.hpp"
#include "shm/host_calls.hpp"

namespace stretto::engine {
struct Process;
}

namespace stretto::mpi {

// Null: this process leaves no notes.
extern constinit std::atomic<shm::HostCalls*> g_host_calls;
inline bool notes_are_kept() { return g_host_calls.load(std::memory_order_acquire) != nullptr; }

// At the end of MPI_Init, when all ranks have agreed that Stretto is on, and this one has a
// watchdog. `process`: null if there was no memory. `all`: each has a watchdog. Then they tell each
// other where their notes are.
void noted_begin(engine::Process* process, bool all);
void noted_end();
// The handle of a communicator may name another one from now on.
void noted_comm_freed();

// The note of one call.
class Noted {
 public:
  Noted(Entry entry, const void* caller);
  ~Noted();
  Noted(const Noted&) = delete;
  Noted& operator=(const Noted&) = delete;

  [[nodiscard]] explicit operator bool() const { return note_ != nullptr; }

  // ---- Before the call: what it waits for ----

  void sends(int target, int tag, Handle comm, std::int64_t count = -1, Handle type = 0);
  void receives(int source, int tag, Handle comm, std::int64_t count = -1, Handle type = 0);
  void at_target(int rank, Handle window);
  void window(Handle window);
  void all_of_window(Handle window);
  void frees_window(void* window);  // points to its handle
  void file(Handle file);
  void all_of_file(Handle file);
  void opens(void* file, const char* name, Handle comm);
  void closes(void* file);  // points to its handle
  void all_of(Handle comm);
  void waits(int count, const void* requests, bool any = false);
  void tests() { call_.tests = true; }
  // The request stands for what has been said so far. `request` points to its handle, which is
  // there when the call has ended.
  void makes(void* request) { request_ = request; }
  void other() { call_.kind = shm::HostCallKind::other; }

  // Everything is said. MPI_Waitall waits here, in the host's place, where the host tells which
  // requests are complete: then the note has the others alone.
  void begin();
  void end();

 private:
  void message(shm::Awaited::What what, int rank, int tag, Handle comm, std::int64_t count, Handle type);
  void all_of_members(int count);
  void add(const shm::Awaited& part);
  void say(int count, const void* requests);
  void wait_for_all();

  shm::HostCallNote* note_ = nullptr;  // null: the call leaves none
  shm::HostCall call_;
  Entry entry_;
  void* request_ = nullptr;
  const void* requests_ = nullptr;  // of MPI_Waitall
  int count_ = 0;
  void* file_ = nullptr;
};

// Makes a call with its note. `fill` says what the arguments mean.
template <auto fill, Entry entry, class Make, class... Arguments>
int make_noted(const void* caller, const Make& make, Arguments... arguments) {
  Noted note(entry, caller);
  if (!note) return make();
  fill(note, arguments...);
  note.begin();
  const int code = make();
  if (code == 0) note.end();  // MPI_SUCCESS is 0 everywhere
  return code;
}

}  // namespace stretto::mpi
