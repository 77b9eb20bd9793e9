// SPDX-License-Identifier: BSD-3-Clause
// Starts a program on any glibc. Before 2.34 glibc left it to the program to call its own
// constructors, by a function that the program's first instructions handed over. Those of newer
// systems hand over none, so this is done here. Newer versions of glibc call the function, too, and
// then do not look for constructors themselves.
#include <stddef.h>

typedef int Main(int, char**, char**);

#ifdef __aarch64__
__asm__(".symver libc_start, __libc_start_main@GLIBC_2.17");
#else
__asm__(".symver libc_start, __libc_start_main@GLIBC_2.2.5");
#endif
extern int libc_start(Main* main, int count, char** words, Main* init, void (*end)(void), void (*loader_end)(void),
                      void* stack);

// The linker sets these.
extern void (*__init_array_start[])(int, char**, char**) __attribute__((visibility("hidden")));
extern void (*__init_array_end[])(int, char**, char**) __attribute__((visibility("hidden")));

static int construct(int count, char** words, char** environment) {
  const size_t number = (size_t)(__init_array_end - __init_array_start);
  for (size_t i = 0; i < number; ++i) __init_array_start[i](count, words, environment);
  return 0;
}

int __libc_start_main(Main* main, int count, char** words, Main* init, void (*end)(void), void (*loader_end)(void),
                      void* stack) {
  (void)init;
  (void)end;
  return libc_start(main, count, words, construct, NULL, loader_end, stack);
}
