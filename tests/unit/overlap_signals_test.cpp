// SPDX-License-Identifier: BSD-3-Clause
// Covers by SIGSEGV: a program of one thread, which is this process's main thread. The driver is a
// thread of Stretto.
#include <sys/wait.h>

#include <csetjmp>
#include <csignal>
#include <fstream>
#include <optional>

#include "overlap/calls.hpp"
#include "sys/faults_signal.hpp"
#include "unit/overlap_support.hpp"

using namespace stretto;
using namespace stretto::overlap;
using namespace stretto::test;

namespace {

constexpr std::size_t kPage = 4096, kPages = 64, kBytes = kPages * kPage;
#if defined(__x86_64__)
constexpr bool kGuardsBySignal = true;
#else
constexpr bool kGuardsBySignal = false;
#endif

std::uint64_t number(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

// What has been received: page i of the landing has the value i % 100 + 1.
void receive(Guard& guard, int cover, std::size_t bytes = kBytes) {
  for (std::size_t i = 0; i < bytes / kPage; ++i)
    std::memset(guard.landing(cover) + i * kPage, static_cast<int>(i % 100 + 1), kPage);
}
char of_page(std::size_t i) { return static_cast<char>(i % 100 + 1); }

struct World {
  Guard guard;
  int cover = -1;
  std::atomic<bool> publishes{true};
  std::atomic<int> faults{0};
  std::optional<Driver> driver;

  std::string open() {
    std::string why = open_guard(&guard, sys::FaultMode::signal);
    if (why.empty())
      driver.emplace(&guard, [this](const Told& told) {
        ++faults;
        if (publishes) EXPECT_EQ(guard.publish(told.cover, told.offset, kPage), 0);
      });
    return why;
  }
};

// In a child, whose main thread is the program.
void in_program(const std::function<void(World&)>& body, bool as_nobody = true) {
  in_child_or_skip(as_nobody && geteuid() == 0, [&]() -> std::string {
    World world;
    if (std::string why = world.open(); !why.empty()) return why;
    body(world);
    world.driver->stop();
    world.guard.close();
    return "";
  });
}

int cover_of(World& world, sys::Pages pages) {
  EXPECT_EQ(world.guard.cover(pages, &world.cover), Refusal::none);
  receive(world.guard, world.cover, pages.bytes);
  return world.cover;
}

TEST(OverlapSignals, ATouchWaitsForItsPage) {
  in_program([](World& world) {
    const Mapped buffer(kBytes, 7);
    for (int round = 0; round < 3; ++round) {
      const int cover = cover_of(world, buffer.pages());
      EXPECT_TRUE(world.guard.away(number(buffer.at()), 1));
      for (std::size_t i = kPages; i-- > 0;) {
        volatile char* const at = buffer.at() + i * kPage + i;
        EXPECT_EQ(*at, of_page(i));
        *at = static_cast<char>(*at + 1);
      }
      EXPECT_EQ(world.driver->release(cover), 0);
      EXPECT_FALSE(world.guard.any_away());
      for (std::size_t i = 0; i < kPages; ++i) EXPECT_EQ(buffer.at()[i * kPage + i], of_page(i) + 1);
    }
    EXPECT_GE(world.faults, 3 * static_cast<int>(kPages));
  });
}

TEST(OverlapSignals, WhatComesWithoutATouchIsThere) {
  in_program([](World& world) {
    const Mapped buffer(kBytes, 7);
    const int cover = cover_of(world, {buffer.at() + kPage, kBytes - 2 * kPage});
    EXPECT_EQ(buffer.at()[0], 7);
    EXPECT_EQ(buffer.at()[kBytes - 1], 7);
    EXPECT_EQ(world.driver->publish(cover, 0, 4 * kPage), 0);
    EXPECT_EQ(world.driver->release(cover), 0);
    for (std::size_t i = 1; i + 1 < kPages; ++i) EXPECT_TRUE(all_are(buffer.at() + i * kPage, kPage, of_page(i - 1)));
    EXPECT_EQ(world.faults, 0);
  });
}

// Pieces of a mapping join again: a program makes many calls.
TEST(OverlapSignals, ManyCoversLeaveNoMoreMappings) {
  in_program([](World& world) {
    const auto mappings = [] {
      std::ifstream maps("/proc/self/maps");
      std::string line;
      int count = 0;
      while (std::getline(maps, line)) ++count;
      return count;
    };
    const Mapped buffer(kBytes, 7);
    int before = 0;
    for (int round = 0; round < 40; ++round) {
      const int cover = cover_of(world, {buffer.at() + kPage, kBytes - 2 * kPage});
      for (std::size_t i = 0; i < kPages - 2; i += 2) EXPECT_EQ(world.driver->publish(cover, i * kPage, kPage), 0);
      EXPECT_EQ(world.driver->release(cover), 0);
      if (round == 1) before = mappings();
    }
    EXPECT_LE(mappings(), before);
  });
}

TEST(OverlapSignals, ABufferOfSeveralMappings) {
  in_program([](World& world) {
    const Mapped buffer(kBytes, 7);
    madvise(buffer.at() + 10 * kPage, 5 * kPage, MADV_DONTFORK);
    const int cover = cover_of(world, buffer.pages());
    EXPECT_EQ(*static_cast<volatile char*>(buffer.at() + 12 * kPage), of_page(12));
    EXPECT_EQ(world.driver->release(cover), 0);
    for (std::size_t i = 0; i < kPages; ++i) EXPECT_TRUE(all_are(buffer.at() + i * kPage, kPage, of_page(i)));
  });
}

void on_nothing(int) {}

TEST(OverlapSignals, RefusalsSayWhy) {
  in_program([](World& world) {
    const Mapped buffer(kBytes, 7);
    int none = -1;
    const auto refused = [&](sys::Pages pages) { return world.guard.cover(pages, &none); };
    std::atomic<bool> stop{false};
    std::thread other([&] {
      while (!stop) sys::nap_ns(1'000'000);
    });
    EXPECT_EQ(refused(buffer.pages()), Refusal::threads);
    stop = true;
    other.join();

    sigset_t segv, before;
    sigemptyset(&segv);
    sigaddset(&segv, SIGSEGV);
    sigprocmask(SIG_BLOCK, &segv, &before);
    EXPECT_EQ(refused(buffer.pages()), Refusal::blocked);
    sigprocmask(SIG_SETMASK, &before, nullptr);

    struct sigaction action{}, former{};
    action.sa_handler = on_nothing;
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR2, &action, &former);
    EXPECT_EQ(refused(buffer.pages()), Refusal::blocked);
    sigaction(SIGUSR2, &former, nullptr);

    sigaction(SIGSEGV, &action, &former);
    EXPECT_EQ(refused(buffer.pages()), Refusal::handled);
    sigaction(SIGSEGV, &former, nullptr);

    mprotect(buffer.at(), kPage, PROT_READ);
    EXPECT_EQ(refused(buffer.pages()), Refusal::not_anonymous);
    mprotect(buffer.at(), kPage, PROT_READ | PROT_WRITE);
    for (const int flags : {MAP_SHARED, MAP_PRIVATE}) {
      int fd = -1;
      ASSERT_EQ(sys::memfd_open("stretto-test", kBytes, &fd), 0);
      char* const file = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, flags, fd, 0));
      std::memset(file, 3, kBytes);
      EXPECT_EQ(refused({file, kBytes}), Refusal::not_anonymous);
      EXPECT_TRUE(all_are(file, kBytes, 3));
      munmap(file, kBytes);
      sys::close_descriptor(fd);
    }
    EXPECT_TRUE(all_are(buffer.at(), kBytes, 7));
    const int cover = cover_of(world, buffer.pages());
    EXPECT_EQ(world.driver->release(cover), 0);
  });
}

