// SPDX-License-Identifier: BSD-3-Clause
// The stack of a thread that goes on: by the tables for unwinding, from inside and from outside.
#include "observe/stacks.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "observe/code_map.hpp"
#include "observe/unwind.hpp"
#include "sys/stopped_threads.hpp"

namespace stretto::test {
namespace {

constexpr int kDepth = 6;
std::atomic<bool> g_there{false}, g_go_on{false};

// Each call needs its frame: something is done after it.
[[gnu::noinline]] int stay(int depth) {
  volatile int after = depth;
  if (depth > 0) {
    after = after + stay(depth - 1);
  } else {
    g_there = true;
    while (!g_go_on) std::this_thread::yield();
  }
  return after;
}

[[gnu::noinline]] int compare(const void*, const void*) { return stay(0); }

struct Frames {
  const observe::CodeMap* code;
  std::uint64_t of[64];
  unsigned count = 0;
};

void look(void* data, const sys::ThreadRegisters& registers) {
  auto& frames = *static_cast<Frames*>(data);
  frames.count = observe::unwind(getpid(), *frames.code, registers, frames.of, 64);
}

unsigned frames_in(const Frames& frames, int (*function)(int)) {
  constexpr std::uint64_t kFunctionBytes = 1024;
  const auto begin = reinterpret_cast<std::uint64_t>(function);
  unsigned count = 0;
  for (unsigned i = 0; i < frames.count; ++i) count += frames.of[i] - begin < kFunctionBytes;
  return count;
}

// Runs `work` in a thread until it is in stay(0), and unwinds it there. May be forbidden.
template <class Work>
bool unwind_in(const Work& work, Frames* frames, const observe::CodeMap& code) {
  g_there = g_go_on = false;
  std::atomic<int> id{0};
  std::thread thread([&] {
    id = sys::thread_id();
    work();
  });
  while (!g_there) std::this_thread::yield();
  frames->code = &code;
  const int error = sys::own_thread_stopped(id, look, frames);
  g_go_on = true;
  thread.join();
  EXPECT_TRUE(error == 0 || error == EPERM) << error;
  return error == 0;
}

TEST(Stacks, AThreadOfThisProcess) {
  observe::CodeMap code;
  ASSERT_EQ(code.read(getpid()), 0);
  Frames frames{};
  if (!unwind_in([] { stay(kDepth); }, &frames, code)) GTEST_SKIP() << "tracing is forbidden here";
  EXPECT_GE(frames_in(frames, stay), kDepth + 1u);
}

// Through functions of libc, which have no frame pointers.
TEST(Stacks, ThroughALibrary) {
  observe::CodeMap code;
  ASSERT_EQ(code.read(getpid()), 0);
  Frames frames{};
  const auto sort = [] {
    int values[2] = {2, 1};
    std::qsort(values, 2, sizeof values[0], compare);
  };
  if (!unwind_in(sort, &frames, code)) GTEST_SKIP() << "tracing is forbidden here";
  const auto begin = reinterpret_cast<std::uint64_t>(std::qsort);
  unsigned in_libc = 0;
  const observe::CodeObject* const libc = code.find(begin);
  for (unsigned i = 0; i < frames.count; ++i) in_libc += libc != nullptr && code.find(frames.of[i]) == libc;
  EXPECT_GE(in_libc, 1u);
  EXPECT_GE(frames.count, 4u);
}

TEST(Stacks, AnotherProcess) {
  g_there = g_go_on = false;
  const pid_t child = fork();
  if (child == 0) {
    stay(kDepth);
    _exit(0);
  }
  shm::StackText stack;
  unsigned lines = 0;
  for (int tries = 0; tries < 500 && lines < kDepth + 1u; ++tries) {  // until it has come there
    observe::stack_of(child, child, false, &stack);
    lines = 0;
    for (const char* c = stack.text; *c != 0; ++c) lines += *c == '\n';
    usleep(10'000);
    if (stack.text[0] == '!') break;
  }
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  if (stack.text[0] == '!') GTEST_SKIP() << "tracing is forbidden here: " << stack.text;
  EXPECT_GE(lines, kDepth + 1u) << stack.text;
}

TEST(Stacks, AProcessThatIsNotThere) {
  shm::StackText stack;
  observe::stack_of(0x3fffffff, 0x3fffffff, false, &stack);
  EXPECT_EQ(stack.text[0], '!') << stack.text;
}

}  // namespace
}  // namespace stretto::test
