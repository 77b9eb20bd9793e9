// SPDX-License-Identifier: BSD-3-Clause
// What can be reduced: predefined operations on predefined types, and operations of a user's. Each
// has an oracle of its own, which combines one element in plain C++.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "datatype_model.hpp"

namespace reductions {

using model::Random;

struct Piece {
  std::size_t offset, bytes;
};

// One operation on one type. Elements are `extent` bytes apart. Only their pieces are data.
struct Kind {
  std::string name;
  MPI_Datatype type;
  MPI_Op op;
  std::size_t extent;
  std::vector<Piece> pieces;
  void (*make)(Random& random, char* element);
  void (*combine)(const char* in, char* inout);  // inout = in op inout
  bool on_host = true;                           // hosts have it, and do it as the standard says
  // Whether a host, which may combine in any order, came as near as rounding allows. Null: every
  // order gives the same bits.
  bool (*near)(const char* seen, const char* expected, int ranks) = nullptr;
};

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
// Only the bytes of the number: a long double has 10.
template <class T>
constexpr std::size_t kDataBytes = std::is_same_v<T, long double> ? 10 : sizeof(T);
template <class T>
void store(char* at, const T& value) {
  std::memcpy(at, &value, kDataBytes<T>);
}

// ---- Values: small enough that every order of combining gives the same bits ----

template <class T>
void make_small(Random& random, char* at) {
  store(at, static_cast<T>(random.below(5) - (std::is_unsigned_v<T> ? 0 : 2)));
}
template <class T>
void make_factor(Random& random, char* at) {
  const T two = sizeof(T) == 1 ? T{1} : T{2};
  const T minus = std::is_unsigned_v<T> ? T{1} : static_cast<T>(-1);
  store(at, random.chance(30) ? two : random.chance(50) ? minus : T{1});
}
template <class T>
void make_any(Random& random, char* at) {
  const std::uint64_t word = random.next();
  if constexpr (std::is_integral_v<T>) {
    store(at, static_cast<T>(word));
  } else {
    store(at, static_cast<T>(static_cast<std::int64_t>(word) >> 40));
  }
}
template <class T>
void make_truth(Random& random, char* at) {
  store(at, random.chance(70) ? T{1} : T{0});
}
template <class T>
void make_complex(Random& random, char* at) {
  make_small<T>(random, at);
  make_small<T>(random, at + sizeof(T));
}
// Powers of 2 + i. They are exact, and have no zeros, whose signs depend on the order.
template <class T>
void make_turn(Random& random, char* at) {
  const bool one = random.chance(50);
  store(at, static_cast<T>(one ? 1 : 2));
  store(at + sizeof(T), static_cast<T>(one ? 0 : 1));
}
template <class Value, class Index, std::size_t kIndexAt>
void make_pair(Random& random, char* at) {
  store(at, static_cast<Value>(random.below(4)));
  store(at + kIndexAt, static_cast<Index>(random.below(100)));
}

// ---- Values whose sums and products depend on the order, to the last bit ----

// Numbers from 2^-40 to 2^40: much cancels, and what is left was rounded.
inline constexpr int kRoughExponent = 40;
template <class T>
void make_rough(Random& random, char* at) {
  const auto mantissa = static_cast<T>(static_cast<std::int64_t>(random.next())) / static_cast<T>(9.3e18);
  store(at, std::ldexp(mantissa, static_cast<int>(random.between(-kRoughExponent, kRoughExponent))));
}
template <class T>
void make_rough_complex(Random& random, char* at) {
  make_rough<T>(random, at);
  make_rough<T>(random, at + sizeof(T));
}
template <class T>
void make_rough_factor(Random& random, char* at) {
  store(at, T{1} + static_cast<T>(random.next() >> 11) / static_cast<T>(9.1e15));  // up to 2
}
template <class T>
void make_special(Random& random, char* at) {
  using Limits = std::numeric_limits<T>;
  const T values[] = {
      T{0}, -T{0}, T{1}, T{-1}, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), Limits::denorm_min()};
  store(at, values[random.below(8)]);
}

// Each of `ranks` operations rounds a number of at most ranks * 2^40 or 2^ranks.
template <class T>
bool near_sum(const char* seen, const char* expected, int ranks) {
  const auto error = std::abs(load<T>(seen) - load<T>(expected));
  return error <= static_cast<T>(ranks * ranks) * std::ldexp(std::numeric_limits<T>::epsilon(), kRoughExponent);
}
template <class T>
bool near_product(const char* seen, const char* expected, int ranks) {
  const auto error = std::abs(load<T>(seen) - load<T>(expected));
  return error <= static_cast<T>(ranks) * std::ldexp(std::numeric_limits<T>::epsilon(), ranks);
}
template <class T>
bool near_complex(const char* seen, const char* expected, int ranks) {
  return near_sum<T>(seen, expected, ranks) && near_sum<T>(seen + sizeof(T), expected + sizeof(T), ranks);
}

