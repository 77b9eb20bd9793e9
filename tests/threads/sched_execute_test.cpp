// SPDX-License-Identifier: BSD-3-Clause
// Every algorithm on real numbers. Ranks are threads, and messages go by mailboxes that buffer,
// wait, refuse and reorder. The results are compared with the ranks' numbers combined one after the
// other.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "coll/algorithm.hpp"
#include "coll/hierarchy/compose.hpp"
#include "coll/postcondition.hpp"
#include "reduce/reduce.hpp"
#include "threads/mailbox.hpp"

namespace stretto::test {
namespace {

using coll::Algorithm;
using coll::Job;
using coll::Parameters;
using Bytes = std::vector<char>;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kTrials = 3;
#else
constexpr int kTrials = 12;
#endif

// What a unit is, and how two of them are combined.
struct Kind {
  const char* name;
  std::size_t bytes;
  bool commutative;
  sched::Combination combination;
};

using Matrix = std::array<std::uint16_t, 4>;
void multiply(void*, char* out, const char* left, const char* right, std::uint64_t units) {
  for (std::uint64_t i = 0; i < units; ++i) {
    Matrix a, b;
    std::memcpy(&a, left + i * sizeof a, sizeof a);
    std::memcpy(&b, right + i * sizeof b, sizeof b);
    const auto at = [](unsigned x, unsigned y, unsigned z, unsigned w) {
      return static_cast<std::uint16_t>(x * y + z * w);
    };
    const Matrix product = {at(a[0], b[0], a[1], b[2]), at(a[0], b[1], a[1], b[3]), at(a[2], b[0], a[3], b[2]),
                            at(a[2], b[1], a[3], b[3])};
    std::memcpy(out + i * sizeof product, &product, sizeof product);
  }
}
template <reduce::Op op, reduce::Type type>
void by_kernel(void*, char* out, const char* left, const char* right, std::uint64_t units) {
  reduce::kernel3(op, type)(out, left, right, units);
}
constexpr Kind kKinds[] = {
    {"matrix product", sizeof(Matrix), false, {nullptr, multiply}},
    {"int32 sum", 4, true, {nullptr, by_kernel<reduce::Op::sum, reduce::Type::i32>}},
    {"int64 max", 8, true, {nullptr, by_kernel<reduce::Op::max, reduce::Type::i64>}},
    {"uint16 xor", 2, true, {nullptr, by_kernel<reduce::Op::bxor, reduce::Type::u16>}},
    {"uint8 product", 1, true, {nullptr, by_kernel<reduce::Op::prod, reduce::Type::u8>}},
};

std::uint64_t mixed(std::uint64_t x) {
  x *= 0x9e3779b97f4a7c15u;
  x ^= x >> 31;
  x *= 0xbf58476d1ce4e5b9u;
  return x ^ x >> 29;
}

struct Trial {
  const Algorithm* algorithm;
  Job job;
  Parameters parameters;
  const Kind* kind;
  std::uint64_t seed;

  Trial(const Algorithm& a, int size, std::uint64_t s) : algorithm(&a), seed(s) {
    std::mt19937_64 random(seed);
    kind = &kKinds[random() % std::size(kKinds)];
    if (a.needs & Algorithm::commutative && !kind->commutative) kind = &kKinds[1];
    const std::uint64_t counts[] = {0, 1, 3, 40, 1000};
    auto& p = job.problem;
    p.collective = a.collective;
    p.size = size;
    p.root = job.is_rooted() ? static_cast<int>(random() % static_cast<unsigned>(size)) : 0;
    p.in_place = a.collective != Collective::bcast && random() % 2 == 0;
    p.commutative = kind->commutative;
    p.count = counts[random() % std::size(counts)];
    parameters = {static_cast<int>(1 + random() % 5), static_cast<int>(random() % 5), static_cast<int>(random() % 4)};
    if (!(a.needs & Algorithm::equal_parts) && random() % 2 == 0) uneven(random);
  }

  void uneven(std::mt19937_64& random) {
    const int size = job.problem.size;
    const auto form = job.problem.collective;
    if (form == Collective::gather || form == Collective::scatter || form == Collective::allgather ||
        form == Collective::reduce_scatter) {
      job.begins.push_back(0);
      for (int r = 0; r < size; ++r) job.begins.push_back(job.begins.back() + random() % 100);
    }
    if (form != Collective::alltoall) return;
    job.exchanged.resize(static_cast<std::size_t>(size * size));
    for (int i = 0; i < size; ++i) {
      for (int j = 0; j < size; ++j) {
        const bool mirrored = job.problem.in_place && j < i;
        job.exchanged[static_cast<std::size_t>(i * size + j)] =
            mirrored ? job.exchanged[static_cast<std::size_t>(j * size + i)] : random() % 100;
      }
    }
  }

