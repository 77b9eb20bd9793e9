// SPDX-License-Identifier: BSD-3-Clause
// Calls that a program does not wait for: many outstanding ones, blocking calls in between, ranks
// that start or drive them late, and communicators that are freed while peers are behind.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <optional>
#include <utility>

#include "engine/process.hpp"
#include "reduce/reduce.hpp"
#include "threads/queued.hpp"

namespace stretto::test {
namespace {

using engine::Prepared;

std::int64_t value(int call, int rank, std::uint64_t i) {
  return call * 1'000'003LL + rank * 1009LL + static_cast<std::int64_t>(i);
}

// What all ranks draw alike.
struct Draw {
  Collective collective;
  int root;
  std::uint64_t count;       // elements; of a part, where there are parts
  bool blocks;               // a blocking call comes next
  bool by_function = false;  // a reduction by a function of the program
};

// Not commutative.
std::int64_t combined(std::int64_t left, std::int64_t right) { return left * 31 + right; }
void combine(void*, char* in, char* inout, std::uint64_t count) {
  auto *left = reinterpret_cast<std::int64_t*>(in), *right = reinterpret_cast<std::int64_t*>(inout);
  for (std::uint64_t i = 0; i < count; ++i) right[i] = combined(left[i], right[i]);
}
constexpr Run kWordRun{0, sizeof(std::int64_t)};
constexpr Layout kWord{sizeof(std::int64_t), sizeof(std::int64_t), &kWordRun, 1, true};

Draw draw(int call, int ranks, std::uint64_t seed) {
  std::mt19937_64 random(seed * 1000 + static_cast<std::uint64_t>(call));
  constexpr Collective kKinds[] = {Collective::barrier,   Collective::bcast,    Collective::gather,
                                   Collective::gatherv,   Collective::scatter,  Collective::allgather,
                                   Collective::alltoall,  Collective::reduce,   Collective::allreduce,
                                   Collective::scan,      Collective::exscan,   Collective::reduce_scatter_block,
                                   Collective::alltoallv, Collective::scatterv, Collective::allgatherv};
  constexpr std::uint64_t kCounts[] = {0, 1, 7, 60, 300, 9000};
  return {kKinds[random() % std::size(kKinds)], static_cast<int>(random() % static_cast<unsigned>(ranks)),
          kCounts[random() % std::size(kCounts)], random() % 4 == 0, random() % 2 == 0};
}

// One call of one rank, and the memory that it works on.
class Made {
 public:
  Made(Queued& on, int call, int rank, const Draw& draw)
      : prepared(on.scheduler),
        contributed(prepared),
        draw_(draw),
        call_(call),
        rank_(rank),
        ranks_(on.scheduler.size()) {
    const std::uint64_t all = draw.count * static_cast<std::uint64_t>(ranks_);
    for (std::uint64_t i = 0; i < all; ++i) send_.push_back(value(call, rank, i));
    receive_.assign(all, -1);
    for (int r = 0; r < ranks_; ++r) {
      counts_.push_back(static_cast<std::int32_t>(draw.count * sizeof(std::int64_t)));
      displs_.push_back(static_cast<std::int32_t>(draw.count * sizeof(std::int64_t)) * r);
    }
    const engine::Outcome outcome = prepare();
    EXPECT_EQ(outcome.status, Status::ok);
    on.queue.post(prepared);
  }

  void check() {
    EXPECT_EQ(prepared.outcome.status, Status::ok);
    contributed.fold();
    for (std::uint64_t i = 0; i < receive_.size(); ++i) {
      const std::int64_t expected = expects(i);
      ASSERT_EQ(receive_[i], expected) << kCollectiveNames[static_cast<int>(draw_.collective)] << " call " << call_
                                       << " rank " << rank_ << " of " << ranks_ << " element " << i << " of "
                                       << draw_.count;
    }
  }

  Prepared prepared;
  engine::Contributed contributed;
  bool ended = false;

