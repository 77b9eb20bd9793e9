// SPDX-License-Identifier: BSD-3-Clause
// A fault for STRETTO_CHECK to find. It counts the calls of memcpy by our library on rank 1, for
// blocks of exactly 2237 bytes. In the n-th such copy it flips one bit (CORRUPT_COPY=n). It leaves
// the MPI's own copies alone.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static int is_rank_1(void) {
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (!rank) rank = getenv("PMI_RANK");
  return rank && !strcmp(rank, "1");
}

void* memcpy(void* to, const void* from, size_t bytes) {
  static int copies;
  memmove(to, from, bytes);
  if (bytes != 2237) return to;
  Dl_info caller;
  if (!dladdr(__builtin_return_address(0), &caller) || !strstr(caller.dli_fname, "libstretto") || !is_rank_1())
    return to;
  if (++copies == atoi(getenv("CORRUPT_COPY"))) ((unsigned char*)to)[5] ^= 0x10;
  return to;
}
