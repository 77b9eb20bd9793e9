// SPDX-License-Identifier: BSD-3-Clause
// What each system call of Linux does with memory.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::overlap {

// What an argument points to, and where memory is meant in other ways.
struct Operand {
  enum class Kind : std::uint8_t {
    none,
    bytes,       // argument `by` counts elements of `size` bytes
    fixed,       // `size` bytes
    counted,     // argument `by` points to the length, a socklen_t
    string,      // up to its end
    bits,        // argument `by` counts bits, in words
    pages,       // a byte for each page of as many bytes as argument `by` says
    vector,      // argument `by` counts iovecs
    message,     // a msghdr
    messages,    // argument `by` counts mmsghdrs
    futex,       // as the operation in argument `by` says
    control,     // of ioctl, as the request in argument `by` says
    file,        // of fcntl, as the operation in argument `by` says
    mask,        // the signals that are blocked during the call
    mask_pair,   // the same, behind a pointer
    new_mask,    // argument `by` says how it changes the mask of the thread
    action,      // a sigaction
    alternate,   // a stack for handlers of signals. Null: none is set
    mapping,     // `by` counts bytes, of which the mapping changes: an event of the guard
    advice,      // the same, unless argument 2 is an advice that touches the pages
    heap_end,    // where the heap will end: the same for what lies behind it
    everything,  // it is not known, or the call makes threads or processes, or must not run in a handler
  };
  Kind kind = Kind::none;
  std::uint8_t at = 0;  // the argument that points
  std::uint8_t by = 0;
  std::uint16_t size = 1;
};

struct CallRow {
  static constexpr int kMostOperands = 5;
  long number;
  Operand operands[kMostOperands];
};

// Null: there is no such call, as far as is known.
const CallRow* find_call(long number);

}  // namespace stretto::overlap