 private:
  [[nodiscard]] char* in() { return reinterpret_cast<char*>(send_.data()); }
  [[nodiscard]] char* out() { return reinterpret_cast<char*>(receive_.data()); }
  [[nodiscard]] std::uint64_t bytes() const { return draw_.count * sizeof(std::int64_t); }
  [[nodiscard]] Blocks parts(char* base) const { return {base, &kBytes, bytes()}; }
  [[nodiscard]] Blocks parts_by_arrays(char* base) const {
    return {base, &kBytes, 0, counts_.data(), displs_.data(), false};
  }

  // False: the call is no reduction.
  bool prepare_by_function(engine::Outcome& outcome) {
    const std::uint64_t each = draw_.count, all = each * static_cast<std::uint64_t>(ranks_);
    const bool parts = draw_.collective == Collective::reduce_scatter_block;
    const std::uint64_t at_once = std::min(engine::elements_at_once(kWord.size), parts ? all : each);
    scratch_.assign(2 * at_once, 0);
    char* const scratch = reinterpret_cast<char*>(scratch_.data());
    const engine::FunctionArgs operands{{in(), parts ? all : each, &kWord},
                                        {out(), each, &kWord},
                                        {scratch, at_once, &kWord},
                                        {scratch + at_once * kWord.size, at_once, &kWord}};
    const engine::FunctionOp function{nullptr, combine};
    std::vector<std::uint64_t> begins;
    for (int r = 0; r <= ranks_; ++r) begins.push_back(each * static_cast<std::uint64_t>(r));
    switch (draw_.collective) {
      case Collective::reduce: outcome = engine::reduce(contributed, operands, function, draw_.root); return true;
      case Collective::allreduce: outcome = engine::allreduce(contributed, operands, function); return true;
      case Collective::scan: outcome = engine::scan(contributed, operands, function, false); return true;
      case Collective::exscan: outcome = engine::scan(contributed, operands, function, true); return true;
      case Collective::reduce_scatter_block:
        outcome = engine::reduce_scatter(contributed, draw_.collective, operands, function, begins.data());
        return true;
      default: return false;
    }
  }

  engine::Outcome prepare() {
    engine::Outcome outcome;
    if (draw_.by_function && prepare_by_function(outcome)) return outcome;
    const Region one{in(), bytes(), &kBytes};
    const engine::KernelOp add{reduce::kernel3(reduce::Op::sum, reduce::Type::i64), sizeof(std::int64_t)};
    const engine::KernelArgs vector{in(), out(), bytes()};
    const engine::KernelArgs all{in(), out(), bytes() * static_cast<std::uint64_t>(ranks_)};
    const int root = draw_.root;
    const Collective as = draw_.collective;
    std::vector<std::uint64_t> begins;
    for (int r = 0; r <= ranks_; ++r) begins.push_back(bytes() * static_cast<std::uint64_t>(r));
    switch (as) {
      case Collective::barrier: return engine::barrier(prepared);
      case Collective::bcast:
        if (rank_ == root) std::copy_n(send_.begin(), draw_.count, receive_.begin());
        return engine::bcast(prepared, {out(), bytes(), &kBytes}, root, true);
      case Collective::gather: return engine::gather(prepared, as, one, parts(out()), root, false, true);
      case Collective::gatherv: return engine::gather(prepared, as, one, parts_by_arrays(out()), root, false, true);
      case Collective::scatter:
        return engine::scatter(prepared, as, parts(in()), {out(), bytes(), &kBytes}, root, false, true);
      case Collective::scatterv:
        return engine::scatter(prepared, as, parts_by_arrays(in()), {out(), bytes(), &kBytes}, root, false, true);
      case Collective::allgather: return engine::allgather(prepared, as, one, parts(out()), false, true);
      case Collective::allgatherv: return engine::allgather(prepared, as, one, parts_by_arrays(out()), false, true);
      case Collective::alltoall: return engine::alltoall(prepared, as, parts(in()), parts(out()), false, true);
      case Collective::alltoallv:
        return engine::alltoall(prepared, as, parts_by_arrays(in()), parts_by_arrays(out()), false, true);
      case Collective::reduce: return engine::reduce(prepared, vector, add, root);
      case Collective::allreduce: return engine::allreduce(prepared, vector, add);
      case Collective::reduce_scatter_block: return engine::reduce_scatter(prepared, as, all, add, begins.data());
      case Collective::scan: return engine::scan(prepared, vector, add, false);
      default: return engine::scan(prepared, vector, add, true);
    }
  }

