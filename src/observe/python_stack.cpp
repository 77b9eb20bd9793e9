// SPDX-License-Identifier: BSD-3-Clause
#include "observe/python_stack.hpp"

#include <elf.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "observe/peer_memory.hpp"

namespace stretto::observe {
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

constexpr PythonLayout kPython39 = {24, -1, 32, 24, 104, true, 1, 104, 112, 40, 120, 0, 48, LineTableKind::increments};
constexpr PythonLayout kPython310 = {24, -1, 32, 24, 96, true, 2, 104, 112, 40, 120, 0, 48, LineTableKind::ranges};
constexpr PythonLayout kPython311 = {56, 8, 32, 48, 56, false, 1, 112, 128, 72, 136, 184, 48, LineTableKind::locations};
constexpr PythonLayout kPython312 = {56, 0, 0, 8, 56, false, 1, 112, 128, 68, 136, 192, 40, LineTableKind::locations};

constexpr Address kType = 8, kSize = 16, kBytes = 32, kLength = 16;  // in all objects, bytes and strings

// From 3.13 on _PyRuntime begins with words that say where fields lie.
bool read_layout(int pid, Address runtime, unsigned minor, PythonLayout* layout) {
  struct Head {
    char cookie[8];
    std::uint64_t version, free_threaded;
  } head;
  if (!read_value(pid, runtime, &head) || std::memcmp(head.cookie, "xdebugpy", 8) != 0 || head.free_threaded != 0 ||
      (head.version >> 16 & 0xff) != minor)
    return false;
  const bool is_13 = minor == 13;
  // Each begins with the size of its struct.
  const Address thread = sizeof head + (3 + (is_13 ? 13 : 16)) * std::uint64_t{8};
  const Address frame = thread + std::uint64_t{9} * 8;
  const Address code = frame + (is_13 ? std::uint64_t{6} : 8) * 8;
  const auto word = [&](Address address, Address* value) { return read_value(pid, runtime + address, value); };
  *layout = {0, -1, 0, 0, 0, false, 1, 0, 0, 0, 0, 0, 40, LineTableKind::locations};
  return word(thread + 32, &layout->thread_frame) && word(frame + 8, &layout->previous) &&
         word(frame + 16, &layout->code) && word(frame + 24, &layout->instruction) &&
         word(code + 8, &layout->filename) && word(code + 24, &layout->name) && word(code + 32, &layout->table) &&
         word(code + 40, &layout->first_line) && word(code + 72, &layout->instructions);
}

bool is_of(int pid, Address object, Address type) {
  Address found = 0;
  return read_value(pid, object + kType, &found) && found == type;
}

// The last bytes of a string, if all of it is ASCII that can be printed.
template <std::size_t n>
bool read_text(const PythonInterpreter& python, Address place, char (&text)[n]) {
  Address object = 0, length = 0;
  if (!read_value(python.pid, place, &object) || !is_of(python.pid, object, python.text_type) ||
      !read_value(python.pid, object + kLength, &length) || length == 0 || length > 4096)
    return false;
  const Address cut = length < n ? 0 : length - n + 1;
  if (!read_memory(python.pid, object + python.layout.text + cut, text, length - cut)) return false;
  text[length - cut] = 0;
  for (Address i = 0; i < length - cut; ++i) {
    if (text[i] < 0x20 || text[i] > 0x7e) return false;
  }
  return true;
}

// A bytes object, piece by piece.
struct Pieces {
  int pid;
  Address at, left;
  unsigned char piece[256];
  std::size_t next = 0, there = 0;

