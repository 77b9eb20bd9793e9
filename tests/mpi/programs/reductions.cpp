// SPDX-License-Identifier: BSD-3-Clause
// Randomised test of the reductions: collective x operation x type x count x root x communicator x
// in-place, with delays on random ranks. A serial oracle combines in rank order. All ranks derive a
// case from (seed, index). Every byte of the buffers is judged, the gaps of elements and the bytes
// around too.
//
//   reductions [--cases N] [--seed S] [--first I] [--host] [--expect-native PERCENT]
//              [--every-kind] [--kind-limits] [--any-order]
//
// --every-kind takes the kinds in turn, not at random. --host runs the same cases by the host's
// functions, too. --kind-limits leaves out what some host does in its own way, and leaves rounding
// to it. It is for STRETTO_CHECK=3, which hands out the host's results. --any-order leaves
// rounding, and what comes of NaN, to the order in which schedules combine.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "differential_calls.hpp"
#include "reduction_kinds.hpp"

namespace reductions {
namespace {

using differential::Caller;
using differential::Counts;
using differential::Functions;
using differential::Reduced;

constexpr std::size_t kGuardBytes = 64;

enum class Collective { reduce, allreduce, reduce_scatter, reduce_scatter_block, scan, exscan, count_ };
constexpr const char* kNames[] = {"reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"};

struct Options {
  std::uint64_t seed = 1;
  int cases = 1000, first = 0, expect_native = 0;
  bool host = false, every_kind = false, kind_limits = false, any_order = false;
};
Options g_options;
Functions g_functions[2];  // ours, the host's
const char* (*g_last_path)() = nullptr;
std::int64_t g_calls = 0, g_native = 0;
int g_world_rank = 0;

struct Live {
  MPI_Comm comm;
  const char* name;
  int color, rank, size;
};

struct Case {
  int index = 0;
  Collective collective{};
  const Kind* kind = nullptr;
  const Live* live = nullptr;
  std::int64_t count = 0;  // elements of a contribution
  Counts counts;           // of each rank's part of it (Reduce_scatter)
  int root = 0;
  bool in_place = false, large = false, null_when_empty = false;
  int delayed_rank = -1, delay_ns = 0;
  std::uint64_t key = 0;
};

// ---- What all ranks know ----

std::int64_t choose_count(Random& random, std::size_t extent) {
  const auto element = static_cast<std::int64_t>(extent);
  const std::int64_t kind = random.below(100);
  if (kind < 50) return random.below(40);
  if (kind < 80) {  // where the engine changes its ways
    static constexpr std::int64_t kMarks[] = {96, 4 << 10, 8 << 10, 16 << 10, 64 << 10};
    return std::max<std::int64_t>(kMarks[random.below(5)] / element + random.between(-2, 2), 0);
  }
  return random.below((kind < 97 ? 32 << 10 : 400 << 10) / element);
}

Case make_case(int index, const Live& live, const std::vector<Kind>& kinds) {
  Random random(g_options.seed, index, live.color);
  Case c;
  c.index = index;
  c.live = &live;
  c.collective = static_cast<Collective>(random.below(static_cast<int>(Collective::count_)));
  const auto pick = g_options.every_kind ? index : random.below(static_cast<std::int64_t>(kinds.size()));
  c.kind = &kinds[static_cast<std::size_t>(pick) % kinds.size()];
  const bool limits = g_options.host || g_options.kind_limits;
  // MPICH 4.0.2 writes past its own memory there, if the type has a gap before its data.
  const bool late = std::ranges::all_of(c.kind->pieces, [](const Piece& piece) { return piece.offset != 0; });
  if (limits && late && c.collective == Collective::reduce_scatter_block) c.collective = Collective::allreduce;
  c.count = choose_count(random, c.kind->extent);
  c.counts.assign(static_cast<std::size_t>(live.size), 0);
  if (c.collective == Collective::reduce_scatter_block) {
    c.count -= c.count % live.size;
    c.counts.assign(c.counts.size(), c.count / live.size);
  } else if (c.collective == Collective::reduce_scatter) {
    std::int64_t left = c.count;
    for (std::size_t r = 0; r + 1 < c.counts.size(); ++r) {
      c.counts[r] = random.chance(20) ? 0 : random.below(left + 1);
      left -= c.counts[r];
    }
    c.counts.back() = left;
  }
  c.root = static_cast<int>(random.below(live.size));
  c.in_place = random.chance(30);
  // MPICH 4.0.2 crashes in a Reduce in place at another root than 0.
  if (limits && c.collective == Collective::reduce && c.root != 0) c.in_place = false;
#if MPI_VERSION >= 4
  c.large = random.chance(20);
#endif
  c.null_when_empty = random.chance(50) && !limits;
  if (random.chance(15)) {
    c.delayed_rank = static_cast<int>(random.below(live.size));
    c.delay_ns = static_cast<int>(random.below(200000));
  }
  c.key = random.next();
  return c;
}

// ---- Buffers ----

using Bytes = std::vector<char>;

Bytes guarded(const Case& c, std::int64_t count, std::uint64_t key) {
  Bytes bytes(static_cast<std::size_t>(count) * c.kind->extent + 2 * kGuardBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(key * 37 + i * 11);
  return bytes;
}
char* element(const Case& c, Bytes& bytes, std::int64_t index) {
  return bytes.data() + kGuardBytes + static_cast<std::size_t>(index) * c.kind->extent;
}

// The contribution of a rank: elements without canaries.
Bytes contribution(const Case& c, int rank) {
  Random random(c.key, rank);
  Bytes bytes(static_cast<std::size_t>(c.count) * c.kind->extent);
  for (std::int64_t i = 0; i < c.count; ++i) {
    c.kind->make(random, bytes.data() + static_cast<std::size_t>(i) * c.kind->extent);
  }
  return bytes;
}

void write(const Case& c, Bytes& target, const Bytes& source, std::int64_t from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    for (const Piece& piece : c.kind->pieces) {
      std::memcpy(element(c, target, i) + piece.offset,
                  source.data() + static_cast<std::size_t>(from + i) * c.kind->extent + piece.offset, piece.bytes);
    }
  }
}

// Ranks first to last - 1, from left to right: (c[first] op c[first + 1]) op ... This is our order,
// whatever the path.
Bytes combined(const Case& c, int first, int last) {
  Bytes result = contribution(c, first);
  for (int r = first + 1; r < last; ++r) {
    Bytes right = contribution(c, r);
    for (std::size_t at = 0; at < result.size(); at += c.kind->extent) {
      c.kind->combine(result.data() + at, right.data() + at);
    }
    result = std::move(right);
  }
  return result;
}

// The rest of a long double's bytes means nothing.
bool is_padding(const Kind& kind, std::size_t at) {
  return kind.name.find("LONG_DOUBLE") != std::string::npos && at % 16 >= 10;
}

// ---- One case ----

[[noreturn]] void fail(const Case& c, int side, const char* what, long long at) {
  std::fprintf(
      stderr,
      "reductions: FAILED seed %llu case %d: %s of %s by %s on %s, rank %d (world %d) of %d, count %lld, root %d%s%s: "
      "%s at %lld\n",
      static_cast<unsigned long long>(g_options.seed), c.index, kNames[static_cast<int>(c.collective)],
      c.kind->name.c_str(), side == 0 ? "us" : "the host", c.live->name, c.live->rank, g_world_rank, c.live->size,
      static_cast<long long>(c.count), c.root, c.in_place ? ", in place" : "", c.large ? ", large" : "", what, at);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void compare(const Case& c, int side, const char* what, const Bytes& seen, const Bytes& expected) {
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == expected[i]) continue;
    const bool inside = i >= kGuardBytes && i < seen.size() - kGuardBytes;
    if (inside && is_padding(*c.kind, (i - kGuardBytes) % c.kind->extent)) continue;
    fail(c, side, what, static_cast<long long>(i) - static_cast<long long>(kGuardBytes));
  }
}

// A host's result, where rounding depends on the order that it chose. What is near enough becomes
// what was expected.
void forgive_rounding(const Case& c, Bytes& seen, Bytes& expected, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    char* const at = element(c, seen, i);
    if (!c.kind->near(at, element(c, expected, i), c.live->size)) continue;
    std::memcpy(at, element(c, expected, i), c.kind->extent);
  }
}