  [[nodiscard]] Bytes input(int rank, std::uint64_t units) const {
    Bytes bytes(units * kind->bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<char>(mixed(seed + static_cast<std::uint64_t>(rank) * 65537 + i));
    return bytes;
  }
};

// What MPI says must be in each receive buffer, from the inputs alone.
class Oracle {
 public:
  explicit Oracle(const Trial& trial) : t_(trial), p_(trial.job.problem) {
    coll::View view(trial.job);
    for (int r = 0; r < p_.size; ++r) {
      const coll::Problem& problem = view.of(r);
      const coll::Extent units = coll::extent(problem);
      const bool aside = units.send == 0 && units.receive != 0 && (p_.in_place || p_.collective == Collective::bcast);
      before_.push_back(aside ? trial.input(r, units.receive) : Bytes(units.receive * t_.kind->bytes, 'x'));
      input_.push_back(aside ? before_.back() : trial.input(r, units.send));
      problems_.push_back(problem);
      for (const std::uint64_t* begins : {problem.begins, problem.sent_begins}) {
        begins_.emplace_back();
        if (begins) begins_.back().assign(begins, begins + p_.size + 1);
      }
    }
  }

  [[nodiscard]] const Bytes& input(int r) const { return input_[r]; }
  [[nodiscard]] const Bytes& before(int r) const { return before_[r]; }
  [[nodiscard]] coll::Problem problem(int r) const {
    coll::Problem problem = problems_[r];
    problem.begins = problem.begins ? begins_[2 * r].data() : nullptr;
    problem.sent_begins = problem.sent_begins ? begins_[2 * r + 1].data() : nullptr;
    return problem;
  }

  [[nodiscard]] Bytes after(int r) const {
    Bytes out = before_[r];
    const bool root = r == p_.root;
    switch (p_.collective) {
      case Collective::bcast: return input_[p_.root];
      case Collective::reduce: return root ? combined(0, p_.size) : out;
      case Collective::allreduce: return combined(0, p_.size);
      case Collective::scan: return combined(0, r + 1);
      case Collective::exscan: return r == 0 ? out : combined(0, r);
      case Collective::gather:
        if (root) gather(r, out);
        return out;
      case Collective::allgather: gather(r, out); return out;
      case Collective::scatter:
        if (!(root && p_.in_place)) put(out, 0, input_[p_.root], begin(problem(r), r), length(problem(r), r));
        return out;
      case Collective::alltoall:
        for (int i = 0; i < p_.size; ++i) {
          coll::Problem from = problem(i);
          from.begins = from.sent_begins ? from.sent_begins : from.begins;
          put(out, begin(problem(r), i), input_[i], begin(from, r), length(from, r));
        }
        return out;
      case Collective::reduce_scatter:
        put(out, 0, combined(0, p_.size), begin(problem(r), r), length(problem(r), r));
        return out;
      default: return out;
    }
  }

 private:
  static std::uint64_t begin(const coll::Problem& p, int i) {
    return p.begins ? p.begins[i] : p.count * static_cast<std::uint64_t>(i);
  }
  static std::uint64_t length(const coll::Problem& p, int i) { return begin(p, i + 1) - begin(p, i); }
  void put(Bytes& to, std::uint64_t at, const Bytes& from, std::uint64_t from_at, std::uint64_t units) const {
    const std::size_t b = t_.kind->bytes;
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(from_at * b), units * b,
                to.begin() + static_cast<std::ptrdiff_t>(at * b));
  }
  void gather(int r, Bytes& out) const {
    const coll::Problem p = problem(r);
    for (int i = 0; i < p_.size; ++i) {
      const bool aside = p_.in_place && (i == p_.root || p_.collective == Collective::allgather);
      put(out, begin(p, i), input_[i], aside ? begin(p, i) : 0, length(p, i));
    }
  }
  [[nodiscard]] Bytes combined(int first, int last) const {
    // In place, a reduce_scatter's receive buffer holds the whole vector. What is left of others'
    // parts does not matter.
    Bytes sum = input_[first];
    for (int r = first + 1; r < last; ++r) {
      const auto& c = t_.kind->combination;
      c.apply(c.context, sum.data(), sum.data(), input_[r].data(), sum.size() / t_.kind->bytes);
    }
    return sum;
  }

