// SPDX-License-Identifier: BSD-3-Clause
// Random reductions of a job of threads. Elements are 8-byte words. Their operation is associative
// but does not commute (2x2 matrices over Z/2^16). So a contribution combined out of rank order
// shows. Some calls add words: these may be combined in any order.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "engine/process.hpp"
#include "select/shm_rules.hpp"
#include "threads/job.hpp"

namespace stretto::test {

using engine::Comm;
using Matrix = std::array<std::uint16_t, 4>;
static_assert(sizeof(Matrix) == 8);

inline Matrix product(const Matrix& a, const Matrix& b) {
  const auto at = [](unsigned x, unsigned y, unsigned z, unsigned w) {
    return static_cast<std::uint16_t>(x * y + z * w);
  };
  return {at(a[0], b[0], a[1], b[2]), at(a[0], b[1], a[1], b[3]), at(a[2], b[0], a[3], b[2]),
          at(a[2], b[1], a[3], b[3])};
}

inline void fold(void* out, const void* left, const void* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<Matrix*>(out)[i] = product(static_cast<const Matrix*>(left)[i], static_cast<const Matrix*>(right)[i]);
  }
}
inline constexpr engine::KernelOp kProduct{.fold = fold, .element_bytes = sizeof(Matrix), .commutative = false};

inline Matrix sum(const Matrix& a, const Matrix& b) {
  Matrix c;
  for (int i = 0; i < 4; ++i) c[i] = static_cast<std::uint16_t>(a[i] + b[i]);
  return c;
}
inline void add(void* out, const void* left, const void* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<Matrix*>(out)[i] = sum(static_cast<const Matrix*>(left)[i], static_cast<const Matrix*>(right)[i]);
  }
}
inline constexpr engine::KernelOp kSum{.fold = add, .element_bytes = sizeof(Matrix)};

inline constexpr stretto::Run kWordRun{0, 8};
inline constexpr Layout kWords{8, 8, &kWordRun, 1, true};

inline Matrix element(std::uint64_t seed, int rank, std::uint64_t position) {
  std::uint64_t bits = seed * 0x9e3779b97f4a7c15u + rank * 0xbf58476d1ce4e5b9u + position * 0x94d049bb133111ebu;
  bits ^= bits >> 31;
  bits *= 0x7fb5d329728ea185u;
  bits ^= bits >> 27;
  return {static_cast<std::uint16_t>(bits), static_cast<std::uint16_t>(bits >> 16),
          static_cast<std::uint16_t>(bits >> 32), static_cast<std::uint16_t>(bits >> 48)};
}

inline std::vector<Matrix> contribution(std::uint64_t seed, int rank, std::size_t count) {
  std::vector<Matrix> v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = element(seed, rank, i);
  return v;
}

// Contributions of ranks [first, last), combined in rank order.
inline std::vector<Matrix> combined(std::uint64_t seed, int first, int last, std::size_t count, bool sums = false) {
  auto result = contribution(seed, first, count);
  for (int r = first + 1; r < last; ++r) {
    const auto next = contribution(seed, r, count);
    for (std::size_t i = 0; i < count; ++i) result[i] = sums ? sum(result[i], next[i]) : product(result[i], next[i]);
  }
  return result;
}

enum class Form { reduce, allreduce, reduce_scatter, scan, exscan, count_ };

struct Case {
  std::uint64_t seed;
  Form form;
  std::size_t count;
  int root;
  bool in_place;
  bool ordered;
  bool sums;
  std::vector<std::uint64_t> begins;

  Case(std::uint64_t s, int size) : seed(s) {
    std::mt19937_64 random(s);
    form = static_cast<Form>(random() % static_cast<int>(Form::count_));
    const std::size_t counts[] = {0, 1, 2, 13, 100, 512, 513, 3000, 20'000};
    count = counts[random() % std::size(counts)];
    root = static_cast<int>(random() % size);
    in_place = random() % 2 == 0;
    ordered = random() % 3 == 0;
    begins.push_back(0);
    for (int r = 1; r < size; ++r) begins.push_back(count == 0 ? 0 : random() % (count + 1));
    begins.push_back(count);
    std::sort(begins.begin(), begins.end());
    sums = !ordered && random() % 3 == 0;
  }
};

class Player {
 public:
  Player(Comm& comm, const Case& c) : comm_(comm), c_(c), rank_(comm_rank(comm)), size_(comm_size(comm)) {}