// What this rank receives: elements [from, from + count) of the combination of the first `ranks`
// ranks.
struct Share {
  std::int64_t from = 0, count = 0;
  int ranks = 0;
};
Share share_of(const Case& c) {
  const int rank = c.live->rank, size = c.live->size;
  Share share{0, c.count, size};
  switch (c.collective) {
    case Collective::reduce: return rank == c.root ? share : Share{};
    case Collective::scan: return {0, c.count, rank + 1};
    case Collective::exscan: return rank == 0 ? Share{} : Share{0, c.count, rank};
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
      for (int r = 0; r < rank; ++r) share.from += c.counts[static_cast<std::size_t>(r)];
      share.count = c.counts[static_cast<std::size_t>(rank)];
      return share;
    default: return share;
  }
}

int call(const Case& c, const Functions& functions, const void* own, void* out) {
  const Caller caller{functions, c.large};
  const Reduced v{own, out, c.count, c.kind->type, c.kind->op};
  switch (c.collective) {
    case Collective::reduce: return caller.reduce(v, c.root, c.live->comm);
    case Collective::allreduce: return caller.allreduce(v, c.live->comm);
    case Collective::reduce_scatter: return caller.reduce_scatter(v, c.counts, c.live->comm);
    case Collective::reduce_scatter_block:
      return caller.reduce_scatter_block({own, out, c.counts[0], v.type, v.op}, c.live->comm);
    case Collective::scan: return caller.scan(v, c.live->comm);
    default: return caller.exscan(v, c.live->comm);
  }
}

