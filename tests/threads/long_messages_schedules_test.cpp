// SPDX-License-Identifier: BSD-3-Clause
// Schedules over a driver's connections. Bcasts and Alltoallvs give the right data, on
// communicators whose ranks are not the job's. A call that fails is over for all ranks.
#include <gtest/gtest.h>

#include <random>

#include "coll/algorithm.hpp"
#include "sched/execute.hpp"
#include "threads/drivers.hpp"
#include "threads/job.hpp"
#include "transport/bulk/bulk_transport.hpp"

namespace stretto::test {
namespace {

using Bytes = std::vector<char>;

constexpr int kRanks = 5;
// Of two communicators, by their ranks: the job's ranks.
constexpr int kFirst[] = {3, 0, 4, 1, 2}, kSecond[] = {2, 4, 1};

char letter(std::uint64_t call, int from, int to, std::uint64_t i) {
  return static_cast<char>((i + 1) * 0x9e3779b97f4a7c15u * (call + 3) >> 40) ^ static_cast<char>(from * 16 + to);
}

// How long the part is that one rank sends another.
std::uint64_t length(std::uint64_t call, int from, int to) {
  std::mt19937_64 random((call * 64 + static_cast<unsigned>(from)) * 64 + static_cast<unsigned>(to));
  constexpr std::uint64_t kLengths[] = {0, 1, 5000, bulk::kEagerBytes + 1, 300'000};
  return kLengths[random() % std::size(kLengths)];
}

class Member {
 public:
  Member(bulk::Driver& driver, std::uint64_t comm, const int* ranks, int size, int rank) : size_(size), rank_(rank) {
    transport_.start(driver, comm, ranks, size);
  }
  bulk::BulkTransport& transport() { return transport_; }

  Status run(const coll::Algorithm& algorithm, coll::Problem problem, Bytes& send, Bytes& receive) {
    problem.collective = algorithm.collective;
    problem.size = size_;
    problem.rank = rank_;
    coll::Builder builder;
    sched::Program program;
    sched::Execution execution;
    coll::Parameters parameters;
    parameters.segments = algorithm.segmentable() && problem.begins == nullptr ? 4 : 1;
    EXPECT_TRUE(program.prepare(coll::build(builder, algorithm, problem, parameters)));
    EXPECT_TRUE(execution.prepare(program));
    Bytes scratch(program.scratch_units());
    sched::Binding binding;
    binding.buffers[0] = send.data();
    binding.buffers[1] = receive.data();
    binding.buffers[2] = scratch.data();
    binding.transport = transport_.transport();
    binding.transport.begin(binding.transport.context, algorithm.collective);
    const Status status = execution.run(binding, patient_policy());
    if (status != Status::ok) binding.transport.abort(binding.transport.context, status, transport_.lost().rank);
    return status;
  }

  void bcast(const coll::Algorithm& algorithm, std::uint64_t call, std::uint64_t count) {
    const int root = static_cast<int>(call % static_cast<unsigned>(size_));
    Bytes send, data(count, '-'), expected(count);
    for (std::uint64_t i = 0; i < count; ++i) expected[i] = letter(call, root, root, i);
    if (rank_ == root) data = expected;
    coll::Problem problem;
    problem.root = root;
    problem.count = count;
    ASSERT_EQ(run(algorithm, problem, send, data), Status::ok) << algorithm.name;
    EXPECT_TRUE(data == expected) << algorithm.name;
  }

  void alltoallv(const coll::Algorithm& algorithm, std::uint64_t call) {
    std::vector<std::uint64_t> sent = {0}, received = {0};
    for (int peer = 0; peer < size_; ++peer) {
      sent.push_back(sent.back() + length(call, rank_, peer));
      received.push_back(received.back() + length(call, peer, rank_));
    }
    Bytes send(sent.back()), receive(received.back(), '-'), expected(received.back());
    for (int peer = 0; peer < size_; ++peer) {
      for (std::uint64_t i = sent[peer]; i < sent[peer + 1]; ++i) send[i] = letter(call, rank_, peer, i - sent[peer]);
      for (std::uint64_t i = received[peer]; i < received[peer + 1]; ++i)
        expected[i] = letter(call, peer, rank_, i - received[peer]);
    }
    coll::Problem problem;
    problem.begins = received.data();
    problem.sent_begins = sent.data();
    ASSERT_EQ(run(algorithm, problem, send, receive), Status::ok) << algorithm.name;
    EXPECT_TRUE(receive == expected) << algorithm.name;
  }

  void all(std::uint64_t comm) {
    std::uint64_t call = 100 * comm;
    for (int repeat = 0; repeat < (kEffort + 1) / 2; ++repeat) {
      for (const coll::Algorithm& algorithm : coll::manifest()) {
        if (algorithm.collective == Collective::bcast) bcast(algorithm, ++call, call % 2 == 0 ? 20'000 : 700'001);
        if (algorithm.collective == Collective::alltoall && algorithm.serves(true, false)) alltoallv(algorithm, ++call);
      }
    }
  }

 private:
  const int size_, rank_;
  bulk::BulkTransport transport_;
};

int rank_in(const int* ranks, int size, int job_rank) {
  int rank = 0;
  while (rank < size && ranks[rank] != job_rank) ++rank;
  return rank < size ? rank : -1;
}

// A process has a thread for each communicator, and both share its connections.
TEST(LongMessagesOfSchedules, GiveTheRightData) {
  DriverJob job(kRanks);
  job.run([&](int job_rank, bulk::Driver& driver) {
    const auto one_comm = [&](std::uint64_t comm, const int* ranks, int size) {
      const int rank = rank_in(ranks, size, job_rank);
      if (rank < 0) return;
      Member member(driver, comm, ranks, size, rank);
      member.all(comm);
    };
    std::jthread other([&] { one_comm(2, kSecond, 3); });
    one_comm(1, kFirst, kRanks);
  });
}

// One rank's process ends. Those that wait for it find out, and tell those that wait for them.
TEST(LongMessagesOfSchedules, ARankIsGone) {
  DriverJob job(kRanks);
  Group survivors(everybody(kRanks - 1));
  job.run([&](int job_rank, bulk::Driver& driver) {
    const int rank = rank_in(kFirst, kRanks, job_rank);
    Member member(driver, 1, kFirst, kRanks, rank);
    const coll::Algorithm& chain = *coll::find_algorithm(Collective::bcast, "chain");
    member.bcast(chain, 0, 1000);
    if (rank == 2) return driver.stop();
    Bytes none, data(1'000'000);
    coll::Problem problem;
    problem.count = data.size();
    Status status = Status::ok;  // the root may be through before
    for (int call = 0; call < 100 && status == Status::ok; ++call) status = member.run(chain, problem, none, data);
    EXPECT_EQ(status, Status::peer_lost);
    EXPECT_EQ(member.transport().lost().rank, 2);
    int ignored[kRanks];
    survivors.allgather(rank < 2 ? rank : rank - 1, &rank, ignored, sizeof rank);
  });
}

}  // namespace
}  // namespace stretto::test
