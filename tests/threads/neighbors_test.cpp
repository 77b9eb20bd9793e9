// SPDX-License-Identifier: BSD-3-Clause
// Neighbourhood collectives on random graphs and on grids: neighbours that are there several times,
// ranks that are their own neighbours or have none, open ends, and ranks many calls ahead of
// others.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "threads/queued.hpp"

namespace stretto::test {
namespace {

constexpr int kNobody = Neighborhood::kNobody;
constexpr char kUntouched = '\x5a';

// The neighbours of every rank, and by whom and from which block each block is filled.
struct Graph {
  std::vector<std::vector<int>> sources, destinations;
  bool is_grid = false;
  struct End {
    int rank, block;
  };
  std::vector<std::vector<End>> filled_by;

  explicit Graph(int ranks) : sources(ranks), destinations(ranks) {}
  [[nodiscard]] int ranks() const { return static_cast<int>(sources.size()); }

  void pair() {
    for (int to = 0; to < ranks(); ++to) {
      std::map<int, int> seen;
      auto& ends = filled_by.emplace_back();
      for (int block = 0; block < std::ssize(sources[to]); ++block) {
        const int from = sources[to][block];
        if (from == kNobody) {
          ends.push_back({kNobody, 0});
        } else if (is_grid) {
          ends.push_back({from, block ^ 1});
        } else {
          int left = seen[from]++, at = 0;
          while (destinations[from][at] != to || left-- > 0) ++at;
          ends.push_back({from, at});
        }
      }
    }
  }
};

Graph random_graph(int ranks, std::mt19937_64& random) {
  Graph graph(ranks);
  const std::uint64_t edges = random() % static_cast<std::uint64_t>(3 * ranks);
  for (std::uint64_t e = 0; e < edges; ++e) {
    const int from = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const int to = static_cast<int>(random() % static_cast<unsigned>(ranks));
    for (std::uint64_t times = random() % 4 == 0 ? 3 : 1; times > 0; --times) {
      graph.destinations[from].push_back(to);
      graph.sources[to].push_back(from);
    }
  }
  for (auto& each : graph.sources) std::shuffle(each.begin(), each.end(), random);
  graph.pair();
  return graph;
}

struct Dimension {
  int ranks;
  bool periodic;
};

Graph grid(const std::vector<Dimension>& dimensions) {
  int ranks = 1;
  for (const Dimension& d : dimensions) ranks *= d.ranks;
  Graph graph(ranks);
  graph.is_grid = true;
  for (int r = 0; r < ranks; ++r) {
    int stride = 1;
    for (const Dimension& d : dimensions) {
      const int at = r / stride % d.ranks;
      for (const int step : {-1, 1}) {
        const int next = at + step, wrapped = (next + d.ranks) % d.ranks;
        const int rank = next == wrapped || d.periodic ? r + (wrapped - at) * stride : kNobody;
        graph.sources[r].push_back(rank);
        graph.destinations[r].push_back(rank);
      }
      stride *= d.ranks;
    }
  }
  graph.pair();
  return graph;
}

// ---- One call ----

enum class Form { allgather, allgatherv, alltoall, alltoallv, alltoallw };
constexpr Collective kAs[] = {Collective::neighbor_allgather, Collective::neighbor_allgatherv,
                              Collective::neighbor_alltoall, Collective::neighbor_alltoallv,
                              Collective::neighbor_alltoallw};

// Every other byte.
inline constexpr Layout kEverySecond{1, 2, &kByteRun, 1, false};

struct Shape {
  Form form;
  int number;
  std::size_t most;

  Shape(int call, std::uint64_t seed) : number(call) {
    std::mt19937_64 random(seed * 991 + static_cast<std::uint64_t>(call));
    constexpr std::size_t kMost[] = {1, 8, 96, 700, 5000, 70'000, 400'000};
    form = static_cast<Form>(random() % 5);
    most = kMost[random() % (random() % 10 == 0 ? std::size(kMost) : 4)];
  }
  [[nodiscard]] bool gathers() const { return form == Form::allgather || form == Form::allgatherv; }
  // Of a message.
  [[nodiscard]] std::size_t bytes(int from, int block) const {
    const std::size_t draw = static_cast<std::size_t>(number + 3 * from + (gathers() ? 0 : 5 * block)) % 4;
    return form == Form::allgather || form == Form::alltoall || draw == 0 ? most : most * (draw - 1) / 3;
  }
  [[nodiscard]] char byte(int from, int block, std::size_t i) const {
    return static_cast<char>(static_cast<std::size_t>(17 * number + 31 * from + (gathers() ? 0 : 7 * block)) + i * 3);
  }
};

// A rank's memory for one side of a call: blocks in reverse order, with gaps.
struct Side {
  std::vector<char> memory;
  std::vector<std::int64_t> counts, displs;
  std::vector<const Layout*> layouts;

