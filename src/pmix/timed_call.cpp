// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/timed_call.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "kv/deadline.hpp"
#include "sys/thread.hpp"

namespace stretto::pmix {
namespace {

constexpr std::uint64_t kLookEveryNs = 20'000'000;  // looks whether the runtime is gone

timespec in_ns(std::uint64_t nanoseconds) {
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  const std::uint64_t sum = static_cast<std::uint64_t>(until.tv_nsec) + nanoseconds;
  until.tv_sec += static_cast<time_t>(sum / 1'000'000'000);
  until.tv_nsec = static_cast<long>(sum % 1'000'000'000);
  return until;
}

}  // namespace

TimedCall* TimedCall::make() {
  void* const memory = std::malloc(sizeof(TimedCall));
  return memory ? new (memory) TimedCall : nullptr;
}

void TimedCall::discard() {
  std::free(value.data);
  std::free(this);
}

void* TimedCall::thread(void* timed) {
  TimedCall& self = *static_cast<TimedCall*>(timed);
  const pmix_status_t status = self.call_(self);
  pthread_mutex_lock(&self.mutex_);
  self.status_ = status;
  self.is_over_ = true;
  const bool given_up = self.given_up_;
  pthread_cond_signal(&self.over_);
  pthread_mutex_unlock(&self.mutex_);
  if (given_up) self.discard();
  return nullptr;
}

bool TimedCall::start() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t made;
  const int error = sys::thread_start(&made, &attributes, thread, this);
  pthread_attr_destroy(&attributes);
  return error == 0;
}

kv::Outcome TimedCall::run(pmix_status_t (*call)(TimedCall&), std::uint64_t timeout_ns, const bool* gone,
                           pmix_status_t* status, kv::Fetched* brought) {
  const kv::Deadline deadline(timeout_ns);
  call_ = call;
  if (!start()) {
    discard();
    return kv::Outcome::no_memory;
  }
  bool is_gone = false;
  pthread_mutex_lock(&mutex_);
  while (!is_over_ && !(is_gone = __atomic_load_n(gone, __ATOMIC_ACQUIRE)) && deadline.left_ns() != 0) {
    const timespec until = in_ns(std::min(deadline.left_ns(), kLookEveryNs));
    pthread_cond_clockwait(&over_, &mutex_, CLOCK_MONOTONIC, &until);
  }
  const bool is_over = is_over_;
  given_up_ = !is_over;
  pthread_mutex_unlock(&mutex_);
  if (!is_over) return is_gone ? kv::Outcome::peer_gone : kv::Outcome::timed_out;
  *status = status_;
  if (brought) std::swap(*brought, value);
  discard();
  return kv::Outcome::found;
}

}  // namespace stretto::pmix