TEST(OverlapSignals, AHandlerOfTheProgramThatIsThereFirst) {
  if (!kGuardsBySignal) GTEST_SKIP() << "not on this machine";
  EXPECT_EQ(in_child([] {
              (void)signal(SIGSEGV, on_nothing);
              Guard guard;
              Guard::Limits limits;
              limits.most = sys::FaultMode::signal;
              return guard.open(limits) == EALREADY ? 0 : 1;
            }),
            0);
}

// Moving it would count it as locked twice.
TEST(OverlapSignals, LockedPagesAreRefused) {
  in_program(
      [](World& world) {
        const Mapped buffer(kBytes, 7), other(kBytes, 7);
        if (mlock(buffer.at(), kBytes) != 0) return;
        int none = -1;
        EXPECT_EQ(world.guard.cover(buffer.pages(), &none), Refusal::not_anonymous);
        EXPECT_TRUE(all_are(buffer.at(), kBytes, 7));
        const int cover = cover_of(world, other.pages());
        EXPECT_EQ(world.driver->release(cover), 0);
        std::ifstream status("/proc/self/status");
        std::string line;
        unsigned long kib = 0;
        while (std::getline(status, line)) (void)std::sscanf(line.c_str(), "VmLck: %lu", &kib);
        EXPECT_EQ(kib, kBytes >> 10);
      },
      false);
}

