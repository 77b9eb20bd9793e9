// SPDX-License-Identifier: BSD-3-Clause
// The oracle for the reduction kernels. It has MPI's table of allowed pairs, operands of every
// kind, and each op a second time. These ops work one element at a time and follow the standards'
// words. It uses no test framework, because tests/long/neon.sh runs it without one.
#pragma once
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "reduce/reduce.hpp"

namespace reduce_check {

using namespace stretto::reduce;
using Bytes = std::vector<unsigned char>;
using Random = std::mt19937_64;

inline constexpr std::array<const char*, kOps> kOpNames = {"sum",  "prod", "max", "min",  "land",   "lor",
                                                           "lxor", "band", "bor", "bxor", "minloc", "maxloc"};
inline constexpr std::array<const char*, kTypes> kTypeNames = {
    "i8",      "i16",     "i32",     "i64",     "u8",      "u16",      "u32",      "u64",   "f32",
    "f64",     "f80",     "c32",     "c64",     "c80",     "boolean8", "logical4", "byte8", "f32_i32",
    "f64_i32", "i64_i32", "i32_i32", "i16_i32", "f80_i32", "f32_f32",  "f64_f64"};

// ---- What MPI allows (MPI 4.1, 6.9.2 and 6.9.4) ----

inline bool allowed(Op op, Type type) {
  const bool integer = type <= Type::u64;
  const bool floating = type >= Type::f32 && type <= Type::f80;
  const bool complex = type >= Type::c32 && type <= Type::c80;
  const bool logical = type == Type::boolean8 || type == Type::logical4;
  switch (op) {
    case Op::sum:
    case Op::prod: return integer || floating || complex;
    case Op::max:
    case Op::min: return integer || floating;
    case Op::land:
    case Op::lor:
    case Op::lxor: return integer || logical;
    case Op::band:
    case Op::bor:
    case Op::bxor: return integer || type == Type::byte8;
    default: return type >= Type::f32_i32;
  }
}

// ---- Elements ----

template <class V, class I>
struct Located {
  using Value = V;
  using Index = I;
  V value;
  I index;
};

// The 6 bytes above an x87 number are not part of it.
template <class T>
constexpr std::size_t value_bytes() {
  return std::is_same_v<T, long double> && std::numeric_limits<T>::digits == 64 ? 10 : sizeof(T);
}

template <class T>
T get(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void put(unsigned char* to, T value) {
  std::memcpy(to, &value, value_bytes<T>());
}

struct Boolean {};
struct Logical {};
struct Raw {};

// Calls f with a (null) pointer to the C++ type that stands for `type`.
template <class F>
auto with_type(Type type, F f) {
  switch (type) {
    case Type::i8: return f(static_cast<std::int8_t*>(nullptr));
    case Type::i16: return f(static_cast<std::int16_t*>(nullptr));
    case Type::i32: return f(static_cast<std::int32_t*>(nullptr));
    case Type::i64: return f(static_cast<std::int64_t*>(nullptr));
    case Type::u8: return f(static_cast<std::uint8_t*>(nullptr));
    case Type::u16: return f(static_cast<std::uint16_t*>(nullptr));
    case Type::u32: return f(static_cast<std::uint32_t*>(nullptr));
    case Type::u64: return f(static_cast<std::uint64_t*>(nullptr));
    case Type::f32: return f(static_cast<float*>(nullptr));
    case Type::f64: return f(static_cast<double*>(nullptr));
    case Type::f80: return f(static_cast<long double*>(nullptr));
    case Type::c32: return f(static_cast<std::complex<float>*>(nullptr));
    case Type::c64: return f(static_cast<std::complex<double>*>(nullptr));
    case Type::c80: return f(static_cast<std::complex<long double>*>(nullptr));
    case Type::boolean8: return f(static_cast<Boolean*>(nullptr));
    case Type::logical4: return f(static_cast<Logical*>(nullptr));
    case Type::f32_i32: return f(static_cast<Located<float, int>*>(nullptr));
    case Type::f64_i32: return f(static_cast<Located<double, int>*>(nullptr));
    case Type::i64_i32: return f(static_cast<Located<std::int64_t, int>*>(nullptr));
    case Type::i32_i32: return f(static_cast<Located<int, int>*>(nullptr));
    case Type::i16_i32: return f(static_cast<Located<short, int>*>(nullptr));
    case Type::f80_i32: return f(static_cast<Located<long double, int>*>(nullptr));
    case Type::f32_f32: return f(static_cast<Located<float, float>*>(nullptr));
    case Type::f64_f64: return f(static_cast<Located<double, double>*>(nullptr));
    default: return f(static_cast<Raw*>(nullptr));
  }
}

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};
template <class T>
struct IsLocated : std::false_type {};
template <class V, class I>
struct IsLocated<Located<V, I>> : std::true_type {};

// ---- The ops ----

template <class T>
T integer_op(Op op, T in, T inout) {
  using Wide = unsigned __int128;
  switch (op) {
    case Op::sum: return static_cast<T>(static_cast<Wide>(in) + static_cast<Wide>(inout));
    case Op::prod: return static_cast<T>(static_cast<Wide>(in) * static_cast<Wide>(inout));
    case Op::max: return in > inout ? in : inout;
    case Op::min: return in < inout ? in : inout;
    case Op::land: return in && inout ? 1 : 0;
    case Op::lor: return in || inout ? 1 : 0;
    case Op::lxor: return !in != !inout ? 1 : 0;
    case Op::band: return static_cast<T>(in & inout);
    case Op::bor: return static_cast<T>(in | inout);
    default: return static_cast<T>(in ^ inout);
  }
}

template <class T>
T floating_op(Op op, T in, T inout) {
  if (op == Op::sum) return in + inout;
  if (op == Op::prod) return in * inout;
  const bool keep = op == Op::max ? std::isgreater(inout, in) : std::isless(inout, in);
  return keep ? inout : in;
}

template <class T>
T box(T value) {
  return std::copysign(std::isinf(value) ? T(1) : T(0), value);
}
template <class T>
T nan_to_zero(T value) {
  return std::isnan(value) ? std::copysign(T(0), value) : value;
}

// C11, G.5.1 paragraph 6. The volatile products keep a compiler from contracting them into FMA.
template <class T>
std::complex<T> complex_prod(std::complex<T> z, std::complex<T> w) {
  T a = z.real(), b = z.imag(), c = w.real(), d = w.imag();
  const volatile T ac = a * c, bd = b * d, ad = a * d, bc = b * c;
  T x = ac - bd, y = ad + bc;
  if (!std::isnan(x) || !std::isnan(y)) return {x, y};
  bool recalculate = false;
  if (std::isinf(a) || std::isinf(b))
    a = box(a), b = box(b), c = nan_to_zero(c), d = nan_to_zero(d), recalculate = true;
  if (std::isinf(c) || std::isinf(d))
    c = box(c), d = box(d), a = nan_to_zero(a), b = nan_to_zero(b), recalculate = true;
  if (!recalculate && (std::isinf(ac) || std::isinf(bd) || std::isinf(ad) || std::isinf(bc))) {
    a = nan_to_zero(a), b = nan_to_zero(b), c = nan_to_zero(c), d = nan_to_zero(d), recalculate = true;
  }
  const T infinity = std::numeric_limits<T>::infinity();
  if (recalculate) x = infinity * (a * c - b * d), y = infinity * (a * d + b * c);
  return {x, y};
}

template <class P>
P locate_op(Op op, P in, P inout) {
  const bool in_wins = op == Op::minloc ? in.value < inout.value : in.value > inout.value;
  if (in_wins) return in;
  if (in.value == inout.value) return {inout.value, inout.index < in.index ? inout.index : in.index};
  return inout;
}

// Combines one element. Writes no padding.
template <class T>
void apply(Op op, unsigned char* out, const unsigned char* in, const unsigned char* inout) {
  if constexpr (IsComplex<T>::value) {
    using Real = typename T::value_type;
    const T a = get<T>(in), b = get<T>(inout);
    const T c = op == Op::sum ? T(a.real() + b.real(), a.imag() + b.imag()) : complex_prod(a, b);
    put(out, c.real());
    put(out + sizeof(Real), c.imag());
  } else if constexpr (IsLocated<T>::value) {
    const T c = locate_op(op, get<T>(in), get<T>(inout));
    put(out, c.value);
    put(out + offsetof(T, index), c.index);
  } else if constexpr (std::is_same_v<T, Boolean> || std::is_same_v<T, Raw>) {
    put(out, integer_op(op, get<std::uint8_t>(in), get<std::uint8_t>(inout)));
  } else if constexpr (std::is_same_v<T, Logical>) {
    put(out, integer_op(op, get<std::uint32_t>(in), get<std::uint32_t>(inout)));
  } else if constexpr (std::is_floating_point_v<T>) {
    put(out, floating_op(op, get<T>(in), get<T>(inout)));
  } else {
    put(out, integer_op(op, get<T>(in), get<T>(inout)));
  }
}

inline void reference(Op op, Type type, unsigned char* out, const unsigned char* in, const unsigned char* inout,
                      std::size_t count) {
  const std::size_t stride = type_bytes(type);
  with_type(type, [&]<class T>(T*) {
    for (std::size_t i = 0; i < count; ++i) apply<T>(op, out + i * stride, in + i * stride, inout + i * stride);
  });
}

// ---- Operands ----

template <class T>
T any_integer(Random& random) {
  switch (random() % 4) {
    case 0: return static_cast<T>(random() % 5 - 2);
    case 1: return random() % 2 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
    default: return static_cast<T>(random());
  }
}

template <class T>
T any_floating(Random& random) {
  using Limits = std::numeric_limits<T>;
  const T specials[] = {T(0),
                        -T(0),
                        Limits::infinity(),
                        -Limits::infinity(),
                        Limits::quiet_NaN(),
                        -Limits::quiet_NaN(),
                        Limits::max(),
                        Limits::lowest(),
                        Limits::min(),
                        Limits::denorm_min(),
                        Limits::epsilon(),
                        T(1)};
  switch (random() % 8) {
    case 0: return specials[random() % std::size(specials)];
    case 1: return static_cast<T>(static_cast<int>(random() % 5) - 2);
    case 2:
      return std::ldexp(static_cast<T>(random() | 1),
                        static_cast<int>(random() % (2 * Limits::max_exponent)) - Limits::max_exponent - 64);
    default: return std::ldexp(static_cast<T>(static_cast<std::int64_t>(random())), -60);
  }
}

template <class T>
void any(unsigned char* to, Random& random) {
  if constexpr (IsComplex<T>::value) {
    using Real = typename T::value_type;
    put(to, any_floating<Real>(random));
    put(to + sizeof(Real), any_floating<Real>(random));
  } else if constexpr (IsLocated<T>::value) {
    any<typename T::Value>(to, random);
    any<typename T::Index>(to + offsetof(T, index), random);
  } else if constexpr (std::is_same_v<T, Boolean> || std::is_same_v<T, Raw>) {
    put(to, static_cast<std::uint8_t>(random() % 4 < 3 ? random() % 2 : random()));
  } else if constexpr (std::is_same_v<T, Logical>) {
    const std::uint32_t values[] = {0, 0, 1, 1, 2, 256, 0xffffffffu, 0x80000000u};
    put(to, values[random() % std::size(values)]);
  } else if constexpr (std::is_floating_point_v<T>) {
    put(to, any_floating<T>(random));
  } else {
    put(to, any_integer<T>(random));
  }
}

// `count` elements. The gaps are filled too, so that a write into them shows.
inline Bytes operands(Type type, std::size_t count, Random& random) {
  const std::size_t stride = type_bytes(type);
  Bytes bytes(count * stride);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
  with_type(type, [&]<class T>(T*) {
    for (std::size_t i = 0; i < count; ++i) any<T>(bytes.data() + i * stride, random);
  });
  return bytes;
}

// ---- Comparing ----

template <class T>
bool same_or_nan(const unsigned char* a, const unsigned char* b) {
  if (std::memcmp(a, b, sizeof(T)) == 0) return true;
  return std::isnan(get<T>(a)) && std::isnan(get<T>(b)) &&
         std::memcmp(a + value_bytes<T>(), b + value_bytes<T>(), sizeof(T) - value_bytes<T>()) == 0;
}

// Compares bit by bit. Only the NaN that comes out of a sum or prod may differ (reduce.hpp).
inline bool same_element(Op op, Type type, const unsigned char* a, const unsigned char* b) {
  if (std::memcmp(a, b, type_bytes(type)) == 0) return true;
  if (op != Op::sum && op != Op::prod) return false;
  return with_type(type, [&]<class T>(T*) {
    if constexpr (IsComplex<T>::value) {
      using Real = typename T::value_type;
      return same_or_nan<Real>(a, b) && same_or_nan<Real>(a + sizeof(Real), b + sizeof(Real));
    } else if constexpr (std::is_floating_point_v<T>) {
      return same_or_nan<T>(a, b);
    }
    return false;
  });
}

// ---- Checking the kernels in use ----

// A copy of `bytes` between two guards. It starts `offset` bytes after the beginning of a line.
class Placed {
 public:
  Placed(const unsigned char* bytes, std::size_t size, std::size_t offset)
      : room_(size + 2 * sizeof(Guard) + 128), size_(size) {
    const auto start = reinterpret_cast<std::uintptr_t>(room_.data()) + sizeof(Guard);
    at_ = sizeof(Guard) + (64 - start % 64) % 64 + offset;
    if (size > 0) std::memcpy(data(), bytes, size);
    std::memcpy(data() - sizeof(Guard), &kGuard, sizeof(Guard));
    std::memcpy(data() + size, &kGuard, sizeof(Guard));
  }
  unsigned char* data() { return room_.data() + at_; }
  bool guards_intact() {
    return std::memcmp(data() - sizeof(Guard), &kGuard, sizeof(Guard)) == 0 &&
           std::memcmp(data() + size_, &kGuard, sizeof(Guard)) == 0;
  }

