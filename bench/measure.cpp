// SPDX-License-Identifier: BSD-3-Clause
// Method `imb` is paper S1's, section 3, which is IMB with -off_cache and -root_shift. Each call
// has a buffer that is in no cache, another root, and a barrier before it. The slowest rank's time
// counts. Of five rounds, the smallest and the largest do not count.
//
// Other than in S1, the contenders take turns within one run. What else the machine does then
// affects all of them. A round's value is the median of its calls.
#include "measure.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace bench {
namespace {

constexpr int kRounds = 5;
constexpr int kBatches = 8;       // of each contender in a round
constexpr int kMostCalls = 1000;  // of a contender in a round
constexpr std::size_t kLeastFragment = 1 << 10, kMostFragment = 64 << 10;
constexpr double kSlowCall_s = 0.02;  // one such call is enough to judge how many the budget holds

void run(Bench& b, const Op& op, int contender, const Call& call) {
  switch (contender) {
    case kBound: op.bound(b.bound, call); break;
    case kPlain: op.plain(call, b.send.next()); break;
    default: op.mpi(b.functions[contender], call);
  }
}

Call next_call(Bench& b, const Shape& shape) {
  const int root = b.plan.root_shift ? static_cast<int>(b.turn % static_cast<unsigned>(b.team.size())) : 0;
  ++b.turn;
  return {&shape, b.send.next(), b.receive.next(), root, b.team.rank()};
}

std::size_t received_bytes(const Op& op, const Call& call) {
  const bool receives = op.receivers == Receivers::all || (op.receivers == Receivers::root) == (call.rank == call.root);
  return receives ? op.receive_bytes(*call.shape) : 0;
}

std::size_t sent_bytes(const Op& op, const Call& call) {
  return op.receivers != Receivers::others || call.rank == call.root ? op.send_bytes(*call.shape) : 0;
}

// Makes every cache line this processor's own.
void write_all(char* data, std::size_t bytes) {
  for (; bytes >= sizeof(std::uint64_t); data += sizeof(std::uint64_t), bytes -= sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, data, sizeof word);
    word ^= 1;
    std::memcpy(data, &word, sizeof word);
  }
  for (; bytes != 0; ++data, --bytes) *data = static_cast<char>(*data ^ 1);
}

void read_all(const char* data, std::size_t bytes) {
  std::uint64_t sum = 0;
  for (; bytes >= sizeof sum; data += sizeof sum, bytes -= sizeof sum) {
    std::uint64_t word;
    std::memcpy(&word, data, sizeof word);
    sum += word;
  }
  for (; bytes != 0; ++data, --bytes) sum += static_cast<unsigned char>(*data);
  asm volatile("" : : "r"(sum));
}

void barrier_of(Bench& b, int contender, const Call& call) {
  static const Op& barrier = *find_op("barrier");
  contender == kOurs || contender == kHost ? run(b, barrier, contender, call) : b.team.barrier();
}

// The call's time on this rank in nanoseconds, from a common start or, by method osu, from its own.
double timed_call(Bench& b, const Op& op, int contender, const Shape& shape) {
  const Call call = next_call(b, shape);
  const bool own_start = b.plan.method == Method::osu;
  const std::uint64_t start = own_start ? now_ns() : b.team.common_start();
  if (b.plan.method == Method::live) write_all(call.send, sent_bytes(op, call));
  run(b, op, contender, call);
  if (b.plan.reads()) read_all(call.receive, received_bytes(op, call));
  const std::uint64_t end = now_ns();
  const std::uint64_t took = end - start;
  if (own_start) barrier_of(b, contender, call);
  return took > b.clock_ns ? static_cast<double>(took - b.clock_ns) : 0;
}

// ---- Verification ----

bool barrier_is_one(Bench& b, const Op& op, int contender, const Shape& shape) {
  double* entered = b.team.times(b.team.rank());
  b.team.barrier();
  entered[0] = 0;
  b.team.barrier();
  std::atomic_ref<double>(entered[0]).store(1, std::memory_order_release);
  run(b, op, contender, next_call(b, shape));
  bool good = true;
  for (int peer = 0; peer < b.team.size(); ++peer) {
    good = good && std::atomic_ref<double>(b.team.times(peer)[0]).load(std::memory_order_acquire) == 1;
  }
  return good;
}

