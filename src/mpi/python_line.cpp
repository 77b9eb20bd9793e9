// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/python_line.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sys/sys.hpp"

namespace stretto::mpi {
namespace {

// ---- Tables of lines ----

int signed_byte(int byte) { return byte >= 128 ? byte - 256 : byte; }

int line_by_increments(const LineTable& table, std::uint64_t offset, int line) {
  std::uint64_t at = 0;
  for (;;) {
    const int bytes = table.next(table.context), lines = table.next(table.context);
    if (bytes < 0 || lines < 0) return line;
    at += static_cast<unsigned>(bytes);
    if (at > offset) return line;
    line += signed_byte(lines);
  }
}

int line_by_ranges(const LineTable& table, std::uint64_t offset, int line) {
  constexpr int kNoLine = -128;
  std::uint64_t end = 0;
  for (;;) {
    const int bytes = table.next(table.context), lines = table.next(table.context);
    if (bytes < 0 || lines < 0) return 0;
    end += static_cast<unsigned>(bytes);
    const int more = signed_byte(lines);
    if (more != kNoLine) line += more;
    if (offset < end) return more == kNoLine ? 0 : line;
  }
}

// Six bits a byte, the lowest first.
int variable(const LineTable& table) {
  unsigned value = 0;
  for (unsigned shift = 0; shift < 30; shift += 6) {
    const int byte = table.next(table.context);
    if (byte < 0) return 0;
    value |= static_cast<unsigned>(byte & 63) << shift;
    if ((byte & 64) == 0) break;
  }
  return static_cast<int>(value);
}

int signed_variable(const LineTable& table) {
  const int value = variable(table);
  return (value & 1) != 0 ? -(value >> 1) : value >> 1;
}

// Every entry begins with a byte of 128 or more: its kind, and how many instructions it is for.
int line_by_locations(const LineTable& table, std::uint64_t offset, int line) {
  enum Kind { same_line_ends = 10, with_columns = 12, no_columns = 13, with_end = 14, none = 15 };
  constexpr std::uint64_t kUnitBytes = 2;
  std::uint64_t end = 0;
  for (;;) {
    int byte = table.next(table.context);
    while (byte >= 0 && byte < 128) byte = table.next(table.context);  // columns
    if (byte < 0) return 0;
    const int kind = byte >> 3 & 15;
    if (kind == no_columns || kind == with_end)
      line = static_cast<int>(static_cast<unsigned>(line) + static_cast<unsigned>(signed_variable(table)));
    if (kind >= same_line_ends && kind <= with_columns) line += kind - same_line_ends;
    end += static_cast<std::uint64_t>((byte & 7) + 1) * kUnitBytes;
    if (offset < end) return kind == none ? 0 : line;
  }
}

// ---- The interpreter ----

using Address = std::uint64_t;

// Offsets in bytes.
struct Layout {
  Address thread_frame;    // in the thread's state
  int through;             // where that leads to a struct with the frame: the offset there; -1: to the frame
  Address code, previous;  // in a frame
  Address instruction;     // there
  bool is_index;           // the instruction is a number
  unsigned unit_bytes;     // of that number
  Address filename, name;  // in a code object
  Address first_line, table;
  Address instructions;  // there, if the instruction is an address
  Address text;          // in a string of ASCII
  LineTableKind kind;
};

constexpr Layout kPython39 = {24, -1, 32, 24, 104, true, 1, 104, 112, 40, 120, 0, 48, LineTableKind::increments};
constexpr Layout kPython310 = {24, -1, 32, 24, 96, true, 2, 104, 112, 40, 120, 0, 48, LineTableKind::ranges};
constexpr Layout kPython311 = {56, 8, 32, 48, 56, false, 1, 112, 128, 72, 136, 184, 48, LineTableKind::locations};
constexpr Layout kPython312 = {56, 0, 0, 8, 56, false, 1, 112, 128, 68, 136, 192, 40, LineTableKind::locations};

constexpr Address kType = 8, kSize = 16, kBytes = 32, kLength = 16;  // in all objects, bytes and strings

bool read_memory(Address address, void* target, std::size_t bytes) {
  return address != 0 && sys::peer_memory_read(sys::process_id(), address, target, bytes) == 0;
}

template <class T>
bool read_value(Address address, T* value) {
  return read_memory(address, value, sizeof *value);
}

// From 3.13 on _PyRuntime begins with words that say where fields lie.
bool read_layout(Address runtime, unsigned minor, Layout* layout) {
  struct Head {
    char cookie[8];
    std::uint64_t version, free_threaded;
  } head;
  if (!read_value(runtime, &head) || std::memcmp(head.cookie, "xdebugpy", 8) != 0 || head.free_threaded != 0 ||
      (head.version >> 16 & 0xff) != minor)
    return false;
  const bool is_13 = minor == 13;
  // Each begins with the size of its struct.
  const Address thread = sizeof head + (3 + (is_13 ? 13 : 16)) * std::uint64_t{8};
  const Address frame = thread + std::uint64_t{9} * 8;
  const Address code = frame + (is_13 ? std::uint64_t{6} : 8) * 8;
  const auto word = [&](Address address, Address* value) { return read_value(runtime + address, value); };
  *layout = {0, -1, 0, 0, 0, false, 1, 0, 0, 0, 0, 0, 40, LineTableKind::locations};
  return word(thread + 32, &layout->thread_frame) && word(frame + 8, &layout->previous) &&
         word(frame + 16, &layout->code) && word(frame + 24, &layout->instruction) &&
         word(code + 8, &layout->filename) && word(code + 24, &layout->name) && word(code + 32, &layout->table) &&
         word(code + 40, &layout->first_line) && word(code + 72, &layout->instructions);
}

struct Interpreter {
  void* (*thread_state)() = nullptr;  // null: there is none, or it is not known
  Address code_type = 0, text_type = 0, bytes_type = 0;
  Layout layout = {};
};

Interpreter find_interpreter() {
  const auto symbol = [](const char* name) { return dlsym(RTLD_DEFAULT, name); };
  const auto address = [&](const char* name) { return reinterpret_cast<Address>(symbol(name)); };
  const auto version = reinterpret_cast<const char* (*)()>(symbol("Py_GetVersion"));
  if (version == nullptr) return {};
  const char* const text = version();
  if (std::strncmp(text, "3.", 2) != 0) return {};
  const auto minor = static_cast<unsigned>(std::strtoul(text + 2, nullptr, 10));
  Interpreter python;
  python.code_type = address("PyCode_Type");
  python.text_type = address("PyUnicode_Type");
  python.bytes_type = address("PyBytes_Type");
  bool known = minor >= 9 && minor <= 14 && python.code_type != 0 && python.text_type != 0 && python.bytes_type != 0;
  switch (minor) {
    case 9: python.layout = kPython39; break;
    case 10: python.layout = kPython310; break;
    case 11: python.layout = kPython311; break;
    case 12: python.layout = kPython312; break;
    default: known = known && read_layout(address("_PyRuntime"), minor, &python.layout); break;
  }
  if (known) python.thread_state = reinterpret_cast<void* (*)()>(symbol("PyGILState_GetThisThreadState"));
  return python;
}

// Null: the process has no Python, as far as is known.
constinit std::atomic<const Interpreter*> g_interpreter{nullptr};

bool is_of(Address object, Address type) {
  Address found = 0;
  return read_value(object + kType, &found) && found == type;
}

// The last bytes of a string, if all of it is ASCII that can be printed.
template <std::size_t n>
bool read_text(const Interpreter& python, Address place, char (&text)[n]) {
  Address object = 0, length = 0;
  if (!read_value(place, &object) || !is_of(object, python.text_type) || !read_value(object + kLength, &length) ||
      length == 0 || length > 4096)
    return false;
  const Address cut = length < n ? 0 : length - n + 1;
  if (!read_memory(object + python.layout.text + cut, text, length - cut)) return false;
  text[length - cut] = 0;
  for (Address i = 0; i < length - cut; ++i) {
    if (text[i] < 0x20 || text[i] > 0x7e) return false;
  }
  return true;
}

// A bytes object, piece by piece.
struct Pieces {
  Address at, left;
  unsigned char piece[256];
  std::size_t next = 0, there = 0;

