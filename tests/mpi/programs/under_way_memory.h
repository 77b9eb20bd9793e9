// SPDX-License-Identifier: BSD-3-Clause
// Cases of under_way.c: buffers in memory of many kinds, and memory that is freed.
#pragma once
#include <pthread.h>
#include <sys/mman.h>

#include "pinned.h"
#include "under_way.h"

static void freed(void) {
  for (int i = 0; i < 4; ++i) {
    char* data = malloc(all());
    exchange(data);
    if (i % 2 == 0) {
      free(data);
      continue;
    }
    data = realloc(data, all() + (16 << 20));
    REQUIRE(data != NULL);
    check(data);
    free(data);
  }
  char* const mapped = mmap(NULL, all(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  exchange(mapped);
  munmap(mapped, all());
  char* const again = mmap(mapped, all(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sleep(1);
  for (size_t at = 0; at < all(); at += 512) wrong += again[at] != 0;
  munmap(again, all());
}

// Buffers of many kinds: each call returns early, or waits for all its data.
static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static void of_kind_in(char* data, size_t most, int turns) {
  each = least(each, most / (size_t)world_size);
  // A rank returns early only if its sources have come, and their data have not.
  // On a busy machine that takes some turns.
  int any = 0;
  while (turns-- > 0 && !any) {
    exchange(data);
    check(data);
    exchange(data);
    for (size_t at = all(); at-- > 0;) wrong += !is_right(data, (int)(at / each), at % each);
    MPI_Allreduce(&early, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
}
// For memory whose calls return early, and for memory that may make them wait.
static void of_early(char* data, size_t most) { of_kind_in(data, most, 60); }
static void of_kind(char* data, size_t most) { of_kind_in(data, most, 2); }
enum { kSmall = 1 << 20 };
static char initialised[kSmall] = {1}, zeros[kSmall];
static void of_data(void) { of_kind(initialised, kSmall); }
static void of_bss(void) { of_early(zeros, kSmall); }
static void of_stack(void) {
  char on_stack[512 << 10];
  of_kind(on_stack, sizeof on_stack);
}

static char* volatile lent;
static volatile int is_back;
static void* lend_stack(void* unused) {
  char on_stack[512 << 10];
  memset(on_stack, 1, sizeof on_stack);
  lent = on_stack;
  while (!is_back) usleep(1000);
  return unused;
}
static void of_thread_stack(void) {
  pthread_t made;
  lent = NULL;
  is_back = 0;
  REQUIRE(pthread_create(&made, NULL, lend_stack, NULL) == 0);
  while (lent == NULL) usleep(1000);
  of_kind(lent, 512 << 10);
  is_back = 1;
  pthread_join(made, NULL);
}

static void of_file(int flags) {
  const int file = memfd_create("overlap", 0);
  REQUIRE(file >= 0 && ftruncate(file, (off_t)all()) == 0);
  char* const data = mmap(NULL, all(), PROT_READ | PROT_WRITE, flags, file, 0);
  REQUIRE(data != MAP_FAILED);
  of_kind(data, all());
  munmap(data, all());
  close(file);
}
static void of_private_file(void) { of_file(MAP_PRIVATE); }
static void of_shared_file(void) { of_file(MAP_SHARED); }

// Fresh memory, with a hint of the kernel's.
static void of_memory(int flags, int advice) {
  const size_t bytes = (all() + (2 << 20) - 1) >> 21 << 21;
  char* const data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (data == MAP_FAILED) return;  // the system has no pages set aside for hugetlbfs
  memset(data, 1, bytes);
  (void)madvise(data, bytes, advice);
  (flags & MAP_HUGETLB ? of_kind : of_early)(data, bytes);
  munmap(data, bytes);
}
static void of_dropped(void) { of_memory(0, MADV_DONTNEED); }
static void of_freed(void) { of_memory(0, MADV_FREE); }
static void of_mergeable(void) { of_memory(0, MADV_MERGEABLE); }
static void of_hugetlbfs(void) { of_memory(MAP_HUGETLB, MADV_NORMAL); }

static void of_locked(void) {
  char* const locked = mmap(NULL, all(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mlock(locked, all()) == 0) of_kind(locked, all());
  munmap(locked, all());
}
static void of_huge_pages(void) {
  char* const huge = aligned_alloc(2 << 20, (all() + (2 << 20) - 1) >> 21 << 21);
  madvise(huge, all(), MADV_HUGEPAGE);
  memset(huge, 1, all());
  of_early(huge, all());
  of_early(huge, all());
  free(huge);
}

// Pinned by the kernel, as by RDMA. What the kernel writes by its pin reaches the program.
static void of_pinned(void) {
  struct pinned ring;
  char* const data = mmap(NULL, all(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(data, 1, all());
  if (pin(&ring, data, all()) == 0) {
    of_kind(data, all());
    wrong += !write_by_pin(&ring, data + all() / 2, 12345);
    for (size_t i = 0; i < 12345; ++i) wrong += data[all() / 2 + i] != kByPin;
    exchange(data);
    wrong += !write_by_pin(&ring, data, 5);  // after the data of this page
    wrong += memcmp(data, "\x55\x55\x55\x55\x55", 5) != 0;
    unpin(&ring);
  }
  munmap(data, all());
}
