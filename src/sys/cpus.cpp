// SPDX-License-Identifier: BSD-3-Clause
// The processors that this process may use, and what they are.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

#include "sys/cpu_set.hpp"
#include "sys/fault.hpp"
#include "sys/hash.hpp"
#include "sys/sys.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace stretto::sys {

// Uses the system call, which says how many bytes it has written. glibc's wrapper does not say so.
std::size_t detail::own_processors(Mask& mask) {
  const long written = syscall(SYS_sched_getaffinity, 0, sizeof mask.words, mask.words);
  return written <= 0 ? 0 : static_cast<std::size_t>(written) / sizeof mask.words[0];
}

namespace {

// False if the system refuses.
bool affinity(unsigned* count, std::uint64_t* mask_hash) {
  if (fault::strike("usable_cpus")) return false;
  const detail::OnHeap<detail::Mask> mask;
  if (!mask) return false;
  const std::size_t words = detail::own_processors(*mask);
  unsigned bits = 0;
  for (std::size_t i = 0; i < words; ++i) bits += static_cast<unsigned>(__builtin_popcountll(mask->words[i]));
  *count = bits;
  *mask_hash = hash(mask->words, words * sizeof mask->words[0]);
  return bits != 0;
}

}  // namespace

Cpus usable_cpus() {
  const detail::ErrnoKept kept;
  Cpus cpus{};
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  cpus.online = online > 0 ? static_cast<unsigned>(online) : 1;
  if (!affinity(&cpus.count, &cpus.mask_hash)) cpus.count = cpus.online;
  cpus.quota = cgroup_quota("");
  return cpus;
}

void affinity_again(Cpus* cpus) {
  const detail::ErrnoKept kept;
  if (!affinity(&cpus->count, &cpus->mask_hash)) cpus->count = cpus->online;
}

void processors_text(char* text, std::size_t capacity) {
  const detail::ErrnoKept kept;
  text[0] = 0;
  const detail::OnHeap<detail::Mask> mask;
  if (fault::strike("processors_text") || !mask) return;
  const std::size_t words = detail::own_processors(*mask);
  const detail::CpuSet cpus(mask->words, words);
  const long end = static_cast<long>(64 * words);
  std::size_t length = 0;
  for (long first = 0; first < end; ++first) {
    if (!cpus.has(first)) continue;
    long last = first;
    while (last + 1 < end && cpus.has(last + 1)) ++last;
    const char* const comma = length != 0 ? "," : "";
    const int wrote = last == first ? std::snprintf(text + length, capacity - length, "%s%ld", comma, first)
                                    : std::snprintf(text + length, capacity - length, "%s%ld-%ld", comma, first, last);
    if (wrote < 0 || static_cast<std::size_t>(wrote) >= capacity - length) {
      text[length] = 0;
      return;
    }
    length += static_cast<std::size_t>(wrote);
    first = last;
  }
}

std::size_t l2_bytes() {
  const detail::ErrnoKept kept;
#if defined(_SC_LEVEL2_CACHE_SIZE)
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
#else
  return 0;
#endif
}

bool cpu_is_amd() {
#if defined(__x86_64__)
  unsigned most = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0, &most, &b, &c, &d) != 0 && b == signature_AMD_ebx && c == signature_AMD_ecx &&
         d == signature_AMD_edx;
#else
  return false;
#endif
}

}  // namespace stretto::sys
