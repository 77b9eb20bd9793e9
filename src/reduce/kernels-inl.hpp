// SPDX-License-Identifier: BSD-3-Clause
// The source of all kernels. It is compiled once for each instruction set: isa/<isa>.cpp defines
// STRETTO_ISA, the name of a namespace, and includes only this file. The file's one exported symbol
// is <isa>::fill.
//
// Why it includes no other header with code, and uses no standard library: the compiler would
// compile an inline function of that header for, say, AVX-512. The linker may keep that copy for
// all callers, also on CPUs without AVX-512. For the same reason all templates below are in an
// unnamed namespace. tests/unit/reduce_objects.cmake checks the objects.
//
// The kernels are plain loops of three streams, which the compiler vectorizes (-O3). They read and
// write elements through a packed type, because MPI buffers may lie anywhere.
#include "reduce/reduce.hpp"

#if defined(__FAST_MATH__)
#error "results must not depend on the instruction set: build without -ffast-math"
#endif

#if defined(__clang__)
#define STRETTO_ELEMENTS_ARE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define STRETTO_ELEMENTS_ARE_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace stretto::reduce::STRETTO_ISA {
void fill(Table& table);

namespace {

using Byte = unsigned char;

// A T at any address. The compiler assumes nothing about other accesses to that memory.
template <class T>
struct [[gnu::packed, gnu::may_alias]] At {
  T value;
};

template <class T>
T load(const Byte* address) {
  return reinterpret_cast<const At<T>*>(address)->value;
}

template <class T>
void store(Byte* address, T value) {
  reinterpret_cast<At<T>*>(address)->value = value;
}

// ---- One element ----
// Integers come as unsigned, where wrapping is defined, except for max and min.

struct Sum {
  template <class T>
  static T of(T in, T inout) {
    return static_cast<T>(in + inout);
  }
};

struct Prod {
  template <class T>
  static T of(T in, T inout) {
    return static_cast<T>(in * inout);
  }
  // The general form would promote 16 bits to int, and 0xffff * 0xffff overflows an int.
  static std::uint16_t of(std::uint16_t in, std::uint16_t inout) {
    return static_cast<std::uint16_t>(std::uint32_t{in} * inout);
  }
};

struct Max {
  template <class T>
  static T of(T in, T inout) {
    return inout > in ? inout : in;
  }
};

struct Min {
  template <class T>
  static T of(T in, T inout) {
    return inout < in ? inout : in;
  }
};

struct LogicalAnd {
  template <class T>
  static T of(T in, T inout) {
    return static_cast<T>((in != 0) & (inout != 0));
  }
};

struct LogicalOr {
  template <class T>
  static T of(T in, T inout) {
    return static_cast<T>((in | inout) != 0);
  }
};

struct LogicalXor {
  template <class T>
  static T of(T in, T inout) {
    return static_cast<T>((in != 0) != (inout != 0));
  }
};

struct BitAnd {
  template <class T>
  static T of(T in, T inout) {
    return static_cast<T>(in & inout);
  }
};

struct BitOr {
  template <class T>
  static T of(T in, T inout) {
    return static_cast<T>(in | inout);
  }
};

struct BitXor {
  template <class T>
  static T of(T in, T inout) {
    return static_cast<T>(in ^ inout);
  }
};

struct Lower {
  template <class T>
  static bool before(T a, T b) {
    return a < b;
  }
};

struct Higher {
  template <class T>
  static bool before(T a, T b) {
    return a > b;
  }
};

// ---- Loops ----

template <class F, class T>
[[gnu::noinline]] void loop(Byte* out, const Byte* in, const Byte* inout, std::size_t count) {
  STRETTO_ELEMENTS_ARE_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = i * sizeof(T);
    store<T>(out + at, F::of(load<T>(in + at), load<T>(inout + at)));
  }
}

// A long vector begins with the elements that bring `out` to a cache line. An access across two
// lines costs two accesses (a third of the speed in the L2 cache). Buffers from malloc are often
// off by the same 16 bytes, so this aligns the operands too. It is not possible where elements
// themselves cross lines.
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kWorthAligningBytes = 16 * kLineBytes;

template <class T>
std::size_t elements_to_line(const Byte* out) {
  const std::size_t bytes = -reinterpret_cast<std::uintptr_t>(out) % kLineBytes;
  return bytes % sizeof(T) == 0 ? bytes / sizeof(T) : 0;
}

template <class F, class T>
void each(void* out, const void* in, const void* inout, std::size_t count) {
  auto* o = static_cast<Byte*>(out);
  const auto* a = static_cast<const Byte*>(in);
  const auto* b = static_cast<const Byte*>(inout);
  if (count >= kWorthAligningBytes / sizeof(T)) {
    const std::size_t head = elements_to_line<T>(o);
    const std::size_t bytes = head * sizeof(T);
    loop<F, T>(o, a, b, head);
    o += bytes, a += bytes, b += bytes, count -= head;
  }
  loop<F, T>(o, a, b, count);
}

// The layout of the C struct, and of Fortran's pair of equal types.
template <class Value, class Index>
struct Pair {
  Value value;
  Index index;
};