  void play() {
    EXPECT_EQ(attempt(true), Status::ok);
    judge();
  }

  // Makes the call without a look at its result. Not `good`: as a rank whose arguments are wrong.
  Status attempt(bool good) {
    good_ = good;
    own_ = contribution(c_.seed, rank_, c_.count);
    out_ = own_;
    if (!c_.in_place) std::fill(out_.begin(), out_.end(), Matrix{9, 9, 9, 9});
    untouched_ = out_;
    return c_.ordered ? run_ordered() : run_kernels();
  }

 private:
  Status run_kernels() {
    auto* out = reinterpret_cast<char*>(out_.data());
    const engine::KernelArgs v{c_.in_place ? out : reinterpret_cast<const char*>(own_.data()), out, 8 * c_.count,
                               good_};
    const engine::KernelOp& op = c_.sums ? kSum : kProduct;
    auto bytes = c_.begins;
    for (auto& b : bytes) b *= 8;
    switch (c_.form) {
      case Form::reduce: return engine::reduce(comm_, v, op, c_.root).status;
      case Form::allreduce: return engine::allreduce(comm_, v, op).status;
      case Form::reduce_scatter:
        return engine::reduce_scatter(comm_, Collective::reduce_scatter, v, op, bytes.data()).status;
      default: return engine::scan(comm_, v, op, c_.form == Form::exscan).status;
    }
  }

  Region words(std::vector<Matrix>& v, std::size_t count) {
    return {reinterpret_cast<char*>(v.data()), count, &kWords};
  }

  Status run_ordered() {
    const std::size_t at_once = std::min<std::size_t>(c_.count, engine::elements_at_once(sizeof(Matrix)));
    std::vector<Matrix> grown(at_once);
    std::vector<Matrix> arrived(at_once);
    const bool gets_part = c_.form == Form::reduce_scatter;
    const std::size_t result = gets_part ? c_.begins[rank_ + 1] - c_.begins[rank_] : c_.count;
    const bool gets_none = (c_.form == Form::reduce && rank_ != c_.root) || (c_.form == Form::exscan && rank_ == 0);
    const engine::FunctionArgs operands{words(c_.in_place ? out_ : own_, c_.count),
                                        gets_none ? Region{} : words(out_, result), words(grown, at_once),
                                        words(arrived, at_once), good_};
    const engine::FunctionOp operation{
        nullptr, [](void*, char* in, char* inout, std::uint64_t count) { fold(inout, in, inout, count); }};
    switch (c_.form) {
      case Form::reduce: return engine::reduce(comm_, operands, operation, c_.root).status;
      case Form::allreduce: return engine::allreduce(comm_, operands, operation).status;
      case Form::reduce_scatter:
        return engine::reduce_scatter(comm_, Collective::reduce_scatter, operands, operation, c_.begins.data()).status;
      default: return engine::scan(comm_, operands, operation, c_.form == Form::exscan).status;
    }
  }

  void judge() {
    std::vector<Matrix> expected = untouched_;
    if (c_.form == Form::allreduce || (c_.form == Form::reduce && rank_ == c_.root)) {
      expected = combined(c_.seed, 0, size_, c_.count, c_.sums);
    } else if (c_.form == Form::scan) {
      expected = combined(c_.seed, 0, rank_ + 1, c_.count, c_.sums);
    } else if (c_.form == Form::exscan && rank_ > 0) {
      expected = combined(c_.seed, 0, rank_, c_.count, c_.sums);
    } else if (c_.form == Form::reduce_scatter) {
      const auto all = combined(c_.seed, 0, size_, c_.count, c_.sums);
      std::copy(all.begin() + c_.begins[rank_], all.begin() + c_.begins[rank_ + 1], expected.begin());
    }
    EXPECT_TRUE(out_ == expected) << "seed " << c_.seed << " form " << static_cast<int>(c_.form) << " count "
                                  << c_.count << " in place " << c_.in_place << " ordered " << c_.ordered << " sums "
                                  << c_.sums << " rank " << rank_;
  }

