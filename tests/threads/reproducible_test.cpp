// SPDX-License-Identifier: BSD-3-Clause
// Sums whose every bit depends on the order of combining. All collectives give the bits of one loop
// over ranks from left to right, on all paths. Paths are short, long, pieces of any length, kernels
// of every instruction set, and functions. Schedules do so too, where they are told to keep the
// order.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "engine/scheduler.hpp"
#include "reduce/reduce.hpp"
#include "threads/job.hpp"
#include "threads/mailbox.hpp"
#include "threads/scheduled.hpp"

namespace stretto::test {
namespace {

using engine::Comm;

constexpr stretto::Run kRealRun{0, sizeof(double)};
constexpr Layout kReals{sizeof(double), sizeof(double), &kRealRun, 1, true};

// Rank 2k brings numbers as large as 2^60, and rank 2k + 1 takes them away but for a rest. Small
// numbers survive that or do not.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}
double number(int rank, std::size_t position) {
  const auto real = [](std::uint64_t bits, int least, int range) {
    return std::ldexp(static_cast<double>(bits >> 11), static_cast<int>(bits % 1024) % range + least);
  };
  const double large = real(mixed(position * 64 + static_cast<std::size_t>(rank / 2)), -45, 60);
  const double rest = real(mixed(position * 64 + static_cast<std::size_t>(rank) + 0x7777777), -80, 40);
  return rank % 2 == 0 ? large + rest : -large + rest;
}

std::vector<double> contribution(int rank, std::size_t count) {
  std::vector<double> v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = number(rank, i);
  return v;
}

std::vector<double> from_left(int ranks, std::size_t count) {
  std::vector<double> sum = contribution(0, count);
  for (int r = 1; r < ranks; ++r) {
    for (std::size_t i = 0; i < count; ++i) sum[i] = sum[i] + number(r, i);
  }
  return sum;
}

bool same_bits(const std::vector<double>& a, const double* b, std::size_t first = 0,
               std::size_t count = ~std::size_t{0}) {
  count = std::min(count, a.size() - first);
  return std::memcmp(a.data() + first, b, count * sizeof(double)) == 0;
}

int rank_in(const Comm& comm) { return comm_rank(comm); }
int size_of(const Comm& comm) { return comm_size(comm); }
int rank_in(const engine::Scheduler& scheduler) { return scheduler.rank(); }
int size_of(const engine::Scheduler& scheduler) { return scheduler.size(); }

template <class Where>
struct Player {
  Where& comm;
  std::size_t count;
  bool by_functions;
  int rank = rank_in(comm);
  int size = size_of(comm);
  std::vector<double> own = contribution(rank, count);
  std::vector<double> out = std::vector<double>(count);
  std::vector<double> grown =
      std::vector<double>(std::min<std::size_t>(count, engine::elements_at_once(sizeof(double))));
  std::vector<double> arrived = grown;
  engine::KernelOp reduction{reduce::kernel3(reduce::Op::sum, reduce::Type::f64), sizeof(double), 0, 0, true};
  engine::FunctionOp operation{nullptr, [](void*, char* in, char* inout, std::uint64_t n) {
                                 reduce::kernel(reduce::Op::sum, reduce::Type::f64)(inout, in, n);
                               }};

  static Region reals(std::vector<double>& v, std::size_t n) { return {reinterpret_cast<char*>(v.data()), n, &kReals}; }
  engine::KernelArgs vector() {
    return {reinterpret_cast<const char*>(own.data()), reinterpret_cast<char*>(out.data()), count * sizeof(double),
            true};
  }
  engine::FunctionArgs operands(std::size_t result) {
    return {reals(own, count), result == 0 ? Region{} : reals(out, result), reals(grown, grown.size()),
            reals(arrived, arrived.size())};
  }

  void play() {
    const std::vector<double> all = from_left(size, count);
    const std::vector<double> prefix = from_left(rank + 1, count);
    EXPECT_EQ((by_functions ? engine::allreduce(comm, operands(count), operation)
                            : engine::allreduce(comm, vector(), reduction))
                  .status,
              Status::ok);
    EXPECT_TRUE(same_bits(all, out.data())) << "allreduce, " << count;
    for (int root = 0; root < size; ++root) {
      out.assign(count, 0);
      EXPECT_EQ((by_functions ? engine::reduce(comm, operands(rank == root ? count : 0), operation, root)
                              : engine::reduce(comm, vector(), reduction, root))
                    .status,
                Status::ok);
      EXPECT_TRUE(rank != root || same_bits(all, out.data())) << "reduce to " << root << ", " << count;
    }
    EXPECT_EQ((by_functions ? engine::scan(comm, operands(count), operation, false)
                            : engine::scan(comm, vector(), reduction, false))
                  .status,
              Status::ok);
    EXPECT_TRUE(same_bits(prefix, out.data())) << "scan, " << count;
    scatter(all);
  }

