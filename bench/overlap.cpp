// SPDX-License-Identifier: BSD-3-Clause
// Paper S5's microbenchmark: how much of a collective hides behind the computation that follows it.
//
//   overlap [--order own|rank|alike|reverse] [--compute sleep|work] [--regimes abcde]
//           [--repeat N] [--rate LOOPS_PER_US] JOB...
//
// A JOB is OP:BYTES or OP:BYTES:COMM_US. BYTES is the length of a block. COMM_US is the time of the
// blocking call; without it, the program measures that first.
//
// After the call, each rank computes for some time on its own data, then piece by piece on the
// received data. The program touches a piece, then computes for the piece's share of the time.
// Regimes say how long, in units of the call's time (kRegimes).
//
// --order is the order in which blocks are touched:
//   own      the own block, then those of the ranks before it
//   rank     blocks 0 to N-1
//   reverse  blocks N-1 to 0
//   alike    each piece has a part of every block
//
// --compute sleep needs no processor. "work" is a loop; its speed is measured, or given by --rate,
// so that several runs do the same work.
//
// Each repetition has other data. The program checks a word of each page when it is touched, and
// every word afterwards. Times are medians over repetitions of the slowest rank's. "init" is the
// time within the call, "cpu" what the processes took beyond their computing.
#include <mpi.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "clock.hpp"
#include "exchange.hpp"

namespace {

using namespace stretto::benching;

struct Regime {
  char name;
  double curc, crc;  // computing on own data, and on received data; 1 is the time of the call
};
// As in S5, table 1.
constexpr Regime kRegimes[] = {{'a', 1.66, 1.30}, {'b', 0, 1.31}, {'c', 0, 0.65}, {'d', 0.66, 1.31}, {'e', 0.66, 0.65}};

int me = 0, size = 1;
constexpr double kSlack_ns = 3e6;  // for all ranks to get ready; some may share a processor

[[noreturn]] void fail(const char* what, const char* text) {
  if (me == 0) std::fprintf(stderr, "overlap: %s: %s\n", what, text);
  MPI_Abort(MPI_COMM_WORLD, 2);
  std::abort();
}

// ---- computing ----

enum class Order { own, rank, alike, reverse };
constexpr const char* kOrders[] = {"own", "rank", "alike", "reverse"};

Order order = Order::own;
bool works = false;  // or sleeps
double rate = 0;     // loops in a us

double loop(double loops) {
  volatile double kept = 1;
  double x = kept;
  for (auto n = static_cast<std::int64_t>(loops); n > 0; --n) x = x * 1.0000001 + 1e-9;
  kept = x;
  return kept;
}

double cpu_us(int who) {
  rusage used{};
  getrusage(who, &used);
  const auto us = [](const timeval& t) { return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec); };
  return us(used.ru_utime) + us(used.ru_stime);
}

// By this thread's processor time, because ranks may share processors.
double measured_rate() {
  constexpr double kLoops = 1 << 22;
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const double begin = cpu_us(RUSAGE_THREAD);
    loop(kLoops);
    best = std::max(best, kLoops / std::max(1.0, cpu_us(RUSAGE_THREAD) - begin));
  }
  MPI_Bcast(&best, 1, MPI_DOUBLE, kRoot, MPI_COMM_WORLD);
  return best;
}

double now_us() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

// A sleep lasts longer than asked for. The next ones are shorter by that.
class Computing {
 public:
  void run(double us) {
    if (works) {
      loop(us * rate);
      return;
    }
    due_us_ += us;
    if (due_us_ <= 0) return;
    const double begin = now_us();
    const auto ns = static_cast<long>(due_us_ * 1e3);
    const timespec nap{ns / 1'000'000'000, ns % 1'000'000'000};
    nanosleep(&nap, nullptr);
    due_us_ -= now_us() - begin;
  }

 private:
  double due_us_ = 0;
};

using Piece = std::vector<Slice>;  // what is touched before a share of the computing