  const Trial& t_;
  const coll::Problem& p_;
  std::vector<Bytes> input_, before_;
  std::vector<coll::Problem> problems_;
  std::vector<std::vector<std::uint64_t>> begins_;
};

using BuildRank = std::function<sched::Schedule(coll::Builder&, const coll::Problem&)>;

void play(const Trial& trial, const Oracle& oracle, const BuildRank& build_rank, Mailboxes& boxes, int rank) {
  coll::Builder builder;
  sched::Program program;
  sched::Execution execution;
  ASSERT_TRUE(program.prepare(build_rank(builder, oracle.problem(rank))));
  ASSERT_TRUE(execution.prepare(program));
  Bytes send = oracle.input(rank);
  Bytes receive = oracle.before(rank);
  Bytes scratch(program.scratch_units() * trial.kind->bytes, 's');
  const Bytes given = send;
  sched::Binding binding{
      {send.data(), receive.data(), scratch.data()}, trial.kind->bytes, trial.kind->combination, boxes.transport(rank)};
  shm::WaitPolicy policy;
  policy.spins = 100;
  policy.yield_after_ns = 0;
  EXPECT_EQ(execution.run(binding, policy), Status::ok);
  EXPECT_TRUE(send == given) << "the send buffer was written";
  Bytes expected = oracle.after(rank);
  const bool leftovers = trial.algorithm->collective == Collective::reduce_scatter && trial.job.problem.in_place;
  if (leftovers) {  // behind the result, the in-place buffer may hold anything
    const coll::Problem p = oracle.problem(rank);
    const std::uint64_t own = p.begins ? p.begins[rank + 1] - p.begins[rank] : p.count;
    expected.resize(own * trial.kind->bytes);
    receive.resize(expected.size());
  }
  EXPECT_TRUE(receive == expected) << kCollectiveNames[static_cast<int>(trial.algorithm->collective)] << ":"
                                   << trial.algorithm->name << " seed " << trial.seed << " rank " << rank << " of "
                                   << trial.job.problem.size << ", " << trial.kind->name;
}

void play_job(const Trial& trial, const BuildRank& build_rank, Sends sends) {
  const int size = trial.job.problem.size;
  const Oracle oracle(trial);
  Mailboxes boxes(size, sends, trial.seed);
  {
    std::vector<std::jthread> ranks;
    for (int r = 0; r < size; ++r) ranks.emplace_back([&, r] { play(trial, oracle, build_rank, boxes, r); });
  }
  EXPECT_EQ(boxes.left_over(), 0u);
}
constexpr Sends kSends[] = {Sends::buffered, Sends::waiting, Sends::mixed};

class Executes : public testing::TestWithParam<const Algorithm*> {};

TEST_P(Executes, WhatTheOracleSays) {
  for (const int size : {1, 2, 3, 5, 8, 13}) {
    for (int i = 0; i < kTrials && !HasFailure(); ++i) {
      const Trial trial(*GetParam(), size, static_cast<std::uint64_t>(size * 1000 + i));
      play_job(
          trial,
          [&](coll::Builder& b, const coll::Problem& p) {
            return coll::build(b, *trial.algorithm, p, trial.parameters);
          },
          kSends[i % 3]);
    }
  }
}

std::vector<const Algorithm*> all_algorithms() {
  std::vector<const Algorithm*> all;
  for (const Algorithm& algorithm : coll::manifest()) {
    if (algorithm.collective != Collective::barrier) all.push_back(&algorithm);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Manifest, Executes, testing::ValuesIn(all_algorithms()), [](const auto& each) {
  return std::string(kCollectiveNames[static_cast<int>(each.param->collective)]) + "_" + each.param->name;
});

// Ranks on nodes and leaf switches, in any order: the compositions of all levels.
class ExecutesLevels : public testing::TestWithParam<Collective> {};

TEST_P(ExecutesLevels, WhatTheOracleSays) {
  // It stands for the collective, and restricts nothing.
  const Algorithm& any =
      *std::find_if(coll::manifest().begin(), coll::manifest().end(), [](const Algorithm& algorithm) {
        return algorithm.collective == GetParam() &&
               !(algorithm.needs & (Algorithm::commutative | Algorithm::equal_parts));
      });
  for (const int size : {4, 7, 12, 16}) {
    for (int i = 0; i < kTrials && !HasFailure(); ++i) {
      const Trial trial(any, size, static_cast<std::uint64_t>(size * 1000 + i));
      std::mt19937_64 random(trial.seed);
      topo::Placement placement;
      placement.start(size);
      ASSERT_TRUE(placement.add_level("node") && placement.add_level("leaf"));
      for (int r = 0; r < size; ++r) {
        const int seat = i % 2 == 0 ? r : static_cast<int>(random() % static_cast<unsigned>(size));
        placement.at(0, r) = seat / 3;
        placement.at(1, r) = seat / 6;
        placement.nics.push({static_cast<std::uint32_t>(1 + random() % 3), 0});
      }
      topo::Hierarchy hierarchy;
      ASSERT_TRUE(hierarchy.build(placement));
      coll::HierarchyPlan plan;
      plan.segments = trial.parameters.segments;
      plan.form = static_cast<coll::Form>(i % coll::kForms);
      play_job(
          trial,
          [&](coll::Builder& b, const coll::Problem& p) { return coll::build_hierarchical(b, hierarchy, plan, p); },
          kSends[i % 3]);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Composed, ExecutesLevels,
                         testing::Values(Collective::bcast, Collective::reduce, Collective::allreduce,
                                         Collective::gather, Collective::scatter, Collective::allgather,
                                         Collective::reduce_scatter, Collective::scan, Collective::exscan,
                                         Collective::alltoall),
                         [](const auto& each) { return std::string(kCollectiveNames[static_cast<int>(each.param)]); });

// No rank leaves a barrier before the last one has come.
class Barriers : public testing::TestWithParam<const char*> {};

TEST_P(Barriers, HoldEverybodyBack) {
  const Algorithm* algorithm = coll::find_algorithm(Collective::barrier, GetParam());
  ASSERT_NE(algorithm, nullptr);
  for (const int size : {1, 2, 3, 6, 11}) {
    Mailboxes boxes(size, Sends::mixed, static_cast<std::uint64_t>(size));
    std::atomic<int> arrived{0};
    std::vector<std::jthread> ranks;
    for (int r = 0; r < size; ++r) {
      ranks.emplace_back([&, r] {
        coll::Builder builder;
        sched::Program program;
        sched::Execution execution;
        coll::Problem problem;
        problem.size = size;
        problem.rank = r;
        ASSERT_TRUE(program.prepare(coll::build(builder, *algorithm, problem, {})) && execution.prepare(program));
        std::this_thread::sleep_for(std::chrono::microseconds(mixed(static_cast<std::uint64_t>(r)) % 500));
        arrived.fetch_add(1);
        EXPECT_EQ(execution.run({{}, 1, {}, boxes.transport(r)}, {}), Status::ok);
        EXPECT_EQ(arrived.load(), size);
      });
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Manifest, Barriers, testing::Values("dissemination", "recursive_doubling", "tree"));

TEST(Execution, KeepsManyReceivesOfShortVectorsOpenAndTwoOfLongOnes) {
  for (const auto& [count, expected] :
       {std::pair{std::uint64_t{4}, 16}, {std::uint64_t{16} << 10, 4}, {std::uint64_t{1} << 20, 2}}) {
    coll::Builder builder;
    sched::Program program;
    sched::Execution execution;
    coll::Problem problem;
    problem.collective = Collective::reduce;
    problem.size = 40;
    problem.count = count;
    problem.commutative = true;
    ASSERT_TRUE(program.prepare(coll::build(builder, *coll::find_algorithm(Collective::reduce, "flat"), problem, {})));
    ASSERT_TRUE(execution.prepare(program));
    Bytes send(count), receive(count), scratch(program.scratch_units());
    int open = 0;
    sched::Binding binding{{send.data(), receive.data(), scratch.data()}, 1, kKinds[4].combination, {}};
    binding.transport.context = &open;
    binding.transport.recv = [](void* context, int, std::uint32_t, char*, std::uint64_t, std::uint32_t) {
      ++*static_cast<int*>(context);
      return true;
    };
    binding.transport.poll = [](void*, std::uint32_t*, int) { return 0; };
    execution.start(binding);
    while (execution.advance()) {
    }
    EXPECT_EQ(open, expected) << count << " units";
  }
}

TEST(Execution, EndsWhenTheTransportBreaks) {
  coll::Builder builder;
  sched::Program program;
  sched::Execution execution;
  coll::Problem problem;
  problem.collective = Collective::bcast;
  problem.size = 2;
  problem.rank = 1;
  problem.count = 4;
  ASSERT_TRUE(program.prepare(coll::build(builder, *coll::find_algorithm(Collective::bcast, "flat"), problem, {})));
  ASSERT_TRUE(execution.prepare(program));
  char memory[4];
  sched::Binding binding{{nullptr, memory, nullptr}, 1, {}, {}};
  binding.transport.recv = [](void*, int, std::uint32_t, char*, std::uint64_t, std::uint32_t) { return true; };
  binding.transport.poll = [](void*, std::uint32_t*, int) { return -1; };
  EXPECT_EQ(execution.run(binding, {}), Status::peer_failed);
}

}  // namespace
}  // namespace stretto::test