void run_case(const Case& c) {
  const Share share = share_of(c);
  // MPI_IN_PLACE is for the root alone in a Reduce. In place, the buffer holds the whole
  // contribution.
  const bool in_place = c.in_place && (c.collective != Collective::reduce || c.live->rank == c.root);
  Bytes own = guarded(c, c.count, c.key), out = guarded(c, in_place ? c.count : share.count, c.key + 1);
  write(c, in_place ? out : own, contribution(c, c.live->rank), 0, c.count);
  Bytes expected = out;
  if (share.ranks != 0) write(c, expected, combined(c, 0, share.ranks), share.from, share.count);
  const Bytes own_before = own, out_before = out;
  for (int side = 0; side < (g_options.host ? 2 : 1); ++side) {
    if (side == 1 && !c.kind->on_host) continue;
    out = out_before;
    if (c.live->rank == c.delayed_rank) {
      const timespec nap{0, c.delay_ns};
      nanosleep(&nap, nullptr);
    }
    const bool null = c.count == 0 && c.null_when_empty && !in_place;
    void* const target = null ? nullptr : element(c, out, 0);
    const int code = call(c, g_functions[side], in_place ? MPI_IN_PLACE : null ? nullptr : element(c, own, 0), target);
    if (code != MPI_SUCCESS) fail(c, side, "error code", code);
    if (side == 0 && g_last_path && c.live->size > 1) {
      ++g_calls;
      if (std::strcmp(g_last_path(), "host") != 0) ++g_native;
    }
    compare(c, side, "contribution", own, own_before);
    // In place, what is not the result may be anything after a Reduce_scatter.
    const bool part =
        in_place && (c.collective == Collective::reduce_scatter || c.collective == Collective::reduce_scatter_block);
    if (part) {
      const auto end =
          static_cast<std::ptrdiff_t>(kGuardBytes + static_cast<std::size_t>(share.count) * c.kind->extent);
      const auto rest = static_cast<std::ptrdiff_t>(out.size() - kGuardBytes);
      if (end < rest) std::copy(expected.begin() + end, expected.begin() + rest, out.begin() + end);
    }
    if ((side == 1 || g_options.kind_limits || g_options.any_order) && c.kind->near)
      forgive_rounding(c, out, expected, share.count);
    compare(c, side, "result", out, expected);
  }
}

// ---- All cases ----

Live make_live(MPI_Comm comm, const char* name, int color) {
  Live live{comm, name, color, 0, 0};
  MPI_Comm_rank(comm, &live.rank);
  MPI_Comm_size(comm, &live.size);
  return live;
}

void run_all() {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  g_world_rank = rank;
  Kinds kinds;
  if (g_options.kind_limits) std::erase_if(kinds.all, [](const Kind& kind) { return !kind.on_host; });
  if (g_options.any_order) std::erase_if(kinds.all, [](const Kind& kind) { return kind.name.starts_with("special"); });
  MPI_Comm copy, half, reversed;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
  const Live live[] = {make_live(MPI_COMM_WORLD, "world", 1), make_live(copy, "dup", 2),
                       make_live(half, "half", 3 + rank % 2), make_live(reversed, "reversed", 5)};
  for (int index = g_options.first; index < g_options.first + g_options.cases; ++index) {
    Random random(g_options.seed, index, 9);
    run_case(make_case(index, live[random.below(4)], kinds.all));
  }
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
  MPI_Comm_free(&reversed);
}

int report() {
  std::int64_t mine[2] = {g_calls, g_native}, all[2] = {0, 0};
  g_functions[1].Reduce(mine, all, 2, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (g_world_rank != 0) return 0;
  const double percent = all[0] == 0 ? 0.0 : 100.0 * static_cast<double>(all[1]) / static_cast<double>(all[0]);
  std::printf("%d cases ok, %s, %lld calls, %.1f%% native, seed %llu\n", g_options.cases,
              g_last_path ? (g_options.host ? "with us and the host" : "with us") : "the host alone",
              static_cast<long long>(all[0]), percent, static_cast<unsigned long long>(g_options.seed));
  if (percent >= g_options.expect_native) return 0;
  std::fprintf(stderr, "reductions: only %.1f%% of the calls were native\n", percent);
  return 1;
}

void parse(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--host") g_options.host = true;
    if (option == "--every-kind") g_options.every_kind = true;
    if (option == "--kind-limits") g_options.kind_limits = true;
    if (option == "--any-order") g_options.any_order = true;
    if (i + 1 == argc) break;
    if (option == "--cases") g_options.cases = std::atoi(argv[i + 1]);
    if (option == "--seed") g_options.seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--first") g_options.first = std::atoi(argv[i + 1]);
    if (option == "--expect-native") g_options.expect_native = std::atoi(argv[i + 1]);
  }
}

}  // namespace
}  // namespace reductions

int main(int argc, char** argv) {
  using namespace reductions;
  parse(argc, argv);
  MPI_Init(&argc, &argv);
  g_last_path = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "stretto_last_path"));
  g_functions[0] = differential::linked_functions();
  if (!differential::host_functions(g_functions[1])) {
    std::fprintf(stderr, "reductions: the host's functions are not to be found\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  run_all();
  const int failed = report();
  MPI_Finalize();
  return failed;
}
