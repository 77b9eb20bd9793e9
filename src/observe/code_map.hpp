// SPDX-License-Identifier: BSD-3-Clause
// Where a process has its code: which file lies at which addresses, and where its table for
// unwinding is. Read from /proc/PID/maps and from the headers of ELF files in the process's memory.
// So no lock of the dynamic linker is needed, and it works for this process and for others.
#pragma once
#include <cstdint>

#include "base/array.hpp"

namespace stretto::observe {

struct CodeObject {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t base = 0;     // addresses minus this are those in the file
  std::uint64_t unwinds = 0;  // address of its .eh_frame_hdr; 0: it has none
  char path[232] = "";        // a path that does not fit has lost its beginning
};

class CodeMap {
 public:
  // 0, or an errno value: EACCES, EPERM: the system forbids it.
  int read(int pid);
  [[nodiscard]] const CodeObject* find(std::uint64_t address) const;
  [[nodiscard]] const CodeObject* begin() const { return objects_.begin(); }
  [[nodiscard]] const CodeObject* end() const { return objects_.end(); }

 private:
  void add(int pid, std::uint64_t begin, std::uint64_t end, const char* path);
  Array<CodeObject> objects_;
};

}  // namespace stretto::observe