std::vector<int> touch_order(int blocks) {
  std::vector<int> list(static_cast<std::size_t>(blocks));
  std::iota(list.begin(), list.end(), 0);
  if (order == Order::reverse) std::reverse(list.begin(), list.end());
  if (order == Order::own && blocks == size)
    for (int i = 0; i < blocks; ++i) list[static_cast<std::size_t>(i)] = (me - i + size) % size;
  return list;
}

std::vector<Piece> pieces_of(const Exchange& exchange) {
  const std::size_t parts = exchange.pieces_of_block();
  std::vector<Piece> pieces;
  if (!exchange.receives()) return pieces;
  if (order == Order::alike) pieces.resize(parts);
  for (const int b : touch_order(exchange.blocks()))
    for (std::size_t p = 0; p < parts; ++p) {
      if (order == Order::alike)
        pieces[p].push_back(exchange.slice(b, p, parts));
      else
        pieces.push_back({exchange.slice(b, p, parts)});
    }
  return pieces;
}

// ---- timing ----

struct Times {
  double total = 0, init = 0, cpu = 0;
};

class Bench {
 public:
  Bench(const Clock& clock, const Op& op, std::size_t bytes)
      : clock_(clock), op_(op), exchange_(op, bytes / sizeof(Word), me, size) {}

  [[nodiscard]] std::size_t pieces_of_block() const { return exchange_.pieces_of_block(); }

  // The call, and a touch of all that it brings.
  Times communicate() {
    exchange_.prepare();
    const double begin = start();
    exchange_.call();
    const double init = now_us() - begin;
    const long wrong = exchange_.touch_all();
    const Times times{now_us() - begin, init, 0};
    judge(wrong);
    return times;
  }
  // The call and computing; or computing alone, on data that are there.
  Times compute(double curc_us, double crc_us, bool with_call) {
    if (with_call) exchange_.prepare();
    const std::vector<Piece> pieces = pieces_of(exchange_);
    const double begin = start(), cpu = cpu_us(RUSAGE_SELF);
    if (with_call) exchange_.call();
    const double init = now_us() - begin;
    Computing computing;
    long wrong = 0;
    computing.run(curc_us);
    for (const Piece& piece : pieces) {
      for (const Slice& slice : piece) wrong += exchange_.touch(slice);
      computing.run(crc_us / static_cast<double>(pieces.size()));
    }
    if (pieces.empty()) computing.run(crc_us);
    const Times times{now_us() - begin, init, cpu_us(RUSAGE_SELF) - cpu};
    judge(wrong);
    return times;
  }

 private:
  double start() const {
    clock_.begin_together(kSlack_ns);
    return now_us();
  }
  void judge(long wrong) const {
    wrong += exchange_.check();
    if (wrong == 0) return;
    std::fprintf(stderr, "overlap: %s: rank %d: %ld wrong words\n", op_.name, me, wrong);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }

  const Clock& clock_;
  const Op& op_;
  Exchange exchange_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

// Of one value on each rank in each repetition: the median of the largest, or of the sums.
double across_ranks(std::vector<double> mine, MPI_Op by = MPI_MAX) {
  std::vector<double> all(mine.size());
  MPI_Allreduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_DOUBLE, by, MPI_COMM_WORLD);
  return median(all);
}

double communication_us(Bench& bench, int repeat) {
  std::vector<double> totals;
  bench.communicate();
  for (int i = 0; i < repeat; ++i) totals.push_back(bench.communicate().total);
  return across_ranks(totals);
}

struct Job {
  const Op* op = nullptr;
  std::size_t bytes = 0;
  double comm_us = 0;
};