// Makes one call with a known content. Compares the whole receive buffer and some bytes behind it.
bool result_is_right(Bench& b, const Op& op, int contender, const Shape& shape, int root) {
  constexpr std::size_t kGuard = 64;
  std::vector<char> send(op.send_bytes(shape) + kGuard);
  std::vector<char> receive(op.receive_bytes(shape) + kGuard, '\x5a');
  for (std::size_t i = 0; i < send.size(); ++i) send[i] = pattern(b.team.rank(), i);
  const std::vector<char> sent = send;
  std::vector<char> image = receive;
  const Call call{&shape, send.data(), receive.data(), root, b.team.rank()};
  op.expect(call, image.data());
  run(b, op, contender, call);
  return receive == image && send == sent;
}

void verify(Bench& b, const Op& op, int contender, const Shape& shape) {
  static const char* const names[] = {"the intercepted function", "the host's function", "the bound"};
  bool good = true;
  if (op.has_data) {
    good = result_is_right(b, op, contender, shape, 0);
    if (b.plan.root_shift) good = result_is_right(b, op, contender, shape, b.team.size() - 1) && good;
  } else {
    good = barrier_is_one(b, op, contender, shape);
  }
  if (b.team.all(good)) return;
  if (!good)
    fail("%s: %s computes a wrong result on rank %d at %zu bytes", op.name, names[contender], b.team.rank(),
         shape.bytes);
  for (;;) b.team.all(true);  // the rank that has the wrong result ends the job
}

// ---- How many calls, and the bound's way ----

double wall_of_one_call_s(Bench& b, const Op& op, int contender, const Shape& shape) {
  double best = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t start = now_ns();
    timed_call(b, op, contender, shape);
    b.team.barrier();
    const double took = b.team.agree(static_cast<double>(now_ns() - start) * 1e-9);
    best = i == 0 ? took : std::min(best, took);
    if (took > kSlowCall_s) break;
  }
  return best;
}

int calls_for(Bench& b, const Op& op, int contender, const Shape& shape) {
  const double one_s = wall_of_one_call_s(b, op, contender, shape);
  if (b.plan.calls > 0) return std::min(b.plan.calls, static_cast<int>(kMaxCalls));
  return static_cast<int>(
      std::clamp(b.plan.budget_s / kRounds / std::max(one_s, 1e-9), 1.0, static_cast<double>(kMostCalls)));
}

// The time of each of the `calls` calls whose times the ranks have left: the slowest rank's, or by
// method osu the mean. For rank 0.
std::vector<double> time_of_each(Bench& b, int calls) {
  std::vector<double> result(static_cast<std::size_t>(calls), 0);
  const bool mean = b.plan.method == Method::osu;
  for (int peer = 0; peer < b.team.size(); ++peer) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      const double ns = b.team.times(peer)[i];
      result[i] = mean ? result[i] + ns / b.team.size() : std::max(result[i], ns);
    }
  }
  return result;
}

double trial_of(Bench& b, const Op& op, const Shape& shape, const Bound::Way& way, int calls) {
  b.team.barrier();
  b.bound.set_way(way);
  b.team.barrier();
  timed_call(b, op, kBound, shape);
  for (int i = 0; i < calls; ++i) b.team.times(b.team.rank())[i] = timed_call(b, op, kBound, shape);
  b.team.barrier();
  return b.team.rank() == 0 ? median(time_of_each(b, calls)) : 0;
}

// Finds the bound's best way by trial. Long fragments are bad where ranks take turns on a
// processor.
void choose_way(Bench& b, const Op& op, const Shape& shape) {
  std::size_t fixed = static_cast<std::size_t>(b.plan.fragment);
  if (fixed == 0 && (b.team.oversubscribed() || shape.total == 0)) fixed = 8 << 10;
  const std::size_t least = fixed != 0 ? fixed : kLeastFragment, most = fixed != 0 ? fixed : kMostFragment;
  const int most_calls = shape.bytes >= (1U << 20) ? 8 : 24;
  const int calls = b.plan.calls > 0 ? std::min(b.plan.calls, most_calls) : most_calls;
  Bound::Way best{least, false};
  double best_ns = 0;
  for (const bool streaming : {false, true}) {
    if (shape.total == 0) break;
    for (std::size_t fragment = least; fragment <= most; fragment *= 2) {
      const double ns = trial_of(b, op, shape, {fragment, streaming}, calls);
      if (best_ns == 0 || ns < best_ns) best = {fragment, streaming}, best_ns = ns;
      if (fragment >= shape.total) break;
    }
  }
  best = {static_cast<std::size_t>(b.team.agree(static_cast<double>(best.fragment))),
          b.team.agree(best.streaming ? 1 : 0) != 0};
  b.team.barrier();
  b.bound.set_way(best);
  b.team.barrier();
}

