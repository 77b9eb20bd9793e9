// SPDX-License-Identifier: BSD-3-Clause
// The kernels for products of complex numbers. A part of kernels-inl.hpp, which alone includes it
// and has what it uses.

namespace stretto::reduce::STRETTO_ISA {
namespace {

// C's complex types. `__complex__ T` cannot be formed from a template parameter.
template <class T>
struct ComplexOf;
template <>
struct ComplexOf<float> {
  using Number = __complex__ float;
};
template <>
struct ComplexOf<double> {
  using Number = __complex__ double;
};
template <>
struct ComplexOf<long double> {
  using Number = __complex__ long double;
};

// Element by element, as in C's Annex G: an infinity survives where the plain formula gives NaN in
// both parts.
template <class T>
[[gnu::noinline]] void complex_prod_each(void* out, const void* in, const void* inout, std::size_t count) {
  auto* const o = static_cast<Byte*>(out);
  const auto* const a = static_cast<const Byte*>(in);
  const auto* const b = static_cast<const Byte*>(inout);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t re = 2 * i * sizeof(T);
    const std::size_t im = re + sizeof(T);
    typename ComplexOf<T>::Number x, y;
    __real__ x = load<T>(a + re);
    __imag__ x = load<T>(a + im);
    __real__ y = load<T>(b + re);
    __imag__ y = load<T>(b + im);
    const typename ComplexOf<T>::Number product = x * y;
    store<T>(o + re, __real__ product);
    store<T>(o + im, __imag__ product);
  }
}

#if defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

template <int... Lane>
struct Lanes {};
template <int Left, int... Lane>
struct CountLanes : CountLanes<Left - 1, Left - 1, Lane...> {};
template <int... Lane>
struct CountLanes<0, Lane...> {
  using All = Lanes<Lane...>;
};

// Complex numbers side by side in one register: re, im, re, im, ...
template <class T>
struct ComplexVector {
  static constexpr int kLanes = static_cast<int>(kVectorBytes / sizeof(T));
  using All = typename CountLanes<kLanes>::All;
  typedef T V __attribute__((vector_size(kVectorBytes)));
  using Truth = decltype(V{} != V{});

  // The plain formula. Sets the lanes of `lost` for numbers with a NaN in both parts.
  template <int... I>
  static V prod(V x, V y, Truth& lost, Lanes<I...>) {
    const V p = __builtin_shufflevector(x, x, (I & ~1)...) * y;
    const V q = __builtin_shufflevector(x, x, (I | 1)...) * __builtin_shufflevector(y, y, (I ^ 1)...);
    const V r = __builtin_shufflevector(p - q, p + q, (I % 2 == 0 ? I : I + kLanes)...);
    const Truth nan = r != r;
    lost |= nan & __builtin_shufflevector(nan, nan, (I ^ 1)...);
    return r;
  }

  static bool any(Truth truth) {
    auto all = truth[0];
    for (int i = 1; i < kLanes; ++i) all |= truth[i];
    return all != 0;
  }
};

// Multiplies by vectors, and one by one again where these lost an infinity. Blocks go through a
// buffer, because `out` may be an operand that the second attempt still needs.
template <class T>
[[gnu::noinline]] void complex_prod(void* out, const void* in, const void* inout, std::size_t count) {
  using Vector = ComplexVector<T>;
  using V = typename Vector::V;
  constexpr std::size_t vectors = 16;
  constexpr std::size_t block_bytes = vectors * kVectorBytes;
  const std::size_t bytes = 2 * count * sizeof(T);
  auto* const o = static_cast<Byte*>(out);
  const auto* const a = static_cast<const Byte*>(in);
  const auto* const b = static_cast<const Byte*>(inout);
  std::size_t at = 0;
  for (; at + block_bytes <= bytes; at += block_bytes) {
    alignas(kVectorBytes) Byte product[block_bytes];
    typename Vector::Truth lost{};
    for (std::size_t k = 0; k < block_bytes; k += kVectorBytes) {
      store<V>(product + k, Vector::prod(load<V>(a + at + k), load<V>(b + at + k), lost, typename Vector::All{}));
    }
    if (Vector::any(lost)) complex_prod_each<T>(product, a + at, b + at, block_bytes / (2 * sizeof(T)));
    for (std::size_t k = 0; k < block_bytes; k += kVectorBytes) store<V>(o + at + k, load<V>(product + k));
  }
  complex_prod_each<T>(o + at, a + at, b + at, (bytes - at) / (2 * sizeof(T)));
}

}  // namespace
}  // namespace stretto::reduce::STRETTO_ISA
