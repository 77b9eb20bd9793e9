/* SPDX-License-Identifier: BSD-3-Clause
 * Memory that the kernel has pinned, by io_uring's registered buffers: as a network card's driver
 * does. It is written by its pages, whatever the program has at its address. */
#pragma once
#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kByPin = 0x55 };

struct pinned {
  int ring, source;
  char *queues, *entries;
  size_t queue_bytes, entry_bytes;
  struct io_uring_params params;
};

/* 0 or an errno value. */
static int pin(struct pinned* made, char* memory, size_t bytes) {
  memset(made, 0, sizeof *made);
  made->ring = (int)syscall(SYS_io_uring_setup, 2, &made->params);
  if (made->ring < 0) return errno;
  const size_t sq = made->params.sq_off.array + made->params.sq_entries * sizeof(uint32_t);
  const size_t cq = made->params.cq_off.cqes + made->params.cq_entries * sizeof(struct io_uring_cqe);
  made->queue_bytes = sq > cq ? sq : cq;
  made->entry_bytes = made->params.sq_entries * sizeof(struct io_uring_sqe);
  made->queues =
      (char*)mmap(NULL, made->queue_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made->ring, IORING_OFF_SQ_RING);
  made->entries = (char*)mmap(NULL, made->entry_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made->ring, IORING_OFF_SQES);
  const struct iovec whole = {memory, bytes};
  if (made->queues == (char*)MAP_FAILED || made->entries == (char*)MAP_FAILED ||
      syscall(SYS_io_uring_register, made->ring, IORING_REGISTER_BUFFERS, &whole, 1) != 0) {
    const int error = errno;
    close(made->ring);
    return error;
  }
  made->source = memfd_create("pinned", 0);
  return 0;
}

/* The kernel writes bytes of value kByPin there. False: it does not. */
static int write_by_pin(struct pinned* at, char* to, size_t bytes) {
  char block[4096];
  memset(block, kByPin, sizeof block);
  for (size_t done = 0; done < bytes; done += sizeof block)
    if (pwrite(at->source, block, sizeof block, (off_t)done) != (ssize_t)sizeof block) return 0;
  uint32_t* const tail = (uint32_t*)(at->queues + at->params.sq_off.tail);
  const uint32_t mask = *(uint32_t*)(at->queues + at->params.sq_off.ring_mask);
  uint32_t* const array = (uint32_t*)(at->queues + at->params.sq_off.array);
  struct io_uring_sqe* const entry = (struct io_uring_sqe*)at->entries + (*tail & mask);
  memset(entry, 0, sizeof *entry);
  entry->opcode = IORING_OP_READ_FIXED;
  entry->fd = at->source;
  entry->addr = (uint64_t)(uintptr_t)to;
  entry->len = (uint32_t)bytes;
  array[*tail & mask] = *tail & mask;
  __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
  if (syscall(SYS_io_uring_enter, at->ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1) return 0;
  uint32_t* const head = (uint32_t*)(at->queues + at->params.cq_off.head);
  const uint32_t cq_mask = *(uint32_t*)(at->queues + at->params.cq_off.ring_mask);
  const struct io_uring_cqe* const seen =
      (struct io_uring_cqe*)(at->queues + at->params.cq_off.cqes) + (*head & cq_mask);
  const int result = seen->res;
  __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
  return result == (int)bytes;
}

static void unpin(struct pinned* at) { /* what is mapped would keep the ring */
  munmap(at->queues, at->queue_bytes);
  munmap(at->entries, at->entry_bytes);
  close(at->ring);
  close(at->source);
}
