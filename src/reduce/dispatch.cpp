// SPDX-License-Identifier: BSD-3-Clause
// Chooses the instruction set, once. Code fills the table at first use. The loader does not: a
// constant table would be two thousand relocations in every process that preloads the library,
// shells included.
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <atomic>
#include <cstring>

#include "reduce/reduce.hpp"

namespace stretto::reduce {

namespace baseline {
void fill(Table& table);
}
namespace avx2 {
void fill(Table& table);
}
namespace avx512 {
void fill(Table& table);
}

namespace {

#if defined(__x86_64__)
// What the processor has and the operating system saves: a program cannot use registers that the
// system does not save. This does not use __builtin_cpu_supports, which brings a constructor of
// libgcc's: no code may run when the library is loaded.
struct Features {
  bool avx2 = false;
  bool avx512 = false;
};

Features features() {
  constexpr unsigned kYmm = 0x06, kZmm = 0xe6;  // bits of XCR0 (Intel SDM vol. 1, 13.3)
  constexpr unsigned k512 = bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_OSXSAVE) == 0) return {};
  unsigned saved = 0, upper = 0;
  asm volatile("xgetbv" : "=a"(saved), "=d"(upper) : "c"(0));
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return {};
  return {(saved & kYmm) == kYmm && (b & bit_AVX2) != 0, (saved & kZmm) == kZmm && (b & k512) == k512};
}
#endif

struct Isa {
  const char* name;
  bool (*usable)();
  void (*fill)(Table&);
};

// The best comes first.
constexpr Isa kIsas[] = {
#if defined(__x86_64__)
    {"avx512", [] { return features().avx512; }, avx512::fill},
    {"avx2", [] { return features().avx2; }, avx2::fill},
    {"sse2", [] { return true; }, baseline::fill},
#elif defined(__aarch64__)
    {"neon", [] { return true; }, baseline::fill},
#else
    {"generic", [] { return true; }, baseline::fill},
#endif
};

enum State : unsigned { kEmpty, kFilling, kReady };

constinit std::atomic<unsigned> g_state{kEmpty};
constinit Table g_table{};
constinit const Isa* g_isa = nullptr;

// The first usable instruction set of that name, or of any name. null: there is none.
const Isa* find(const char* name) {
  for (const Isa& isa : kIsas) {
    if ((name == nullptr || std::strcmp(name, isa.name) == 0) && isa.usable()) return &isa;
  }
  return nullptr;
}

void use(const Isa& isa) {
  isa.fill(g_table);
  g_isa = &isa;
}

// One thread fills the table and the others wait for it. That takes about a microsecond, once in a
// process.
[[gnu::noinline, gnu::cold]] void fill_once() {
  unsigned expected = kEmpty;
  if (g_state.compare_exchange_strong(expected, kFilling, std::memory_order_relaxed)) {
    use(*find(nullptr));
    g_state.store(kReady, std::memory_order_release);  // pairs with the loads below and in table()
  }
  while (g_state.load(std::memory_order_acquire) != kReady) {
  }
}

const Table& table() {
  if (g_state.load(std::memory_order_acquire) != kReady) [[unlikely]]
    fill_once();
  return g_table;
}

}  // namespace

Kernel kernel(Op op, Type type) { return table().two[static_cast<std::size_t>(op)][static_cast<std::size_t>(type)]; }

Kernel3 kernel3(Op op, Type type) {
  return table().three[static_cast<std::size_t>(op)][static_cast<std::size_t>(type)];
}

const char* isa_name() {
  table();
  return g_isa->name;
}

bool set_isa(const char* name) {
  table();
  const Isa* isa = find(name);
  if (isa == nullptr) return false;
  use(*isa);
  return true;
}

}  // namespace stretto::reduce