// ---- handlers ----

char* touched = nullptr;
std::atomic<int> depth{0};
void touch_in_handler(int) {
  const int now = ++depth;
  EXPECT_EQ(static_cast<volatile char*>(touched)[static_cast<std::size_t>(now) * 3 * kPage],
            of_page(3 * static_cast<std::size_t>(now)));
  if (now < 4) raise(SIGUSR1);
}

TEST(OverlapSignals, NestedHandlersTouchIt) {
  in_program([](World& world) {
    const Mapped buffer(kBytes, 7), stack(64 << 10, 1);
    for (const bool elsewhere : {false, true}) {
      const stack_t other{stack.at(), 0, 64 << 10};
      if (elsewhere) sigaltstack(&other, nullptr);
      struct sigaction action{};
      action.sa_handler = touch_in_handler;
      action.sa_flags = SA_NODEFER | (elsewhere ? SA_ONSTACK : 0);
      sigaction(SIGUSR1, &action, nullptr);
      const int cover = cover_of(world, buffer.pages());
      touched = buffer.at();
      depth = 0;
      raise(SIGUSR1);
      EXPECT_EQ(depth, 4);
      EXPECT_EQ(world.driver->release(cover), 0);
    }
    const stack_t none{nullptr, SS_DISABLE, 0};
    sigaltstack(&none, nullptr);
  });
}

// A timer's handler runs on top of the handler that waits, and touches another page.
TEST(OverlapSignals, AHandlerInterruptsTheWait) {
  in_program([](World& world) {
    const Mapped buffer(kBytes, 7);
    (void)signal(SIGUSR1, touch_in_handler);
    const int cover = cover_of(world, buffer.pages());
    touched = buffer.at();
    depth = 3;
    world.publishes = false;
    struct Context {
      pid_t thread;
      World* world;
    } context{gettid(), &world};
    pthread_t helper;
    const auto interrupt = [](void* at) -> void* {
      auto& to = *static_cast<Context*>(at);
      while (to.world->faults == 0) sys::nap_ns(1'000'000);
      tgkill(getpid(), to.thread, SIGUSR1);
      while (depth < 4) sys::nap_ns(1'000'000);
      to.world->publishes = true;
      return nullptr;
    };
    ASSERT_EQ(sys::thread_start(&helper, nullptr, interrupt, &context), 0);
    EXPECT_EQ(*static_cast<volatile char*>(buffer.at() + 40 * kPage), of_page(40));
    pthread_join(helper, nullptr);
    EXPECT_EQ(depth, 4);
    EXPECT_EQ(world.driver->release(cover), 0);
  });
}

// ---- faults of the program's own ----

// How a child ends that does `mistake` while pages are away: a status of waitpid.
int end_of(const std::function<void(World&)>& mistake, bool with_handler = false) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    signal(SIGSEGV, SIG_DFL);  // a sanitizer has a handler, which would tell of the mistake and exit
    World world;
    if (with_handler) {
      sys::signals_before_init();
      struct sigaction action{};
      action.sa_sigaction = [](int, siginfo_t* info, void*) {
        _exit(info->si_code == SEGV_MAPERR && info->si_addr == reinterpret_cast<void*>(0x1230) ? 42 : 43);
      };
      action.sa_flags = SA_SIGINFO;
      sigaction(SIGSEGV, &action, nullptr);
      sys::signals_after_init();
    }
    if (!world.open().empty()) _exit(44);
    const Mapped buffer(kBytes, 7);
    (void)cover_of(world, buffer.pages());
    touched = buffer.at();
    mistake(world);
    _exit(45);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}