  static int byte(void* self) {
    auto& pieces = *static_cast<Pieces*>(self);
    if (pieces.next == pieces.there) {
      const std::size_t bytes = pieces.left < sizeof pieces.piece ? pieces.left : sizeof pieces.piece;
      if (bytes == 0 || !read_memory(pieces.pid, pieces.at, pieces.piece, bytes)) return -1;
      pieces.at += bytes;
      pieces.left -= bytes;
      pieces.next = 0;
      pieces.there = bytes;
    }
    return pieces.piece[pieces.next++];
  }
};

int line_in(const PythonInterpreter& python, Address frame, Address code) {
  const PythonLayout& layout = python.layout;
  Address table = 0, bytes = 0, offset = 0;
  int first_line = 0, index = 0;
  if (!read_value(python.pid, code + layout.first_line, &first_line) ||
      !read_value(python.pid, code + layout.table, &table) || !is_of(python.pid, table, python.bytes_type) ||
      !read_value(python.pid, table + kSize, &bytes))
    return 0;
  if (layout.is_index) {
    if (!read_value(python.pid, frame + layout.instruction, &index) || index < 0) return first_line;
    offset = static_cast<Address>(index) * layout.unit_bytes;
  } else {
    if (!read_value(python.pid, frame + layout.instruction, &offset)) return 0;
    offset -= code + layout.instructions;
    if (offset >> 32 != 0) return first_line;  // before the first instruction
  }
  Pieces pieces{python.pid, table + kBytes, bytes, {}};
  return python_line_of(layout.kind, {&pieces, Pieces::byte}, offset, first_line);
}

// The next frame that runs code, from `frame` on. Others mark a call from C.
bool find_frame(const PythonInterpreter& python, Address* frame, Address* code) {
  constexpr int kMostMarks = 16;
  constexpr Address kTags = 3;  // 3.14
  const PythonLayout& layout = python.layout;
  for (int i = 0; i < kMostMarks && *frame != 0; ++i) {
    if (!read_value(python.pid, *frame + layout.code, code)) return false;
    *code &= ~kTags;
    if (is_of(python.pid, *code, python.code_type)) return true;
    if (!read_value(python.pid, *frame + layout.previous, frame)) return false;
  }
  return false;
}

// ---- Symbols ----

// The dynamic symbols of a file in a process's memory.
class Symbols {
 public:
  Symbols(int pid, const CodeObject& object) : pid_(pid), object_(object) {
    Elf64_Ehdr file;
    if (!read_value(pid, object.begin, &file)) return;
    for (unsigned i = 0; i < file.e_phnum; ++i) {
      Elf64_Phdr header;
      if (!read_value(pid, object.begin + file.e_phoff + i * sizeof header, &header)) return;
      if (header.p_type == PT_DYNAMIC) read_dynamic(object.base + header.p_vaddr);
    }
  }
  // 0: there is none.
  [[nodiscard]] Address find(const char* name) const {
    struct {
      std::uint32_t buckets, first, blooms, shift;
    } head;
    if (hashes_ == 0 || symbols_ == 0 || texts_ == 0 || !read_value(pid_, hashes_, &head) || head.buckets == 0)
      return 0;
    std::uint32_t hash = 5381;
    for (const char* c = name; *c != 0; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
    const Address buckets = hashes_ + sizeof head + Address{head.blooms} * 8;
    const Address chains = buckets + Address{head.buckets} * 4;
    std::uint32_t at = 0, chained = 0;
    if (!read_value(pid_, buckets + Address{hash % head.buckets} * 4, &at) || at < head.first) return 0;
    for (constexpr unsigned kMost = 1000; at < head.first + (1u << 24); ++at) {
      if (at > head.first + (1u << 24) - kMost || !read_value(pid_, chains + Address{at - head.first} * 4, &chained))
        return 0;
      if ((chained | 1) == (hash | 1) && is_named(at, name)) return address_of(at);
      if ((chained & 1) != 0) return 0;
    }
    return 0;
  }

 private:
  void read_dynamic(Address at) {
    constexpr unsigned kMostEntries = 128;
    for (unsigned i = 0; i < kMostEntries; ++i, at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      if (!read_value(pid_, at, &entry) || entry.d_tag == DT_NULL) return;
      // The dynamic linker has made addresses of them, except in the kernel's own file.
      const Address value = entry.d_un.d_ptr < object_.base ? object_.base + entry.d_un.d_ptr : entry.d_un.d_ptr;
      if (entry.d_tag == DT_SYMTAB) symbols_ = value;
      if (entry.d_tag == DT_STRTAB) texts_ = value;
      if (entry.d_tag == DT_GNU_HASH) hashes_ = value;
    }
  }
  [[nodiscard]] bool is_named(std::uint32_t at, const char* name) const {
    Elf64_Sym symbol;
    char text[64] = "";
    const std::size_t bytes = std::strlen(name) + 1;
    return read_value(pid_, symbols_ + at * sizeof symbol, &symbol) && bytes <= sizeof text &&
           read_memory(pid_, texts_ + symbol.st_name, text, bytes) && std::memcmp(text, name, bytes) == 0;
  }
  [[nodiscard]] Address address_of(std::uint32_t at) const {
    Elf64_Sym symbol;
    if (!read_value(pid_, symbols_ + at * sizeof symbol, &symbol) || symbol.st_shndx == SHN_UNDEF) return 0;
    return object_.base + symbol.st_value;
  }

  int pid_;
  const CodeObject& object_;
  Address symbols_ = 0, texts_ = 0, hashes_ = 0;
};

// "python3.11" or "libpython3.11.so.1.0" of a path. 0: another file.
unsigned minor_of(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  const char* const name = std::strstr(slash != nullptr ? slash : path, "python3.");
  return name == nullptr ? 0 : static_cast<unsigned>(std::strtoul(name + 8, nullptr, 10));
}

}  // namespace

bool python_layout(int pid, std::uint64_t runtime, unsigned minor, PythonLayout* layout) {
  switch (minor) {
    case 9: *layout = kPython39; return true;
    case 10: *layout = kPython310; return true;
    case 11: *layout = kPython311; return true;
    case 12: *layout = kPython312; return true;
    case 13:
    case 14: return read_layout(pid, runtime, minor, layout);
    default: return false;
  }
}

int python_line_of(LineTableKind kind, const LineTable& table, std::uint64_t offset, int first_line) {
  switch (kind) {
    case LineTableKind::increments: return line_by_increments(table, offset, first_line);
    case LineTableKind::ranges: return line_by_ranges(table, offset, first_line);
    case LineTableKind::locations: break;
  }
  return line_by_locations(table, offset, first_line);
}

bool python_find_in(int pid, const CodeMap& code, PythonInterpreter* python) {
  for (const CodeObject& object : code) {
    const unsigned minor = minor_of(object.path);
    if (minor == 0) continue;
    const Symbols symbols(pid, object);
    python->pid = pid;
    python->runtime = symbols.find("_PyRuntime");
    python->code_type = symbols.find("PyCode_Type");
    python->text_type = symbols.find("PyUnicode_Type");
    python->bytes_type = symbols.find("PyBytes_Type");
    if (python->runtime == 0 || python->code_type == 0 || python->text_type == 0 || python->bytes_type == 0) continue;
    if (python_layout(pid, python->runtime, minor, &python->layout)) return true;
  }
  return false;
}

// A state of a thread begins with the previous one, the next one, and its interpreter. The list of
// an interpreter has the newest thread first. Where the runtime names its interpreter, and that
// names its list, depends on the version. Both are found by what they lead to.
std::uint64_t python_main_thread(const PythonInterpreter& python) {
  constexpr unsigned kRuntimeWords = 512, kInterpreterWords = 1200, kMostThreads = 10'000;
  struct Thread {
    Address previous, next, interpreter;
  };
  Address runtime[kRuntimeWords];
  if (!read_memory(python.pid, python.runtime, runtime, sizeof runtime)) return 0;
  for (const Address interpreter : runtime) {
    if (interpreter < 4096 || interpreter % 8 != 0) continue;
    for (unsigned i = 0; i < kInterpreterWords; ++i) {
      Address state = 0;
      Thread thread{};
      if (!read_value(python.pid, interpreter + i * sizeof state, &state)) break;
      if (state < 4096 || state % 8 != 0 || !read_value(python.pid, state, &thread)) continue;
      if (thread.interpreter != interpreter || thread.previous != 0) continue;
      for (unsigned n = 0; n < kMostThreads && thread.next != 0; ++n) {
        state = thread.next;
        if (!read_value(python.pid, state, &thread) || thread.interpreter != interpreter) return 0;
      }
      return state;
    }
  }
  return 0;
}

unsigned python_frames(const PythonInterpreter& python, std::uint64_t thread, PythonFrame* frames, unsigned most) {
  const PythonLayout& layout = python.layout;
  Address frame = 0, code = 0;
  if (thread == 0 || !read_value(python.pid, thread + layout.thread_frame, &frame)) return 0;
  if (layout.through >= 0 && !read_value(python.pid, frame + static_cast<Address>(layout.through), &frame)) return 0;
  unsigned count = 0;
  while (count < most && find_frame(python, &frame, &code)) {
    char file[140], name[48];
    if (!read_text(python, code + layout.filename, file)) break;
    const int line = line_in(python, frame, code);
    const bool named = read_text(python, code + layout.name, name);
    if (std::strcmp(file, "<shim>") == 0) break;  // 3.12: the outermost frame is none of the program's
    char (&text)[sizeof PythonFrame::text] = frames[count].text;
    int length = std::snprintf(text, sizeof text, "%s", file);
    if (line > 0) length += std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), ":%d", line);
    if (named) std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), " in %s", name);
    ++count;
    if (!read_value(python.pid, frame + layout.previous, &frame)) break;
  }
  return count;
}

}  // namespace stretto::observe
