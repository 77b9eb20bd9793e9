// SPDX-License-Identifier: BSD-3-Clause
#include "observe/code_map.hpp"

#include <elf.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "observe/peer_memory.hpp"

namespace stretto::observe {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

// All of a file of /proc, whose size nobody knows before.
int read_text(int pid, Array<char>* text) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/maps", pid);
  for (std::size_t capacity = 256 << 10; capacity <= (std::size_t{16} << 20); capacity *= 4) {
    std::size_t bytes = 0;
    Array<char> read;
    if (!read.resize(capacity, 0)) return ENOMEM;
    const int error = sys::file_read(path, read.data(), capacity - 1, &bytes);
    if (error == EFBIG) continue;
    if (error == 0) *text = std::move(read);
    return error;
  }
  return EFBIG;
}

}  // namespace

// Of an ELF file whose first page lies at `begin`.
void CodeMap::add(int pid, std::uint64_t begin, std::uint64_t end, const char* path) {
  constexpr unsigned kMostHeaders = 64;
  Elf64_Ehdr file;
  if (!read_value(pid, begin, &file) || std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 ||
      file.e_ident[EI_CLASS] != ELFCLASS64)
    return;
  CodeObject object;
  object.begin = begin;
  object.end = end;
  std::uint64_t lowest = ~std::uint64_t{0}, highest = 0, unwinds = 0;
  for (unsigned i = 0; i < file.e_phnum && i < kMostHeaders; ++i) {
    Elf64_Phdr header;
    if (!read_value(pid, begin + file.e_phoff + i * sizeof header, &header)) return;
    if (header.p_type == PT_LOAD) {
      lowest = std::min(lowest, header.p_vaddr / kPageBytes * kPageBytes);
      highest = std::max(highest, header.p_vaddr + header.p_memsz);
    }
    if (header.p_type == PT_GNU_EH_FRAME) unwinds = header.p_vaddr;
  }
  if (lowest > highest) return;
  object.base = begin - lowest;
  object.end = object.base + highest;
  if (unwinds != 0) object.unwinds = object.base + unwinds;
  const std::size_t bytes = std::strlen(path);
  const std::size_t cut = bytes < sizeof object.path ? 0 : bytes - sizeof object.path + 1;
  std::memcpy(object.path, path + cut, bytes - cut + 1);
  (void)objects_.push(object);
}

// 55d0c8a00000-55d0c8a02000 r--p 00000000 08:01 1234   /usr/bin/app
int CodeMap::read(int pid) {
  objects_ = {};
  Array<char> text;
  if (const int error = read_text(pid, &text)) return error;
  for (char* line = text.data(); *line != 0;) {
    char* const next = std::strchr(line, '\n');
    if (next != nullptr) *next = 0;
    unsigned long long begin = 0, end = 0, offset = 0;
    char access[8] = "";
    int at = 0;
    const int found = std::sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &begin, &end, access, &offset, &at);
    const char* const path = found == 4 && at > 0 ? line + at : "";
    if (access[0] == 'r' && offset == 0 && (path[0] == '/' || std::strcmp(path, "[vdso]") == 0) &&
        find(begin) == nullptr)
      add(pid, begin, end, path);
    if (next == nullptr) break;
    line = next + 1;
  }
  return objects_.failed() ? ENOMEM : 0;
}

const CodeObject* CodeMap::find(std::uint64_t address) const {
  for (const CodeObject& object : objects_) {
    if (address >= object.begin && address < object.end) return &object;
  }
  return nullptr;
}

}  // namespace stretto::observe
