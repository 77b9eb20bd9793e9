// SPDX-License-Identifier: BSD-3-Clause
// stretto-verify: every algorithm of the manifest, symbolically executed for every number of ranks, root, segment count and
// in-place form. One JSON object on stdout, lines "progress DONE TOTAL" on stderr while it runs. The library's own builders
// run here, so what is verified is what would be executed.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "coll/promise.hpp"

namespace {

using namespace stretto;
using coll::Algorithm;
using coll::Job;
using coll::Parameters;

constexpr int kSegments[] = {1, 2, 3, 7};
constexpr std::size_t kListedFailures = 100;

struct Arguments {
  int least_ranks = 1;
  int most_ranks = 64;
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::string> algorithms;  // "bcast", "bcast:chain"; empty: all
};

// All trials of one algorithm on one number of ranks.
struct Unit {
  const Algorithm* algorithm;
  Collective collective;  // the regular form or the v-form
  int ranks;
  [[nodiscard]] double weight() const { return static_cast<double>(ranks) * ranks * (rooted() ? ranks : 1); }
  [[nodiscard]] bool rooted() const {
    Job job;
    job.problem.collective = collective;
    return job.is_rooted();
  }
};

std::uint64_t mixed(std::uint64_t x) {
  x *= 0x9e3779b97f4a7c15u;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return x ^ x >> 32;
}

Collective v_form(const Algorithm& algorithm) {
  if (algorithm.needs & Algorithm::equal_parts) return Collective::count_;
  switch (algorithm.collective) {
    case Collective::gather: return Collective::gatherv;
    case Collective::scatter: return Collective::scatterv;
    case Collective::allgather: return Collective::allgatherv;
    case Collective::alltoall: return Collective::alltoallv;
    case Collective::reduce_scatter: return Collective::reduce_scatter_block;
    default: return Collective::count_;
  }
}

class Worker {
 public:
  Worker(std::atomic<std::uint64_t>& checked, std::atomic<std::uint64_t>& steps) : checked_(checked), steps_(steps) {}

  std::vector<std::pair<std::string, std::string>> failures;
  std::uint64_t failed = 0;

  void run(const Unit& unit) {
    Job job;
    job.problem.collective = unit.collective;
    job.problem.size = unit.ranks;
    const bool in_place_exists = unit.collective != Collective::bcast && unit.collective != Collective::barrier;
    for (int root = 0; root < (job.is_rooted() ? unit.ranks : 1); ++root) {
      job.problem.root = root;
      for (int in_place = 0; in_place <= (in_place_exists ? 1 : 0); ++in_place) {
        job.problem.in_place = in_place != 0;
        for (int commutative = job.is_reduction() ? 0 : 1; commutative <= 1; ++commutative) {
          if (!commutative && unit.algorithm->needs & Algorithm::commutative) continue;
          job.problem.commutative = commutative != 0;
          parameters(*unit.algorithm, job);
        }
      }
    }
  }

 private:
  // Parameters change from trial to trial; at root 0 all of them are tried.
  void parameters(const Algorithm& algorithm, Job& job) {
    const int size = job.problem.size;
    const int ks[] = {0, 2, 3, std::max(2, size - 1), 5};
    const int windows[] = {0, 1, 3};
    for (const int segments : kSegments) {
      if (segments > 1 && !algorithm.segmentable()) break;
      const std::size_t some = mixed(static_cast<std::uint64_t>(size * 64 + job.problem.root) * 8 + segments);
      const bool all = job.problem.root == 0;
      for (std::size_t i = 0; i < std::size(ks); ++i) {
        if (algorithm.k == 0 ? i != 0 : !all && i != some % std::size(ks)) continue;
        for (std::size_t w = 0; w < std::size(windows); ++w) {
          if (!algorithm.window ? w != 0 : !all && w != some % std::size(windows)) continue;
          trial(algorithm, job, {segments, ks[i], windows[w]}, some);
        }
      }
    }
  }

  void trial(const Algorithm& algorithm, Job& job, const Parameters& parameters, std::size_t some) {
    lengths(job, some);
    const auto build_rank = [&](const coll::Problem& problem) { return coll::build(builder_, algorithm, problem, parameters); };
    const bool good = coll::keeps_promise(verifier_, job, build_rank);
    checked_.fetch_add(1, std::memory_order_relaxed);
    steps_.fetch_add(verifier_.steps(), std::memory_order_relaxed);
    if (good) return;
    ++failed;
    if (failures.size() < kListedFailures) failures.emplace_back(name_of(algorithm, job, parameters), verifier_.failure());
  }

