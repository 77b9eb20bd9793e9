// SPDX-License-Identifier: BSD-3-Clause
// Randomised differential test: operation x type x counts x displacements x root x communicator x in-place, with delays
// on random ranks. Every byte of every buffer is judged by a serial oracle; with --host the host MPI's own functions
// run the same cases and are judged too. All ranks derive a case from (seed, index).
//
//   differential [--cases N] [--seed S] [--first I] [--host] [--exact] [--host-limits] [--ring BYTES] [--skip OP] [--expect-native PERCENT]
//                [--verbose]
//
// --host-limits: no elements with gaps in them, which hosts get wrong: for runs in which the host serves some of the calls.
// --exact: receivers declare no more than is sent, as MPI has it; our shared-memory engine allows more.
//
// Prints "N cases ok ..."; on a wrong byte says which case, and ends the job.
#include <time.h>

#include <deque>

#include "differential_calls.hpp"
#include "differential_case.hpp"

namespace differential {
namespace {

Options g_options;
Functions g_ours;
Functions g_host;
bool g_compare = false;  // run the host's functions as well
std::string g_skip;      // an operation to leave out
int g_world_rank = 0;
const char* (*g_last_path)() = nullptr;
std::int64_t g_calls = 0;  // calls on communicators of several ranks, and those of them that were not the host's
std::int64_t g_native = 0;

struct Live {
  MPI_Comm comm = MPI_COMM_NULL;
  std::string name;
  std::uint64_t color = 0;
  int rank = 0;
  int size = 0;
};

// ---- judging --------------------------------------------------------------------------------------------------------

struct Context {
  const Case& c;
  const char* operation;
  const Live& live;
  const char* api;
};

[[noreturn]] void fail(const Context& x, const char* what, const std::string& types, long long offset) {
  std::fprintf(stderr,
               "differential: FAILED seed %llu case %d pass %d: %s by %s on %s, rank %d (world %d) of %d, root %d%s%s: "
               "%s at byte %lld; units of %s here %lld declared %lld; types %s\n",
               static_cast<unsigned long long>(g_options.seed), x.c.index, x.c.pass, x.operation, x.api,
               x.live.name.c_str(), x.c.rank, g_world_rank, x.c.size, x.c.root, x.c.in_place ? ", in place" : "",
               x.c.large ? ", large" : "", what, offset, x.c.unit->name,
               static_cast<long long>(x.c.units[static_cast<std::size_t>(x.c.rank)]),
               static_cast<long long>(x.c.declared[static_cast<std::size_t>(x.c.rank)]), types.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void compare(const Context& x, const char* what, const Memory& seen, const Memory& expected, const std::string& types) {
  if (seen.bytes == expected.bytes) return;
  std::size_t i = 0;
  while (seen.bytes[i] == expected.bytes[i]) ++i;
  fail(x, what, types, static_cast<long long>(i) - kGuardBytes + seen.low);
}

void delay(const Case& c) {
  if (c.rank != c.delayed_rank) return;
  timespec now{};
  if (!c.delay_spins) {
    const timespec nap{0, c.delay_ns};
    nanosleep(&nap, nullptr);
    return;
  }
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t end = now.tv_sec * 1000000000ll + now.tv_nsec + c.delay_ns / 4;
  while (now.tv_sec * 1000000000ll + now.tv_nsec < end) clock_gettime(CLOCK_MONOTONIC, &now);
}

void count_path(const Case& c) {
  if (!g_last_path || c.size < 2) return;
  ++g_calls;
  if (std::strcmp(g_last_path(), "host") != 0) ++g_native;
}

// Runs `call(caller)` by our functions and, if wanted, by the host's; `judge(context)` looks at the buffers, which
// `prepare` makes anew.
template <class Prepare, class Call, class Judge>
void run(const Case& c, const Live& live, const char* operation, Prepare prepare, Call call, Judge judge) {
  for (int side = 0; side < (g_compare ? 2 : 1); ++side) {
    const Context x{c, operation, live, side == 0 ? "us" : "the host"};
    prepare();
    delay(c);
    const int code = call(Caller{side == 0 ? g_ours : g_host, c.large});
    if (code != MPI_SUCCESS) fail(x, "error code", "", code);
    if (side == 0) count_path(c);
    judge(x);
  }
}

// ---- the operations -------------------------------------------------------------------------------------------------

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

// Nobody leaves before the last has come (one clock for all: this test runs on one node).
void run_barrier(Case& c, const Live& live) {
  std::int64_t came = 0;
  std::int64_t left = 0;
  run(
      c, live, "barrier", [] {},
      [&](const Caller& caller) {
        came = now_ns();
        const int code = caller.barrier(live.comm);
        left = now_ns();
        return code;
      },
      [&](const Context& x) {
        std::vector<std::int64_t> all(static_cast<std::size_t>(c.size));
        g_host.Allgather(&came, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, live.comm);
        const std::int64_t last = *std::max_element(all.begin(), all.end());
        if (left < last) fail(x, "left early, ns", "", last - left);
      });
}

void run_bcast(Case& c, const Live& live) {
  make_regular(c);
  const bool root = c.rank == c.root;
  const std::int64_t units = c.units[0];
  Part part;
  make_part(part, c, root ? units : c.declared[0], 1);
  const std::vector<char> data = message(c, c.root, -1, units);
  Memory before = part.memory;
  Memory expected = part.memory;
  expected.write(part.type, 0, data);
  if (root) before = expected;
  run(
      c, live, "bcast", [&] { part.memory = before; },
      [&](const Caller& caller) {
        return caller.bcast({part.memory.origin(), part.count, part.type.handle}, c.root, live.comm);
      },
      [&](const Context& x) {
        compare(x, root ? "root's buffer" : "received", part.memory, expected, part.type.text);
      });
}

void run_any_gather(Case& c, const Live& live, const char* name, bool regular) {
  if (regular) make_regular(c);
  const bool root = c.rank == c.root;
  const bool in_place = root && c.in_place;
  const auto me = static_cast<std::size_t>(c.rank);
  Part send;
  make_part(send, c, c.units[me], 1);
  send.memory.write(send.type, 0, message(c, c.rank, -1, c.units[me]));
  const Memory sent = send.memory;
  Array receive;
  Memory before;
  Memory expected;
  if (root) {
    make_array(receive, c, regular, 2);
    if (in_place) receive.memory.write(receive.type, receive.place(c.rank), message(c, c.rank, -1, c.units[me]));
    before = expected = receive.memory;
    for (int r = 0; r < c.size; ++r) {
      expected.write(receive.type, receive.place(r), message(c, r, -1, c.units[static_cast<std::size_t>(r)]));
    }
  }
  run(
      c, live, name,
      [&] {
        if (root) receive.memory = before;
      },
      [&](const Caller& caller) {
        const One from = in_place ? One{MPI_IN_PLACE, 0, MPI_DATATYPE_NULL}
                                  : One{send.memory.origin(), send.count, send.type.handle};
        const Many to = root ? Many{receive.memory.origin(), &receive.counts, &receive.displs, receive.type.handle}
                             : Many{nullptr, nullptr, nullptr, MPI_DATATYPE_NULL};
        return regular ? caller.gather(from, to, c.root, live.comm) : caller.gatherv(from, to, c.root, live.comm);
      },
      [&](const Context& x) {
        const std::string types = send.type.text + " -> " + receive.type.text;
        compare(x, "send buffer", send.memory, sent, types);
        compare(x, "received", receive.memory, expected, types);
      });
}

void run_any_scatter(Case& c, const Live& live, const char* name, bool regular) {
  if (regular) make_regular(c);
  const bool root = c.rank == c.root;
  const bool in_place = root && c.in_place;
  const auto me = static_cast<std::size_t>(c.rank);
  Part receive;
  make_part(receive, c, c.declared[me], 1);
  const Memory before = receive.memory;
  Memory expected = receive.memory;
  if (!in_place) expected.write(receive.type, 0, message(c, c.root, c.rank, c.units[me]));
  Array send;
  Memory sent;
  if (root) {
    Case exact = c;  // the root says what it sends; only receivers may declare more
    exact.declared = c.units;
    make_array(send, exact, regular, 2);
    for (int r = 0; r < c.size; ++r) {
      send.memory.write(send.type, send.place(r), message(c, c.root, r, c.units[static_cast<std::size_t>(r)]));
    }
    sent = send.memory;
  }
  run(
      c, live, name, [&] { receive.memory = before; },
      [&](const Caller& caller) {
        const Many from = root ? Many{send.memory.origin(), &send.counts, &send.displs, send.type.handle}
                               : Many{nullptr, nullptr, nullptr, MPI_DATATYPE_NULL};
        const One to = in_place ? One{MPI_IN_PLACE, 0, MPI_DATATYPE_NULL}
                                : One{receive.memory.origin(), receive.count, receive.type.handle};
        return regular ? caller.scatter(from, to, c.root, live.comm) : caller.scatterv(from, to, c.root, live.comm);
      },
      [&](const Context& x) {
        const std::string types = send.type.text + " -> " + receive.type.text;
        compare(x, "send buffer", send.memory, sent, types);
        compare(x, "received", receive.memory, expected, types);
      });
}

void run_any_allgather(Case& c, const Live& live, const char* name, bool regular) {
  if (regular) make_regular(c);
  const auto me = static_cast<std::size_t>(c.rank);
  Part send;
  make_part(send, c, c.units[me], 1);
  send.memory.write(send.type, 0, message(c, c.rank, -1, c.units[me]));
  const Memory sent = send.memory;
  Array receive;
  make_array(receive, c, regular, 2);
  if (c.in_place) receive.memory.write(receive.type, receive.place(c.rank), message(c, c.rank, -1, c.units[me]));
  const Memory before = receive.memory;
  Memory expected = receive.memory;
  for (int r = 0; r < c.size; ++r) {
    expected.write(receive.type, receive.place(r), message(c, r, -1, c.units[static_cast<std::size_t>(r)]));
  }
  run(
      c, live, name, [&] { receive.memory = before; },
      [&](const Caller& caller) {
        const One from = c.in_place ? One{MPI_IN_PLACE, 0, MPI_DATATYPE_NULL}
                                    : One{send.memory.origin(), send.count, send.type.handle};
        const Many to{receive.memory.origin(), &receive.counts, &receive.displs, receive.type.handle};
        return regular ? caller.allgather(from, to, live.comm) : caller.allgatherv(from, to, live.comm);
      },
      [&](const Context& x) {
        const std::string types = send.type.text + " -> " + receive.type.text;
        compare(x, "send buffer", send.memory, sent, types);
        compare(x, "received", receive.memory, expected, types);
      });
}

// Every pair of ranks exchanges blocks of one length, so that both directions may be in place.
Case pairwise(const Case& c, bool regular) {
  Case pairs = c;
  const auto size = static_cast<std::size_t>(c.size);
  for (std::size_t r = 0; r < size && !regular; ++r) {
    pairs.units[r] = c.units[(r + static_cast<std::size_t>(c.rank)) % size];
    pairs.declared[r] = c.declared[(r + static_cast<std::size_t>(c.rank)) % size];
  }
  if (c.in_place) pairs.declared = pairs.units;
  return pairs;
}

void run_any_alltoall(Case& c, const Live& live, const char* name, bool regular) {
  if (regular) make_regular(c);
  const Case take = pairwise(c, regular);
  Case give = take;
  give.declared = give.units;
  Array send, receive;
  make_array(send, give, regular, 1);
  make_array(receive, take, regular, 2);
  for (int r = 0; r < c.size; ++r) {
    const std::vector<char> data = message(c, c.rank, r, take.units[static_cast<std::size_t>(r)]);
    if (c.in_place) {
      receive.memory.write(receive.type, receive.place(r), data);
    } else {
      send.memory.write(send.type, send.place(r), data);
    }
  }
  const Memory sent = send.memory, before = receive.memory;
  Memory expected = before;
  for (int r = 0; r < c.size; ++r) {
    expected.write(receive.type, receive.place(r), message(c, r, c.rank, take.units[static_cast<std::size_t>(r)]));
  }
  run(
      c, live, name, [&] { receive.memory = before; },
      [&](const Caller& caller) {
        const Many from = c.in_place ? Many{MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL}
                                     : Many{send.memory.origin(), &send.counts, &send.displs, send.type.handle};
        const Many to{receive.memory.origin(), &receive.counts, &receive.displs, receive.type.handle};
        return regular ? caller.alltoall(from, to, live.comm) : caller.alltoallv(from, to, live.comm);
      },
      [&](const Context& x) {
        const std::string types = send.type.text + " -> " + receive.type.text;
        compare(x, "send buffer", send.memory, sent, types);
        compare(x, "received", receive.memory, expected, types);
      });
}

void run_alltoallw(Case& c, const Live& live) {
  const Case take = pairwise(c, false);
  Case give = take;
  give.declared = give.units;
  TypedArray send, receive;
  make_typed_array(send, give, 1);
  make_typed_array(receive, take, 2);
  for (std::size_t r = 0; r < take.units.size(); ++r) {
    TypedArray& from = c.in_place ? receive : send;
    from.memory.write(from.types[r], from.displs[r], message(c, c.rank, static_cast<int>(r), take.units[r]));
  }
  const Memory sent = send.memory, before = receive.memory;
  Memory expected = before;
  for (std::size_t r = 0; r < take.units.size(); ++r) {
    expected.write(receive.types[r], receive.displs[r], message(c, static_cast<int>(r), c.rank, take.units[r]));
  }
  run(
      c, live, "alltoallw", [&] { receive.memory = before; },
      [&](const Caller& caller) {
        const Typed from = c.in_place ? Typed{MPI_IN_PLACE, nullptr, nullptr, nullptr}
                                      : Typed{send.memory.origin(), &send.counts, &send.displs, send.handles.data()};
        return caller.alltoallw(from, {receive.memory.origin(), &receive.counts, &receive.displs, receive.handles.data()},
                                live.comm);
      },
      [&](const Context& x) {
        compare(x, "send buffer", send.memory, sent, "several");
        compare(x, "received", receive.memory, expected, "several");
      });
}

// In-place block and over-declared counts contradict each other: the block's length is the declared one.
void exact_if_in_place(Case& c) {
  if (c.in_place) c.declared = c.units;
}

struct Operation {
  const char* name;
  int weight;
  void (*run)(Case&, const Live&);
};

const Operation kOperations[] = {
    {"barrier", 5, run_barrier},
    {"bcast", 15, run_bcast},
    {"gather", 12,
     [](Case& c, const Live& l) {
       exact_if_in_place(c);
       run_any_gather(c, l, "gather", true);
     }},
    {"gatherv", 15,
     [](Case& c, const Live& l) {
       exact_if_in_place(c);
       run_any_gather(c, l, "gatherv", false);
     }},
    {"scatter", 12, [](Case& c, const Live& l) { run_any_scatter(c, l, "scatter", true); }},
    {"scatterv", 15, [](Case& c, const Live& l) { run_any_scatter(c, l, "scatterv", false); }},
    {"allgather", 12,
     [](Case& c, const Live& l) {
       exact_if_in_place(c);
       run_any_allgather(c, l, "allgather", true);
     }},
    {"allgatherv", 15,
     [](Case& c, const Live& l) {
       exact_if_in_place(c);
       run_any_allgather(c, l, "allgatherv", false);
     }},
    {"alltoall", 12, [](Case& c, const Live& l) { run_any_alltoall(c, l, "alltoall", true); }},
    {"alltoallv", 15, [](Case& c, const Live& l) { run_any_alltoall(c, l, "alltoallv", false); }},
    {"alltoallw", 15, run_alltoallw},
};

const Operation& choose_operation(Random& random) {
  int total = 0;
  for (const Operation& operation : kOperations) total += operation.weight;
  for (;;) {
    std::int64_t pick = random.below(total);
    const Operation* operation = kOperations;
    while ((pick -= operation->weight) >= 0) ++operation;
    if (g_skip != operation->name) return *operation;
  }
}

// ---- communicators --------------------------------------------------------------------------------------------------

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

// Some ranks together, others together, some not at all; ranks in a random order.
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
