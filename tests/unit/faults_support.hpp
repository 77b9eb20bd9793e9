// SPDX-License-Identifier: BSD-3-Clause
// Helpers for tests of guarded pages: a child process in which a mode is allowed, memory of several
// kinds, and a thread that reads events.
#pragma once
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sys/faults.hpp"
#include "unit/sys_support.hpp"

namespace stretto::test {

constexpr int kSkipped = 77;
constexpr unsigned kNobody = 65534;

// Private anonymous memory; every byte has the value `fill`, which 0 leaves untouched.
class Mapped {
 public:
  explicit Mapped(std::size_t bytes, int fill = 0, int flags = 0)
      : pages_{static_cast<char*>(
                   mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0)),
               bytes} {
    if (fill != 0 && *this) std::memset(pages_.at, fill, bytes);
  }
  ~Mapped() {
    if (*this) munmap(pages_.at, pages_.bytes);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  explicit operator bool() const { return pages_.at != MAP_FAILED; }
  [[nodiscard]] sys::Pages pages() const { return pages_; }
  [[nodiscard]] char* at() const { return pages_.at; }

 private:
  sys::Pages pages_;
};

inline bool all_are(const char* bytes, std::size_t count, char value) {
  for (std::size_t i = 0; i < count; ++i)
    if (bytes[i] != value) return false;
  return true;
}

// Spare memory for a buffer, for as long as its scope.
struct Spare {
  const sys::Faults& faults;
  sys::Pages pages;
  int error;
  Spare(const sys::Faults& guard, sys::Pages like)
      : faults(guard), error(sys::spare_map(guard, like.bytes, like.at, &pages)) {}
  ~Spare() { sys::spare_unmap(faults, &pages); }
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
};

inline bool wait_for_input(int fd, int milliseconds = 10'000) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, milliseconds) == 1;
}

// What comes next, within ten seconds: one event or more. Returns how many.
inline int next_events(const sys::Faults& faults, sys::FaultEvent (&events)[sys::kMostFaultEvents]) {
  int count = 0;
  EXPECT_TRUE(wait_for_input(faults.fd)) << "no event came";
  EXPECT_EQ(sys::faults_next(faults, events, &count), 0);
  return count;
}

// The same, where only one can come.
inline sys::FaultEvent next_event(const sys::Faults& faults) {
  sys::FaultEvent events[sys::kMostFaultEvents];
  EXPECT_EQ(next_events(faults, events), 1);
  return events[0];
}

// Runs `body` in a forked child, as nobody if asked, so that a guard that is left behind harms
// nobody. The child's failed expectations fail the test; a child that hangs is ended.
template <typename Body>
int in_guarded_child(bool as_nobody, Body body) {
  return in_child([&] {
    alarm(60);
    if (as_nobody && geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) return kSkipped;
    (void)prctl(PR_SET_DUMPABLE, 1);  // as after exec: its own /proc is open to it
    const int status = body();
    return testing::Test::HasFailure() ? 1 : status;
  });
}

}  // namespace stretto::test