  [[nodiscard]] std::int64_t sum(int first, int last, std::uint64_t i) const {
    std::int64_t all = value(call_, first, i);
    for (int r = first + 1; r < last; ++r) {
      const std::int64_t next = value(call_, r, i);
      all = draw_.by_function ? combined(all, next) : all + next;
    }
    return all;
  }
  [[nodiscard]] std::int64_t expects(std::uint64_t i) const {
    const bool first = i < draw_.count, is_root = rank_ == draw_.root;
    const std::uint64_t within = draw_.count == 0 ? 0 : i % draw_.count;
    const int part = draw_.count == 0 ? 0 : static_cast<int>(i / draw_.count);
    const std::uint64_t mine = static_cast<std::uint64_t>(rank_) * draw_.count;
    switch (draw_.collective) {
      case Collective::bcast: return first ? value(call_, draw_.root, i) : -1;
      case Collective::gather:
      case Collective::gatherv: return is_root ? value(call_, part, within) : -1;
      case Collective::scatter:
      case Collective::scatterv: return first ? value(call_, draw_.root, mine + i) : -1;
      case Collective::allgather:
      case Collective::allgatherv: return value(call_, part, within);
      case Collective::alltoall:
      case Collective::alltoallv: return value(call_, part, mine + within);
      case Collective::reduce: return first && is_root ? sum(0, ranks_, i) : -1;
      case Collective::allreduce: return first ? sum(0, ranks_, i) : -1;
      case Collective::reduce_scatter_block: return first ? sum(0, ranks_, mine + i) : -1;
      case Collective::scan: return first ? sum(0, rank_ + 1, i) : -1;
      case Collective::exscan: return first && rank_ != 0 ? sum(0, rank_, i) : -1;
      default: return -1;
    }
  }