Job parse_job(const std::string& text) {
  Job job;
  const std::size_t first = text.find(':'), second = text.find(':', first == std::string::npos ? first : first + 1);
  for (const Op& op : kOps)
    if (text.substr(0, first) == op.name) job.op = &op;
  if (first != std::string::npos) job.bytes = std::strtoull(text.c_str() + first + 1, nullptr, 10);
  if (second != std::string::npos) job.comm_us = std::strtod(text.c_str() + second + 1, nullptr);
  const bool fits = job.bytes / sizeof(Word) + kGapWords < (std::size_t{1} << 31) / static_cast<std::size_t>(size);
  if (job.op == nullptr || job.bytes == 0 || job.bytes % sizeof(Word) != 0 || !fits)
    fail("no such job, or a size that is no multiple of 8", text.c_str());
  return job;
}

void measure_regime(Bench& bench, const Job& job, const Regime& regime, double base_us, double comm_us, int repeat) {
  const double curc = regime.curc * base_us, crc = regime.crc * base_us;
  std::vector<double> totals, inits, comps, cpus;
  for (int i = 0; i < repeat; ++i) {
    const Times with = bench.compute(curc, crc, true), without = bench.compute(curc, crc, false);
    totals.push_back(with.total);
    inits.push_back(with.init);
    comps.push_back(without.total);
    cpus.push_back(std::max(0.0, with.cpu - without.cpu));
  }
  const double total = across_ranks(totals), init = across_ranks(inits), comp = across_ranks(comps);
  const double cpu = across_ranks(cpus), cpu_of_all = across_ranks(cpus, MPI_SUM);
  if (me != 0) return;
  std::printf(
      "{\"event\": \"row\", \"op\": \"%s\", \"bytes\": %zu, \"regime\": \"%c\", \"pieces\": %zu, \"curc_us\": %.1f, "
      "\"crc_us\": %.1f, \"comm_us\": %.1f, \"comp_us\": %.1f, \"total_us\": %.1f, \"init_us\": %.1f, "
      "\"cpu_us\": %.1f, \"cpu_of_all_us\": %.1f}\n",
      job.op->name, job.bytes, regime.name, bench.pieces_of_block(), curc, crc, comm_us, comp, total, init, cpu,
      cpu_of_all);
  std::fflush(stdout);
}

template <std::size_t n>
std::size_t index_of(const char* const (&names)[n], const char* option, const char* text) {
  for (std::size_t i = 0; i < n; ++i)
    if (std::strcmp(names[i], text) == 0) return i;
  fail(option, text);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int repeat = 5, at = 1;
  std::string regimes = "abcde";
  for (; at + 1 < argc && std::strncmp(argv[at], "--", 2) == 0; at += 2) {
    constexpr const char* kOptions[] = {"--order", "--compute", "--regimes", "--repeat", "--rate"};
    constexpr const char* kComputing[] = {"sleep", "work"};
    switch (index_of(kOptions, "unknown option", argv[at])) {
      case 0: order = static_cast<Order>(index_of(kOrders, "--order", argv[at + 1])); break;
      case 1: works = index_of(kComputing, "--compute", argv[at + 1]) == 1; break;
      case 2: regimes = argv[at + 1]; break;
      case 3: repeat = std::max(1, std::atoi(argv[at + 1])); break;
      default: rate = std::strtod(argv[at + 1], nullptr);
    }
  }
  if (works && rate <= 0) rate = measured_rate();
  if (me == 0) std::printf("{\"event\": \"plan\", \"ranks\": %d, \"rate\": %.6f}\n", size, rate);
  const Clock clock(MPI_COMM_WORLD, true);
  for (; at < argc; ++at) {
    const Job job = parse_job(argv[at]);
    Bench bench(clock, *job.op, job.bytes);
    const double comm_us = communication_us(bench, repeat);
    for (const Regime& regime : kRegimes)
      if (regimes.find(regime.name) != std::string::npos)
        measure_regime(bench, job, regime, job.comm_us > 0 ? job.comm_us : comm_us, comm_us, repeat);
  }
  if (me == 0) std::printf("{\"event\": \"done\"}\n");
  MPI_Finalize();
}
