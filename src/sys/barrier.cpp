// SPDX-License-Identifier: BSD-3-Clause
// membarrier(2).
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {
namespace {

int membarrier(int command) {
  const detail::ErrnoKept kept;
  return syscall(SYS_membarrier, command, 0, 0) < 0 ? errno : 0;
}

}  // namespace

int barrier_register() {
  if (const int error = fault::strike("barrier_register")) return error;
  return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

int barrier_everywhere() {
  if (const int error = fault::strike("barrier_everywhere")) return error;
  return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

}  // namespace stretto::sys
