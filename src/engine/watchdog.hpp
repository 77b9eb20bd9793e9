// SPDX-License-Identifier: BSD-3-Clause
// STRETTO_WATCHDOG=seconds starts a thread that looks at this process's open calls. If one does not
// end, the thread says which ranks are missing and what they did last. It calls no MPI: it reads
// the journals in the members' segments. In a call by schedule the waiting thread itself says for
// which ranks it waits (stalled.hpp).
//
// With STRETTO_TIMEOUT=seconds the thread ends the process, whatever serves the call.
// The launcher then ends the job, as after any crash. Nothing else notices a machine
// that is gone without a word.
#pragma once
#include <pthread.h>

#include <cstdint>

#include "engine/deferred_watch.hpp"
#include "engine/host_call_watch.hpp"
#include "engine/stack_watch.hpp"
#include "shm/journal.hpp"

namespace stretto::engine {

struct Process;
struct Comm;

class Watchdog {
 public:
  // Null if the settings want no watchdog. If there is no memory or no thread for it, a warning
  // says so.
  static Watchdog* start(Process& process);
  static void stop(Watchdog* watchdog);  // null: does nothing

 private:
  // An open call, and since when the watchdog has seen it open.
  struct Watched {
    std::uint64_t number = 0;
    std::uint64_t since_ns = 0;
    bool told = false;
  };

  explicit Watchdog(Process& process);
  ~Watchdog();
  static void* main(void* self);
  bool run();
  bool pause();
  void look(std::uint64_t now_ns);
  void explain(const shm::NoteCopy& note, std::uint64_t seconds);

  Process& process_;
  std::uint64_t limit_ns_;
  std::uint64_t timeout_ns_;  // 0: never
  pthread_t thread_{};
  bool stopping_ = false;
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_{};
  Watched watched_[shm::kNotes];
  DeferredWatch deferred_;
  HostCallWatch host_calls_;
  StackWatch stacks_;
};

}  // namespace stretto::engine
