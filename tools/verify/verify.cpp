// SPDX-License-Identifier: BSD-3-Clause
// stretto-verify: executes every algorithm of the manifest on symbols, for every number of ranks,
// root, segment count and in-place form. It does the same with compositions of them on random
// hierarchies. It writes one JSON object to stdout, and lines "progress DONE 100" to stderr while
// it runs. It runs the library's own builders, so it verifies what the library executes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "../names.hpp"
#include "trials.hpp"

namespace stretto::verifying {

std::uint64_t mixed(std::uint64_t x) {
  x *= 0x9e3779b97f4a7c15u;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return x ^ x >> 32;
}

void uneven_parts(coll::Job& job, std::uint64_t seed) {
  const auto size = static_cast<std::uint64_t>(job.problem.size);
  const auto length = [&](std::uint64_t i) { return mixed(seed + i) % 4 == 0 ? 0 : mixed(seed + i) % 23; };
  job.begins.clear();
  job.exchanged.clear();
  switch (job.problem.collective) {
    case Collective::gatherv:
    case Collective::scatterv:
    case Collective::allgatherv:
    case Collective::reduce_scatter:
      job.begins.push_back(0);
      for (std::uint64_t i = 0; i < size; ++i) job.begins.push_back(job.begins.back() + length(i));
      return;
    case Collective::alltoallv:
      for (std::uint64_t i = 0; i < size; ++i) {
        for (std::uint64_t j = 0; j < size; ++j) {
          job.exchanged.push_back(length(job.problem.in_place ? std::min(i, j) * size + std::max(i, j) : i * size + j));
        }
      }
      return;
    default: return;
  }
}

std::string describe(const coll::Job& job) {
  std::string name = std::string(kCollectiveNames[static_cast<int>(job.problem.collective)]) +
                     " ranks=" + std::to_string(job.problem.size);
  if (job.is_rooted()) name += " root=" + std::to_string(job.problem.root);
  name += " count=" + std::to_string(job.problem.count);
  if (job.problem.in_place) name += " in-place";
  if (job.is_reduction()) name += job.problem.commutative ? " commutative" : " ordered";
  return name;
}

namespace {

// Runs all units on all threads. The heavy ones come first, so that threads end together.
void run_all(std::vector<Unit>& units, std::deque<Findings>& findings) {
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.weight > b.weight; });
  double total = 0;
  for (const Unit& unit : units) total += unit.weight;
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  double done = 0;
  int percent = -1;
  std::vector<std::thread> threads;
  for (Findings& mine : findings) {
    threads.emplace_back([&] {
      for (std::size_t i = next++; i < units.size(); i = next++) {
        units[i].run(mine);
        const std::lock_guard lock(mutex);
        done += units[i].weight;
        if (static_cast<int>(100 * done / total) == percent) continue;
        percent = static_cast<int>(100 * done / total);
        std::fprintf(stderr, "progress %d 100\n", percent);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

void report(const std::deque<Findings>& findings, double seconds) {
  Findings all;
  std::string list;
  std::size_t listed = 0;
  for (const Findings& some : findings) {
    all.checked += some.checked;
    all.steps += some.steps;
    all.failed += some.failed;
    for (const auto& [name, why] : some.failures) {
      if (listed++ >= kListedFailures) break;
      list += (list.empty() ? "\n    " : ",\n    ") +
              ("{\"trial\": " + quoted(name) + ", \"failure\": " + quoted(why) + "}");
    }
  }
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  std::printf(
      "{\n  \"checked\": %s,\n  \"failed\": %s,\n  \"failures\": [%s%s],\n  \"steps\": %s,\n  \"seconds\": %.2f\n}\n",
      number(all.checked).c_str(), number(all.failed).c_str(), list.c_str(), list.empty() ? "" : "\n  ",
      number(all.steps).c_str(), seconds);
}

// Why nothing has this name. Empty: something has.
std::string unknown(const std::string& name) {
  const std::size_t colon = name.find(':');
  const std::string of = name.substr(0, colon);
  const Collective collective = collective_named(of.c_str());
  if (collective == Collective::count_ || is_neighborhood(collective))
    return "no such collective: " + of + ": one of " + collectives_with_algorithms();
  if (const Collective regular = coll::regular_form(collective); regular != collective) {
    return of + " goes by the algorithms of " + kCollectiveNames[static_cast<int>(regular)] +
           ", which are verified for both";
  }
  if (colon == std::string::npos || coll::find_algorithm(collective, name.c_str() + colon + 1)) return "";
  return "no such algorithm: " + name + ": of " + of + " one of " + algorithms_of(collective);
}

int run(const Arguments& arguments) {
  for (const std::string& name : arguments.algorithms) {
    if (const std::string why = unknown(name); !why.empty()) {
      std::fprintf(stderr, "%s\n", why.c_str());
      return 2;
    }
  }
  std::vector<Unit> units = flat_units(arguments);
  const int suits = !arguments.algorithms.empty() ? 0 : arguments.most_ranks >= 64 ? 500 : 20;
  for (Unit& unit : hierarchy_units(arguments.hierarchies < 0 ? suits : arguments.hierarchies))
    units.push_back(std::move(unit));
  std::deque<Findings> findings(arguments.threads);
  const auto begin = std::chrono::steady_clock::now();
  run_all(units, findings);
  report(findings, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return std::all_of(findings.begin(), findings.end(), [](const Findings& f) { return f.failed == 0; }) ? 0 : 1;
}

int usage() {
  std::fprintf(stderr,
               "usage: stretto-verify [--min-ranks N] [--max-ranks N] [--hierarchies N] [--threads N] [--algorithm "
               "COLLECTIVE[:NAME]]...\n");
  return 2;
}

}  // namespace
}  // namespace stretto::verifying

int main(int argc, char** argv) {
  stretto::verifying::Arguments arguments;
  arguments.threads = std::max(1u, std::thread::hardware_concurrency());
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return stretto::verifying::usage();
    const std::string name = argv[i];
    const int number = std::atoi(argv[i + 1]);
    if (name == "--min-ranks")
      arguments.least_ranks = std::max(1, number);
    else if (name == "--max-ranks")
      arguments.most_ranks = number;
    else if (name == "--threads")
      arguments.threads = static_cast<unsigned>(std::max(1, number));
    else if (name == "--hierarchies")
      arguments.hierarchies = number;
    else if (name == "--algorithm")
      arguments.algorithms.emplace_back(argv[i + 1]);
    else
      return stretto::verifying::usage();
  }
  return stretto::verifying::run(arguments);
}