  Draw draw_;
  int call_, rank_, ranks_;
  std::vector<std::int64_t> send_, receive_, scratch_;
  std::vector<std::int32_t> counts_, displs_;
};

void take_ended(Queued& on, std::deque<Made>& calls) {
  while (Prepared* const ended = on.queue.take_ended()) {
    for (Made& made : calls) made.ended = made.ended || &made.prepared == ended;
  }
}

void drive_until(Queued& on, std::deque<Made>& calls, const std::atomic<bool>* also, const Made* wanted) {
  for (;;) {
    const bool moved = on.queue.advance();
    take_ended(on, calls);
    if (wanted != nullptr ? wanted->ended : also != nullptr ? also->load() : on.queue.empty()) return;
    if (!moved) std::this_thread::yield();
  }
}

struct RankState {
  Queued* queued = nullptr;
};

// Each rank drives its calls at its own pace, and also in the waits of its blocking calls. `each`:
// so many ranks share a node, and what is on other nodes has connections; 0: all share memory.
void play(int ranks, std::uint64_t seed, int count, int each = 0) {
  std::optional<Nodes> nodes;
  if (each != 0) nodes.emplace(ranks, each);
  std::vector<RankState> states(static_cast<std::size_t>(ranks));
  Group group(everybody(ranks)), apart(everybody(ranks));
  engine::Settings settings;
  settings.wait = engine::WaitMode::yield;
  run_job(
      ranks, settings,
      [&](int rank, engine::Process& process) {
        engine::Comm* const comm = make_comm(process, group, rank);
        ASSERT_NE(comm, nullptr);
        {
          Queued queued;
          if (nodes)
            queued.open(process, *nodes, ranks, 1, rank);
          else
            queued.open(process, apart, rank);
          states[static_cast<std::size_t>(rank)].queued = &queued;
          std::mt19937_64 random(seed * 77 + static_cast<std::uint64_t>(rank));
          std::deque<Made> calls;
          for (int call = 0; call < count; ++call) {
            const Draw drawn = draw(call, ranks, seed);
            calls.emplace_back(queued, call, rank, drawn);
            for (std::uint64_t some = random() % 3; some > 0; --some) (void)queued.queue.advance();
            take_ended(queued, calls);
            if (drawn.blocks) {
              std::int64_t mine = rank + 1, all = 0;
              const engine::KernelOp add{reduce::kernel3(reduce::Op::sum, reduce::Type::i64), sizeof mine};
              const engine::Outcome outcome = engine::allreduce(
                  *comm, {reinterpret_cast<char*>(&mine), reinterpret_cast<char*>(&all), sizeof mine}, add);
              ASSERT_EQ(outcome.status, Status::ok);
              ASSERT_EQ(all, std::int64_t{ranks} * (ranks + 1) / 2);
            }
            if (random() % 8 == 0) drive_until(queued, calls, nullptr, &calls[random() % calls.size()]);
            if (random() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
          }
          drive_until(queued, calls, nullptr, nullptr);
          for (Made& made : calls) made.check();
          states[static_cast<std::size_t>(rank)].queued = nullptr;
        }
        engine::comm_free(comm);
      },
      [&](int rank) {
        return engine::HostProgress{&states[static_cast<std::size_t>(rank)], [](void* context) {
                                      Queued* const queued = static_cast<RankState*>(context)->queued;
                                      if (queued != nullptr) (void)queued->queue.advance();
                                    }};
      });
}

TEST(CallQueueTest, OutstandingCallsAndBlockingOnes) {
  for (const int ranks : {2, 3, 5, 8}) play(ranks, static_cast<std::uint64_t>(ranks), 40 * kEffort);
}

TEST(CallQueueTest, BetweenNodes) {
  for (const auto& [ranks, each] : {std::pair{3, 2}, {4, 1}, {5, 2}, {8, 3}})
    play(ranks, static_cast<std::uint64_t>(ranks * 10 + each), 20 * kEffort, each);
}

// A call of one rank fails. It and all later ones fail on every rank, which nobody waits for in
// vain.
TEST(CallQueueTest, AnErrorEndsAllLaterCallsBetweenNodes) {
  constexpr int kRanks = 5;
  Nodes nodes(kRanks, 2);
  run_job(kRanks, {}, [&](int rank, engine::Process& process) {
    Queued queued;
    queued.open(process, nodes, kRanks, 1, rank);
    std::vector<char> mine(64, 'a'), all(64 * kRanks);
    std::deque<Prepared> calls;
    const auto bytes_of = [&](int r) { return std::uint64_t{rank == 0 && r == 3 ? 32u : 64u}; };
    std::vector<std::int32_t> counts, displs;
    for (int r = 0; r < kRanks; ++r) {
      counts.push_back(static_cast<std::int32_t>(bytes_of(r)));
      displs.push_back(64 * r);
    }
    calls.emplace_back(queued.scheduler);
    ASSERT_EQ(engine::gather(calls.back(), Collective::gatherv, {mine.data(), 64, &kBytes},
                             {all.data(), &kBytes, 0, counts.data(), displs.data(), false}, 0, false, true)
                  .status,
              Status::ok);
    queued.queue.post(calls.back());
    for (int call = 0; call < 4; ++call) {
      calls.emplace_back(queued.scheduler);
      ASSERT_EQ(engine::barrier(calls.back()).status, Status::ok);
      queued.queue.post(calls.back());
    }
    while (!queued.queue.empty()) {
      if (!queued.queue.advance()) std::this_thread::yield();
    }
    if (rank == 0) EXPECT_EQ(calls.front().outcome.status, Status::truncated);
    for (std::size_t call = 1; call < calls.size(); ++call) EXPECT_NE(calls[call].outcome.status, Status::ok);
  });
}

// The root of long messages goes on to another communicator, on which only other ranks must come:
// what waits for the late reader must not hold that up (shm/lane.hpp).
TEST(CallQueueTest, SlotsOfALateReaderHoldUpNothing) {
  constexpr int kRanks = 3;
  Group all(everybody(kRanks)), two({0, 1}), apart(everybody(kRanks)), apart_two({0, 1});
  std::atomic<bool> released{false};
  run_job(kRanks, {}, [&](int rank, engine::Process& process) {
    Queued late;
    late.open(process, apart, rank);
    engine::Comm* comm = nullptr;
    Queued other;
    if (rank < 2) {
      comm = make_comm(process, two, rank);
      other.open(process, apart_two, rank);
    }
    std::deque<Made> calls, others;
    const Draw large{Collective::bcast, 0, 300'000, false};
    if (rank == 2) {
      while (!released.load()) std::this_thread::yield();
    }
    for (int call = 0; call < 3; ++call) calls.emplace_back(late, call, rank, large);
    if (rank < 2) {
      others.emplace_back(other, 0, rank, large);
      while (!others.front().ended) {  // whoever drives one call of a process drives all
        const bool moved = late.queue.advance();
        if (!other.queue.advance() && !moved) std::this_thread::yield();
        take_ended(other, others);
      }
      others.front().check();
      std::vector<char> buffer(1 << 20, static_cast<char>(rank == 0 ? 7 : 0));
      for (int turn = 0; turn < 4; ++turn)
        ASSERT_EQ(engine::bcast(*comm, {buffer.data(), buffer.size(), &kBytes}, 0, true).status, Status::ok);
      EXPECT_EQ(buffer.back(), 7);
      released.store(true);
    }
    drive_until(late, calls, nullptr, nullptr);
    for (Made& made : calls) made.check();
    engine::comm_free(comm);
  });
}

// So many calls are under way, one on each communicator, that not all can have a lane ahead. Ranks
// make them in different orders. All long messages go through slots, none in records of a hundred
// bytes (shm/lane.hpp).
void play_many(int ranks, int communicators) {
  constexpr std::uint64_t kMostRecords = 64;
  std::deque<Group> groups;
  for (int c = 0; c < communicators; ++c) groups.emplace_back(everybody(ranks));
  const Draw large{Collective::alltoall, 0, 9000, false};
  run_job(ranks, {}, [&](int rank, engine::Process& process) {
    std::deque<Queued> queues;
    for (Group& group : groups) queues.emplace_back().open(process, group, rank);
    std::vector<std::deque<Made>> calls(queues.size());
    for (std::size_t made = 0; made < queues.size(); ++made) {
      const std::size_t at = (made + static_cast<std::size_t>(rank)) % queues.size();
      calls[at].emplace_back(queues[at], 0, rank, large);
      if (made % 5 == static_cast<std::size_t>(rank)) (void)queues[at].queue.advance();
    }
    for (bool all = false; !all; std::this_thread::yield()) {
      all = true;
      for (std::size_t c = 0; c < queues.size(); ++c) {
        (void)queues[c].queue.advance();
        take_ended(queues[c], calls[c]);
        all = all && queues[c].queue.empty();
      }
    }
    for (std::size_t c = 0; c < queues.size(); ++c) {
      calls[c].front().check();
      for (int r = 0; r < ranks; ++r) {
        if (r != rank) EXPECT_LE(queues[c].near->team->to(r).written, kMostRecords) << "communicator " << c;
      }
    }
    EXPECT_EQ(process.lanes.refused(), 0u);
  });
}

TEST(CallQueueTest, ManyCallsUnderWayTakeSlots) {
  play_many(2, 24);
  play_many(3, 12);
  play_many(5, 6);
}

}  // namespace
}  // namespace stretto::test