  void scatter(const std::vector<double>& all) {
    std::vector<std::uint64_t> begins(static_cast<std::size_t>(size) + 1);
    for (int r = 0; r <= size; ++r) begins[r] = count * r * r / (size * size);  // uneven parts
    const std::size_t first = begins[rank], length = begins[rank + 1] - first;
    Status status;
    if (by_functions) {
      status =
          engine::reduce_scatter(comm, Collective::reduce_scatter, operands(length), operation, begins.data()).status;
    } else {
      for (auto& begin : begins) begin *= sizeof(double);
      status = engine::reduce_scatter(comm, Collective::reduce_scatter, vector(), reduction, begins.data()).status;
    }
    EXPECT_EQ(status, Status::ok);
    EXPECT_TRUE(same_bits(all, out.data(), first, length)) << "reduce_scatter, " << count;
  }
};

class Reproducible : public testing::TestWithParam<int> {};

TEST_P(Reproducible, OneOrderOnEveryPath) {
  const int size = GetParam();
  const std::size_t counts[] = {1, 7, 64, 512, 513, 2000, 9001};
  for (const char* isa : {"sse2", "avx2", "avx512", "neon", "generic"}) {
    if (!reduce::set_isa(isa)) continue;
    for (const std::size_t slot_bytes : {std::size_t{4096}, std::size_t{32} << 10}) {
      engine::Settings settings;
      settings.slots = 2;
      settings.slot_bytes = slot_bytes;
      Group world(everybody(size));
      run_job(size, settings, [&](int rank, engine::Process& process) {
        Comm* comm = make_comm(process, world, rank);
        for (const std::size_t count : counts) {
          for (const bool by_functions : {false, true}) Player<Comm>{*comm, count, by_functions}.play();
        }
        engine::comm_free(comm);
      });
    }
#if defined(__SANITIZE_THREAD__)
    break;  // kernels share nothing
#endif
  }
  reduce::set_isa(nullptr);
}

// Nodes of two ranks and of the rest, or ranks dealt in turn. Without keep_order the trees of the
// hierarchy combine in another order.
TEST_P(Reproducible, OneOrderByScheduleOnAnyPlacement) {
  const int size = GetParam();
  static const select::Rules none;
  for (const int placed : {0, 1, 2}) {
    topo::Placement placement;
    placement.start(size);
    ASSERT_TRUE(placed == 0 ||
                (placed == 1 ? placement.add_level_of("node", 2)
                             : placement.add_level_of("socket", 1) && placement.add_level_of("node", 3)));
    Mailboxes boxes(size, Sends::mixed, static_cast<std::uint64_t>(size));
    std::vector<std::jthread> threads;
    for (int r = 0; r < size; ++r) {
      threads.emplace_back([&, r] {
        select::Selector selector;
        ASSERT_TRUE(selector.start({.ranks = size, .nodes = 2, .forced = kNativeCollectives}, none));
        selector.keep_order();
        shm::WaitPolicy policy;
        policy.spins = 100;
        policy.yield_after_ns = 0;
        engine::Scheduler scheduler;
        ASSERT_TRUE(scheduler.open(r, placement, {}, boxes.transport(r), policy, std::move(selector)));
        for (const std::size_t count : {1, 7, 513, 20000}) {
          for (const bool by_functions : {false, true})
            Player<engine::Scheduler>{scheduler, count, by_functions}.play();
        }
      });
    }
    threads.clear();
    EXPECT_EQ(boxes.left_over(), 0u);
  }
}

// The order is worth a test only if it shows.
TEST(Reproducible, OtherOrdersGiveOtherBits) {
  constexpr std::size_t kCount = 1000;
  std::vector<double> from_right = contribution(7, kCount);
  for (int r = 6; r >= 0; --r) {
    for (std::size_t i = 0; i < kCount; ++i) from_right[i] = number(r, i) + from_right[i];
  }
  const std::vector<double> left = from_left(8, kCount);
  std::size_t differing = 0;
  for (std::size_t i = 0; i < kCount; ++i) differing += left[i] != from_right[i];
  EXPECT_GT(differing, kCount / 4);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Reproducible, testing::Values(2, 3, 5, 8));

}  // namespace
}  // namespace stretto::test
