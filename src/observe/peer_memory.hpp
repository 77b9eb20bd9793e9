// SPDX-License-Identifier: BSD-3-Clause
// Values in the memory of a process: of another one, or of this one, where an address may be wrong.
// Private to src/observe.
#pragma once
#include <cstddef>
#include <cstdint>

#include "sys/sys.hpp"

namespace stretto::observe {

// False: not all of it can be read.
inline bool read_memory(int pid, std::uint64_t address, void* target, std::size_t bytes) {
  return address != 0 && sys::peer_memory_read(pid, address, target, bytes) == 0;
}
template <class T>
bool read_value(int pid, std::uint64_t address, T* value) {
  return read_memory(pid, address, value, sizeof *value);
}

}  // namespace stretto::observe
