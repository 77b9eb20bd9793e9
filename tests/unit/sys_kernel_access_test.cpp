// SPDX-License-Identifier: BSD-3-Clause
// Who else may have the kernel use this process's memory. Each test runs in a child.
#include <sys/wait.h>
#include <ucontext.h>

#include <csignal>

#include "sys/kernel_access.hpp"
#include "unit/faults_support.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

#if defined(__x86_64__)

constexpr std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }

// A thread that is there, and blocks signals or does not.
class Other {
 public:
  explicit Other(bool blocks = false) {
    thread_ = std::thread([this, blocks] {
      sigset_t all;
      sigfillset(&all);
      if (blocks) pthread_sigmask(SIG_SETMASK, &all, nullptr);
      ready_ = true;
      while (!stop_) std::this_thread::yield();
    });
    while (!ready_) std::this_thread::yield();
  }
  ~Other() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> ready_{false}, stop_{false};
  std::thread thread_;
};

TEST(SysKernelAccess, ThreadsAreTheProgramsUnlessTheMpiStartedThem) {
  EXPECT_EQ(in_child([] {
              EXPECT_TRUE(sys::is_only_thread());
              EXPECT_FALSE(sys::has_threads_of_mpi());
              {
                const Other own;
                EXPECT_FALSE(sys::is_only_thread());
              }
              sys::access_before_init();
              const Other of_mpi, another_of_mpi;
              sys::access_after_init();
              EXPECT_TRUE(sys::is_only_thread());
              EXPECT_TRUE(sys::has_threads_of_mpi());
              const Other own;
              EXPECT_FALSE(sys::is_only_thread());
              return testing::Test::HasFailure() ? 1 : 0;
            }),
            0);
}

TEST(SysKernelAccess, AThreadThatBlocksSignalsRunsNoHandlers) {
  EXPECT_EQ(in_child([] {
              EXPECT_FALSE(sys::runs_handlers_elsewhere(bit(SIGALRM)));
              const Other blocks(true);
              EXPECT_FALSE(sys::runs_handlers_elsewhere(bit(SIGALRM)));
              const Other runs;
              EXPECT_TRUE(sys::runs_handlers_elsewhere(bit(SIGALRM)));
              EXPECT_FALSE(sys::runs_handlers_elsewhere(0));
              return testing::Test::HasFailure() ? 1 : 0;
            }),
            0);
}

TEST(SysKernelAccess, HandlersAreTheProgramsUnlessTheMpiInstalledThem) {
  EXPECT_EQ(in_child([] {
              const auto nothing = [](int) {};
              const std::uint64_t before = sys::handled_signals();
              signal(SIGUSR2, nothing);
              sys::access_before_init();
              signal(SIGUSR1, nothing);
              sys::access_after_init();
              signal(SIGFPE, nothing);
              EXPECT_EQ(sys::handled_signals(), before | bit(SIGUSR2));
              signal(SIGUSR1, [](int number) { (void)number; });
              EXPECT_EQ(sys::handled_signals(), before | bit(SIGUSR1) | bit(SIGUSR2));
              signal(SIGUSR2, SIG_IGN);
              EXPECT_EQ(sys::handled_signals(), before | bit(SIGUSR1));
              return testing::Test::HasFailure() ? 1 : 0;
            }),
            0);
}

TEST(SysKernelAccess, ChildrenCountUntilTheyAreWaitedFor) {
  EXPECT_EQ(in_child([] {
              EXPECT_FALSE(sys::has_children());
              const pid_t child = fork();
              if (child == 0) _exit(0);
              EXPECT_TRUE(sys::has_children());
              waitpid(child, nullptr, 0);
              EXPECT_FALSE(sys::has_children());
              return testing::Test::HasFailure() ? 1 : 0;
            }),
            0);
}

ucontext_t main_context, fibre_context;
bool is_stack_on_a_fibre = false;
sys::Pages asked_on_a_fibre;

void ask_on_a_fibre() { is_stack_on_a_fibre = sys::is_stack(asked_on_a_fibre); }

TEST(SysKernelAccess, StacksOfTheThreadAreKnown) {
  EXPECT_EQ(in_child([] {
              char* const here = static_cast<char*>(__builtin_frame_address(0));  // a sanitizer moves variables
              const Mapped memory(1 << 20, 1);
              EXPECT_TRUE(sys::is_stack({here, 100}));
              EXPECT_FALSE(sys::is_stack(memory.pages()));
              const stack_t own{memory.at() + 4096, 0, 64 << 10}, none{nullptr, SS_DISABLE, 0};
              EXPECT_EQ(sigaltstack(&own, nullptr), 0);
              EXPECT_TRUE(sys::is_stack(memory.pages()));
              EXPECT_FALSE(sys::is_stack({memory.at(), 4096}));
              EXPECT_EQ(sigaltstack(&none, nullptr), 0);
              EXPECT_FALSE(sys::is_stack(memory.pages()));

              const Mapped stack(256 << 10, 1);
              asked_on_a_fibre = memory.pages();
              EXPECT_EQ(getcontext(&fibre_context), 0);
              fibre_context.uc_stack = {stack.at(), 0, stack.pages().bytes};
              fibre_context.uc_link = &main_context;
              makecontext(&fibre_context, ask_on_a_fibre, 0);
              EXPECT_EQ(swapcontext(&main_context, &fibre_context), 0);
              EXPECT_TRUE(is_stack_on_a_fibre);
              return testing::Test::HasFailure() ? 1 : 0;
            }),
            0);
}

#endif

}  // namespace
