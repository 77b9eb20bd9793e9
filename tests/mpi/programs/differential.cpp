// SPDX-License-Identifier: BSD-3-Clause
// Randomised differential test: operation x type x counts x displacements x root x communicator x
// in-place, with delays on random ranks. A serial oracle judges every byte of every buffer. With
// --host the host MPI's own functions run the same cases, and are judged too. All ranks derive a
// case from (seed, index).
//
//   differential [--cases N] [--seed S] [--first I] [--host] [--exact] [--host-limits]
//                [--ring BYTES] [--skip OP] [--expect-native PERCENT] [--verbose]
//
// --host-limits: no elements with gaps in them, which hosts get wrong. For runs in which the host
// serves some of the calls. --exact: receivers declare no more than is sent, as MPI has it; our
// shared-memory engine allows more.
//
// Prints "N cases ok ...". At a wrong byte it names the case and ends the job.
#include <deque>

#include "differential_operations.hpp"

namespace differential {
namespace {

// ---- Communicators ----

Live make_live(MPI_Comm comm, const std::string& name, std::uint64_t color) {
  Live live{comm, name, color, 0, 0};
  if (comm == MPI_COMM_NULL) return live;
  MPI_Comm_rank(comm, &live.rank);
  MPI_Comm_size(comm, &live.size);
  return live;
}

std::vector<Live> standing_communicators(int rank, int size) {
  MPI_Comm copy, half, reversed;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
  return {make_live(MPI_COMM_WORLD, "world", 1), make_live(copy, "dup", 2),
          make_live(half, "half", 3 + static_cast<std::uint64_t>(rank % 2)), make_live(reversed, "reversed", 5)};
}

// Some ranks together, others together, some not at all. Ranks are in a random order.
Live passing_communicator(int index, int rank) {
  Random common(g_options.seed, index, 77);
  const std::int64_t colors = common.between(1, 3);
  Random mine(g_options.seed, index, 78, rank);
  const std::int64_t color = mine.chance(20) ? -1 : mine.below(colors);
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, color < 0 ? MPI_UNDEFINED : static_cast<int>(color), static_cast<int>(mine.below(100)),
                 &comm);
  return make_live(comm, "split at " + std::to_string(index), 1000 + static_cast<std::uint64_t>(color));
}

constexpr int kCasesPerSplit = 40;
constexpr std::size_t kPassing = 3;  // live at once

void run_case(int index, const Live& live, const std::vector<Unit>& units) {
  if (live.comm == MPI_COMM_NULL) return;
  int passes = 1;
  Case c = make_case(g_options, index, live.color, live.rank, live.size, units, &passes);
  Random random(g_options.seed, index, live.color, 3);
  const Operation& operation = choose_operation(random);
  if (g_options.verbose) {
    std::string counts;
    for (const std::int64_t n : c.units) counts += " " + std::to_string(n);
    std::fprintf(stderr, "[%d] case %d %s on %s root %d%s, %s in elements of %lld:%s\n", g_world_rank, index,
                 operation.name, live.name.c_str(), c.root, c.in_place ? " in place" : "", c.unit->name,
                 static_cast<long long>(c.element_units), counts.c_str());
  }
  for (c.pass = 0; c.pass < passes; ++c.pass) {
    Case copy = c;
    if (c.pass != 0) copy.root = (c.root + 1) % c.size;
    operation.run(copy, live);
  }
}

void run_all(int first) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<Unit> units = model::all_units();
  if (g_options.host_limits) std::erase_if(units, [](const Unit& unit) { return !unit.dense(); });
  std::vector<Live> standing = standing_communicators(rank, size);
  std::deque<Live> passing;
  for (int index = first; index < first + g_options.cases; ++index) {
    if (index % kCasesPerSplit == 0) {
      passing.push_back(passing_communicator(index, rank));
      if (passing.size() > kPassing) {
        if (passing.front().comm != MPI_COMM_NULL) MPI_Comm_free(&passing.front().comm);
        passing.pop_front();
      }
    }
    Random random(g_options.seed, index, 9);
    const auto pick =
        static_cast<std::size_t>(random.below(static_cast<std::int64_t>(standing.size() + passing.size())));
    run_case(index, pick < standing.size() ? standing[pick] : passing[pick - standing.size()], units);
  }
  for (Live& live : passing) {
    if (live.comm != MPI_COMM_NULL) MPI_Comm_free(&live.comm);
  }
  for (std::size_t i = 1; i < standing.size(); ++i) MPI_Comm_free(&standing[i].comm);
}

// Half of a job's ranks may be right and idle: every rank's numbers count.
int report(int expect_native) {
  std::int64_t mine[2] = {g_calls, g_native};
  std::int64_t all[2] = {0, 0};
  MPI_Reduce(mine, all, 2, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (g_world_rank != 0) return 0;
  const double percent = all[0] == 0 ? 0.0 : 100.0 * static_cast<double>(all[1]) / static_cast<double>(all[0]);
  std::printf("%d cases ok, %s, %lld calls, %.1f%% native, seed %llu\n", g_options.cases,
              g_last_path ? (g_compare ? "with us and the host" : "with us") : "the host alone",
              static_cast<long long>(all[0]), percent, static_cast<unsigned long long>(g_options.seed));
  if (expect_native > 0 && percent < expect_native) {
    std::fprintf(stderr, "differential: only %.1f%% of the calls were native, %d%% expected\n", percent, expect_native);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace differential

int main(int argc, char** argv) {
  using namespace differential;
  int first = 0;
  int expect_native = 0;
  bool exact = false;
  bool host_serves = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--host") g_compare = true;
    if (option == "--exact") exact = true;
    if (option == "--host-limits") host_serves = true;
    if (option == "--verbose") g_options.verbose = true;
    if (i + 1 == argc) break;
    if (option == "--cases") g_options.cases = std::atoi(argv[i + 1]);
    if (option == "--seed") g_options.seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--first") first = std::atoi(argv[i + 1]);
    if (option == "--skip") g_skip = argv[i + 1];
    if (option == "--ring") g_options.ring_bytes = std::atoll(argv[i + 1]);
    if (option == "--expect-native") expect_native = std::atoi(argv[i + 1]);
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_world_rank);
  g_last_path = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "stretto_last_path"));
  g_ours = linked_functions();
  if (!host_functions(g_host)) {
    std::fprintf(stderr, "differential: the host's functions are not to be found\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  g_options.over_declare = g_last_path && !g_compare && !exact;
  g_options.host_limits = host_serves || !g_last_path || g_compare;
  run_all(first);
  const int failed = report(expect_native);
  MPI_Finalize();
  return failed;
}