  // Long enough to be cut everywhere, or so short that some get nothing.
  static void lengths(Job& job, std::size_t some) {
    const auto size = static_cast<std::uint64_t>(job.problem.size);
    const Collective collective = job.problem.collective;
    const bool vector = coll::regular_form(collective) == collective && (job.is_reduction() || collective == Collective::bcast);
    const std::uint64_t counts[] = {vector ? 16 * size + 5 : 11, vector ? size + 1 : 8, vector ? 3u : 1u, 1021};
    job.problem.count = counts[some / 16 % std::size(counts)];
    job.begins.clear();
    job.exchanged.clear();
    const auto length = [&](std::uint64_t i) { return mixed(some + i) % 4 == 0 ? 0 : mixed(some + i) % 23; };
    if (collective == Collective::gatherv || collective == Collective::scatterv || collective == Collective::allgatherv ||
        collective == Collective::reduce_scatter) {
      job.begins.push_back(0);
      for (std::uint64_t i = 0; i < size; ++i) job.begins.push_back(job.begins.back() + length(i));
    }
    if (collective != Collective::alltoallv) return;
    for (std::uint64_t i = 0; i < size; ++i) {
      for (std::uint64_t j = 0; j < size; ++j) {
        job.exchanged.push_back(length(job.problem.in_place ? std::min(i, j) * size + std::max(i, j) : i * size + j));
      }
    }
  }

  static std::string name_of(const Algorithm& algorithm, const Job& job, const Parameters& p) {
    std::string name = std::string(kCollectiveNames[static_cast<int>(job.problem.collective)]) + ":" + algorithm.name;
    name += " ranks=" + std::to_string(job.problem.size);
    if (job.is_rooted()) name += " root=" + std::to_string(job.problem.root);
    name += " count=" + std::to_string(job.problem.count) + " segments=" + std::to_string(p.segments);
    if (p.k) name += " k=" + std::to_string(p.k);
    if (p.window) name += " window=" + std::to_string(p.window);
    if (job.problem.in_place) name += " in-place";
    if (job.is_reduction()) name += job.problem.commutative ? " commutative" : " ordered";
    return name;
  }

  std::atomic<std::uint64_t>& checked_;
  std::atomic<std::uint64_t>& steps_;
  coll::Builder builder_;
  sched::Verifier verifier_;
};

bool wanted(const Arguments& arguments, const Algorithm& algorithm) {
  if (arguments.algorithms.empty()) return true;
  const std::string collective = kCollectiveNames[static_cast<int>(algorithm.collective)];
  return std::any_of(arguments.algorithms.begin(), arguments.algorithms.end(), [&](const std::string& name) {
    return name == collective || name == collective + ":" + algorithm.name;
  });
}

std::vector<Unit> plan(const Arguments& arguments) {
  std::vector<Unit> units;
  for (const Algorithm& algorithm : coll::manifest()) {
    if (!wanted(arguments, algorithm)) continue;
    for (int ranks = arguments.least_ranks; ranks <= arguments.most_ranks; ++ranks) {
      units.push_back({&algorithm, algorithm.collective, ranks});
      const Collective other = v_form(algorithm);
      if (other != Collective::count_) units.push_back({&algorithm, other, ranks});
    }
  }
  // The heavy ones first, so that threads end together.
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.weight() > b.weight(); });
  return units;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

int run(const Arguments& arguments) {
  const std::vector<Unit> units = plan(arguments);
  if (units.empty()) {
    std::fprintf(stderr, "no such algorithm\n");
    return 2;
  }
  double total = 0;
  for (const Unit& unit : units) total += unit.weight();
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> checked{0};
  std::atomic<std::uint64_t> steps{0};
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  double done = 0;
  int percent = -1;
  std::deque<Worker> workers;  // they stay where they are
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < arguments.threads; ++t) {
    Worker& worker = workers.emplace_back(checked, steps);
    threads.emplace_back([&] {
      for (std::size_t i = next++; i < units.size(); i = next++) {
        worker.run(units[i]);
        const std::lock_guard lock(mutex);
        done += units[i].weight();
        if (static_cast<int>(100 * done / total) == percent) continue;
        percent = static_cast<int>(100 * done / total);
        std::fprintf(stderr, "progress %d 100\n", percent);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::uint64_t failed = 0;
  std::string list;
  std::size_t listed = 0;
  for (const Worker& worker : workers) {
    failed += worker.failed;
    for (const auto& [name, why] : worker.failures) {
      if (listed++ >= kListedFailures) break;
      list += (list.empty() ? "\n    " : ",\n    ") + ("{\"trial\": " + quoted(name) + ", \"failure\": " + quoted(why) + "}");
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("{\n  \"checked\": %llu,\n  \"failed\": %llu,\n  \"failures\": [%s%s],\n  \"steps\": %llu,\n  \"seconds\": %.2f\n}\n",
              static_cast<unsigned long long>(checked.load()), static_cast<unsigned long long>(failed), list.c_str(),
              list.empty() ? "" : "\n  ", static_cast<unsigned long long>(steps.load()), seconds);
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (value && name == "--min-ranks") arguments.least_ranks = std::max(1, std::atoi(value));
    else if (value && name == "--max-ranks") arguments.most_ranks = std::atoi(value);
    else if (value && name == "--threads") arguments.threads = static_cast<unsigned>(std::max(1, std::atoi(value)));
    else if (value && name == "--algorithm") arguments.algorithms.emplace_back(value);
    else {
      std::fprintf(stderr, "usage: stretto-verify [--max-ranks N] [--min-ranks N] [--threads N] [--algorithm COLLECTIVE[:NAME]]...\n");
      return 2;
    }
  }
  return run(arguments);
}
