// SPDX-License-Identifier: BSD-3-Clause
// Failures on demand. In the twin library built with STRETTO_FAULTS=1 every fallible function of sys asks strike()
// before each system call it depends on; a test, or the environment, says which of these calls fail and how. In a
// normal build strike() is a constant 0 and the question disappears.
//
// Points are named after their function ("memfd_reserve"); a function with a second system call that can fail on its
// own names it after a dot ("memfd_open.truncate"), so that the clean-up of a half-done job can be tried too.
#pragma once
#include <cstdint>

namespace stretto::sys::fault {

#if defined(STRETTO_FAULTS) && STRETTO_FAULTS

// The errno value this call must fail with, or 0 to go on.
[[nodiscard]] int strike(const char* point);

// Every rule and counter below is process-wide; all functions may be called from any thread.

// Fails the n-th call (from 1) of any point from now on, once, and starts counting at 0. Replaces all rules.
void fail_nth(std::uint64_t n, int error);
// Adds rules written like STRETTO_FAULT, which is read at the first strike of a process:
//   memfd_reserve:1:ENOSPC,peer_descriptor_open:*:EACCES     point:n-th call or *:errno's name
// "memfd_open" does not cover "memfd_open.truncate". False if the text is malformed or the table (16 rules) is full.
bool arm(const char* rules);
// Forgets all rules, those of the environment too, and starts counting at 0.
void disarm();
// Calls of strike() and failures handed out since the last fail_nth() or disarm().
std::uint64_t calls();
std::uint64_t strikes();

#else

[[nodiscard]] constexpr int strike(const char*) { return 0; }

#endif

}  // namespace stretto::sys::fault
