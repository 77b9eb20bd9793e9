// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/host/python_line.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "observe/python_stack.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {
namespace {

using observe::PythonInterpreter;

struct Interpreter : PythonInterpreter {
  void* (*thread_state)() = nullptr;  // null: there is none, or it is not known
};

Interpreter find_interpreter() {
  const auto symbol = [](const char* name) { return dlsym(RTLD_DEFAULT, name); };
  const auto address = [&](const char* name) { return reinterpret_cast<std::uint64_t>(symbol(name)); };
  const auto version = reinterpret_cast<const char* (*)()>(symbol("Py_GetVersion"));
  if (version == nullptr) return {};
  const char* const text = version();
  if (std::strncmp(text, "3.", 2) != 0) return {};
  const auto minor = static_cast<unsigned>(std::strtoul(text + 2, nullptr, 10));
  Interpreter python;
  python.pid = sys::process_id();
  python.runtime = address("_PyRuntime");
  python.code_type = address("PyCode_Type");
  python.text_type = address("PyUnicode_Type");
  python.bytes_type = address("PyBytes_Type");
  const bool known = python.code_type != 0 && python.text_type != 0 && python.bytes_type != 0 &&
                     observe::python_layout(python.pid, python.runtime, minor, &python.layout);
  if (known) python.thread_state = reinterpret_cast<void* (*)()>(symbol("PyGILState_GetThisThreadState"));
  return python;
}

// Null: the process has no Python, as far as is known.
constinit std::atomic<const Interpreter*> g_interpreter{nullptr};

}  // namespace

void python_find() {
  if (g_interpreter.load(std::memory_order_relaxed) != nullptr) return;
  const Interpreter found = find_interpreter();
  if (found.thread_state == nullptr) return;
  auto* const kept = static_cast<Interpreter*>(std::malloc(sizeof(Interpreter)));
  const Interpreter* none = nullptr;
  if (kept == nullptr) return;
  *kept = found;
  // Pairs with the load of python_line.
  if (!g_interpreter.compare_exchange_strong(none, kept, std::memory_order_acq_rel)) std::free(kept);
}

bool python_line(char (&text)[shm::SourceLine::kTextBytes]) {
  text[0] = 0;
  const Interpreter* const python = g_interpreter.load(std::memory_order_acquire);
  if (python == nullptr) return false;
  observe::PythonFrame frame;
  static_assert(sizeof frame.text == sizeof text);
  if (observe::python_frames(*python, reinterpret_cast<std::uint64_t>(python->thread_state()), &frame, 1) == 0)
    return false;
  std::memcpy(text, frame.text, sizeof text);
  return true;
}

}  // namespace stretto::mpi
