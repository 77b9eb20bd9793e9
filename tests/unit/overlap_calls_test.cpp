// SPDX-License-Identifier: BSD-3-Clause
// System calls on guarded memory in user mode, without privilege. Each test runs in a child.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>

#include <csignal>
#include <cstdio>

#include "overlap/call_table.hpp"
#include "overlap/calls.hpp"
#include "unit/overlap_support.hpp"

using namespace stretto;
using namespace stretto::overlap;
using namespace stretto::test;

namespace {

constexpr std::size_t kPage = 4096, kPages = 64, kBytes = kPages * kPage;

// A guarded buffer. Each page's data comes when it is asked for, and all of it when everything is.
struct Pending {
  Guard guard;
  Mapped buffer{kBytes, 7};
  int cover = -1;
  std::atomic<std::uint64_t> from{0}, to{0};  // what is asked for, in the cover
  std::atomic<bool> everything{false};
  int waits = 0, completions = 0;

  static void nap() {
    const timespec time{0, 100'000};
    (void)sys::call_through(SYS_nanosleep, {reinterpret_cast<long>(&time), 0, 0, 0, 0, 0});
  }
  static void wait_for(void* context, std::uint64_t at, std::uint64_t bytes) {
    Pending& own = *static_cast<Pending*>(context);
    if (!own.guard.away(at, bytes)) return;
    ++own.waits;
    const std::uint64_t begin = reinterpret_cast<std::uintptr_t>(own.buffer.at());
    own.from = std::max(at, begin) - begin;
    own.to = std::min(at + bytes, begin + kBytes) - begin;
    while (own.guard.away(at, bytes)) nap();
  }
  static void complete_all(void* context) {
    Pending& own = *static_cast<Pending*>(context);
    ++own.completions;
    own.everything = true;
    while (own.guard.any_away()) nap();
  }
  CallWaits callbacks{this, wait_for, complete_all};
};

// `action` runs while the buffer is guarded; calls are caught between on() and off().
void on_pending(const std::function<void(Pending&, char*)>& action) {
  in_child_or_skip(true, [&]() -> std::string {
    Pending pending;
    if (std::string why = open_guard(&pending.guard, sys::FaultMode::user); !why.empty()) return why;
    int error = sys::calls_install(answer_call, &pending.callbacks);
    if (error == 0) error = sys::calls_on();
    sys::calls_off();
    if (error != 0) return std::string("system calls cannot be caught: ") + std::strerror(error);
    Guard& guard = pending.guard;
    EXPECT_EQ(guard.cover(pending.buffer.pages(), &pending.cover), Refusal::none);
    std::memset(guard.landing(pending.cover), 'R', kBytes);
    std::atomic<bool> stopped{false};
    std::thread driver([&] {
      while (!stopped) {
        Told told[8];
        int count = 0;
        EXPECT_EQ(guard.events(told, 8, &count), 0);
        for (int i = 0; i < count; ++i) {
          if (told[i].kind != Told::Kind::fault) continue;
          EXPECT_EQ(guard.publish(told[i].cover, told[i].offset, kPage), 0);
        }
        const std::uint64_t from = pending.from / kPage * kPage, to = pending.to;
        if (to > from) {
          sys::nap_ns(5'000'000);
          pending.to = 0;
          const std::uint64_t end = std::min<std::uint64_t>((to + kPage - 1) / kPage * kPage, kBytes);
          EXPECT_EQ(guard.publish(pending.cover, from, end - from), 0);
        }
        if (pending.everything) {
          sys::nap_ns(5'000'000);
          EXPECT_EQ(guard.publish(pending.cover, 0, kBytes), 0);
        }
        (void)wait_for_input(guard.faults().fd, 1);
      }
      EXPECT_EQ(guard.release(pending.cover), 0);
    });
    action(pending, pending.buffer.at());
    sys::calls_off();
    stopped = true;
    driver.join();
    sys::calls_uninstall();
    return "";
  });
}

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { EXPECT_EQ(pipe(ends), 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
};

TEST(OverlapCalls, AWriteHasTheRightDataAndTheRestStaysAway) {
  on_pending([](Pending& pending, char* buffer) {
    const Pipe pipe;
    ASSERT_EQ(sys::calls_on(), 0);
    const ssize_t written = write(pipe.ends[1], buffer + 5000, 8);
    const bool rest = pending.guard.away_bytes(pending.cover) == kBytes - kPage;
    sys::calls_off();
    char back[8] = "";
    EXPECT_EQ(written, 8);
    EXPECT_EQ(read(pipe.ends[0], back, sizeof back), 8);
    EXPECT_TRUE(all_are(back, sizeof back, 'R'));
    EXPECT_TRUE(rest);
    EXPECT_EQ(pending.waits, 1);
    EXPECT_EQ(pending.completions, 0);
  });
}

TEST(OverlapCalls, AReadIntoABufferComesAfterItsData) {
  on_pending([](Pending& pending, char* buffer) {
    const Pipe pipe;
    EXPECT_EQ(write(pipe.ends[1], "hello", 5), 5);
    ASSERT_EQ(sys::calls_on(), 0);
    const ssize_t got = read(pipe.ends[0], buffer + 10 * kPage - 2, 5);
    sys::calls_off();
    EXPECT_EQ(got, 5);
    EXPECT_EQ(std::memcmp(buffer + 10 * kPage - 3, "RhelloR", 7), 0);
    EXPECT_EQ(pending.waits, 1);
  });
}

// The array of iovecs lies in guarded memory. It comes with the data of a page.
TEST(OverlapCalls, AnArrayOfPiecesMayBeAwayItself) {
  on_pending([](Pending& pending, char* buffer) {
    const Pipe pipe;
    char own[4] = {'o', 'w', 'n', '.'};
    const iovec pieces[3] = {{own, 4}, {buffer + 20 * kPage, 6}, {buffer + 30 * kPage + 50, 2}};
    std::memcpy(pending.guard.landing(pending.cover) + 16, pieces, sizeof pieces);
    ASSERT_EQ(sys::calls_on(), 0);
    const ssize_t written = writev(pipe.ends[1], reinterpret_cast<const iovec*>(buffer + 16), 3);
    sys::calls_off();
    char back[16] = "";
    EXPECT_EQ(written, 12);
    EXPECT_EQ(read(pipe.ends[0], back, sizeof back), 12);
    EXPECT_EQ(std::memcmp(back, "own.RRRRRRRR", 12), 0);
    EXPECT_EQ(pending.waits, 3);
    EXPECT_EQ(pending.guard.away_bytes(pending.cover), kBytes - 3 * kPage);
  });
}

TEST(OverlapCalls, ManyPiecesAreAllWaitedFor) {
  on_pending([](Pending& pending, char* buffer) {
    const Pipe pipe;
    iovec pieces[50];
    for (int i = 0; i < 50; ++i) pieces[i] = {buffer + i * kPage, 3};
    ASSERT_EQ(sys::calls_on(), 0);
    const ssize_t written = writev(pipe.ends[1], pieces, 50);
    sys::calls_off();
    char back[150] = "";
    EXPECT_EQ(written, 150);
    EXPECT_EQ(read(pipe.ends[0], back, sizeof back), 150);
    EXPECT_TRUE(all_are(back, sizeof back, 'R'));
    EXPECT_EQ(pending.waits, 50);
  });
}

TEST(OverlapCalls, MessagesGoOutAndComeInWithAllTheirParts) {
  on_pending([](Pending& pending, char* buffer) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    char* const landing = pending.guard.landing(pending.cover);
    const iovec out{buffer + 3 * kPage, 5}, in{buffer + 6 * kPage, 5};
    std::memcpy(landing + kPage, &out, sizeof out);
    msghdr header{};
    header.msg_iov = reinterpret_cast<iovec*>(buffer + kPage);
    header.msg_iovlen = 1;
    std::memcpy(landing, &header, sizeof header);
    std::memcpy(landing + 3 * kPage, "voice", 5);
    ASSERT_EQ(sys::calls_on(), 0);
    const ssize_t sent = sendmsg(ends[0], reinterpret_cast<const msghdr*>(buffer), 0);
    msghdr back{};
    back.msg_iov = const_cast<iovec*>(&in);
    back.msg_iovlen = 1;
    const ssize_t got = recvmsg(ends[1], &back, 0);
    const ssize_t again = send(ends[0], buffer + 8 * kPage, 4, 0);
    const ssize_t last = recv(ends[1], buffer + 9 * kPage, 4, 0);
    sys::calls_off();
    EXPECT_EQ(sent, 5);
    EXPECT_EQ(got, 5);
    EXPECT_EQ(std::memcmp(buffer + 6 * kPage, "voiceR", 6), 0);
    EXPECT_EQ(again, 4);
    EXPECT_EQ(last, 4);
    EXPECT_EQ(pending.waits, 6);
    EXPECT_EQ(pending.completions, 0);
    close(ends[0]);
    close(ends[1]);
  });
}

TEST(OverlapCalls, APipeThatBlocksIsWaitedFor) {
  on_pending([](Pending& pending, char* buffer) {
    const Pipe pipe;
    std::thread writer([&] {
      sys::nap_ns(30'000'000);
      EXPECT_EQ(write(pipe.ends[1], "late", 4), 4);
    });
    ASSERT_EQ(sys::calls_on(), 0);
    const ssize_t got = read(pipe.ends[0], buffer, 4);
    const char behind = *static_cast<volatile char*>(buffer + 40 * kPage);  // the driver lives meanwhile
    sys::calls_off();
    writer.join();
    EXPECT_EQ(got, 4);
    EXPECT_EQ(std::memcmp(buffer, "lateRR", 6), 0);
    EXPECT_EQ(behind, 'R');
    EXPECT_EQ(pending.completions, 0);
  });
}

TEST(OverlapCalls, WrongPointersAreTheKernelsMatter) {
  on_pending([](Pending& pending, char*) {
    const Pipe pipe;
    char* volatile const nowhere = reinterpret_cast<char*>(8);
    ASSERT_EQ(sys::calls_on(), 0);
    const ssize_t vector = writev(pipe.ends[1], reinterpret_cast<iovec*>(nowhere), 3);
    const int first = errno;
    const ssize_t message = sendmsg(pipe.ends[1], reinterpret_cast<msghdr*>(nowhere), 0);
    const int second = errno;
    const ssize_t many = writev(pipe.ends[1], reinterpret_cast<iovec*>(nowhere), 100'000);
    const int third = errno;
    sys::calls_off();
    EXPECT_EQ(vector, -1);
    EXPECT_EQ(first, EFAULT);
    EXPECT_EQ(message, -1);
    EXPECT_TRUE(second == EFAULT || second == ENOTSOCK);
    EXPECT_EQ(many, -1);
    EXPECT_EQ(third, EINVAL);
    EXPECT_EQ(pending.waits + pending.completions, 0);
  });
}

TEST(OverlapCalls, OthersCompleteEverything) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "its fork holds locks that other threads need";
#endif
  for (const bool unknown : {true, false})
    on_pending([unknown](Pending& pending, char* buffer) {
      ASSERT_EQ(sys::calls_on(), 0);
      int status = 1;
      if (unknown) {
        EXPECT_EQ(syscall(100'000), -1);
      } else {
        const pid_t child = fork();
        if (child == 0) _exit(all_are(buffer, kBytes, 'R') ? 0 : 1);
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
      }
      EXPECT_EQ(pending.completions, 1);
      EXPECT_FALSE(pending.guard.any_away());
      EXPECT_TRUE(all_are(buffer, kBytes, 'R'));
    });
}

TEST(OverlapCalls, CallsOfEveryDayCompleteNothing) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "its sigaction blocks all signals for a moment, the guard's too";
#endif
  on_pending([](Pending& pending, char* buffer) {
    struct stat about{};
    rusage usage{};
    tms times_now{};
    timeval soon{0, 100};
    const timespec moment{0, 1000};
    const itimerval never{};
    sigset_t mask;
    unsigned char there = 0;
    int waiting = 0, done = 0;
    char folder[1024];
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    ASSERT_EQ(sys::calls_on(), 0);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    done += stat("/dev/null", &about) == 0 && fstatat(AT_FDCWD, "/", &about, 0) == 0;
    done += getrusage(RUSAGE_SELF, &usage) == 0 && times(&times_now) != -1 && clock() != -1;
    done += fcntl(null, F_GETFL) != -1 && (ioctl(null, FIONREAD, &waiting) == 0 || errno == ENOTTY);
    done += select(0, nullptr, nullptr, nullptr, &soon) == 0 && ppoll(nullptr, 0, &moment, nullptr) == 0;
    done += sigprocmask(SIG_BLOCK, nullptr, &mask) == 0 && sigaction(SIGUSR2, &ignore, nullptr) == 0;
    done += getcwd(folder, sizeof folder) != nullptr && setitimer(ITIMER_REAL, &never, nullptr) == 0;
    done += waitpid(-1, nullptr, WNOHANG) == -1 && mincore(buffer, kPage, &there) == 0 && close(null) == 0;
    if (FILE* const file = fopen("/dev/null", "w")) done += fprintf(file, "x") == 1 && fclose(file) == 0;
    sys::calls_off();
    EXPECT_EQ(done, 8);
    EXPECT_EQ(pending.waits + pending.completions, 0);
    EXPECT_EQ(pending.guard.away_bytes(pending.cover), kBytes);
  });
}

TEST(OverlapCalls, ANameIsWaitedForUpToItsEnd) {
  on_pending([](Pending& pending, char* buffer) {
    char* const landing = pending.guard.landing(pending.cover);
    std::memcpy(landing + 2 * kPage - 4, "/dev/null", 10);
    std::memcpy(landing + 6 * kPage - 10, "/dev/null", 10);
    ASSERT_EQ(sys::calls_on(), 0);
    const int first = open(buffer + 2 * kPage - 4, O_RDONLY), second = open(buffer + 6 * kPage - 10, O_RDONLY);
    sys::calls_off();
    EXPECT_TRUE(first >= 0 && second >= 0);
    EXPECT_EQ(pending.completions, 0);
    EXPECT_EQ(pending.guard.away_bytes(pending.cover), kBytes - 3 * kPage);
    close(first);
    close(second);
  });
}

TEST(OverlapCalls, AdviceThatNeedsPagesWaitsForThem) {
  constexpr int kPopulateRead = 22, kPopulateWrite = 23;  // Linux 5.14
  on_pending([](Pending& pending, char* buffer) {
    ASSERT_EQ(sys::calls_on(), 0);
    const int read = madvise(buffer, 4 * kPage, kPopulateRead), first = errno;
    const int write = madvise(buffer + 8 * kPage, 4 * kPage, kPopulateWrite), second = errno;
    sys::calls_off();
    EXPECT_TRUE(read == 0 || first == EINVAL) << first;
    EXPECT_TRUE(write == 0 || second == EINVAL) << second;
    EXPECT_TRUE(all_are(buffer, 4 * kPage, 'R') && all_are(buffer + 8 * kPage, 4 * kPage, 'R'));
    EXPECT_EQ(pending.completions, 0);
    EXPECT_EQ(pending.waits, 2);
  });
}

bool is_blocked(int signal) {
  sigset_t mask;
  return sigprocmask(SIG_BLOCK, nullptr, &mask) == 0 && sigismember(&mask, signal) == 1;
}

// A handler is added in a program whose other threads could run it. Its calls would not be caught.
TEST(OverlapCalls, MasksAndHandlersAreAsTheProgramWants) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "its sigaction blocks all signals for a moment, the guard's too";
#endif
  for (const bool blocks_ours : {false, true})
    on_pending([blocks_ours](Pending& pending, char*) {
      sigset_t some;
      sigemptyset(&some);
      sigaddset(&some, SIGUSR1);
      if (blocks_ours) sigaddset(&some, SIGSYS);
      ASSERT_EQ(sys::calls_on(), 0);
      EXPECT_EQ(sigprocmask(SIG_BLOCK, &some, nullptr), 0);
      EXPECT_TRUE(is_blocked(SIGUSR1));
      const int completions = pending.completions;
      EXPECT_EQ(sigprocmask(SIG_UNBLOCK, &some, nullptr), 0);
      sys::calls_off();
      EXPECT_FALSE(is_blocked(SIGUSR1));
      EXPECT_EQ(completions, blocks_ours ? 1 : 0);
    });
  for (const bool beside_threads : {false, true})
    on_pending([beside_threads](Pending& pending, char*) {
      pending.callbacks.beside_threads = beside_threads;
      ASSERT_EQ(sys::calls_on(), 0);
      const bool set = signal(SIGUSR1, [](int) {}) == SIG_DFL;
      sys::calls_off();
      EXPECT_TRUE(set && signal(SIGUSR1, SIG_DFL) != SIG_DFL);
      EXPECT_EQ(pending.completions, beside_threads ? 1 : 0);
    });
}

#if defined(__x86_64__)
TEST(OverlapCalls, EveryCallOfTheKernelIsInTheTable) {
  constexpr long kLastOld = 336, kFirstNew = 424, kLastNew = 470;  // Linux 6.19
  for (long number = 0; number <= kLastNew; ++number)
    EXPECT_EQ(find_call(number) != nullptr, number <= kLastOld || number >= kFirstNew) << number;
  EXPECT_EQ(find_call(-1), nullptr);
}
#endif

// From now on this process may not copy memory of processes.
bool forbid_copies() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(OverlapCalls, WhatCannotBeReadCompletesEverything) {
  on_pending([](Pending& pending, char* buffer) {
    const Pipe pipe;
    const iovec pieces[2] = {{buffer, 4}, {buffer + 9 * kPage, 4}};
    if (!forbid_copies()) return;
    ASSERT_EQ(sys::calls_on(), 0);
    const ssize_t written = writev(pipe.ends[1], pieces, 2);
    sys::calls_off();
    char back[8] = "";
    EXPECT_EQ(written, 8);
    EXPECT_EQ(read(pipe.ends[0], back, sizeof back), 8);
    EXPECT_TRUE(all_are(back, sizeof back, 'R'));
    EXPECT_EQ(pending.completions, 1);
  });
}

TEST(OverlapCalls, AllocatingMemoryCompletesNothing) {
  on_pending([](Pending& pending, char*) {
    ASSERT_EQ(sys::calls_on(), 0);
    for (int i = 0; i < 10; ++i) {
      char* const memory = static_cast<char*>(std::malloc(1 << 20));
      memory[5] = 1;
      std::free(memory);
    }
    sys::calls_off();
    EXPECT_EQ(pending.completions, 0);
    EXPECT_EQ(pending.guard.away_bytes(pending.cover), kBytes);
  });
}

// The program gives the buffer back while its data is away.
TEST(OverlapCalls, UnmappingABufferCompletesNothing) {
  on_pending([](Pending& pending, char* buffer) {
    ASSERT_EQ(sys::calls_on(), 0);
    const int error = munmap(buffer + kBytes / 2, kBytes / 2);
    sys::calls_off();
    EXPECT_EQ(error, 0);
    EXPECT_EQ(pending.completions, 0);
    EXPECT_FALSE(pending.guard.away(reinterpret_cast<std::uintptr_t>(buffer + kBytes / 2), kBytes / 2));
    EXPECT_EQ(pending.guard.away_bytes(pending.cover), kBytes / 2);
  });
}

}  // namespace
