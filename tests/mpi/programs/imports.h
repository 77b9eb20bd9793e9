// SPDX-License-Identifier: BSD-3-Clause
// Put in front of a program: it then refers to a function of its MPI that takes requests in a way
// that Stretto does not see. The program never calls it.
int function_of_mpich(void) __asm__("MPIX_Waitall_enqueue") __attribute__((weak));
__attribute__((used)) static int (*volatile never_called)(void) = function_of_mpich;