 private:
  using Guard = std::array<unsigned char, 64>;
  static constexpr Guard kGuard = [] {
    Guard guard{};
    guard.fill(0xa5);
    return guard;
  }();
  Bytes room_;
  std::size_t size_;
  std::size_t at_;
};

struct Place {
  std::size_t out, in, inout;  // distance from a cache line in bytes
};

class Checker {
 public:
  Checker(Op op, Type type, std::uint64_t seed)
      : op_(op), type_(type), stride_(type_bytes(type)), random_(seed), pool_(operands(type, kPool, random_)) {}

  // Empty if both kernels agree with the reference on `count` elements.
  std::string check(std::size_t count, Place place) {
    const std::size_t bytes = count * stride_;
    const unsigned char* a = slice(count);
    const unsigned char* b = slice(count);
    const unsigned char* gaps = slice(count);
    Bytes in_place(b, b + bytes), apart(gaps, gaps + bytes), onto_in(a, a + bytes);
    reference(op_, type_, in_place.data(), a, b, count);
    reference(op_, type_, apart.data(), a, b, count);
    reference(op_, type_, onto_in.data(), a, b, count);

    Placed in(a, bytes, place.in), inout(b, bytes, place.inout), out(gaps, bytes, place.out);
    kernel3(op_, type_)(out.data(), in.data(), inout.data(), count);
    std::string error = compare("kernel3", apart, out, count);
    if (std::memcmp(inout.data(), b, bytes) != 0) error += " kernel3 wrote inout";
    kernel(op_, type_)(inout.data(), in.data(), count);
    error += compare("kernel", in_place, inout, count);
    if (std::memcmp(in.data(), a, bytes) != 0) error += " a kernel wrote in";
    Placed again(b, bytes, place.inout);
    kernel3(op_, type_)(in.data(), in.data(), again.data(), count);
    error += compare("kernel3 onto in", onto_in, in, count);
    if (error.empty()) return error;
    return std::string(isa_name()) + " " + kOpNames[static_cast<std::size_t>(op_)] + " " +
           kTypeNames[static_cast<std::size_t>(type_)] + " count " + std::to_string(count) + " offsets " +
           std::to_string(place.out) + "," + std::to_string(place.in) + "," + std::to_string(place.inout) + ":" + error;
  }

