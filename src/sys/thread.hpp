// SPDX-License-Identifier: BSD-3-Clause
// Stretto's own threads in another program's process.
#pragma once
#include <pthread.h>

#include <atomic>
#include <csignal>

namespace stretto::sys {

// Threads of this library that run for as long as the process uses it.
inline constinit std::atomic<int> g_own_threads{0};

// Starts a thread that blocks all signals, because these are for the program's own threads. Returns
// 0 or an errno value.
inline int thread_start(pthread_t* made, const pthread_attr_t* attributes, void* (*main)(void*), void* context) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(made, attributes, main, context);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == 0) ++g_own_threads;
  return error;
}

}  // namespace stretto::sys