// ---- Oracles ----

struct Sum {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Product {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a * b);
  }
};
struct Largest {
  template <class T>
  static T of(T a, T b) {
    return std::max(a, b);
  }
};
struct Smallest {
  template <class T>
  static T of(T a, T b) {
    return std::min(a, b);
  }
};
struct And {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a && b);
  }
};
struct Or {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a || b);
  }
};
struct Xor {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(!a != !b);
  }
};
struct BitAnd {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

template <class F, class T>
void combine(const char* in, char* inout) {
  store(inout, F::of(load<T>(in), load<T>(inout)));
}
template <class T>
void complex_sum(const char* in, char* inout) {
  combine<Sum, T>(in, inout);
  combine<Sum, T>(in + sizeof(T), inout + sizeof(T));
}
template <class T>
void complex_product(const char* in, char* inout) {
  const std::complex<T> a(load<T>(in), load<T>(in + sizeof(T))), b(load<T>(inout), load<T>(inout + sizeof(T)));
  store(inout, static_cast<T>(a.real() * b.real() - a.imag() * b.imag()));
  store(inout + sizeof(T), static_cast<T>(a.real() * b.imag() + a.imag() * b.real()));
}
template <class Value, class Index, std::size_t kIndexAt, bool kLeast>
void locate(const char* in, char* inout) {
  const Value a = load<Value>(in), b = load<Value>(inout);
  const Index i = load<Index>(in + kIndexAt), j = load<Index>(inout + kIndexAt);
  if (a == b) return store(inout + kIndexAt, std::min(i, j));
  if ((a < b) != kLeast) return;
  store(inout, a);
  store(inout + kIndexAt, i);
}

// ---- A user's operation that does not commute: products of 2 x 2 matrices modulo a prime ----

struct Matrix {
  std::uint32_t at[4];
};
inline constexpr std::uint32_t kPrime = 65521;
inline Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c{};
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t first = std::uint64_t{a.at[i / 2 * 2]} * b.at[i % 2];
    const std::uint64_t second = std::uint64_t{a.at[i / 2 * 2 + 1]} * b.at[2 + i % 2];
    c.at[i] = static_cast<std::uint32_t>((first + second) % kPrime);
  }
  return c;
}
inline void make_matrix(Random& random, char* at) {
  Matrix m{};
  for (std::uint32_t& x : m.at) x = static_cast<std::uint32_t>(random.below(kPrime));
  store(at, m);
}
inline void combine_matrix(const char* in, char* inout) {
  store(inout, product(load<Matrix>(in), load<Matrix>(inout)));
}
// The same with the four numbers spread over 40 bytes, last first.
inline constexpr std::size_t kSpread[4] = {32, 20, 8, 4};
inline Matrix gather_matrix(const char* at) {
  Matrix m{};
  for (int i = 0; i < 4; ++i) m.at[i] = load<std::uint32_t>(at + kSpread[i]);
  return m;
}
inline void scatter_matrix(char* at, const Matrix& m) {
  for (int i = 0; i < 4; ++i) store(at + kSpread[i], m.at[i]);
}
inline void make_spread(Random& random, char* at) {
  Matrix m{};
  make_matrix(random, reinterpret_cast<char*>(&m));
  scatter_matrix(at, m);
}
inline void combine_spread(const char* in, char* inout) {
  scatter_matrix(inout, product(gather_matrix(in), gather_matrix(inout)));
}
template <void (*one)(const char*, char*), std::size_t extent>
void user_function(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) {
    one(static_cast<const char*>(in) + static_cast<std::size_t>(i) * extent,
        static_cast<char*>(inout) + static_cast<std::size_t>(i) * extent);
  }
}

// ---- The list ----

class Kinds {
 public:
  Kinds() {
    add_all_integers();
    add_floating<float>("FLOAT", MPI_FLOAT, MPI_C_FLOAT_COMPLEX);
    add_floating<double>("DOUBLE", MPI_DOUBLE, MPI_C_DOUBLE_COMPLEX);
    add_floating<long double>("LONG_DOUBLE", MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX);
    add_logical<bool>("C_BOOL", MPI_C_BOOL);
    add_bits<std::uint8_t>("BYTE", MPI_BYTE);
    add_pairs();
    add_fortran();
    add_user();
  }
  ~Kinds() {
    for (MPI_Op& op : ops_) MPI_Op_free(&op);
    for (MPI_Datatype& type : types_) MPI_Type_free(&type);
  }
  Kinds(const Kinds&) = delete;
  Kinds& operator=(const Kinds&) = delete;
  std::vector<Kind> all;

