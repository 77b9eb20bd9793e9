// SPDX-License-Identifier: BSD-3-Clause
// The measuring program behind `stretto bench`. The MPI under test runs it, with the preload
// library in front of it. Rank 0 prints one JSON object per line as results come, see
// docs/measuring.md. All other output goes to stderr.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "binding.hpp"
#include "latency.hpp"

namespace bench {
namespace {

// Long calls that are compared with the same work on private data.
constexpr struct Long {
  const char* op;
  std::size_t bytes;
} kLong[] = {{"bcast", std::size_t{4} << 20}, {"allreduce", std::size_t{16} << 20}};

struct Options {
  std::vector<const Op*> ops;
  std::size_t min_bytes = 64, max_bytes = std::size_t{1} << 20, factor = 2;
  bool latency = false;
  // A file that all hosts see, for ranks on several hosts. Then there is no bound.
  const char* segment = nullptr;
  Plan plan;
};

const char* next_value(int argc, char** argv, int& i) {
  if (++i >= argc) fail("%s wants a value", argv[i - 1]);
  return argv[i];
}

void add_ops(Options& options, const std::string& list) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const std::string name = list.substr(at, comma - at);
    const Op* op = find_op(name);
    if (!op) fail("unknown operation '%s'", name.c_str());
    options.ops.push_back(op);
    at = comma + 1;
  }
}

Method find_method(const std::string& name) {
  for (const auto& [known, method] : {std::pair{"imb", Method::imb},
                                      {"warm", Method::warm},
                                      {"used", Method::used},
                                      {"live", Method::live},
                                      {"osu", Method::osu}}) {
    if (name == known) return method;
  }
  fail("unknown method '%s'", name.c_str());
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--ops")
      add_ops(o, next_value(argc, argv, i));
    else if (key == "--min")
      o.min_bytes = std::strtoull(next_value(argc, argv, i), nullptr, 10);
    else if (key == "--max")
      o.max_bytes = std::strtoull(next_value(argc, argv, i), nullptr, 10);
    else if (key == "--factor")
      o.factor = std::strtoull(next_value(argc, argv, i), nullptr, 10);
    else if (key == "--pool")
      o.plan.pool_bytes = std::strtoull(next_value(argc, argv, i), nullptr, 10);
    else if (key == "--no-bound")
      o.plan.with_bound = false;
    else if (key == kBindOption)
      ++i;  // main has seen it
    else if (key == "--method")
      o.plan.method = find_method(next_value(argc, argv, i));
    else if (key == "--root-shift")
      o.plan.root_shift = std::atoi(next_value(argc, argv, i));
    else if (key == "--spread")
      o.plan.spread = std::atof(next_value(argc, argv, i));
    else if (key == "--calls")
      o.plan.calls = std::atoi(next_value(argc, argv, i));
    else if (key == "--budget")
      o.plan.budget_s = std::atof(next_value(argc, argv, i));
    else if (key == "--fragment")
      o.plan.fragment = std::atoi(next_value(argc, argv, i));
    else if (key == "--segment")
      o.segment = next_value(argc, argv, i), o.plan.with_bound = false;
    else if (key == "--latency")
      o.latency = true;
    else
      fail("unknown argument '%s'", key.c_str());
  }
  if (o.min_bytes == 0 || o.max_bytes < o.min_bytes || o.max_bytes > (std::size_t{1} << 28))
    fail("sizes must be 1 to 256 MiB");
  if (o.factor < 2) fail("--factor must be 2 or more");
  return o;
}

std::vector<std::size_t> sizes_of(const Options& o, const Op& op) {
  if (!op.has_data) return {0};
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = o.min_bytes; bytes <= o.max_bytes; bytes *= o.factor) sizes.push_back(bytes);
  return sizes;
}

Shape shape_of(const Options& o, const Op& op, std::size_t bytes, int ranks) {
  return make_shape(bytes, ranks, op.irregular ? o.plan.spread : 0);
}

std::size_t available_memory() {
  std::FILE* file = std::fopen("/proc/meminfo", "r");
  std::size_t kib = 0;
  char line[128];
  while (file && std::fgets(line, sizeof line, file)) {
    if (std::sscanf(line, "MemAvailable: %zu kB", &kib) == 1) break;
  }
  if (file) std::fclose(file);
  return kib << 10;
}

