// SPDX-License-Identifier: BSD-3-Clause
// Helpers for tests of overlap: settings to guard in, and a driver.
#pragma once
#include <cerrno>
#include <functional>

#include "overlap/guard.hpp"
#include "sys/sys.hpp"
#include "sys/thread.hpp"
#include "unit/faults_support.hpp"

namespace stretto::test {

struct GuardSetting {
  const char* name;
  sys::FaultMode mode;
  bool as_nobody;
};
inline constexpr GuardSetting kGuardSettings[] = {{"kernel", sys::FaultMode::kernel, false},
                                                  {"user", sys::FaultMode::user, false},
                                                  {"nobody", sys::FaultMode::user, true}};

// Runs `body` in a child, which may skip by returning why.
inline void in_child_or_skip(bool as_nobody, const std::function<std::string()>& body) {
  if (as_nobody && geteuid() != 0) GTEST_SKIP() << "this is an ordinary user already";
  int reason[2];
  ASSERT_EQ(pipe(reason), 0);
  const int status = in_guarded_child(as_nobody, [&] {
    const std::string why = body();
    EXPECT_EQ(write(reason[1], why.data(), why.size()), static_cast<ssize_t>(why.size()));
    return why.empty() ? 0 : kSkipped;
  });
  close(reason[1]);
  char why[256] = "";
  if (read(reason[0], why, sizeof why - 1) < 0) why[0] = 0;
  close(reason[0]);
  if (status == kSkipped) GTEST_SKIP() << why;
  EXPECT_EQ(status, 0);
}

// "" or why nothing can be guarded so.
inline std::string open_guard(overlap::Guard* guard, sys::FaultMode mode, bool forks = false,
                              std::uint64_t making_share = 0) {
  overlap::Guard::Limits limits;
  limits.most = mode;
  limits.forks = forks;
  limits.least_bytes = 4096;
  limits.spare_bytes = 256u << 20;
  limits.making_share = making_share;
  const int error = guard->open(limits);
  if (error != 0) return std::string("no userfaultfd that moves pages: ") + std::strerror(error);
  if (mode == sys::FaultMode::signal) return "";
  return guard->faults().mode == mode ? "" : "kernel faults need privilege here";
}

// The thread that reads events. Between two reads it runs what a test gives it.
class Driver {
 public:
  // `on_fault` is called on the thread for each fault that is told.
  explicit Driver(overlap::Guard* guard, std::function<void(const overlap::Told&)> on_fault = nullptr)
      : guard_(guard), on_fault_(std::move(on_fault)) {
    const auto main = [](void* self) -> void* {
      static_cast<Driver*>(self)->drive();
      return nullptr;
    };
    EXPECT_EQ(sys::thread_start(&thread_, nullptr, main, this), 0);
  }
  ~Driver() { stop(); }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  void stop() {
    if (!stopped_.exchange(true)) pthread_join(thread_, nullptr);
  }

  // Runs `step` on the driver, and returns its result, EAGAIN apart.
  int run(const std::function<int()>& step) {
    begin(step);
    return end();
  }
  void begin(const std::function<int()>& step) {
    done_ = false;
    step_ = &step;
  }
  int end() {
    while (!done_) sys::nap_ns(50'000);
    return result_;
  }
  int publish(int cover, std::uint64_t offset, std::uint64_t bytes) {
    return run([&] { return guard_->publish(cover, offset, bytes); });
  }
  int release(int cover) {
    return run([&] { return guard_->release(cover); });
  }
  // Waits until `count` entries of a kind have been told.
  bool told(overlap::Told::Kind kind, int count = 1) {
    for (int i = 0; i < 10'000; ++i) {
      if (counts_[static_cast<int>(kind)] >= count) return true;
      sys::nap_ns(1'000'000);
    }
    return false;
  }
  int count(overlap::Told::Kind kind) const { return counts_[static_cast<int>(kind)]; }
  overlap::Told last(overlap::Told::Kind kind) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return last_[static_cast<int>(kind)];
  }

 private:
  void drive() {
    while (!stopped_) {
      overlap::Told told[8];
      int count = 0;
      EXPECT_EQ(guard_->events(told, 8, &count), 0);
      for (int i = 0; i < count; ++i) {
        const std::lock_guard<std::mutex> lock(mutex_);
        last_[static_cast<int>(told[i].kind)] = told[i];
        ++counts_[static_cast<int>(told[i].kind)];
        if (on_fault_ && told[i].kind == overlap::Told::Kind::fault) on_fault_(told[i]);
      }
      if (const std::function<int()>* const step = step_) {
        const int result = (*step)();
        if (result != EAGAIN) {
          result_ = result;
          step_ = nullptr;
          done_ = true;
        }
      }
      (void)wait_for_input(guard_->faults().fd, 1);
    }
  }

  overlap::Guard* guard_;
  std::atomic<bool> stopped_{false}, done_{false};
  std::atomic<const std::function<int()>*> step_{nullptr};
  int result_ = 0;
  std::atomic<int> counts_[6] = {};
  overlap::Told last_[6];
  std::mutex mutex_;
  std::function<void(const overlap::Told&)> on_fault_;
  pthread_t thread_{};
};

}  // namespace stretto::test