// ---- Rounds ----

// One round: the contenders take turns, batch by batch. On rank 0, times[contender] gets the time
// of every call.
void run_round(Bench& b, const Op& op, const Shape& shape, const Row& row, std::vector<double> (&times)[kContenders]) {
  for (int batch = 0; batch < kBatches; ++batch) {
    for (int turn = 0; turn < kContenders; ++turn) {
      const int contender = (turn + batch) % kContenders;
      const int calls = row.calls[contender] * (batch + 1) / kBatches - row.calls[contender] * batch / kBatches;
      if (!row.measured[contender] || calls == 0) continue;
      // The first call after a change finds another contender's lines in the caches.
      if (calls > 2) timed_call(b, op, contender, shape);
      double* mine = b.team.times(b.team.rank());
      for (int i = 0; i < calls; ++i) mine[i] = timed_call(b, op, contender, shape);
      b.team.barrier();
      if (b.team.rank() == 0) {
        for (double ns : time_of_each(b, calls)) times[contender].push_back(ns);
      }
      b.team.barrier();
    }
  }
}

double time_of_round(const Bench& b, std::vector<double> calls) {
  if (b.plan.method != Method::osu || calls.empty()) return median(std::move(calls));
  return std::accumulate(calls.begin(), calls.end(), 0.0) / static_cast<double>(calls.size());
}

double mean_without_extremes(std::vector<double> rounds) {
  std::sort(rounds.begin(), rounds.end());
  double sum = 0;
  for (std::size_t i = 1; i + 1 < rounds.size(); ++i) sum += rounds[i];
  return sum / static_cast<double>(rounds.size() - 2);
}

}  // namespace

void Pool::reserve(std::size_t bytes) {
  if (bytes == 0) return;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) fail("no memory for a pool of %zu bytes", bytes);
  memory_ = static_cast<char*>(address);
  bytes_ = bytes;
  for (std::size_t i = 0; i < bytes; i += 64) memory_[i] = static_cast<char>(i >> 6);
}

void Pool::cut(std::size_t bytes, bool same) {
  same_ = same;
  stride_ = std::max(kLine, (bytes + kLine - 1) / kLine * kLine);
  at_ = at_ / kLine * kLine;
}

char* Pool::next() {
  if (same_) return memory_;
  if (at_ + stride_ > bytes_) at_ = 0;
  char* piece = memory_ + at_;
  at_ += stride_;
  return piece;
}

Bench::Bench(Team& t, Bound& b, const HostLibrary& host, const Plan& p)
    : team(t), bound(b), functions{linked_functions(), host_functions(host)}, plan(p) {
  last_path = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "stretto_last_path"));
  std::vector<double> empty;
  for (int i = 0; i < 2001; ++i) {
    const std::uint64_t start = now_ns();
    empty.push_back(static_cast<double>(now_ns() - start));
  }
  clock_ns = static_cast<std::uint64_t>(median(empty));
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::size_t pool_need(const Op& op, const Shape& shape) {
  return 2 * (std::max(op.send_bytes(shape), op.receive_bytes(shape)) + kLine);
}

Row measure(Bench& b, const Op& op, const Shape& shape, bool with_plain) {
  Row row;
  b.send.cut(op.send_bytes(shape), b.plan.same_buffers());
  b.receive.cut(op.receive_bytes(shape), b.plan.same_buffers());
  if (b.plan.with_bound) choose_way(b, op, shape);
  row.fragment = b.bound.fragment();
  for (int contender = 0; contender < kContenders; ++contender) {
    row.measured[contender] = contender == kPlain ? with_plain : contender != kBound || b.plan.with_bound;
    if (!row.measured[contender]) continue;
    if (contender != kPlain) verify(b, op, contender, shape);
    row.calls[contender] = calls_for(b, op, contender, shape);
  }
  std::vector<double> rounds[kContenders], flags;
  for (int round = 0; round < kRounds; ++round) {
    flags.push_back(b.team.flag_ns());
    std::vector<double> times[kContenders];
    run_round(b, op, shape, row, times);
    for (int contender = 0; contender < kContenders; ++contender)
      rounds[contender].push_back(time_of_round(b, std::move(times[contender])));
  }
  for (int contender = 0; contender < kContenders; ++contender)
    row.us[contender] = mean_without_extremes(rounds[contender]) / 1000;
  row.flag_ns = median(std::move(flags));
  if (b.last_path) {
    run(b, op, kOurs, next_call(b, shape));
    row.path = b.last_path();
    b.team.barrier();
  }
  return row;
}

}  // namespace bench