 private:
  static constexpr std::size_t kPool = 5000;

  const unsigned char* slice(std::size_t count) { return pool_.data() + random_() % (kPool - count + 1) * stride_; }

  std::string compare(const char* what, const Bytes& expected, Placed& got, std::size_t count) const {
    if (!got.guards_intact()) return std::string(" ") + what + " wrote outside";
    if (count == 0 || std::memcmp(expected.data(), got.data(), expected.size()) == 0) return {};
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = i * stride_;
      if (!same_element(op_, type_, expected.data() + at, got.data() + at)) {
        return std::string(" ") + what + " differs in element " + std::to_string(i);
      }
    }
    return {};
  }

  Op op_;
  Type type_;
  std::size_t stride_;
  Random random_;
  Bytes pool_;
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr std::size_t kMisalignmentStep = 3;  // sanitizers make it several times slower
#else
inline constexpr std::size_t kMisalignmentStep = 1;
#endif

// Checks every op and type, for every count up to 70 at every misalignment, and for some larger
// counts. Returns the first few errors.
inline std::vector<std::string> check_all() {
  std::vector<std::string> errors;
  for (std::size_t o = 0; o < kOps; ++o) {
    for (std::size_t t = 0; t < kTypes; ++t) {
      const auto op = static_cast<Op>(o);
      const auto type = static_cast<Type>(t);
      if (!allowed(op, type)) continue;
      Checker checker(op, type, o * kTypes + t);
      const auto check = [&](std::size_t count, Place place) {
        std::string error = checker.check(count, place);
        if (!error.empty() && errors.size() < 20) errors.push_back(std::move(error));
      };
      for (std::size_t k = 0; k < 8; k += kMisalignmentStep) {
        for (std::size_t count = 0; count <= 70; ++count) check(count, {k, (3 * k) % 8, (5 * k + count) % 8});
        for (const std::size_t count : {127, 128, 129, 255, 1000, 4099}) check(count, {k, k, k});
      }
      check(4096, {32, 16, 48});
    }
  }
  return errors;
}

}  // namespace reduce_check