bool died_of(int status, int signal) { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

TEST(OverlapSignals, OwnMistakesOfTheProgramEndIt) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "this sanitizer has a thread of its own, so nothing is guarded";
#endif
  if (!kGuardsBySignal) GTEST_SKIP() << "not on this machine";
  const auto missing = [](World&) { *reinterpret_cast<volatile char*>(0x1230) = 1; };
  EXPECT_TRUE(died_of(end_of(missing), SIGSEGV));
  EXPECT_TRUE(died_of(end_of([](World&) { *const_cast<volatile char*>("constant") = 1; }), SIGSEGV));
  EXPECT_TRUE(died_of(end_of([](World&) { raise(SIGSEGV); }), SIGSEGV));
  EXPECT_TRUE(died_of(end_of([](World&) {
                        kill(getpid(), SIGSEGV);
                        pause();
                      }),
                      SIGSEGV));
  const int status = end_of(missing, true);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << "the handler of MPI_Init gets it: " << status;
  // In a child of the program, and after the data are there.
  const auto forks = [](World& world) {
    (void)world.driver->release(world.cover);
    const pid_t child = fork();
    if (child == 0) {
      *reinterpret_cast<volatile char*>(0x1230) = 1;
      _exit(1);
    }
    int how = 0;
    (void)waitpid(child, &how, 0);
    _exit(died_of(how, SIGSEGV) && touched[kPage] == of_page(1) ? 7 : 8);
  };
  const int forked = end_of(forks);
  EXPECT_TRUE(WIFEXITED(forked) && WEXITSTATUS(forked) == 7) << forked;
}

sigjmp_buf back;
siginfo_t seen;
// A program that installs a handler later, and returns from its own fault.
TEST(OverlapSignals, ALaterHandlerGetsTheProgramsFaults) {
  in_program([](World& world) {
    const Mapped buffer(kBytes, 7);
    struct sigaction action{}, ours{};
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      seen = *info;
      siglongjmp(back, 1);
    };
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &ours);
    int none = -1;
    EXPECT_EQ(world.guard.cover(buffer.pages(), &none), Refusal::handled);
    mprotect(buffer.at(), kPage, PROT_NONE);
    if (sigsetjmp(back, 1) == 0) *static_cast<volatile char*>(buffer.at() + 100) = 1;
    EXPECT_EQ(seen.si_addr, buffer.at() + 100);
    EXPECT_EQ(seen.si_code, SEGV_ACCERR);
    mprotect(buffer.at(), kPage, PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &ours, nullptr);
    const int cover = cover_of(world, buffer.pages());
    EXPECT_EQ(*static_cast<volatile char*>(buffer.at()), of_page(0));
    EXPECT_EQ(world.driver->release(cover), 0);
  });
}

// Pages come all the time just when they are touched.
TEST(OverlapSignals, FaultsMeetPagesThatAreJustPublished) {
  in_program([](World& world) {
    const Mapped buffer(kBytes, 7);
    world.publishes = false;
    for (int round = 0; round < 200; ++round) {
      const int cover = cover_of(world, buffer.pages());
      const std::function<int()> all = [&] {
        int error = 0;
        for (std::size_t i = 0; i < kPages && error == 0; i += 2)
          error = world.guard.publish(cover, i * kPage, 2 * kPage);
        return error;
      };
      world.driver->begin(all);
      for (std::size_t i = 0; i < kPages; ++i)
        EXPECT_EQ(*static_cast<volatile char*>(buffer.at() + i * kPage + 77), of_page(i));
      EXPECT_EQ(world.driver->end(), 0);
      EXPECT_EQ(world.driver->release(cover), 0);
    }
  });
}

}  // namespace
