// SPDX-License-Identifier: BSD-3-Clause
// STRETTO_WATCHDOG=seconds: a thread that looks at this process' open calls and, when one does not end, says who is
// missing and what they did last. It calls no MPI: it reads the flight recorders in the members' segments. What a call
// by schedule waits for, the waiting thread says itself (stalled.hpp). STRETTO_TIMEOUT=seconds: the thread ends the
// process, whoever serves the call, and leaves it to the launcher to end the job, as after any crash: a host that is
// gone without a word is noticed by nobody else.
#pragma once
#include <pthread.h>

#include <cstdint>

#include "shm/journal.hpp"

namespace stretto::engine {

struct Process;
struct Comm;

class Watchdog {
 public:
  // Does nothing if the settings want none, or there is no thread to be had (which is logged).
  void start(Process& process);
  void stop();

 private:
  // An open call and since when it has been seen open.
  struct Watched {
    std::uint64_t number = 0;
    std::uint64_t since_ns = 0;
    bool told = false;
  };

  static void* main(void* self);
  bool pause();
  void look(std::uint64_t now_ns);
  void explain(const shm::NoteCopy& note, std::uint64_t seconds);

  Process* process_ = nullptr;
  std::uint64_t limit_ns_ = 0;
  std::uint64_t timeout_ns_ = 0;  // 0: never
  pthread_t thread_{};
  bool running_ = false;
  bool stopping_ = false;
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_{};  // made by start()
  Watched watched_[shm::kNotes];
};

}  // namespace stretto::engine
