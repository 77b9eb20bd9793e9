// SPDX-License-Identifier: BSD-3-Clause
// What this system's compiler and headers ask of glibc, and older versions of it lack. The linker
// takes it from here if stubs.py wrote the libraries that it links with.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// ---- 2.32 ---------------------------------------------------------------------------------------

// libstdc++ counts references without atomics where this is true.
char __libc_single_threaded = 0;

const char* strerrordesc_np(int error) {
  char place[64];
  const char* text = strerror_r(error, place, sizeof place);  // a constant text for every known number
  return text == place ? "unknown error" : text;
}

// ---- 2.33: before, headers made these of other names --------------------------------------------

static int ask(int directory, const char* path, void* result, int flags) {
  return (int)syscall(SYS_newfstatat, directory, path, result, flags);
}

int stat(const char* restrict path, struct stat* restrict result) { return ask(AT_FDCWD, path, result, 0); }
int fstat(int file, struct stat* result) { return ask(file, "", result, AT_EMPTY_PATH); }
int lstat(const char* restrict path, struct stat* restrict result) {
  return ask(AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW);
}
int stat64(const char* restrict path, struct stat64* restrict result) { return ask(AT_FDCWD, path, result, 0); }
int fstat64(int file, struct stat64* result) { return ask(file, "", result, AT_EMPTY_PATH); }
int lstat64(const char* restrict path, struct stat64* restrict result) {
  return ask(AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW);
}

// ---- 2.30 ---------------------------------------------------------------------------------------

// The same time on the default clock of conditions and locks. If somebody sets that clock
// meanwhile, the wait ends at another time, as it does for all programs of older systems.
static struct timespec as_real_time(clockid_t clock, const struct timespec* until) {
  struct timespec there, here = *until;
  if (clock == CLOCK_REALTIME) return here;
  clock_gettime(clock, &there);
  clock_gettime(CLOCK_REALTIME, &here);
  here.tv_sec += until->tv_sec - there.tv_sec;
  here.tv_nsec += until->tv_nsec - there.tv_nsec;
  for (; here.tv_nsec < 0; --here.tv_sec) here.tv_nsec += 1000000000;
  for (; here.tv_nsec >= 1000000000; ++here.tv_sec) here.tv_nsec -= 1000000000;
  return here;
}

int pthread_cond_clockwait(pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex, clockid_t clock,
                           const struct timespec* restrict until) {
  const struct timespec here = as_real_time(clock, until);
  return pthread_cond_timedwait(condition, mutex, &here);
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t* restrict lock, clockid_t clock,
                               const struct timespec* restrict until) {
  const struct timespec here = as_real_time(clock, until);
  return pthread_rwlock_timedwrlock(lock, &here);
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t* restrict lock, clockid_t clock,
                               const struct timespec* restrict until) {
  const struct timespec here = as_real_time(clock, until);
  return pthread_rwlock_timedrdlock(lock, &here);
}

// ---- 2.35, 2.36 ---------------------------------------------------------------------------------

struct Search {
  uintptr_t address;
  struct dl_find_object* result;
};

// Returns 1 for the object that has the address.
static int has_address(struct dl_phdr_info* object, size_t size, void* data) {
  (void)size;
  const struct Search* search = data;
  void* frames = NULL;
  int found = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_LOAD && search->address - begin < part->p_memsz) {
      search->result->dlfo_map_start = (void*)begin;
      search->result->dlfo_map_end = (void*)(begin + part->p_memsz);
      found = 1;
    }
    if (part->p_type == DLFO_EH_SEGMENT_TYPE) frames = (void*)begin;
  }
  if (found) search->result->dlfo_eh_frame = frames;
  return found && frames;
}

// libgcc looks for the table of a function that an exception passes.
int _dl_find_object(void* address, struct dl_find_object* result) {
  memset(result, 0, sizeof *result);
  struct Search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(has_address, &search) ? 0 : -1;
}

// For std::random_device.
uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) < 0 && errno == EINTR) continue;
  return value;
}
