// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <pthread.h>

namespace stretto {

// Holds a lock for as long as its scope.
class Locked {
 public:
  explicit Locked(pthread_mutex_t& lock) : lock_(lock) { pthread_mutex_lock(&lock_); }
  ~Locked() { pthread_mutex_unlock(&lock_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  pthread_mutex_t& lock_;
};

}  // namespace stretto
