// SPDX-License-Identifier: BSD-3-Clause
// What each element type of reductions takes in memory.
#include "reduce/reduce.hpp"

namespace stretto::reduce {
namespace {

template <class Value, class Index>
struct Pair {
  Value value;
  Index index;
};

}  // namespace

// clang-format off
std::size_t type_bytes(Type type) {
  switch (type) {
    case Type::i8:
    case Type::u8:
    case Type::boolean8:
    case Type::byte8: return 1;
    case Type::i16:
    case Type::u16: return 2;
    case Type::i32:
    case Type::u32:
    case Type::logical4: return 4;
    case Type::i64:
    case Type::u64: return 8;
    case Type::f32: return sizeof(float);
    case Type::f64: return sizeof(double);
    case Type::f80: return sizeof(long double);
    case Type::c32: return 2 * sizeof(float);
    case Type::c64: return 2 * sizeof(double);
    case Type::c80: return 2 * sizeof(long double);
    case Type::f32_i32: return sizeof(Pair<float, std::int32_t>);
    case Type::f64_i32: return sizeof(Pair<double, std::int32_t>);
    case Type::i64_i32: return sizeof(Pair<std::int64_t, std::int32_t>);
    case Type::i32_i32: return sizeof(Pair<std::int32_t, std::int32_t>);
    case Type::i16_i32: return sizeof(Pair<std::int16_t, std::int32_t>);
    case Type::f80_i32: return sizeof(Pair<long double, std::int32_t>);
    case Type::f32_f32: return sizeof(Pair<float, float>);
    case Type::f64_f64: return sizeof(Pair<double, double>);
    case Type::count_: break;
  }
  return 0;
}
// clang-format on

}  // namespace stretto::reduce
