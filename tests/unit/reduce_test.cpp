// SPDX-License-Identifier: BSD-3-Clause
// Compares the reduction kernels of every instruction set of this CPU with the oracle of
// reduce_check.hpp.
#include <gtest/gtest.h>

#include <thread>

#include "reduce_check.hpp"

namespace reduce_check {
namespace {

constexpr const char* kIsas[] = {"avx512", "avx2", "sse2", "neon", "generic"};  // the best first

std::vector<const char*> usable_isas() {
  std::vector<const char*> names;
  for (const char* name : kIsas) {
    if (set_isa(name)) names.push_back(name);
  }
  set_isa(nullptr);
  return names;
}

// Calls `f(op, type)` for every pair that has a kernel.
template <class F>
void for_each_pair(F f) {
  for (std::size_t o = 0; o < kOps; ++o) {
    for (std::size_t t = 0; t < kTypes; ++t) {
      if (kernel(static_cast<Op>(o), static_cast<Type>(t)) != nullptr) f(static_cast<Op>(o), static_cast<Type>(t));
    }
  }
}

bool is_exact(Type type) { return type <= Type::u64 || (type >= Type::boolean8 && type <= Type::byte8); }
bool is_integer_pair(Type type) { return type == Type::i64_i32 || type == Type::i32_i32 || type == Type::i16_i32; }

Bytes combine(Op op, Type type, const Bytes& in, const Bytes& inout) {
  Bytes out = inout;
  kernel(op, type)(out.data(), in.data(), out.size() / type_bytes(type));
  return out;
}

// Ctest runs each test in a process of its own, so this is the first use.
TEST(Reduce, FirstUseByManyThreads) {
  std::vector<std::thread> threads;
  std::array<double, 8> results{};
  for (std::size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&results, i] {
      const double in = 1.0;
      results[i] = static_cast<double>(i);
      if (const Kernel add = kernel(Op::sum, Type::f64)) add(&results[i], &in, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], static_cast<double>(i) + 1.0);
}

TEST(Reduce, KernelsExistWhereMpiDefinesThePairAndOnlyThere) {
  for (const char* isa : usable_isas()) {
    ASSERT_TRUE(set_isa(isa));
    for (std::size_t o = 0; o < kOps; ++o) {
      for (std::size_t t = 0; t < kTypes; ++t) {
        const auto op = static_cast<Op>(o);
        const auto type = static_cast<Type>(t);
        EXPECT_EQ(kernel(op, type) != nullptr, allowed(op, type)) << isa << " " << kOpNames[o] << " " << kTypeNames[t];
        EXPECT_EQ(kernel3(op, type) != nullptr, allowed(op, type)) << isa << " " << kOpNames[o] << " " << kTypeNames[t];
      }
    }
  }
}

TEST(Reduce, TypesAreAsLongAsTheCompilers) {
  for (std::size_t t = 0; t < kTypes; ++t) {
    const auto type = static_cast<Type>(t);
    const std::size_t expected =
        with_type(type, []<class T>(T*) { return std::is_same_v<T, Logical> ? 4 : sizeof(T); });
    EXPECT_EQ(type_bytes(type), expected) << kTypeNames[t];
  }
}

TEST(Reduce, BestInstructionSetIsChosenAndUnknownOnesAreRefused) {
  const std::vector<const char*> isas = usable_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_STREQ(isa_name(), isas.front());
  ASSERT_TRUE(set_isa(isas.back()));
  EXPECT_STREQ(isa_name(), isas.back());
  const Kernel before = kernel(Op::sum, Type::f64);
  EXPECT_FALSE(set_isa("avx1024"));
  EXPECT_STREQ(isa_name(), isas.back());
  EXPECT_EQ(kernel(Op::sum, Type::f64), before);
  ASSERT_TRUE(set_isa(nullptr));
  EXPECT_STREQ(isa_name(), isas.front());
  EXPECT_EQ(kernel(Op::sum, Type::f64) == before, isas.size() == 1);
}

TEST(Reduce, EveryKernelDoesAsTheReference) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "starts no threads, and takes long";
#endif
  for (const char* isa : usable_isas()) {
    ASSERT_TRUE(set_isa(isa));
    for (const std::string& error : check_all()) ADD_FAILURE() << error;
  }
}

TEST(Reduce, ExactOpsCommuteAndAssociate) {
  Random random(1);
  for (const char* isa : usable_isas()) {
    ASSERT_TRUE(set_isa(isa));
    for_each_pair([&](Op op, Type type) {
      if (!is_exact(type) && !is_integer_pair(type)) return;
      // All three carry the same padding, which no op writes.
      const Bytes a = operands(type, 333, random);
      Bytes b = a, c = a;
      std::vector<std::size_t> order(333);
      with_type(type, [&]<class T>(T*) {
        for (std::size_t i = 0; i < order.size(); ++i) {
          any<T>(b.data() + i * type_bytes(type), random);
          any<T>(c.data() + i * type_bytes(type), random);
        }
      });
      EXPECT_EQ(combine(op, type, a, b), combine(op, type, b, a))
          << isa << kOpNames[static_cast<int>(op)] << kTypeNames[static_cast<int>(type)];
      EXPECT_EQ(combine(op, type, combine(op, type, a, b), c), combine(op, type, a, combine(op, type, b, c)))
          << isa << kOpNames[static_cast<int>(op)] << kTypeNames[static_cast<int>(type)];
    });
  }
}

// What reduce.hpp promises for floats, in numbers.
TEST(Reduce, FloatsFollowTheHosts) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto result = [](Op op, double in, double inout) {
    std::vector<double> a(19, in), b(19, inout);
    kernel(op, Type::f64)(b.data(), a.data(), b.size());
    for (const double value : b) EXPECT_EQ(std::memcmp(&value, b.data(), sizeof value), 0) << "body and tail differ";
    return b[0];
  };
  for (const char* isa : usable_isas()) {
    ASSERT_TRUE(set_isa(isa));
    for (const Op op : {Op::max, Op::min}) {
      EXPECT_TRUE(std::isnan(result(op, nan, 1.0)));
      EXPECT_EQ(result(op, 1.0, nan), 1.0);
      EXPECT_TRUE(std::signbit(result(op, -0.0, 0.0)));
      EXPECT_FALSE(std::signbit(result(op, 0.0, -0.0)));
    }
    struct Pair {
      double value;
      int index;
    };
    const Pair in[] = {{1, 5}, {1, 2}, {nan, 1}, {1, 7}, {-0.0, 3}};
    const Pair before[] = {{1, 3}, {1, 9}, {1, 2}, {nan, 8}, {0.0, 4}};
    const Pair after[] = {{1, 3}, {1, 2}, {1, 2}, {nan, 8}, {0.0, 3}};
    for (const Op op : {Op::minloc, Op::maxloc}) {
      Pair pairs[std::size(before)];
      std::memcpy(pairs, before, sizeof pairs);
      kernel(op, Type::f64_i32)(pairs, in, std::size(pairs));
      for (std::size_t i = 0; i < std::size(pairs); ++i) {
        EXPECT_EQ(std::memcmp(&pairs[i].value, &after[i].value, sizeof(double)), 0) << i;
        EXPECT_EQ(pairs[i].index, after[i].index) << i;
      }
    }
    std::vector<std::complex<double>> z(5, {infinity, nan}), w(5, {1, 1});
    z[3] = {3, 4}, w[3] = {5, 6};
    kernel(Op::prod, Type::c64)(w.data(), z.data(), w.size());
    EXPECT_EQ(w[3], std::complex<double>(-9, 38));
    for (const std::size_t i : {0, 4}) EXPECT_TRUE(std::isinf(w[i].real()) && std::isinf(w[i].imag())) << w[i];
  }
}

}  // namespace
}  // namespace reduce_check
