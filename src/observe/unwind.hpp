// SPDX-License-Identifier: BSD-3-Clause
// The stack of a stopped thread, by the call frame information that compilers write for exceptions
// (.eh_frame: DWARF 5, section 6.4, as the Linux Standard Base has it in files). So it works for C,
// C++ and Fortran without debug information, and in the middle of a function.
//
// It reads the memory of the process through the kernel, which refuses an address that is not
// mapped. So it works for this process and for others, and no broken stack can crash anybody. It
// takes no lock. Where there is no information (generated code, assembler), it follows the chain of
// frame pointers; that may leave callers out or end early.
#pragma once
#include <cstdint>

#include "observe/code_map.hpp"
#include "sys/stopped_threads.hpp"

namespace stretto::observe {

// Writes the addresses of at most `most` frames to `addresses`, the innermost first. Each is one
// within the instruction that the frame is in: of callers, within the call. Returns how many.
unsigned unwind(int pid, const CodeMap& code, const sys::ThreadRegisters& registers, std::uint64_t* addresses,
                unsigned most);

}  // namespace stretto::observe
