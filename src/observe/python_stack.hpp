// SPDX-License-Identifier: BSD-3-Clause
// Where a thread is in Python, read from the memory of its process: of this one or of another one.
//
// It takes no lock and calls no function of Python's. Every read goes through the kernel, which
// refuses an address that is not mapped. So no wrong guess can crash anybody. Where the kernel does
// not permit such reads, there are no lines. Where fields lie depends on the version: 3.9 to 3.12
// are in a table, and from 3.13 on the interpreter itself says it. The types of all objects are
// checked. With another layout, as in a debug build, the check fails, and there is no line. The
// same holds without a GIL (3.13t), where objects are laid out otherwise.
//
// Frames change while a thread runs Python. So the thread must be stopped, or in a call from the
// innermost frame. What is read of code objects never changes: names and tables of lines.
#pragma once
#include <cstddef>
#include <cstdint>

#include "observe/code_map.hpp"

namespace stretto::observe {

enum class LineTableKind : std::uint8_t {
  increments,  // 3.9: co_lnotab
  ranges,      // 3.10
  locations,   // from 3.11 on
};

// Offsets in bytes.
struct PythonLayout {
  std::uint64_t thread_frame;    // in the thread's state
  int through;                   // where that leads to a struct with the frame: the offset there; -1: to the frame
  std::uint64_t code, previous;  // in a frame
  std::uint64_t instruction;     // there
  bool is_index;                 // the instruction is a number
  unsigned unit_bytes;           // of that number
  std::uint64_t filename, name;  // in a code object
  std::uint64_t first_line, table;
  std::uint64_t instructions;  // there, if the instruction is an address
  std::uint64_t text;          // in a string of ASCII
  LineTableKind kind;
};
// Of version 3.`minor`. False: it is not known. `runtime`: the address of _PyRuntime.
bool python_layout(int pid, std::uint64_t runtime, unsigned minor, PythonLayout* layout);

struct PythonInterpreter {
  int pid = 0;
  std::uint64_t runtime = 0, code_type = 0, text_type = 0, bytes_type = 0;
  PythonLayout layout = {};
};
// By the symbols of the process's files. False: there is none, or it is not known.
bool python_find_in(int pid, const CodeMap& code, PythonInterpreter* python);
// The state of the oldest thread that runs Python. 0: it is not found.
std::uint64_t python_main_thread(const PythonInterpreter& python);

// "solve.py:33 in step".
struct PythonFrame {
  char text[224];
};
// Of a thread by its state, the innermost first. Returns how many there are: 0 if it runs no
// Python.
unsigned python_frames(const PythonInterpreter& python, std::uint64_t thread, PythonFrame* frames, unsigned most);

// ---- For tests ----

// A table of lines, byte by byte. -1: its end.
struct LineTable {
  void* context;
  int (*next)(void* context);
};
// The line of the instruction `offset` bytes into the code. 0: the table does not say it.
int python_line_of(LineTableKind kind, const LineTable& table, std::uint64_t offset, int first_line);

}  // namespace stretto::observe
