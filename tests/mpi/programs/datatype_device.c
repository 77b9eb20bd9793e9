// SPDX-License-Identifier: BSD-3-Clause
// A stand-in for a GPU driver's library (built with its soname, libcuda.so.1). It says that one
// range of ordinary memory is a device's, and counts how often it was asked.
#include <stddef.h>
#include <stdint.h>

static uintptr_t first, past;
static unsigned long asked;

void claim_device_memory(const void* begin, size_t bytes) {
  first = (uintptr_t)begin;
  past = first + bytes;
}

unsigned long device_questions(void) { return asked; }

int cuPointerGetAttribute(void* data, int attribute, uintptr_t pointer) {
  ++asked;
  if (attribute != 2 || pointer < first || pointer >= past) return 1; /* CUDA_ERROR_INVALID_VALUE */
  *(unsigned*)data = 2;                                               /* CU_MEMORYTYPE_DEVICE */
  return 0;
}