// Longer than the last-level cache by a factor of two or more, as far as there is memory. With many
// ranks, all their pools together are so.
void reserve_pools(Bench& b, const Options& o) {
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t last_level = cache > 0 ? static_cast<std::size_t>(cache) : std::size_t{32} << 20;
  const auto ranks = static_cast<std::size_t>(b.team.size());
  std::size_t least = 0;  // for one call
  for (const Op* op : o.ops) {
    const std::vector<std::size_t> sizes = sizes_of(o, *op);
    least = std::max(least, pool_need(*op, shape_of(o, *op, sizes.back(), b.team.size())));
  }
  for (const Long& what : kLong) {
    if (o.latency) least = std::max(least, pool_need(*find_op(what.op), make_shape(what.bytes, b.team.size(), 0)));
  }
  const double room = b.team.agree(static_cast<double>(available_memory())) * 0.8 / (2.0 * static_cast<double>(ranks));
  std::size_t bytes = std::max(std::size_t{64} << 20, 2 * last_level);
  if (ranks > 4) bytes = std::max(last_level, 4 * bytes / ranks);
  bytes = std::min(bytes, static_cast<std::size_t>(room));
  if (o.plan.pool_bytes != 0) bytes = o.plan.pool_bytes;
  if (b.plan.same_buffers()) bytes = 0;
  bytes = std::max(bytes, least);
  if (static_cast<double>(bytes) > room) {
    const double need = 2.0 * static_cast<double>(bytes) * static_cast<double>(ranks);
    fail("the buffers would need %.1f GiB of memory: choose smaller sizes or fewer ranks", need / (1U << 30));
  }
  b.send.reserve(bytes);
  b.receive.reserve(bytes);
}

__attribute__((format(printf, 2, 3))) void say(const Bench& b, const char* format, ...) {
  if (b.team.rank() != 0) return;
  va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

// The processors of each rank, from rank 0 on: [[0],[1]]. Collective.
std::string bindings(const Bench& b, const HostLibrary& host) {
  const auto gather = reinterpret_cast<decltype(&MPI_Gather)>(host.function("PMPI_Gather"));
  constexpr int kBytes = sizeof(cpu_set_t);
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  std::vector<cpu_set_t> all(static_cast<std::size_t>(b.team.size()));
  gather(&mine, kBytes, MPI_BYTE, all.data(), kBytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  std::string text;
  for (const cpu_set_t& set : all) {
    std::string of_rank;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) of_rank += (of_rank.empty() ? "" : ",") + std::to_string(cpu);
    }
    text += (text.empty() ? "[" : ",[") + of_rank + "]";
  }
  return "[" + text + "]";
}

// After this, a library has made what it makes only for communicators that are used often.
void warm_up(const Bench& b) {
  constexpr int kCalls = 64;
  char word[8] = {};
  b.functions[kOurs].barrier(MPI_COMM_WORLD);  // in this one every rank waits for all others anyway
  for (int i = 0; i < kCalls; ++i) b.functions[kOurs].bcast(word, sizeof word, MPI_BYTE, 0, MPI_COMM_WORLD);
}

void run_ops(Bench& b, const Options& o) {
  for (const Op* op : o.ops) {
    for (const std::size_t bytes : sizes_of(o, *op)) {
      const Row r = measure(b, *op, shape_of(o, *op, bytes, b.team.size()), false);
      say(b,
          "{\"event\":\"row\",\"op\":\"%s\",\"bytes\":%zu,\"ours_us\":%.4f,\"mpi_us\":%.4f,\"bound_us\":%.4f,\"path\":"
          "\"%s\","
          "\"calls\":[%d,%d,%d],\"fragment\":%zu,\"flag_ns\":%.1f}",
          op->name, bytes, r.us[kOurs], r.us[kHost], r.us[kBound], r.path, r.calls[kOurs], r.calls[kHost],
          r.calls[kBound], r.fragment, r.flag_ns);
    }
  }
}

void run_latency(Bench& b) {
  const Latency l = measure_latency(b);
  say(b, "{\"event\":\"flag\",\"ns\":%.1f}", l.flag_ns);
  for (int i = 0; i < kChainCount; ++i) {
    say(b, "{\"event\":\"chain\",\"op\":\"%s\",\"ns\":[%.1f,%.1f,%.1f]}", kChains[i], l.call_ns[i][kOurs],
        l.call_ns[i][kHost], l.call_ns[i][kBound]);
  }
  for (const Long& what : kLong) {
    const Row r = measure(b, *find_op(what.op), make_shape(what.bytes, b.team.size(), 0), true);
    say(b, "{\"event\":\"long\",\"op\":\"%s\",\"bytes\":%zu,\"us\":[%.2f,%.2f,%.2f],\"plain_us\":%.2f,\"path\":\"%s\"}",
        what.op, what.bytes, r.us[kOurs], r.us[kHost], r.us[kBound], r.us[kPlain], r.path);
  }
}

void run_all(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const HostLibrary host = find_host_library();
  Team team(host, options.segment);
  Bound bound(team, options.plan.with_bound);
  Bench b(team, bound, host, options.plan);
  reserve_pools(b, options);
  std::size_t rows = options.latency ? 1 + kChainCount + std::size(kLong) : 0;
  for (const Op* op : options.ops) rows += sizes_of(options, *op).size();
  say(b, "{\"event\":\"plan\",\"rows\":%zu,\"np\":%d,\"cpus\":%d,\"host\":\"%s\",\"preloaded\":%s,\"bindings\":%s}",
      rows, team.size(), team.cpus(), host.path, b.last_path ? "true" : "false", bindings(b, host).c_str());
  warm_up(b);
  run_ops(b, options);
  if (options.latency) run_latency(b);
  say(b, "{\"event\":\"done\"}");
  team.finish();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::bind_as_asked(argc, argv);
  MPI_Init(&argc, &argv);
  bench::run_all(argc, argv);
  MPI_Finalize();
  return 0;
}
