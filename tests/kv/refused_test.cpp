// SPDX-License-Identifier: BSD-3-Clause
// A writer puts itself under a seccomp filter that refuses membarrier while a lock is in use.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "kv/lock/passive.hpp"

namespace stretto::kv {
namespace {

// For the calling thread, and for its whole life.
bool refuse_membarrier() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof rules / sizeof *rules, rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(KvRefused, PassiveGoesOnWithoutMembarrier) {
  if (!Machine::barrier_register() || !Machine::barrier_everywhere())
    GTEST_SKIP() << "there is no membarrier here to be refused";
  constexpr unsigned kReaders = 2;
  constexpr std::uint64_t kWrites = 3000;
  using L = Lock<Passive>;
  const std::unique_ptr<void, void (*)(void*)> memory(
      std::aligned_alloc(shm::kLineBytes, (L::bytes(kReaders) + 127) / 128 * 128), std::free);
  shm::Atomic<std::uint64_t> first{}, second{};
  std::atomic<bool> stop = false, refused = false;
  std::atomic<std::uint64_t> reads = 0, after = 0, wrong = 0;
  L writer;
  writer.create(memory.get(), kReaders);
  ASSERT_EQ(writer.shared().fenced.load_relaxed(), 0u);
  std::vector<std::jthread> readers;
  for (unsigned r = 0; r < kReaders; ++r) {
    readers.emplace_back([&] {
      L lock;
      if (lock.attach(memory.get(), L::bytes(kReaders)) != Status::ok || lock.join() != Status::ok)
        return void(++wrong);
      while (!stop) {
        std::uint64_t a = 0, b = 0;
        wrong += lock.read([&] { a = first.load_relaxed(), b = second.load_relaxed(); }) != Status::ok;
        wrong += a != b;
        ++(refused ? after : reads);
      }
      lock.leave();
    });
  }
  std::jthread([&] {
    const auto write = [&](std::uint64_t n) {
      writer.write_enter();
      first.store_relaxed(n);
      second.store_relaxed(n);
      writer.write_leave();
    };
    for (std::uint64_t n = 1; n <= kWrites || reads == 0; ++n) write(n);
    EXPECT_EQ(writer.shared().fenced.load_relaxed(), 0u);
    ASSERT_TRUE(refuse_membarrier());
    ASSERT_FALSE(Machine::barrier_everywhere());
    refused = true;
    for (std::uint64_t n = 1; n <= kWrites || after == 0; ++n) write(n);
    EXPECT_EQ(writer.shared().fenced.load_relaxed(), 1u);
  }).join();
  stop = true;
  readers.clear();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(reads, 0u);
  EXPECT_GT(after, 0u);
}

}  // namespace
}  // namespace stretto::kv
