// SPDX-License-Identifier: BSD-3-Clause
// Guarded pages with kernel faults, in user mode, and in user mode without privilege.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <fstream>
#include <functional>

#include "sys/faults.hpp"
#include "sys/sys.hpp"
#include "unit/faults_support.hpp"

using namespace stretto::sys;
using namespace stretto::test;

namespace {

constexpr std::size_t kBytes = 256 << 10;

struct Setting {
  const char* name;
  FaultMode mode;
  bool as_nobody;
};
constexpr Setting kSettings[] = {
    {"kernel", FaultMode::kernel, false}, {"user", FaultMode::user, false}, {"nobody", FaultMode::user, true}};

class SysFaults : public testing::TestWithParam<Setting> {
 public:
  // `body` returns nothing, or why it cannot be tried.
  using Body = std::function<const char*(Faults&)>;
  static void run(Events events, const Body& body) {
    const Setting& setting = GetParam();
    if (setting.as_nobody && geteuid() != 0) GTEST_SKIP() << "this is an ordinary user already";
    int reason[2];
    ASSERT_EQ(pipe(reason), 0);
    const int status = in_guarded_child(setting.as_nobody, [&] {
      Faults faults;
      const int error = faults_open(setting.mode, events, &faults);
      std::string why;
      if (error != 0) {
        why = std::string("no userfaultfd: ") + std::strerror(error);
      } else if (faults.mode != setting.mode) {
        why = "kernel faults need privilege here";
      } else if (!faults.can_move) {
        why = "pages move from Linux 6.8 on";
      } else if (const char* said = body(faults)) {
        why = said;
      }
      faults_close(&faults);
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
  static void run(const std::function<void(Faults&)>& body) {
    run(Events::none, [&](Faults& faults) -> const char* {
      body(faults);
      return nullptr;
    });
  }
};

INSTANTIATE_TEST_SUITE_P(, SysFaults, testing::ValuesIn(kSettings),
                         [](const auto& named) { return std::string(named.param.name); });

// A buffer of sevens is guarded, waits, gets nines, and is released.
void guard_and_fill(Faults& faults, Pages pages) {
  std::memset(pages.at, 7, pages.bytes);
  const Spare spare(faults, pages);
  ASSERT_EQ(spare.error, 0);
  ASSERT_EQ(faults_guard(faults, pages, spare.pages), 0);
  std::size_t resident = 1, moved = 0;
  EXPECT_EQ(pages_resident(faults, pages, &resident), 0);
  EXPECT_EQ(resident, 0u);
  EXPECT_TRUE(all_are(spare.pages.at, pages.bytes, 7));
  std::memset(spare.pages.at, 9, pages.bytes);

  std::atomic<char> seen{0};
  std::atomic<std::uint32_t> thread{0};
  const std::size_t touched = faults.page_bytes + 5;
  std::thread toucher([&] {
    thread = static_cast<std::uint32_t>(gettid());
    seen = *static_cast<volatile char*>(pages.at + touched);
  });
  const FaultEvent event = next_event(faults);
  EXPECT_EQ(event.kind, FaultEvent::Kind::fault);
  EXPECT_EQ(event.address,
            reinterpret_cast<std::uintptr_t>(pages.at + (faults.says_exact ? touched : faults.page_bytes)));
  EXPECT_EQ(event.thread, thread.load());
  EXPECT_FALSE(event.write);
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(faults_move_in(faults, pages.at, spare.pages.at, pages.bytes, &moved), 0);
  toucher.join();
  EXPECT_EQ(seen, 9);
  EXPECT_EQ(moved, pages.bytes);
  EXPECT_EQ(faults_release(faults, pages), 0);
  EXPECT_TRUE(all_are(pages.at, pages.bytes, 9));
  EXPECT_EQ(pages_resident(faults, spare.pages, &resident), 0);
  EXPECT_EQ(resident, 0u);  // and can be used again
}

char bss[kBytes];
char data[kBytes] = {1};

TEST_P(SysFaults, AMappingIsGuarded) {
  run([](Faults& faults) {
    const Mapped buffer(4 << 20, 1);
    guard_and_fill(faults, buffer.pages());
    guard_and_fill(faults, buffer.pages());
  });
}

TEST_P(SysFaults, TheHeapIsGuarded) {
  run([](Faults& faults) {
    std::vector<char> buffer(100'000, 1);
    guard_and_fill(faults, whole_pages(buffer.data(), buffer.size(), faults.page_bytes));
  });
}

TEST_P(SysFaults, TheBssIsGuarded) {
  run([](Faults& faults) { guard_and_fill(faults, whole_pages(bss, sizeof bss, faults.page_bytes)); });
}

TEST_P(SysFaults, TheStackIsGuarded) {
  run([](Faults& faults) {
    char stack[kBytes];
    guard_and_fill(faults, whole_pages(stack, sizeof stack, faults.page_bytes));
  });
}

TEST_P(SysFaults, ABufferInSeveralMappingsIsGuarded) {
  run([](Faults& faults) {
    const Mapped buffer(4 << 20, 1), source(4 << 20, 3);
    madvise(buffer.at() + (1 << 20) + 3 * 4096, 2 << 20, MADV_NOHUGEPAGE);
    guard_and_fill(faults, buffer.pages());
    const Spare spare(faults, buffer.pages());
    std::size_t done = 0;
    ASSERT_EQ(faults_guard(faults, buffer.pages(), spare.pages), 0);
    EXPECT_EQ(faults_zero(faults, buffer.at(), 2 << 20, &done), 0);
    done = 2 << 20;
    EXPECT_EQ(faults_copy(faults, buffer.at(), source.at(), 4 << 20, &done), 0);
    EXPECT_EQ(faults_release(faults, buffer.pages()), 0);
    EXPECT_TRUE(all_are(buffer.at(), 2 << 20, 0));
    EXPECT_TRUE(all_are(buffer.at() + (2 << 20), 2 << 20, 3));
  });
}

TEST_P(SysFaults, PagesNeverTouchedBecomeZeroPages) {
  run([](Faults& faults) {
    const Mapped buffer(8 << 20);
    for (std::size_t at = 3 << 20; at < (6u << 20); at += 3 * 4096) buffer.at()[at] = 7;
    const Spare spare(faults, buffer.pages());
    std::size_t moved = 0, resident = 0;
    ASSERT_EQ(faults_guard(faults, buffer.pages(), spare.pages), 0);
    EXPECT_EQ(pages_resident(faults, spare.pages, &resident), 0);
    EXPECT_EQ(resident, (8u << 20) / faults.page_bytes);
    EXPECT_EQ(spare.pages.at[0], 0);
    EXPECT_EQ(spare.pages.at[3 << 20], 7);
    spare.pages.at[4096] = 5;  // the other zero pages go back as they are
    EXPECT_EQ(faults_move_in(faults, buffer.at(), spare.pages.at, 8 << 20, &moved), 0);
    EXPECT_EQ(faults_release(faults, buffer.pages()), 0);
    EXPECT_EQ(buffer.at()[4096], 5);
    EXPECT_EQ(buffer.at()[3 << 20], 7);
    EXPECT_EQ(buffer.at()[(8 << 20) - 1], 0);
  });
}

// ---- what is refused ----

// The buffer has its data, and no userfaultfd has it: a second one refuses for the same reason.
void expect_refused(Faults& faults, Pages pages, int why, char value) {
  SCOPED_TRACE(std::strerror(why));
  Faults second;
  ASSERT_EQ(faults_open(faults.mode, Events::none, &second), 0);
  for (Faults* each : {&faults, &second}) {
    const Spare spare(*each, pages);
    std::size_t resident = 1;
    EXPECT_EQ(faults_guard(*each, pages, spare.pages), why);
    EXPECT_TRUE(all_are(pages.at, pages.bytes, value));
    EXPECT_EQ(pages_resident(*each, spare.pages, &resident), 0);
    EXPECT_EQ(resident, 0u);
  }
  faults_close(&second);
}

TEST_P(SysFaults, MemoryOfFilesIsRefused) {
  run([](Faults& faults) {
    for (const int sharing : {MAP_PRIVATE, MAP_SHARED}) {
      int fd = -1;
      ASSERT_EQ(memfd_open("stretto-test", kBytes, &fd), 0);
      void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, sharing, fd, 0);
      ASSERT_NE(mapped, MAP_FAILED);
      std::memset(mapped, 3, kBytes);
      expect_refused(faults, {static_cast<char*>(mapped), kBytes}, EINVAL, 3);
      munmap(mapped, kBytes);
      close_descriptor(fd);
    }
    std::memset(data, 4, sizeof data);
    expect_refused(faults, whole_pages(data, sizeof data, faults.page_bytes), EINVAL, 4);
  });
}

TEST_P(SysFaults, LockedMemoryIsRefused) {
  run([](Faults& faults) {
    const Mapped buffer(32 << 10, 5);
    ASSERT_EQ(syscall(SYS_mlock, buffer.at(), 32 << 10), 0);  // sanitizers make mlock do nothing
    expect_refused(faults, buffer.pages(), EINVAL, 5);
  });
}

TEST_P(SysFaults, MemoryOfSeveralKindsIsRefused) {
  run([](Faults& faults) {
    const Mapped buffer(kBytes, 6);
    ASSERT_EQ(mprotect(buffer.at() + kBytes / 2, kBytes / 2, PROT_READ), 0);
    expect_refused(faults, buffer.pages(), EINVAL, 6);
    expect_refused(faults, {buffer.at() + kBytes / 2, kBytes / 2}, EINVAL, 6);
  });
}

TEST_P(SysFaults, HugetlbfsIsRefused) {
  run(Events::none, [](Faults& faults) -> const char* {
    const Mapped buffer(2 << 20, 0, MAP_HUGETLB);
    if (!buffer) return "no pages are set aside for hugetlbfs";
    std::memset(buffer.at(), 5, 2 << 20);
    expect_refused(faults, buffer.pages(), EINVAL, 5);
    return nullptr;
  });
}

TEST_P(SysFaults, WhatAnotherUserfaultfdHasIsRefused) {
  run([](Faults& faults) {
    const Mapped buffer(kBytes, 6);
    Faults second;
    ASSERT_EQ(faults_open(faults.mode, Events::none, &second), 0);
    const Spare spare(faults, buffer.pages()), other(second, buffer.pages());
    ASSERT_EQ(faults_guard(faults, buffer.pages(), spare.pages), 0);
    EXPECT_EQ(faults_guard(second, buffer.pages(), other.pages), EADDRINUSE);
    std::size_t moved = 0;
    EXPECT_EQ(faults_move_in(faults, buffer.at(), spare.pages.at, kBytes, &moved), 0);
    EXPECT_EQ(faults_release(faults, buffer.pages()), 0);
    EXPECT_TRUE(all_are(buffer.at(), kBytes, 6));
    faults_close(&second);
  });
}

// An io_uring with a registered buffer pins pages, as a network card's registration does. -1: it
// is refused.
int pin(Pages pages) {
  io_uring_params parameters{};
  const int ring = static_cast<int>(syscall(__NR_io_uring_setup, 4, &parameters));
  const iovec whole{pages.at, pages.bytes};
  if (ring < 0 || syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &whole, 1) == 0) return ring;
  close(ring);
  return -1;
}

// Behind pages that have been moved out already, which come back.
TEST_P(SysFaults, PinnedPagesAreRefused) {
  run(Events::none, [](Faults& faults) -> const char* {
    constexpr std::size_t kLarge = 6 << 20;
    const Mapped buffer(kLarge, 8);
    const int ring = pin({buffer.at() + kLarge - 8192, 4096});
    if (ring < 0) return "io_uring is refused: nothing else here pins pages";
    expect_refused(faults, buffer.pages(), EBUSY, 8);
    close(ring);
    return nullptr;
  });
}

// ---- fork ----

TEST_P(SysFaults, PagesSharedWithAChildAreWrittenOnceAndGuarded) {
  run([](Faults& faults) {
    const Mapped buffer(4 << 20, 7);
    int hold[2];
    ASSERT_EQ(pipe(hold), 0);
    const pid_t child = fork();
    if (child == 0) {
      char byte = 0;
      close(hold[1]);
      const bool ended = read(hold[0], &byte, 1) == 0;
      _exit(ended && all_are(buffer.at(), 4 << 20, 7) ? 0 : 1);
    }
    close(hold[0]);
    guard_and_fill(faults, buffer.pages());
    close(hold[1]);
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
}

TEST_P(SysFaults, AChildWithoutTheForkEventReadsZeros) {
  run([](Faults& faults) {
    const Mapped buffer(kBytes, 7);
    const Spare spare(faults, buffer.pages());
    ASSERT_EQ(faults_guard(faults, buffer.pages(), spare.pages), 0);
    EXPECT_EQ(in_child([&] { return static_cast<int>(*static_cast<volatile char*>(buffer.at())); }), 0);
    EXPECT_EQ(faults_release(faults, buffer.pages()), 0);
  });
}

TEST_P(SysFaults, TheForkEventBringsTheChildsMemory) {
  run(Events::memory_and_fork, [](Faults& faults) -> const char* {
    if (!faults.says_fork) return "the fork event needs CAP_SYS_PTRACE";
    const Mapped buffer(kBytes, 7), source(kBytes, 3);
    const Spare spare(faults, buffer.pages());
    if (faults_guard(faults, buffer.pages(), spare.pages) != 0) return "not guarded";
    std::thread reader([&] {
      const FaultEvent event = next_event(faults);
      EXPECT_EQ(event.kind, FaultEvent::Kind::fork);
      Faults childs = faults;
      childs.fd = event.fd;
      std::size_t copied = 0;
      EXPECT_EQ(faults_copy(childs, buffer.at(), source.at(), kBytes, &copied), 0);
      faults_close(&childs);
    });
    EXPECT_EQ(in_child([&] { return static_cast<int>(*static_cast<volatile char*>(buffer.at())); }), 3);
    reader.join();
    EXPECT_EQ(faults_release(faults, buffer.pages()), 0);
    return nullptr;
  });
}

// ---- huge pages ----

std::size_t huge_bytes_at(const char* address) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool here = false;
  while (std::getline(maps, line)) {
    unsigned long begin = 0, end = 0, huge = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      here = begin <= at && at < end;
    } else if (here && std::sscanf(line.c_str(), "AnonHugePages: %lu", &huge) == 1) {
      return huge << 10;
    }
  }
  return 0;
}

TEST_P(SysFaults, HugePagesAreKept) {
  run(Events::none, [](Faults& faults) -> const char* {
    constexpr std::size_t kWhole = 8 << 20;
    if (faults.huge_bytes == 0 || kWhole % faults.huge_bytes != 0) return "no huge pages of a usual size";
    const Mapped memory(kWhole + faults.huge_bytes);
    const Pages all = whole_pages(memory.at(), memory.pages().bytes, faults.huge_bytes);
    const Pages buffer{all.at, kWhole};
    madvise(buffer.at, kWhole, MADV_HUGEPAGE);
    std::memset(buffer.at, 7, kWhole);
    if (huge_bytes_at(buffer.at) != kWhole) return "the kernel gives no huge pages";
    guard_and_fill(faults, buffer);
    EXPECT_EQ(huge_bytes_at(buffer.at), kWhole);
    return nullptr;
  });
}

TEST_P(SysFaults, SpareMemoryLiesAsTheBufferDoes) {
  run([](Faults& faults) {
    const std::size_t unit = faults.huge_bytes != 0 ? faults.huge_bytes : faults.page_bytes;
    const Mapped memory(4 << 20);
    for (const std::size_t offset : {std::size_t{0}, std::size_t{4096}, std::size_t{1 << 20}}) {
      const Spare spare(faults, {memory.at() + offset + 16, 100'000});
      ASSERT_EQ(spare.error, 0);
      EXPECT_EQ(spare.pages.bytes, 102'400u);
      EXPECT_EQ((spare.pages.at - memory.at() - static_cast<long>(offset)) % static_cast<long>(unit), 0);
    }
  });
}

// ---- what programs do with guarded memory ----

TEST_P(SysFaults, UnmappingIsAnEvent) {
  run(Events::memory, [](Faults& faults) -> const char* {
    if (!faults.says_memory) return "the kernel does not know these events";
    const Mapped buffer(kBytes, 7), source(kBytes, 3);
    const Spare spare(faults, buffer.pages());
    EXPECT_EQ(faults_guard(faults, buffer.pages(), spare.pages), 0);
    std::thread program([&] { munmap(buffer.at() + 8192, 16384); });
    EXPECT_TRUE(wait_for_input(faults.fd));
    std::size_t copied = 0;
    EXPECT_EQ(faults_copy(faults, buffer.at(), source.at(), 4096, &copied), EAGAIN);
    const FaultEvent event = next_event(faults);
    program.join();
    EXPECT_EQ(event.kind, FaultEvent::Kind::unmap);
    EXPECT_EQ(event.address, reinterpret_cast<std::uintptr_t>(buffer.at() + 8192));
    EXPECT_EQ(event.bytes, 16384u);
    EXPECT_EQ(faults_copy(faults, buffer.at(), source.at(), 4096, &copied), 0);
    // What comes there is the program's own, and stays as it is.
    EXPECT_NE(mmap(buffer.at() + 8192, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              MAP_FAILED);
    copied = 0;
    EXPECT_EQ(faults_copy(faults, buffer.at() + 8192, source.at(), 16384, &copied), ENOENT);
    copied = 0;
    EXPECT_NE(faults_move_in(faults, buffer.at() + 8192, spare.pages.at + 8192, 16384, &copied), 0);
    EXPECT_EQ(copied, 0u);
    EXPECT_EQ(buffer.at()[8192], 0);
    EXPECT_EQ(faults_release(faults, buffer.pages()), 0);
    return nullptr;
  });
}

TEST_P(SysFaults, RemovingAndMovingAreEvents) {
  run(Events::memory, [](Faults& faults) -> const char* {
    if (!faults.says_memory) return "the kernel does not know these events";
    Mapped buffer(kBytes, 7), place(kBytes);
    const Spare spare(faults, buffer.pages());
    EXPECT_EQ(faults_guard(faults, buffer.pages(), spare.pages), 0);
    std::thread remover([&] { madvise(buffer.at(), 8192, MADV_DONTNEED); });
    const FaultEvent removed = next_event(faults);
    remover.join();
    EXPECT_EQ(removed.kind, FaultEvent::Kind::remove);
    EXPECT_EQ(removed.bytes, 8192u);
    // The old place is unmapped, which is an event of its own.
    std::thread mover([&] { mremap(buffer.at(), kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, place.at()); });
    FaultEvent two[kMostFaultEvents];
    // One read may give both.
    if (next_events(faults, two) == 1) two[1] = next_event(faults);
    mover.join();
    const bool first = two[0].kind == FaultEvent::Kind::remap;
    const FaultEvent &moved = two[first ? 0 : 1], &unmapped = two[first ? 1 : 0];
    EXPECT_EQ(moved.kind, FaultEvent::Kind::remap);
    EXPECT_EQ(moved.address, reinterpret_cast<std::uintptr_t>(buffer.at()));
    EXPECT_EQ(moved.to, reinterpret_cast<std::uintptr_t>(place.at()));
    EXPECT_EQ(moved.bytes, kBytes);
    EXPECT_EQ(unmapped.kind, FaultEvent::Kind::unmap);
    EXPECT_EQ(unmapped.address, moved.address);
    std::size_t done = 0;
    EXPECT_EQ(faults_move_in(faults, place.at(), spare.pages.at, kBytes, &done), 0);
    EXPECT_EQ(faults_release(faults, place.pages()), 0);
    EXPECT_TRUE(all_are(place.at(), kBytes, 7));
    return nullptr;
  });
}

TEST_P(SysFaults, TheReaderItselfIsNotStoppedBySpareMemory) {
  run(Events::memory, [](Faults& faults) -> const char* {
    const Mapped buffer(kBytes, 7);
    {
      const Spare spare(faults, buffer.pages());
      std::size_t done = 0, resident = 1;
      EXPECT_EQ(faults_guard(faults, buffer.pages(), spare.pages), 0);
      EXPECT_EQ(faults_copy(faults, buffer.at(), spare.pages.at, kBytes, &done), 0);
      EXPECT_EQ(spare_empty(faults, spare.pages), 0);
      EXPECT_EQ(pages_resident(faults, spare.pages, &resident), 0);
      EXPECT_EQ(resident, 0u);
      EXPECT_EQ(faults_release(faults, buffer.pages()), 0);
      EXPECT_TRUE(all_are(buffer.at(), kBytes, 7));
    }
    FaultEvent events[kMostFaultEvents];
    int count = 0;
    EXPECT_EQ(faults_next(faults, events, &count), EAGAIN);
    return nullptr;
  });
}

// A guard that cannot move back, because an event waits, copies back.
TEST_P(SysFaults, AnUnreadEventMakesGuardingFailWithoutLoss) {
  run(Events::memory, [](Faults& faults) -> const char* {
    const Mapped buffer(kBytes, 7), other(kBytes, 1);
    const Spare spare(faults, buffer.pages()), others(faults, other.pages());
    EXPECT_EQ(faults_guard(faults, other.pages(), others.pages), 0);
    std::thread program([&] { munmap(other.at(), kBytes); });
    EXPECT_TRUE(wait_for_input(faults.fd));
    EXPECT_EQ(faults_guard(faults, buffer.pages(), spare.pages), EAGAIN);
    EXPECT_TRUE(all_are(buffer.at(), kBytes, 7));
    (void)next_event(faults);
    program.join();
    guard_and_fill(faults, buffer.pages());
    return nullptr;
  });
}

// ---- the kernel and peers ----

// Lets `action` run on a guarded buffer of sevens; the data comes if it waits.
template <class Action>
void against_guarded(Faults& faults, Action action) {
  const Mapped buffer(kBytes, 7);
  const Spare spare(faults, buffer.pages());
  ASSERT_EQ(faults_guard(faults, buffer.pages(), spare.pages), 0);
  std::thread filler([&] {
    std::size_t moved = 0;
    if (faults.mode == FaultMode::kernel) (void)next_event(faults);
    if (faults.mode == FaultMode::user) nap_ns(20'000'000);
    EXPECT_EQ(faults_move_in(faults, buffer.at(), spare.pages.at, kBytes, &moved), 0);
  });
  action(buffer.at());
  filler.join();
  EXPECT_EQ(faults_release(faults, buffer.pages()), 0);
}

TEST_P(SysFaults, SystemCallsWaitOrFail) {
  run([](Faults& faults) {
    against_guarded(faults, [&](const char* buffer) {
      int ends[2];
      char back[8] = "";
      ASSERT_EQ(pipe(ends), 0);
      const ssize_t written = write(ends[1], buffer, sizeof back);
      if (faults.mode == FaultMode::user) {
        EXPECT_EQ(written, -1);
        EXPECT_EQ(errno, EFAULT);
      } else {
        EXPECT_EQ(written, 8);
        EXPECT_EQ(read(ends[0], back, sizeof back), 8);
        EXPECT_TRUE(all_are(back, sizeof back, 7));
      }
    });
  });
}

TEST_P(SysFaults, PeersWaitOrFail) {
  run([](Faults& faults) {
    against_guarded(faults, [&](char* buffer) {
      char back[8] = "";
      const iovec local{back, sizeof back}, remote{buffer, sizeof back};
      const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
      if (faults.mode == FaultMode::user) {
        EXPECT_EQ(got, -1);
        EXPECT_EQ(errno, EFAULT);
      } else {
        EXPECT_EQ(got, 8);
        EXPECT_TRUE(all_are(back, sizeof back, 7));
      }
    });
  });
}

// ---- the rest ----

TEST_P(SysFaults, ZerosCopiesAndWakes) {
  run([](Faults& faults) {
    const Mapped buffer(kBytes, 7), source(kBytes, 3);
    const Spare spare(faults, buffer.pages());
    ASSERT_EQ(faults_guard(faults, buffer.pages(), spare.pages), 0);
    std::size_t done = 0;
    EXPECT_EQ(faults_zero(faults, buffer.at(), 8192, &done), 0);
    EXPECT_EQ(done, 8192u);
    done = 0;
    EXPECT_EQ(faults_copy(faults, buffer.at() + 8192, source.at(), 8192, &done), 0);
    EXPECT_TRUE(all_are(buffer.at(), 8192, 0));
    EXPECT_TRUE(all_are(buffer.at() + 8192, 8192, 3));
    done = 0;
    EXPECT_EQ(faults_copy(faults, buffer.at(), source.at(), 4096, &done), EEXIST);
    EXPECT_EQ(faults_move_in(faults, buffer.at(), spare.pages.at, 4096, &done), EEXIST);
    EXPECT_EQ(done, 0u);
    // Woken without a page, the thread waits anew, which is another event.
    std::thread toucher([&] { *static_cast<volatile char*>(buffer.at() + 16384) = 1; });
    EXPECT_TRUE(next_event(faults).write);
    EXPECT_EQ(faults_wake(faults, buffer.pages()), 0);
    EXPECT_TRUE(next_event(faults).write);
    EXPECT_EQ(faults_release(faults, buffer.pages()), 0);
    toucher.join();
    EXPECT_EQ(buffer.at()[16384], 1);
  });
}

TEST_P(SysFaults, ErrorsLeaveResultsAndErrnoAlone) {
  run([](Faults& faults) {
    const Mapped buffer(kBytes, 7);
    const Spare spare(faults, buffer.pages());
    FaultEvent events[kMostFaultEvents];
    int count = 77;
    std::size_t done = 0;
    errno = 4711;
    EXPECT_EQ(faults_next(faults, events, &count), EAGAIN);
    EXPECT_EQ(count, 77);
    Faults without = faults;
    without.can_move = false;
    EXPECT_EQ(faults_guard(without, buffer.pages(), spare.pages), EOPNOTSUPP);
    without.fd = -1;
    without.can_move = true;
    EXPECT_EQ(faults_guard(without, buffer.pages(), spare.pages), EBADF);
    EXPECT_EQ(faults_move_in(without, buffer.at(), spare.pages.at, 4096, &done), EBADF);
    EXPECT_EQ(faults_wake(without, buffer.pages()), EBADF);
    Pages none{nullptr, 5};
    EXPECT_EQ(spare_map(without, 4096, buffer.at(), &none), EBADF);
    EXPECT_EQ(none.bytes, 5u);
    EXPECT_EQ(errno, 4711);
  });
}

TEST(Pages, AreTheWholeOnes) {
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<char*>(address); };
  EXPECT_EQ(whole_pages(at(4096), 8192, 4096).at, at(4096));
  EXPECT_EQ(whole_pages(at(4096), 8192, 4096).bytes, 8192u);
  EXPECT_EQ(whole_pages(at(4112), 8192, 4096).at, at(8192));
  EXPECT_EQ(whole_pages(at(4112), 8192, 4096).bytes, 4096u);
  EXPECT_EQ(whole_pages(at(4112), 8000, 4096).bytes, 0u);
  EXPECT_EQ(whole_pages(at(4112), 0, 4096).bytes, 0u);
}

}  // namespace