template <class F, class Value, class Index>
[[gnu::noinline]] void locate(void* out, const void* in, const void* inout, std::size_t count) {
  using Element = Pair<Value, Index>;
  constexpr std::size_t stride = sizeof(Element);
  constexpr std::size_t index_at = offsetof(Element, index);
  auto* const o = static_cast<Byte*>(out);
  const auto* const a = static_cast<const Byte*>(in);
  const auto* const b = static_cast<const Byte*>(inout);
  STRETTO_ELEMENTS_ARE_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = i * stride;
    const Value x = load<Value>(a + at);
    const Value y = load<Value>(b + at);
    const Index p = load<Index>(a + at + index_at);
    const Index q = load<Index>(b + at + index_at);
    const bool take = F::before(x, y);
    const Index lower = q < p ? q : p;
    const Index kept = x == y ? lower : q;
    store<Value>(o + at, take ? x : y);
    store<Index>(o + at + index_at, take ? p : kept);
  }
}

}  // namespace
}  // namespace stretto::reduce::STRETTO_ISA

#include "reduce/kernels_complex-inl.hpp"

namespace stretto::reduce::STRETTO_ISA {
namespace {

// ---- The table: MPI 4.1, sections 6.9.2 and 6.9.4 ----

// A complex sum is the sum of twice as many reals.
template <class T>
void complex_sum(void* out, const void* in, const void* inout, std::size_t count) {
  each<Sum, T>(out, in, inout, 2 * count);
}

template <Kernel3 Loop>
void in_place(void* inout, const void* in, std::size_t count) {
  Loop(inout, in, inout, count);
}

template <Kernel3 Loop>
void set(Table& table, Op op, Type type) {
  const auto o = static_cast<std::size_t>(op);
  const auto t = static_cast<std::size_t>(type);
  table.two[o][t] = in_place<Loop>;
  table.three[o][t] = Loop;
}

template <class T>
void fill_bitwise(Table& table, Type type) {
  set<each<BitAnd, T>>(table, Op::band, type);
  set<each<BitOr, T>>(table, Op::bor, type);
  set<each<BitXor, T>>(table, Op::bxor, type);
}

template <class T>
void fill_logical(Table& table, Type type) {
  set<each<LogicalAnd, T>>(table, Op::land, type);
  set<each<LogicalOr, T>>(table, Op::lor, type);
  set<each<LogicalXor, T>>(table, Op::lxor, type);
}

template <class T>
void fill_order(Table& table, Type type) {
  set<each<Max, T>>(table, Op::max, type);
  set<each<Min, T>>(table, Op::min, type);
}

template <class T, class Unsigned>
void fill_integer(Table& table, Type type) {
  set<each<Sum, Unsigned>>(table, Op::sum, type);
  set<each<Prod, Unsigned>>(table, Op::prod, type);
  fill_order<T>(table, type);
  fill_logical<Unsigned>(table, type);
  fill_bitwise<Unsigned>(table, type);
}

template <class T>
constexpr Kernel3 kComplexProd = complex_prod<T>;
// It has no vectors, and has gaps that a copied block would not keep.
template <>
constexpr Kernel3 kComplexProd<long double> = complex_prod_each<long double>;

template <class T>
void fill_floating(Table& table, Type real, Type complex) {
  set<each<Sum, T>>(table, Op::sum, real);
  set<each<Prod, T>>(table, Op::prod, real);
  fill_order<T>(table, real);
  set<complex_sum<T>>(table, Op::sum, complex);
  set<kComplexProd<T>>(table, Op::prod, complex);
}

template <class Value, class Index>
void fill_pair(Table& table, Type type) {
  set<locate<Lower, Value, Index>>(table, Op::minloc, type);
  set<locate<Higher, Value, Index>>(table, Op::maxloc, type);
}

}  // namespace

void fill(Table& table) {
  fill_integer<std::int8_t, std::uint8_t>(table, Type::i8);
  fill_integer<std::int16_t, std::uint16_t>(table, Type::i16);
  fill_integer<std::int32_t, std::uint32_t>(table, Type::i32);
  fill_integer<std::int64_t, std::uint64_t>(table, Type::i64);
  fill_integer<std::uint8_t, std::uint8_t>(table, Type::u8);
  fill_integer<std::uint16_t, std::uint16_t>(table, Type::u16);
  fill_integer<std::uint32_t, std::uint32_t>(table, Type::u32);
  fill_integer<std::uint64_t, std::uint64_t>(table, Type::u64);
  fill_floating<float>(table, Type::f32, Type::c32);
  fill_floating<double>(table, Type::f64, Type::c64);
  fill_floating<long double>(table, Type::f80, Type::c80);
  fill_logical<std::uint8_t>(table, Type::boolean8);
  fill_logical<std::uint32_t>(table, Type::logical4);
  fill_bitwise<Byte>(table, Type::byte8);
  fill_pair<float, std::int32_t>(table, Type::f32_i32);
  fill_pair<double, std::int32_t>(table, Type::f64_i32);
  fill_pair<std::int64_t, std::int32_t>(table, Type::i64_i32);
  fill_pair<std::int32_t, std::int32_t>(table, Type::i32_i32);
  fill_pair<std::int16_t, std::int32_t>(table, Type::i16_i32);
  fill_pair<long double, std::int32_t>(table, Type::f80_i32);
  fill_pair<float, float>(table, Type::f32_f32);
  fill_pair<double, double>(table, Type::f64_f64);
}

}  // namespace stretto::reduce::STRETTO_ISA
