// SPDX-License-Identifier: BSD-3-Clause
// What code compiled with -fsanitize=thread calls at each access, and what the library asks of the
// processor and of the system. Here the node in virtual time answers.
#include <sys/mman.h>

#include <cmath>
#include <cstring>

#include "node.hpp"
#include "sys/cpu_set.hpp"
#include "sys/sys.hpp"

namespace {

using stretto::node::Node;
using stretto::node::played;
using Kind = Node::Kind;

template <class Body>
void play(Body body) {
  if (played != nullptr) played->within_model(body);
}

void access(const volatile void* address, std::size_t bytes, Kind kind) {
  play([&] { played->access(const_cast<const void*>(address), bytes, kind); });
}

}  // namespace

void stretto::node::touch(const void* address, std::size_t bytes, Kind kind) { access(address, bytes, kind); }

namespace stretto::sys {

constexpr std::uint64_t kStartNs = 1'000'000'000;  // some code takes the time 0 for "never"
constexpr double kYieldNs = 1000;

std::uint64_t now_ns() {
  double ns = 0;
  play([&] { ns = played->now(); });
  return kStartNs + static_cast<std::uint64_t>(ns);
}
void thread_yield() {
  play([] { played->spend(kYieldNs); });
}
void nap_ns(std::uint64_t ns) {
  play([&] { played->spend(static_cast<double>(ns)); });
}
void cpu_relax() {
  play([] { played->spend(played->machine().pause); });
}
void hold_back() {
  play([] { played->settle(); });
}
void fetch_to_write(const void* line) {
  play([&] { played->fetch_to_write(line); });
}

// Every rank is bound to a core of its own.
Cpus usable_cpus() {
  const auto self = static_cast<std::uint64_t>(played->core_of(played->self()));
  return {1, 0x9e3779b97f4a7c15u * (self + 1), static_cast<unsigned>(played->machine().cores()), INFINITY};
}
void affinity_again(Cpus*) {}
std::size_t detail::own_processors(detail::Mask& mask) {
  const auto self = static_cast<std::size_t>(played->core_of(played->self()));
  mask.words[self / 64] |= std::uint64_t{1} << (self % 64);
  return self / 64 + 1;
}
std::size_t l2_bytes() { return static_cast<std::size_t>(played->machine().l2_kib) << 10; }
bool cpu_is_amd() { return played->machine().is_amd != 0; }
CpuPlace cpu_place() {
  const node::Machine& machine = node::played->machine();
  const int core = played->core_of(played->self()), l3 = machine.l3_of(core);
  CpuPlace place;
  place.in(CpuDomain::core) = place.in(CpuDomain::l2) = core;
  place.in(CpuDomain::l3) = l3;
  place.in(CpuDomain::numa) = machine.numa_of_l3(l3);
  place.in(CpuDomain::package) = machine.socket_of_l3(l3);
  return place;
}
SharedCache l3_cache() {
  return {static_cast<std::size_t>(played->machine().l3_mib) << 20, played->machine().cores_per_l3};
}

}  // namespace stretto::sys

extern "C" {

// NOLINTBEGIN: names of the compiler's
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(const void* p, std::size_t bytes) { access(p, bytes, Kind::load); }
void __tsan_write_range(const void* p, std::size_t bytes) { access(p, bytes, Kind::store); }
void __tsan_atomic_thread_fence(int) {
  play([] { played->settle(); });
}
void __tsan_atomic_signal_fence(int) {}

#define PLAIN(n)                                                               \
  void __tsan_read##n(const void* p) { access(p, n, Kind::load); }             \
  void __tsan_write##n(const void* p) { access(p, n, Kind::store); }           \
  void __tsan_unaligned_read##n(const void* p) { access(p, n, Kind::load); }   \
  void __tsan_unaligned_write##n(const void* p) { access(p, n, Kind::store); } \
  void __tsan_volatile_read##n(const void* p) { access(p, n, Kind::load); }    \
  void __tsan_volatile_write##n(const void* p) { access(p, n, Kind::store); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

// Ranks are fibers of one thread, so plain loads and stores are atomic.
#define EXCHANGE(n, T, name, value)                            \
  T __tsan_atomic##n##_##name(volatile T* p, T operand, int) { \
    access(p, sizeof(T), Kind::exchange);                      \
    const T old = *p;                                          \
    *p = static_cast<T>(value);                                \
    return old;                                                \
  }
#define ATOMIC(n, T)                                                                                  \
  T __tsan_atomic##n##_load(const volatile T* p, int) {                                               \
    access(p, sizeof(T), Kind::look);                                                                 \
    return *p;                                                                                        \
  }                                                                                                   \
  void __tsan_atomic##n##_store(volatile T* p, T value, int) {                                        \
    access(p, sizeof(T), Kind::store);                                                                \
    *p = value;                                                                                       \
  }                                                                                                   \
  EXCHANGE(n, T, exchange, operand)                                                                   \
  EXCHANGE(n, T, fetch_add, old + operand)                                                            \
  EXCHANGE(n, T, fetch_sub, old - operand)                                                            \
  EXCHANGE(n, T, fetch_or, old | operand)                                                             \
  EXCHANGE(n, T, fetch_and, old& operand)                                                             \
  EXCHANGE(n, T, fetch_xor, old ^ operand)                                                            \
  T __tsan_atomic##n##_compare_exchange_val(volatile T* p, T expected, T value, int, int) {           \
    access(p, sizeof(T), Kind::exchange);                                                             \
    const T old = *p;                                                                                 \
    if (old == expected) *p = value;                                                                  \
    return old;                                                                                       \
  }                                                                                                   \
  int __tsan_atomic##n##_compare_exchange_strong(volatile T* p, T* expected, T value, int a, int b) { \
    const T wanted = *expected;                                                                       \
    *expected = __tsan_atomic##n##_compare_exchange_val(p, wanted, value, a, b);                      \
    return *expected == wanted;                                                                       \
  }                                                                                                   \
  int __tsan_atomic##n##_compare_exchange_weak(volatile T* p, T* expected, T value, int a, int b) {   \
    return __tsan_atomic##n##_compare_exchange_strong(p, expected, value, a, b);                      \
  }
ATOMIC(8, unsigned char)
ATOMIC(16, unsigned short)
ATOMIC(32, unsigned)
ATOMIC(64, unsigned long)

// The linker sends the library's calls of these functions here (-Wl,--wrap).
void* __real_memcpy(void*, const void*, std::size_t);
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  access(from, bytes, Kind::load);
  access(to, bytes, Kind::store);
  return __real_memcpy(to, from, bytes);
}
void* __real_memset(void*, int, std::size_t);
void* __wrap_memset(void* to, int value, std::size_t bytes) {
  access(to, bytes, Kind::store);
  return __real_memset(to, value, bytes);
}
void* __real_mmap(void*, std::size_t, int, int, int, long);
void* __wrap_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, long offset) {
  void* const mapped = __real_mmap(at, bytes, protection, flags, fd, offset);
  if (mapped != MAP_FAILED && (flags & MAP_SHARED) != 0) {
    play([&] { played->share(mapped, bytes); });
  }
  return mapped;
}
// NOLINTEND

}  // extern "C"
