// SPDX-License-Identifier: BSD-3-Clause
// System calls caught in this process. Each test runs in a child: SIGSYS ends a process.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <csignal>
#include <cstddef>
#include <functional>

#include "sys/calls.hpp"
#include "sys/sys.hpp"
#include "unit/faults_support.hpp"

using namespace stretto::sys;
using namespace stretto::test;

namespace {

// What the handler saw. It may not call libc.
struct Seen {
  int count = 0;
  CaughtCall last;
};

// Calls run from within the handler, but for those that must not.
CallAnswer pass(void* context, const CaughtCall& call) {
  auto* const seen = static_cast<Seen*>(context);
  if (seen != nullptr) {
    ++seen->count;
    seen->last = call;
  }
  switch (call.number) {
    case SYS_getppid:
    case SYS_read:
    case SYS_write:
    case SYS_writev:
    case SYS_getuid:
    case SYS_close: return {false, call_through(call.number, call.arguments)};
    default: return {true, 0};
  }
}

// `body` returns nothing, or why it cannot be tried.
void run_or_skip(const std::function<const char*(Seen&)>& body, bool as_nobody = false) {
  int reason[2];
  ASSERT_EQ(pipe(reason), 0);
  const int status = in_guarded_child(as_nobody, [&] {
    Seen seen;
    const int error = calls_install(pass, &seen);
    const int refused = error == 0 ? calls_on() : error;
    calls_off();
    std::string why;
    if (refused != 0) {
      why = std::string("system calls cannot be caught: ") + std::strerror(refused);
    } else if (const char* said = body(seen)) {
      why = said;
    }
    calls_off();
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

void run(const std::function<void(Seen&)>& body) {
  run_or_skip([&](Seen& seen) -> const char* {
    body(seen);
    return nullptr;
  });
}

TEST(SysCalls, AreSeenWithNumberAndArguments) {
  run([](Seen& seen) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(calls_on(), 0);
    const ssize_t written = write(ends[1], "voice", 6);
    const int count = seen.count;
    const CaughtCall call = seen.last;
    calls_off();
    EXPECT_EQ(written, 6);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(call.number, SYS_write);
    EXPECT_EQ(call.arguments[0], ends[1]);
    EXPECT_EQ(call.arguments[2], 6);
    EXPECT_NE(call.from, nullptr);
    char back[8] = "";
    EXPECT_EQ(read(ends[0], back, sizeof back), 6);
    EXPECT_STREQ(back, "voice");
    EXPECT_EQ(seen.count, 1);  // off
  });
}

TEST(SysCalls, AnErrorBecomesErrno) {
  run([](Seen& seen) {
    ASSERT_EQ(calls_on(), 0);
    errno = 0;
    const ssize_t written = write(-1, "", 1);
    const int error = errno;
    calls_off();
    EXPECT_EQ(written, -1);
    EXPECT_EQ(error, EBADF);
    EXPECT_EQ(seen.count, 1);
  });
}

TEST(SysCalls, AResultCanBeMadeUp) {
  run([](Seen&) {
    calls_uninstall();
    ASSERT_EQ(calls_install([](void*, const CaughtCall&) { return CallAnswer{false, 4711}; }, nullptr), 0);
    ASSERT_EQ(calls_on(), 0);
    const pid_t parent = getppid();
    calls_off();
    EXPECT_EQ(parent, 4711);
  });
}

TEST(SysCalls, AgainRunsTheCallAndEndsCatching) {
  run([](Seen& seen) {
    ASSERT_EQ(calls_on(), 0);
    (void)getppid();
    const pid_t own = static_cast<pid_t>(syscall(SYS_getpid));
    (void)getppid();
    const int count = seen.count;
    EXPECT_EQ(own, getpid());
    EXPECT_EQ(count, 2);
    ASSERT_EQ(calls_on(), 0);
    (void)getppid();
    calls_off();
    EXPECT_EQ(seen.count, 3);
  });
}

TEST(SysCalls, OtherThreadsAreAsEver) {
  run([](Seen& seen) {
    std::atomic<int> stage{0};
    std::thread other([&] {
      while (stage == 0) {
      }
      (void)getppid();
      stage = 2;
    });
    ASSERT_EQ(calls_on(), 0);
    stage = 1;
    while (stage != 2) {
    }
    calls_off();
    other.join();
    EXPECT_NE(seen.last.number, SYS_getppid);  // TSan makes system calls of its own here
  });
}

TEST(SysCalls, ChildrenHaveThemOff) {
  run([](Seen& seen) {
    ASSERT_EQ(calls_on(), 0);
    const pid_t child = fork();  // runs again, so it is off here, too
    if (child == 0) {
      seen.count = 0;
      (void)getppid();
      calls_off();
      const bool untouched = seen.count == 0;
      _exit(untouched && calls_on() == 0 && getppid() > 0 && seen.count == 1 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);

    ASSERT_EQ(calls_on(), 0);
    EXPECT_EQ(system("exit 3"), 3 << 8);
    ASSERT_EQ(calls_on(), 0);
    int made = 0;
    std::thread thread([&] {
      (void)getppid();
      made = calls_on() == 0 ? 1 : 2;
      (void)getppid();
      calls_off();
    });
    thread.join();
    calls_off();
    EXPECT_EQ(made, 1);
  });
}

TEST(SysCalls, AThreadMayEndWhileItCatches) {
  run([](Seen& seen) {
    for (int i = 0; i < 20; ++i) {
      std::thread([] {
        EXPECT_EQ(calls_on(), 0);
        (void)getppid();
      }).join();
    }
    EXPECT_GE(seen.count, 40);  // getppid, and the first call of each thread's end
  });
}

// fork run within the handler: both return from it.
TEST(SysCalls, AChildMadeWithinTheHandlerReturnsFromIt) {
  run([](Seen&) {
    calls_uninstall();
    const CallHandler all = [](void*, const CaughtCall& call) {
      return CallAnswer{false, call_through(call.number, call.arguments)};
    };
    ASSERT_EQ(calls_install(all, nullptr), 0);
    ASSERT_EQ(calls_on(), 0);
    const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);  // as fork, which not all machines have
    if (child == 0) {
      const long parent = syscall(SYS_getppid);  // not caught: it is off in the child
      calls_off();
      _exit(parent > 0 ? 0 : 1);
    }
    int status = 1;
    const long waited = syscall(SYS_wait4, child, &status, 0, nullptr);
    calls_off();
    EXPECT_EQ(waited, child);
    EXPECT_EQ(status, 0);
  });
}

// ---- signals ----

// TSan's signal handlers, behind which it has those of the program, block all signals.
#if !defined(__SANITIZE_THREAD__)
TEST(SysCalls, SignalHandlersWithinACaughtCallAreCaughtAsWell) {
  run([](Seen& seen) {
    static volatile ssize_t from_handler;
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    struct sigaction action{};
    action.sa_handler = [](int) { from_handler = write(-1, "", 1); };  // no SA_RESTART
    sigaction(SIGALRM, &action, nullptr);
    const itimerval soon{{}, {0, 50'000}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    ASSERT_EQ(calls_on(), 0);
    char byte = 0;
    errno = 0;
    const ssize_t got = read(ends[0], &byte, 1);
    const int error = errno, count = seen.count;
    (void)getppid();  // the handler's return has not ended catching
    calls_off();
    EXPECT_EQ(seen.count, count + 1);
    EXPECT_EQ(got, -1);
    EXPECT_EQ(error, EINTR);
    EXPECT_EQ(from_handler, -1);
    EXPECT_EQ(count, 2);
  });
}

#endif

TEST(SysCalls, BlockingAllSignalsEndsCatching) {
  run([](Seen& seen) {
    sigset_t all, before;
    sigfillset(&all);
    ASSERT_EQ(calls_on(), 0);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    (void)getppid();  // would end the process
    EXPECT_EQ(seen.count, 1);
    EXPECT_EQ(calls_on(), EDEADLK);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    EXPECT_EQ(calls_on(), 0);
  });
}

TEST(SysCalls, AProgramsHandlerThatBlocksSigsysForbidsThem) {
  run([](Seen&) {
    struct sigaction action{}, before{};
    action.sa_handler = [](int) {};
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, &before);
    EXPECT_EQ(calls_on(), EDEADLK);
    sigaction(SIGUSR1, &before, nullptr);
    EXPECT_EQ(calls_on(), 0);
  });
}

TEST(SysCalls, SomebodyElsesHandlerForbidsThem) {
  run([](Seen& seen) {
    ASSERT_EQ(calls_install(pass, nullptr), EBUSY);
    struct sigaction action{};
    action.sa_handler = [](int) {};
    sigaction(SIGSYS, &action, nullptr);
    EXPECT_EQ(calls_on(), EBUSY);
    calls_uninstall();  // not ours: stays
    struct sigaction now{};
    sigaction(SIGSYS, nullptr, &now);
    EXPECT_EQ(now.sa_handler, action.sa_handler);
    signal(SIGSYS, SIG_DFL);
    EXPECT_EQ(calls_install(pass, &seen), 0);
    calls_uninstall();
    sigaction(SIGSYS, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_DFL);
    EXPECT_EQ(calls_on(), EBUSY);
  });
}

// Fortran's runtime has a handler from the start.
TEST(SysCalls, AnEarlierHandlerHearsOfForeignSignals) {
  static volatile sig_atomic_t heard;
  run([](Seen& seen) {
    calls_uninstall();
    struct sigaction action{}, now{};
    action.sa_handler = [](int) { heard = heard + 1; };
    sigaction(SIGSYS, &action, nullptr);
    ASSERT_EQ(calls_install(pass, &seen), 0);
    ASSERT_EQ(calls_on(), 0);
    const int before = seen.count;
    (void)getppid();
    calls_off();
    EXPECT_GT(seen.count, before);
    EXPECT_EQ(heard, 0);
    (void)raise(SIGSYS);
    EXPECT_EQ(heard, 1);
    calls_uninstall();
    sigaction(SIGSYS, nullptr, &now);
    EXPECT_EQ(now.sa_handler, action.sa_handler);
    signal(SIGSYS, SIG_IGN);
    ASSERT_EQ(calls_install(pass, &seen), 0);
    (void)raise(SIGSYS);
  });
}

TEST(SysCalls, AForeignSigsysEndsTheProcessAsBefore) {
  run([](Seen& seen) {
    EXPECT_EQ(in_child([&] {
                (void)raise(SIGSYS);
                return seen.count;
              }),
              200 + SIGSYS);
  });
}

// ---- refusals ----

// From now on this process may not make one system call: it fails with EPERM.
bool forbid(unsigned number, unsigned first_argument) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first_argument, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(SysCalls, AFilterThatRefusesIsAnError) {
  run_or_skip([](Seen&) -> const char* {
    if (!forbid(SYS_prctl, 59)) return "seccomp is refused";
    EXPECT_EQ(calls_on(), EPERM);
    (void)getppid();
    return nullptr;
  });
}

TEST(SysFaultsRefused, AFilterThatRefusesIsAnError) {
  EXPECT_EQ(in_child([] {
              constexpr unsigned kFlags = 1 | O_CLOEXEC | O_NONBLOCK;
              if (!forbid(SYS_userfaultfd, kFlags)) return 0;  // nothing to be seen
              Faults faults;
              return faults_open(FaultMode::user, Events::none, &faults) == EPERM && faults.fd == -1 ? 0 : 1;
            }),
            0);
}

// ---- together with guarded pages ----

// What the next room will do, in short: calls wait until the data are there.
struct Pending {
  Pages buffer;
  std::atomic<int> arrived{0};
  int waits = 0;
};

CallAnswer wait_for_data(void* context, const CaughtCall& call) {
  auto* const pending = static_cast<Pending*>(context);
  const auto begin = reinterpret_cast<std::uintptr_t>(pending->buffer.at), end = begin + pending->buffer.bytes;
  const auto at = static_cast<std::uintptr_t>(call.arguments[1]);
  const bool on_guarded = call.number == SYS_write && at >= begin && at < end;
  if (call.number == SYS_write && !on_guarded) return {false, call_through(call.number, call.arguments)};
  ++pending->waits;
  constexpr long kWaitPrivate = 128;
  const long word[6] = {reinterpret_cast<long>(&pending->arrived), kWaitPrivate, 0, 0, 0, 0};
  while (pending->arrived == 0) (void)call_through(SYS_futex, word);
  if (!on_guarded) return {true, 0};
  return {false, call_through(call.number, call.arguments)};
}

// `action` runs on a guarded buffer whose data come 20 ms later. The child has no privilege.
void on_pending(int waits, const std::function<void(char*)>& action) {
  run_or_skip(
      [&](Seen&) -> const char* {
        Faults faults;
        if (faults_open(FaultMode::user, Events::none, &faults) != 0 || !faults.can_move) return "no guarded pages";
        const Mapped buffer(1 << 20, 7);
        const Spare spare(faults, buffer.pages());
        EXPECT_EQ(faults_guard(faults, buffer.pages(), spare.pages), 0);
        std::memset(spare.pages.at, 'R', 1 << 20);
        Pending pending;
        pending.buffer = buffer.pages();
        calls_uninstall();
        EXPECT_EQ(calls_install(wait_for_data, &pending), 0);
        std::thread filler([&] {
          nap_ns(20'000'000);
          std::size_t moved = 0;
          EXPECT_EQ(faults_move_in(faults, buffer.at(), spare.pages.at, 1 << 20, &moved), 0);
          pending.arrived = 1;
          syscall(SYS_futex, &pending.arrived, 129, 99, nullptr, nullptr, 0);
        });
        EXPECT_EQ(calls_on(), 0);
        action(buffer.at());
        calls_off();
        filler.join();
        EXPECT_EQ(pending.waits, waits);
        EXPECT_EQ(faults_release(faults, buffer.pages()), 0);
        faults_close(&faults);
        return nullptr;
      },
      true);
}

TEST(SysCalls, WriteOnAGuardedPageHasTheRightData) {
  on_pending(1, [](char* buffer) {
    int ends[2];
    calls_off();
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(calls_on(), 0);
    const ssize_t written = write(ends[1], buffer + 5000, 8);
    calls_off();
    char back[8] = "";
    EXPECT_EQ(written, 8);
    EXPECT_EQ(read(ends[0], back, sizeof back), 8);
    EXPECT_TRUE(all_are(back, sizeof back, 'R'));
  });
}

TEST(SysCalls, FwriteOfAGuardedBufferIsWhole) {
  on_pending(1, [](char* buffer) {
    calls_off();
    std::FILE* const file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(calls_on(), 0);
    const std::size_t count = std::fwrite(buffer, 1, 1 << 20, file);
    calls_off();
    std::vector<char> back(1 << 20);
    std::rewind(file);
    EXPECT_EQ(count, 1u << 20);
    EXPECT_EQ(std::fread(back.data(), 1, back.size(), file), back.size());
    EXPECT_TRUE(all_are(back.data(), back.size(), 'R'));
    std::fclose(file);
  });
}

// TSan holds locks around fork that its other threads need.
#if !defined(__SANITIZE_THREAD__)
TEST(SysCalls, AChildOfAForkHasTheRightData) {
  on_pending(1, [](char* buffer) {
    const pid_t child = fork();
    if (child == 0) _exit(all_are(buffer, 1 << 20, 'R') ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
}

#endif

TEST(SysCalls, AThreadMadeMeanwhileHasTheRightData) {
  on_pending(1, [](char* buffer) {
    char seen = 0;
    std::thread([&] { seen = buffer[100]; }).join();
    EXPECT_EQ(seen, 'R');
  });
}

}  // namespace