  Side(const Shape& shape, int blocks, const std::function<std::size_t(int)>& bytes_of)
      : counts(blocks), displs(blocks), layouts(blocks, shape.form == Form::alltoallw ? &kEverySecond : &kBytes) {
    const bool in_order = shape.form == Form::allgather || shape.form == Form::alltoall;
    const int stride = shape.form == Form::alltoallw ? 2 : 1;
    std::size_t end = 0;
    for (int i = 0; i < blocks; ++i) {
      const int k = in_order ? i : blocks - 1 - i;
      counts[k] = static_cast<std::int64_t>(bytes_of(k));
      displs[k] = static_cast<std::int64_t>(end);
      end += bytes_of(k) * stride + (in_order ? 0 : 3);
    }
    memory.assign(end, kUntouched);
  }
  [[nodiscard]] Blocks blocks(const Shape& shape) {
    if (shape.form == Form::allgather || shape.form == Form::alltoall) return {memory.data(), &kBytes, shape.most};
    return {memory.data(),
            &kBytes,
            0,
            counts.data(),
            displs.data(),
            true,
            shape.form == Form::alltoallw ? layouts.data() : nullptr};
  }
};

class Made {
 public:
  Made(const Graph& graph, int rank, const Shape& shape)
      : graph_(graph),
        rank_(rank),
        shape_(shape),
        send_(shape, static_cast<int>(graph.destinations[rank].size()), [&](int k) { return shape.bytes(rank, k); }),
        receive_(shape, static_cast<int>(graph.sources[rank].size()), [&](int k) {
          const Graph::End& end = graph.filled_by[rank][k];
          return end.rank == kNobody ? shape.most : shape.bytes(end.rank, end.block);
        }) {
    for (std::size_t i = 0; i < shape.bytes(rank, 0); ++i) same_.push_back(shape.byte(rank, 0, i));
    for (int k = 0; k < std::ssize(send_.counts); ++k) {
      const Region block = send_.blocks(shape).at(k);
      for (std::size_t i = 0; i < block.count; ++i)
        block.base[static_cast<std::ptrdiff_t>(i) * block.layout->extent] = shape.byte(rank, k, i);
    }
  }
  template <class Where>
  engine::Outcome call(Where& where) {
    const Blocks to = receive_.blocks(shape_);
    const Collective as = kAs[static_cast<int>(shape_.form)];
    if (shape_.gathers()) return engine::neighbors(where, as, Region{same_.data(), same_.size(), &kBytes}, to, true);
    return engine::neighbors(where, as, send_.blocks(shape_), to, true);
  }
  void check() {
    std::vector<char> expected(receive_.memory.size(), kUntouched);
    for (int k = 0; k < std::ssize(receive_.counts); ++k) {
      const Graph::End& end = graph_.filled_by[rank_][k];
      const Region block = receive_.blocks(shape_).at(k);
      for (std::size_t i = 0; i < block.count && end.rank != kNobody; ++i) {
        expected[static_cast<std::size_t>(block.base - receive_.memory.data()) +
                 i * static_cast<std::size_t>(block.layout->extent)] = shape_.byte(end.rank, end.block, i);
      }
    }
    ASSERT_TRUE(receive_.memory == expected)
        << kCollectiveNames[static_cast<int>(kAs[static_cast<int>(shape_.form)])] << " rank " << rank_ << " of "
        << graph_.ranks() << " call " << shape_.number << " of at most " << shape_.most << " bytes";
  }

