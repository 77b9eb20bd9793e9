// SPDX-License-Identifier: BSD-3-Clause
// What a recording costs and weighs: recordings of ranks whose calls are those of a stencil code,
// with times that vary.
//   record-cost FOLDER [RANKS [CALLS]]     writes FOLDER/job.0, ...; prints JSON
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>

#include "record/writer.hpp"

namespace {

using stretto::record::Role;
using stretto::record::Writer;

constexpr int kExchanged = 6;  // neighbours

struct Made {
  std::int64_t words[32];
  std::size_t size;
  double gap, duration;  // ticks, in the mean
};

void add(Made& made, Role role, std::int64_t value) {
  made.words[made.size++] = static_cast<std::int64_t>(role);
  made.words[made.size++] = 1;
  made.words[made.size++] = value;
}

Made made(std::int64_t function, double gap, double duration) {
  Made call{};
  add(call, Role::function, function);
  add(call, Role::place, 10 + function);
  call.gap = gap;
  call.duration = duration;
  return call;
}

// The calls of a time step: receives and sends to all neighbours, a wait, a reduction.
int step(Made* calls) {
  int n = 0;
  for (int way = 0; way < 2; ++way) {
    for (int i = 0; i < kExchanged; ++i) {
      Made& call = calls[n++] = made(way, i == 0 ? 40'000 : 150, 900);
      add(call, Role::comm, 0);
      add(call, way == 0 ? Role::source : Role::destination, 4 * (i - 3));
      add(call, way == 0 ? Role::receive_tag : Role::send_tag, i);
      add(call, way == 0 ? Role::receives : Role::sends, 32'768);
      add(call, Role::made, way * kExchanged + i);
    }
  }
  Made& wait = calls[n++] = made(2, 3'000'000, 200'000);
  wait.words[wait.size++] = static_cast<std::int64_t>(Role::waited);
  wait.words[wait.size++] = 2 * kExchanged;
  for (int i = 0; i < 2 * kExchanged; ++i) wait.words[wait.size++] = i;
  Made& sum = calls[n++] = made(3, 500'000, 60'000);
  add(sum, Role::comm, 0);
  add(sum, Role::sends, 8);
  return n;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 1;
  const long calls = argc > 3 ? std::atol(argv[3]) : 1'000'000;
  static Made of_step[2 * kExchanged + 2];
  const int per_step = step(of_step);
  constexpr int kNoises = 1 << 16;
  static double noise[kNoises];
  double ns = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    std::mt19937_64 random(static_cast<unsigned long>(rank));
    std::normal_distribution<double> spread(1, 0.08);
    std::uniform_real_distribution<double> seldom(0, 1);
    for (double& each : noise) each = seldom(random) < 0.01 ? 3 : spread(random);
    Writer writer;
    const std::string path = std::string(argv[1]) + "/job." + std::to_string(rank);
    if (writer.open(path.c_str(), {.rank = rank, .ranks = ranks}) != 0) return 1;
    const std::clock_t began = std::clock();  // of this process: others on the machine do not count
    for (long i = 0; i < calls; ++i) {
      const Made& call = of_step[i % per_step];
      writer.call(writer.term(call.words, call.size), static_cast<std::uint64_t>(call.gap * noise[i % kNoises]),
                  static_cast<std::uint64_t>(call.duration * noise[(i * 7 + 3) % kNoises]));
    }
    ns += static_cast<double>(std::clock() - began) * (1e9 / CLOCKS_PER_SEC);
    writer.finish();
  }
  std::printf("{\"ranks\": %d, \"calls\": %ld, \"ns_a_call\": %.1f}\n", ranks, calls,
              ns / static_cast<double>(calls) / ranks);
  return 0;
}