 private:
  template <class T, class F>
  void add(const std::string& type_name, MPI_Datatype type, const char* op_name, MPI_Op op,
           void (*make)(Random&, char*)) {
    all.push_back({type_name + " " + op_name, type, op, sizeof(T), {{0, kDataBytes<T>}}, make, combine<F, T>});
  }
  template <class T>
  void add_arithmetic(const std::string& name, MPI_Datatype type) {
    add<T, Sum>(name, type, "SUM", MPI_SUM, make_small<T>);
    add<T, Product>(name, type, "PROD", MPI_PROD, make_factor<T>);
    // MPICH 4.0.2 compares unsigned integers as signed ones.
    add<T, Largest>(name, type, "MAX", MPI_MAX, make_any<T>);
    all.back().on_host = !std::is_unsigned_v<T>;
    add<T, Smallest>(name, type, "MIN", MPI_MIN, make_any<T>);
    all.back().on_host = !std::is_unsigned_v<T>;
  }
  template <class T>
  void add_logical(const std::string& name, MPI_Datatype type) {
    add<T, And>(name, type, "LAND", MPI_LAND, make_truth<T>);
    add<T, Or>(name, type, "LOR", MPI_LOR, make_truth<T>);
    add<T, Xor>(name, type, "LXOR", MPI_LXOR, make_truth<T>);
  }
  template <class T>
  void add_bits(const std::string& name, MPI_Datatype type) {
    add<T, BitAnd>(name, type, "BAND", MPI_BAND, make_any<T>);
    add<T, BitOr>(name, type, "BOR", MPI_BOR, make_any<T>);
    add<T, BitXor>(name, type, "BXOR", MPI_BXOR, make_any<T>);
  }
  template <class T>
  void add_integer(const std::string& name, MPI_Datatype type) {
    add_arithmetic<T>(name, type);
    add_logical<T>(name, type);
    add_bits<T>(name, type);
  }
  void add_all_integers() {
    add_integer<signed char>("SIGNED_CHAR", MPI_SIGNED_CHAR);
    add_integer<unsigned char>("UNSIGNED_CHAR", MPI_UNSIGNED_CHAR);
    add_integer<short>("SHORT", MPI_SHORT);
    add_integer<unsigned short>("UNSIGNED_SHORT", MPI_UNSIGNED_SHORT);
    add_integer<int>("INT", MPI_INT);
    add_integer<unsigned>("UNSIGNED", MPI_UNSIGNED);
    add_integer<long>("LONG", MPI_LONG);
    add_integer<unsigned long>("UNSIGNED_LONG", MPI_UNSIGNED_LONG);
    add_integer<long long>("LONG_LONG", MPI_LONG_LONG);
    add_integer<unsigned long long>("UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG);
    add_integer<std::int8_t>("INT8_T", MPI_INT8_T);
    add_integer<std::int16_t>("INT16_T", MPI_INT16_T);
    add_integer<std::int32_t>("INT32_T", MPI_INT32_T);
    add_integer<std::int64_t>("INT64_T", MPI_INT64_T);
    add_integer<std::uint8_t>("UINT8_T", MPI_UINT8_T);
    add_integer<std::uint16_t>("UINT16_T", MPI_UINT16_T);
    add_integer<std::uint32_t>("UINT32_T", MPI_UINT32_T);
    add_integer<std::uint64_t>("UINT64_T", MPI_UINT64_T);
    add_arithmetic<MPI_Aint>("AINT", MPI_AINT);
    add_arithmetic<MPI_Count>("COUNT", MPI_COUNT);
    add_bits<MPI_Offset>("OFFSET", MPI_OFFSET);
  }
  template <class T>
  void add_floating(const std::string& name, MPI_Datatype type, MPI_Datatype complex) {
    add_arithmetic<T>(name, type);
    const std::vector<Piece> pieces = {{0, kDataBytes<T>}, {sizeof(T), kDataBytes<T>}};
    all.push_back(
        {"complex " + name + " SUM", complex, MPI_SUM, 2 * sizeof(T), pieces, make_complex<T>, complex_sum<T>});
    all.push_back(
        {"complex " + name + " PROD", complex, MPI_PROD, 2 * sizeof(T), pieces, make_turn<T>, complex_product<T>});
    add<T, Sum>("rough " + name, type, "SUM", MPI_SUM, make_rough<T>);
    all.back().near = near_sum<T>;
    add<T, Product>("rough " + name, type, "PROD", MPI_PROD, make_rough_factor<T>);
    all.back().near = near_product<T>;
    all.push_back({"complex rough " + name + " SUM", complex, MPI_SUM, 2 * sizeof(T), pieces, make_rough_complex<T>,
                   complex_sum<T>});
    all.back().near = near_complex<T>;
    // MPI does not say what comes of NaN and of zeros of both signs, and hosts differ.
    add<T, Largest>("special " + name, type, "MAX", MPI_MAX, make_special<T>);
    all.back().on_host = false;
    add<T, Smallest>("special " + name, type, "MIN", MPI_MIN, make_special<T>);
    all.back().on_host = false;
  }
  template <class Value, class Index>
  void add_pair(const std::string& name, MPI_Datatype type) {
    struct Both {
      Value value;
      Index index;
    };
    constexpr std::size_t at = offsetof(Both, index);
    const std::vector<Piece> pieces = {{0, kDataBytes<Value>}, {at, sizeof(Index)}};
    all.push_back({name + " MINLOC", type, MPI_MINLOC, sizeof(Both), pieces, make_pair<Value, Index, at>,
                   locate<Value, Index, at, true>});
    all.push_back({name + " MAXLOC", type, MPI_MAXLOC, sizeof(Both), pieces, make_pair<Value, Index, at>,
                   locate<Value, Index, at, false>});
    const bool gaps = kDataBytes<Value> + sizeof(Index) != sizeof(Both);
    // Intel MPI writes them at times.
    for (std::size_t i = all.size() - 2; i < all.size(); ++i) all[i].on_host = !gaps;
  }
  void add_pairs() {
    add_pair<float, int>("FLOAT_INT", MPI_FLOAT_INT);
    add_pair<double, int>("DOUBLE_INT", MPI_DOUBLE_INT);
    add_pair<long, int>("LONG_INT", MPI_LONG_INT);
    add_pair<int, int>("2INT", MPI_2INT);
    add_pair<short, int>("SHORT_INT", MPI_SHORT_INT);
    add_pair<long double, int>("LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT);
  }
  bool has(MPI_Datatype type, std::size_t bytes) {  // hosts without Fortran have none of its types
    int size = 0;
    return type != MPI_DATATYPE_NULL && MPI_Type_size(type, &size) == MPI_SUCCESS &&
           static_cast<std::size_t>(size) == bytes;
  }
  void add_fortran() {
    if (!has(MPI_INTEGER, 4) || !has(MPI_REAL, 4) || !has(MPI_2REAL, 8)) return;
    add_arithmetic<std::int32_t>("INTEGER", MPI_INTEGER);
    add_bits<std::int32_t>("INTEGER", MPI_INTEGER);
    add_arithmetic<float>("REAL", MPI_REAL);
    add_arithmetic<double>("DOUBLE_PRECISION", MPI_DOUBLE_PRECISION);
    add_logical<std::int32_t>("LOGICAL", MPI_LOGICAL);
    add_pair<float, float>("2REAL", MPI_2REAL);
    add_pair<double, double>("2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION);
    add_pair<std::int32_t, std::int32_t>("2INTEGER", MPI_2INTEGER);
  }
  MPI_Op keep(MPI_User_function* function, bool commutes) {
    MPI_Op op;
    MPI_Op_create(function, commutes, &op);
    ops_.push_back(op);
    return op;
  }
  void add_user() {
    MPI_Datatype dense, indexed, spread;
    MPI_Type_contiguous(4, MPI_UINT32_T, &dense);
    MPI_Type_commit(&dense);
    const int blocks[4] = {1, 1, 1, 1};
    const MPI_Aint places[4] = {32, 20, 8, 4};
    MPI_Type_create_hindexed(4, blocks, places, MPI_UINT32_T, &indexed);
    MPI_Type_create_resized(indexed, 0, 40, &spread);
    MPI_Type_commit(&spread);
    MPI_Type_free(&indexed);
    types_ = {dense, spread};
    std::vector<Piece> pieces;
    for (const std::size_t place : kSpread) pieces.push_back({place, 4});
    all.push_back({"matrix product",
                   dense,
                   keep(user_function<combine_matrix, 16>, false),
                   16,
                   {{0, 16}},
                   make_matrix,
                   combine_matrix});
    all.push_back({"spread matrix product", spread, keep(user_function<combine_spread, 40>, false), 40, pieces,
                   make_spread, combine_spread});
    all.push_back({"user's sum of rough DOUBLE",
                   MPI_DOUBLE,
                   keep(user_function<combine<Sum, double>, 8>, true),
                   8,
                   {{0, 8}},
                   make_rough<double>,
                   combine<Sum, double>,
                   true,
                   near_sum<double>});
    all.push_back({"user's sum of INT",
                   MPI_INT,
                   keep(user_function<combine<Sum, int>, 4>, true),
                   4,
                   {{0, 4}},
                   make_small<int>,
                   combine<Sum, int>});
  }

  std::vector<MPI_Op> ops_;
  std::vector<MPI_Datatype> types_;
};

}  // namespace reductions
