// SPDX-License-Identifier: BSD-3-Clause
// Only files of sys use this header: system calls on ranges, which may do a part only.
#pragma once
#include <cerrno>

#include "sys/faults.hpp"

namespace stretto::sys::detail {

// Repeats `step(offset, bytes)`, which does a part, until all is done. An error behind a part comes
// again with the next step, which does nothing.
template <class Step>
int advance(std::size_t bytes, std::size_t* done, Step step) {
  while (*done < bytes) {
    const std::size_t before = *done;
    const int error = step(before, bytes - before);
    if (*done == before) return error != 0 ? error : EIO;
  }
  return 0;
}

// The kernel takes a range of one mapping only, at either end. A buffer may lie in several: on the
// heap of a forked child, or where a part has hints of its own (madvise). So half of a range is
// tried when the range is refused with `cut`. *bytes is what was tried last.
template <class Step>
int halving(const Faults& faults, int cut, std::size_t* bytes, Step step) {
  int error = step(*bytes);
  while (error == cut && *bytes > faults.page_bytes) {
    *bytes = (*bytes / faults.page_bytes + 1) / 2 * faults.page_bytes;
    error = step(*bytes);
  }
  return error;
}

// A failure comes alone, as a rule: what fails once is tried again.
template <class Action>
int twice(Action action) {
  return action() == 0 ? 0 : action();
}

}  // namespace stretto::sys::detail
