// SPDX-License-Identifier: BSD-3-Clause
// Reading another process's memory.
#include <sys/uio.h>

#include <algorithm>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {

using detail::ErrnoKept;
using detail::retried;

int peer_memory_read(int pid, std::uint64_t address, void* target, std::size_t bytes) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // in one call; the kernel stops at 2 GiB
  const ErrnoKept kept;
  if (const int error = fault::strike("peer_memory_read")) return error;
  auto* to = static_cast<char*>(target);
  while (bytes != 0) {
    const std::size_t piece = std::min(bytes, kMostBytes);
    const iovec local{to, piece};
    const iovec remote{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), piece};
    const auto got = retried([&] { return process_vm_readv(pid, &local, 1, &remote, 1, 0); });
    if (got < 0) return errno;
    if (got == 0) return EFAULT;
    to += got;
    address += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return 0;
}

}  // namespace stretto::sys