  Comm& comm_;
  const Case& c_;
  int rank_;
  int size_;
  bool good_ = true;
  std::vector<Matrix> own_;
  std::vector<Matrix> out_;
  std::vector<Matrix> untouched_;
};

inline void obey(Comm& comm, const char* text) {
  select::Rules rules;
  select::ShmRules named;
  FileError error;
  ASSERT_TRUE(rules.parse(text, std::strlen(text), &error)) << error.what;
  ASSERT_TRUE(named.start(rules, engine::comm_size(comm), 1));
  engine::comm_obey(comm, std::move(named));
}

inline engine::Settings few_slots() {
  engine::Settings settings;
  settings.slots = 4;
  settings.slot_bytes = 4096;
  return settings;
}

// Random calls by what is built in, or by rules.
inline void combine_in_rank_order(int size, int cases, const char* text = "") {
  Group world(everybody(size));
  run_job(size, few_slots(), [&](int rank, engine::Process& process) {
    Comm* comm = make_comm(process, world, rank);
    ASSERT_NE(comm, nullptr);
    obey(*comm, text);
    for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i) {
      const Case c(5000u * size + i, size);
      if (c.seed % 7 == static_cast<unsigned>(rank))
        std::this_thread::sleep_for(std::chrono::microseconds(c.seed % 200));
      Player(*comm, c).play();
    }
    engine::comm_free(comm);
  });
}

// One rank of a call whose arguments are wrong, or whose count differs from the others'.
struct Mistake {
  int rank;
  bool uneven;
  std::size_t count;

  Mistake(std::uint64_t seed, const Case& c, int size) {
    std::mt19937_64 random(seed);
    const std::size_t counts[] = {0, 1, 13, 512, 513, 1024, 3000, 20'000};
    rank = static_cast<int>(random() % size);
    uneven = random() % 2 == 0;
    do count = counts[random() % std::size(counts)];
    while (count == c.count);
  }
  [[nodiscard]] Case as_made(Case c) const {
    c.count = count;
    for (auto& begin : c.begins) begin = std::min<std::uint64_t>(begin, count);
    c.begins.back() = count;
    return c;
  }
};

// No rank hangs. A rank that needs the faulty one's data learns of it. The next call is as good as
// any.
inline void judge_failure(const Case& c, const Mistake& m, int rank, Status status, bool needs_data) {
  const std::string what = "seed " + std::to_string(c.seed) + " rank " + std::to_string(rank) + " of mistake " +
                           std::to_string(m.rank) + (m.uneven ? " uneven " : " bad ") + std::to_string(m.count) +
                           " for " + std::to_string(c.count) + " form " + std::to_string(static_cast<int>(c.form));
  const bool in_the_wrong = rank == m.rank;
  const bool told = status == Status::peer_failed || status == Status::other_length;
  if (!m.uneven && in_the_wrong) {
    EXPECT_EQ(status, Status::invalid) << what;
    return;
  }
  EXPECT_TRUE(status == Status::ok || told) << what << " status " << static_cast<int>(status);
  const bool follows = rank > m.rank && (c.form == Form::scan || c.form == Form::exscan);
  const bool is_root = rank == c.root && (m.uneven || !in_the_wrong) && c.form == Form::reduce;
  const bool needs = c.form == Form::allreduce || follows || is_root || (c.form == Form::reduce_scatter && !m.uneven);
  if (needs && needs_data) {
    EXPECT_EQ(status, m.uneven ? Status::other_length : Status::peer_failed) << what;
  }
}

// In each call one rank makes a mistake.
inline void make_mistakes(int size, int cases, const char* text = "") {
  Group world(everybody(size));
  run_job(size, few_slots(), [&](int rank, engine::Process& process) {
    Comm* comm = make_comm(process, world, rank);
    ASSERT_NE(comm, nullptr);
    obey(*comm, text);
    for (int i = 0; i < cases; ++i) {
      const Case c(9000u * size + i, size);
      const Mistake m(c.seed, c, size);
      if ((c.seed * 31 + rank) % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(c.seed * 7 % 300));
      const bool wrong = rank == m.rank;
      const Case mine = wrong && m.uneven ? m.as_made(c) : c;
      // By slices and chains, short vectors leave some ranks nothing to combine or to wait for.
      const bool needs_data = *text == 0 || (c.count > 512 && m.count > 512);
      judge_failure(c, m, rank, Player(*comm, mine).attempt(!wrong || m.uneven), needs_data);
      // Makes several mistakes in a row, too.
      if (i % 3 == 0) Player(*comm, Case(c.seed + 77, size)).play();
    }
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    engine::comm_free(comm);
  });
}

}  // namespace stretto::test
