// SPDX-License-Identifier: BSD-3-Clause
// Throughput of the reduction kernels on one core, per instruction set. The unit is GB/s of
// operands read plus results written (three streams), the best of several timings. Every buffer is
// `offset` bytes off a cache line.
//   kernels [--all] [--offset BYTES]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "reduce/reduce.hpp"

namespace {

using namespace stretto::reduce;

constexpr const char* kIsaNames[] = {"generic", "neon", "sse2", "avx2", "avx512"};
constexpr const char* kOpNames[] = {"sum",  "prod", "max", "min",  "land",   "lor",
                                    "lxor", "band", "bor", "bxor", "minloc", "maxloc"};
constexpr const char* kTypeNames[] = {"i8",       "i16",      "i32",     "i64",     "u8",      "u16",     "u32",
                                      "u64",      "f32",      "f64",     "f80",     "c32",     "c64",     "c80",
                                      "boolean8", "logical4", "byte8",   "f32_i32", "f64_i32", "i64_i32", "i32_i32",
                                      "i16_i32",  "f80_i32",  "f32_f32", "f64_f64"};
static_assert(std::size(kOpNames) == kOps && std::size(kTypeNames) == kTypes);

// Bytes per buffer.
constexpr std::size_t kSizes[] = {64, std::size_t{8} << 10, std::size_t{256} << 10, std::size_t{16} << 20};
// Timings are shorter than a time slice, and many, so that nothing disturbed the best one.
constexpr std::size_t kBytesPerTiming = std::size_t{2} << 20;
constexpr double kTimingSeconds = 0.05;

// Room at `offset` bytes after a page boundary. It is set to one, so products neither grow nor
// become denormal.
class Buffer {
 public:
  Buffer(std::size_t bytes, std::size_t offset) : room_(bytes + 4096 + offset, 1) {
    const auto address = reinterpret_cast<std::uintptr_t>(room_.data());
    data_ = room_.data() + (4096 - address % 4096) % 4096 + offset;
  }
  unsigned char* data() { return data_; }

 private:
  std::vector<unsigned char> room_;
  unsigned char* data_;
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class Call>
double best_gigabytes_per_s(std::size_t bytes, Call call) {
  const std::size_t repeats = std::max<std::size_t>(1, kBytesPerTiming / bytes);
  const double end = seconds() + kTimingSeconds;
  double best = 1e300;
  do {
    const double start = seconds();
    for (std::size_t i = 0; i < repeats; ++i) call();
    best = std::min(best, (seconds() - start) / static_cast<double>(repeats));
  } while (seconds() < end);
  return 3 * static_cast<double>(bytes) / best / 1e9;
}

void measure(Op op, Type type, std::size_t offset) {
  std::printf("%-7s %-9s", kOpNames[static_cast<int>(op)], kTypeNames[static_cast<int>(type)]);
  for (const std::size_t bytes : kSizes) {
    Buffer a(bytes, offset), b(bytes, offset), c(bytes, offset);
    const std::size_t count = bytes / type_bytes(type);
    const Kernel two = kernel(op, type);
    const Kernel3 three = kernel3(op, type);
    const double in_place = best_gigabytes_per_s(bytes, [&] { two(b.data(), a.data(), count); });
    const double separate = best_gigabytes_per_s(bytes, [&] { three(c.data(), a.data(), b.data(), count); });
    std::printf("  %7.1f %7.1f", in_place, separate);
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  bool all = false;
  std::size_t offset = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--all") == 0) all = true;
    if (std::strcmp(argv[i], "--offset") == 0 && i + 1 < argc) offset = std::strtoul(argv[++i], nullptr, 10);
  }
  constexpr struct {
    Op op;
    Type type;
  } kShort[] = {{Op::sum, Type::f64},  {Op::sum, Type::f32},        {Op::max, Type::f64},       {Op::sum, Type::i32},
                {Op::prod, Type::i64}, {Op::max, Type::i64},        {Op::band, Type::u8},       {Op::land, Type::i32},
                {Op::prod, Type::c64}, {Op::minloc, Type::f64_i32}, {Op::minloc, Type::i32_i32}};
  for (const char* isa : kIsaNames) {
    if (!set_isa(isa)) continue;
    std::printf("%s: GB/s in place and separate, at 64 B, 8 KiB, 256 KiB, 16 MiB per buffer\n", isa);
    if (!all) {
      for (const auto& pair : kShort) measure(pair.op, pair.type, offset);
      continue;
    }
    for (std::size_t op = 0; op < kOps; ++op) {
      for (std::size_t type = 0; type < kTypes; ++type) {
        if (kernel(static_cast<Op>(op), static_cast<Type>(type)) != nullptr) {
          measure(static_cast<Op>(op), static_cast<Type>(type), offset);
        }
      }
    }
  }
}
