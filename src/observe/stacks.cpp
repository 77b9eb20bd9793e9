// SPDX-License-Identifier: BSD-3-Clause
#include "observe/stacks.hpp"

#include <cstdio>
#include <cstring>

#include "observe/code_map.hpp"
#include "observe/python_stack.hpp"
#include "observe/unwind.hpp"
#include "sys/stopped_threads.hpp"

namespace stretto::observe {
namespace {

struct Frames {
  static constexpr unsigned kMost = 48;
  int pid;
  const CodeMap* code;
  const PythonInterpreter* python;  // null: the thread runs none, as far as is known
  std::uint64_t addresses[kMost];
  unsigned count = 0;
  static constexpr unsigned kMostPython = 10;
  PythonFrame of_python[kMostPython];
  unsigned python_count = 0;
};

void look(void* data, const sys::ThreadRegisters& registers) {
  auto& all = *static_cast<Frames*>(data);
  all.count = unwind(all.pid, *all.code, registers, all.addresses, Frames::kMost);
  if (all.python == nullptr) return;
  const std::uint64_t thread = python_main_thread(*all.python);
  all.python_count = python_frames(*all.python, thread, all.of_python, Frames::kMostPython);
}

// The C library calls main, and its functions of threads. Nobody looks for these frames.
bool is_libc(const CodeObject* object) {
  const char* const slash = object != nullptr ? std::strrchr(object->path, '/') : nullptr;
  return slash != nullptr && (std::strncmp(slash, "/libc.so", 8) == 0 || std::strncmp(slash, "/libc-", 6) == 0);
}

unsigned without_start(const CodeMap& code, const std::uint64_t* addresses, unsigned count) {
  unsigned kept = count;
  if (kept > 2 && !is_libc(code.find(addresses[kept - 1])) && is_libc(code.find(addresses[kept - 2]))) --kept;
  while (kept > 1 && is_libc(code.find(addresses[kept - 1]))) --kept;
  return kept;
}

// Adds a line. False: there is no room.
bool add(shm::StackText* stack, std::size_t* length, const char* line) {
  const std::size_t room = sizeof stack->text - *length;
  const int more = std::snprintf(stack->text + *length, room, "%s%s", *length == 0 ? "" : "\n", line);
  if (more < 0 || static_cast<std::size_t>(more) >= room) {
    stack->text[*length] = 0;
    return false;
  }
  *length += static_cast<std::size_t>(more);
  return true;
}

}  // namespace

void stack_of(int pid, int thread, bool own, shm::StackText* stack) {
  stack->text[0] = 0;
  CodeMap code;
  int error = code.read(pid);
  PythonInterpreter python;
  const bool has_python = error == 0 && thread == pid && python_find_in(pid, code, &python);
  Frames frames = {};
  frames.pid = pid;
  frames.code = &code;
  frames.python = has_python ? &python : nullptr;
  if (error == 0)
    error = own ? sys::own_thread_stopped(thread, look, &frames) : sys::thread_stopped(thread, look, &frames);
  if (error != 0) {
    std::snprintf(stack->text, sizeof stack->text, "!%s", std::strerror(error));
    return;
  }
  std::size_t length = 0;
  for (unsigned i = 0; i < frames.python_count; ++i) {
    if (!add(stack, &length, frames.of_python[i].text)) return;
  }
  const unsigned count = without_start(code, frames.addresses, frames.count);
  for (unsigned i = 0; i < count; ++i) {
    const CodeObject* const object = code.find(frames.addresses[i]);
    const auto address = static_cast<unsigned long long>(frames.addresses[i] - (object != nullptr ? object->base : 0));
    char line[sizeof CodeObject::path + 24];
    std::snprintf(line, sizeof line, "%s+0x%llx", object != nullptr ? object->path : "?", address);
    if (!add(stack, &length, line)) return;
  }
}

}  // namespace stretto::observe
