// SPDX-License-Identifier: BSD-3-Clause
// Failures on demand. They exist in the twin library, which is built with STRETTO_FAULTS=1. There
// every fallible function of sys asks strike() before each system call that it depends on. A test,
// or the environment, says which of these calls fail and how. In a normal build strike() is a
// constant 0 and the compiler removes the question.
//
// Points are named after their function ("memfd_reserve"). A second system call that can fail on
// its own adds its name after a dot ("memfd_open.truncate"). Tests can then also try the clean-up
// of a half-done job.
#pragma once
#include <cstdint>

namespace stretto::sys::fault {

#if defined(STRETTO_FAULTS) && STRETTO_FAULTS

// The errno value that this call must fail with, or 0 to go on.
[[nodiscard]] int strike(const char* point);

// Every rule and counter below is process-wide. Any thread may call all functions.

// Fails the n-th call (from 1) of any point from now on, once. Starts counting at 0 and replaces
// all rules.
void fail_nth(std::uint64_t n, int error);
// Adds rules, written as in STRETTO_FAULT, which a process reads at its first strike:
//   memfd_reserve:1:ENOSPC,peer_descriptor_open:*:EACCES     point:n-th call or *:errno's name
// A rule for "memfd_open" does not cover "memfd_open.truncate". Returns false if the text is
// malformed or the table (16 rules) is full.
bool arm(const char* rules);
// Forgets all rules, also those of the environment, and starts counting at 0.
void disarm();
// Calls of strike(), and failures that it returned, since the last fail_nth() or disarm().
std::uint64_t calls();
std::uint64_t strikes();

#else

[[nodiscard]] constexpr int strike(const char*) { return 0; }

#endif

}  // namespace stretto::sys::fault
