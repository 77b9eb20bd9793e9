// SPDX-License-Identifier: BSD-3-Clause
// Guarded pages without userfaultfd: memory without rights, and a handler of SIGSEGV.
//
// faults_guard moves the buffer's pages to spare memory by mremap, and takes all rights from the
// range that is left. A touch of it raises SIGSEGV. The handler asks the owner whether this page is
// away, wakes the reader, waits until some page has moved, and returns: the instruction runs again.
// faults_move_in moves pages back by mremap. The kernel replaces the range at once: no thread sees
// half of a page. Pinned pages would move, too, so a process that has some is refused.
//
// The kernel tells nobody what the program does with its mappings. What another thread unmaps or
// moves could not be followed, so the program must have one thread, and its system calls must be
// caught (sys/calls.hpp). Of threads, see sys/kernel_access.hpp. If one that MPI_Init has started
// touches a guarded page, it waits as the program does.
//
// A SIGSEGV that is not of a guarded page goes to the handler that MPI_Init has installed, or has
// its default action. A page can come between the fault and the handler. So the handler lets an
// instruction run again once, and passes its next fault on if no page has moved in between.
#pragma once
#include "sys/faults.hpp"

namespace stretto::sys {

// Around the host's MPI_Init: which handler is the MPI's. See kernel_access.hpp for threads.
void signals_before_init();
void signals_after_init();

// ---- for faults_open.cpp and faults_pages.cpp ----
int signal_open(const FaultOwner& owner, int* fd);
void signal_close();
int signal_guard(const Faults& faults, Pages pages, Pages spare);
int signal_move_in(const Faults& faults, char* to, char* from, std::size_t bytes, std::size_t* moved);
int signal_next(int fd, FaultEvent (&events)[kMostFaultEvents], int* count);

}  // namespace stretto::sys