 private:
  const Graph& graph_;
  int rank_;
  Shape shape_;
  std::vector<char> same_;
  Side send_, receive_;
};

Neighborhood neighborhood(const Graph& graph, int rank) {
  Neighborhood made;
  EXPECT_TRUE(made.fill(rank, graph.sources[rank], graph.destinations[rank], graph.is_grid));
  return made;
}

// Some calls block, others are left to a queue that the rank drives now and then.
void play(const Graph& graph, std::uint64_t seed, int calls, const engine::Settings& settings = {}) {
  const int ranks = graph.ranks();
  Group group(everybody(ranks)), apart(everybody(ranks));
  std::vector<Queued*> queues(static_cast<std::size_t>(ranks));
  const auto main = [&](int rank, engine::Process& process) {
    const Neighborhood mine = neighborhood(graph, rank);
    engine::Comm* const comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    engine::comm_set_neighborhood(*comm, mine);
    {
      Queued queued;
      queued.open(process, apart, rank);
      queued.scheduler.set_neighborhood(mine);
      queues[static_cast<std::size_t>(rank)] = &queued;
      std::deque<Made> left;
      std::deque<engine::Prepared> prepared;
      std::mt19937_64 own(seed * 7 + static_cast<std::uint64_t>(rank));
      for (int call = 0; call < calls; ++call) {
        const Shape shape(call, seed);
        if (own() % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 2000));
        if (call % 3 == 2) {
          left.emplace_back(graph, rank, shape);
          prepared.emplace_back(queued.scheduler);
          ASSERT_EQ(left.back().call(prepared.back()).status, Status::ok);
          queued.queue.post(prepared.back());
        } else {
          Made made(graph, rank, shape);
          ASSERT_EQ(made.call(*comm).status, Status::ok);
          made.check();
        }
      }
      while (!queued.queue.empty()) {
        if (!queued.queue.advance()) std::this_thread::yield();
      }
      while (const engine::Prepared* const ended = queued.queue.take_ended())
        ASSERT_EQ(ended->outcome.status, Status::ok);
      for (Made& made : left) made.check();
      queues[static_cast<std::size_t>(rank)] = nullptr;
    }
    engine::comm_free(comm);
  };
  run_job(ranks, settings, main, [&](int rank) {
    return engine::HostProgress{&queues[static_cast<std::size_t>(rank)], [](void* context) {
                                  Queued* const queued = *static_cast<Queued**>(context);
                                  if (queued != nullptr) (void)queued->queue.advance();
                                }};
  });
}

TEST(Neighbors, RandomGraphs) {
  std::mt19937_64 random(1);
  for (const int ranks : {2, 3, 5, 8, 16}) {
    for (int turn = 0; turn < 3; ++turn) play(random_graph(ranks, random), random(), 6 * kEffort);
  }
}

TEST(Neighbors, Grids) {
  const std::vector<std::vector<Dimension>> grids = {
      {{2, false}},
      {{2, true}},
      {{3, true}},
      {{2, true}, {1, true}, {1, true}},
      {{2, true}, {2, true}},
      {{1, false}, {5, true}},
      {{3, false}, {2, true}},
      {{4, true}, {2, false}, {2, true}},
  };
  std::uint64_t seed = 100;
  for (const auto& each : grids) play(grid(each), ++seed, 6 * kEffort);
}

TEST(Neighbors, FewSlotsAndLongBlocks) {
  engine::Settings settings;
  settings.slots = 2;
  settings.slot_bytes = 4096;
  std::mt19937_64 random(9);
  for (const int ranks : {2, 5}) play(random_graph(ranks, random), random(), 10 * kEffort, settings);
}

// Rank 0 sends to rank 1, who comes when rank 0 has made all its calls.
TEST(Neighbors, WhoOnlySendsShortMessagesWaitsForNobody) {
  Graph graph(2);
  graph.destinations[0] = {1};
  graph.sources[1] = {0};
  graph.pair();
  Group group(everybody(2));
  std::atomic<bool> sent{false};
  run_job(2, {}, [&](int rank, engine::Process& process) {
    const Neighborhood mine = neighborhood(graph, rank);
    engine::Comm* const comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    engine::comm_set_neighborhood(*comm, mine);
    while (rank == 1 && !sent.load()) std::this_thread::yield();
    std::int32_t value = -1;
    const Blocks one{reinterpret_cast<char*>(&value), &kBytes, sizeof value};
    for (std::int32_t call = 0; call < 200; ++call) {
      if (rank == 0) value = call;
      ASSERT_EQ(engine::neighbors(*comm, Collective::neighbor_alltoall, one, one, true).status, Status::ok);
      ASSERT_EQ(value, call);
    }
    sent.store(true);
    engine::comm_free(comm);
  });
}

// What is longer than its block is an error there, and later calls go on.
TEST(Neighbors, LongerThanTheBlockIsTruncated) {
  const Graph graph = grid({{3, true}});
  Group group(everybody(3));
  run_job(3, {}, [&](int rank, engine::Process& process) {
    const Neighborhood mine = neighborhood(graph, rank);
    engine::Comm* const comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    engine::comm_set_neighborhood(*comm, mine);
    std::vector<char> send(40, 's'), receive(40, 'r');
    for (const std::size_t declared : {std::size_t{20}, std::size_t{12}, std::size_t{20}}) {
      const Blocks to{receive.data(), &kBytes, rank == 1 ? declared : 20};
      const Blocks from{send.data(), &kBytes, 20};
      const Status expected = rank == 1 && declared < 20 ? Status::truncated : Status::ok;
      EXPECT_EQ(engine::neighbors(*comm, Collective::neighbor_alltoall, from, to, true).status, expected);
    }
    EXPECT_EQ(receive[39], 's');
    engine::comm_free(comm);
  });
}

// A rank that cannot do its part says so to its neighbours.
TEST(Neighbors, AFailedRankFailsItsNeighbors) {
  Graph graph(4);
  for (int r = 0; r < 3; ++r) {
    graph.destinations[r] = {(r + 1) % 3};
    graph.sources[r] = {(r + 2) % 3};
  }
  graph.pair();
  Group group(everybody(4));
  run_job(4, {}, [&](int rank, engine::Process& process) {
    const Neighborhood mine = neighborhood(graph, rank);
    engine::Comm* const comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    engine::comm_set_neighborhood(*comm, mine);
    char send = 's', receive = 0;
    const Blocks to{&receive, &kBytes, 1}, from{&send, &kBytes, 1};
    const engine::Outcome outcome =
        engine::neighbors(*comm, Collective::neighbor_alltoall, from, to, /*good=*/rank != 0);
    EXPECT_EQ(outcome.status, rank == 1 ? Status::peer_failed : Status::ok);
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    engine::comm_free(comm);
  });
}

}  // namespace
}  // namespace stretto::test