  static int byte(void* self) {
    auto& pieces = *static_cast<Pieces*>(self);
    if (pieces.next == pieces.there) {
      const std::size_t bytes = pieces.left < sizeof pieces.piece ? pieces.left : sizeof pieces.piece;
      if (bytes == 0 || !read_memory(pieces.at, pieces.piece, bytes)) return -1;
      pieces.at += bytes;
      pieces.left -= bytes;
      pieces.next = 0;
      pieces.there = bytes;
    }
    return pieces.piece[pieces.next++];
  }
};

int line_in(const Interpreter& python, Address frame, Address code) {
  const Layout& layout = python.layout;
  Address table = 0, bytes = 0, offset = 0;
  int first_line = 0, index = 0;
  if (!read_value(code + layout.first_line, &first_line) || !read_value(code + layout.table, &table) ||
      !is_of(table, python.bytes_type) || !read_value(table + kSize, &bytes))
    return 0;
  if (layout.is_index) {
    if (!read_value(frame + layout.instruction, &index) || index < 0) return first_line;
    offset = static_cast<Address>(index) * layout.unit_bytes;
  } else {
    if (!read_value(frame + layout.instruction, &offset)) return 0;
    offset -= code + layout.instructions;
    if (offset >> 32 != 0) return first_line;  // before the first instruction
  }
  Pieces pieces{table + kBytes, bytes, {}};
  return python_line_of(layout.kind, {&pieces, Pieces::byte}, offset, first_line);
}

// The innermost frame that runs code. Others mark a call from C.
bool find_frame(const Interpreter& python, Address thread, Address* frame, Address* code) {
  constexpr int kMostMarks = 16;
  constexpr Address kTags = 3;  // 3.14
  const Layout& layout = python.layout;
  if (!read_value(thread + layout.thread_frame, frame)) return false;
  if (layout.through >= 0 && !read_value(*frame + static_cast<Address>(layout.through), frame)) return false;
  for (int i = 0; i < kMostMarks && *frame != 0; ++i) {
    if (!read_value(*frame + layout.code, code)) return false;
    *code &= ~kTags;
    if (is_of(*code, python.code_type)) return true;
    if (!read_value(*frame + layout.previous, frame)) return false;
  }
  return false;
}

}  // namespace

int python_line_of(LineTableKind kind, const LineTable& table, std::uint64_t offset, int first_line) {
  switch (kind) {
    case LineTableKind::increments: return line_by_increments(table, offset, first_line);
    case LineTableKind::ranges: return line_by_ranges(table, offset, first_line);
    case LineTableKind::locations: break;
  }
  return line_by_locations(table, offset, first_line);
}

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
  const auto thread = reinterpret_cast<Address>(python->thread_state());
  Address frame = 0, code = 0;
  char file[140], name[48];
  if (thread == 0 || !find_frame(*python, thread, &frame, &code)) return false;
  if (!read_text(*python, code + python->layout.filename, file)) return false;
  const int line = line_in(*python, frame, code);
  const bool named = read_text(*python, code + python->layout.name, name);
  int length = std::snprintf(text, sizeof text, "%s", file);
  if (line > 0) length += std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), ":%d", line);
  if (named) std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), " in %s", name);
  return true;
}

}  // namespace stretto::mpi
