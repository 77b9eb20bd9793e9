// SPDX-License-Identifier: BSD-3-Clause
// The verifier must find what is wrong. The tests break algorithms in many ways, and spoil every
// single step and dependency of right ones.
#include <gtest/gtest.h>

#include "coll/algorithms.hpp"
#include "unit/sched_support.hpp"

namespace stretto::test {
namespace {

using coll::Builder;
using coll::Call;
using coll::Slice;
using sched::Kind;
using sched::Side;

Job bcast(int size, int root = 0) { return make_job(Collective::bcast, size, 21, root); }
Job allreduce(int size, bool commutative = true) { return make_job(Collective::allreduce, size, 21, 0, commutative); }

#define EXPECT_FINDS(what, ...) EXPECT_PRED2(finds, std::string(what), verify(__VA_ARGS__))
bool finds(const std::string& what, const std::string& failure) { return failure.find(what) != std::string::npos; }

TEST(Verify, RightAlgorithmsPass) {
  EXPECT_EQ(verify(bcast(5, 3), coll::bcast_binomial), "");
  EXPECT_EQ(verify(bcast(5), coll::bcast_chain, {.segments = 7}), "");
  EXPECT_EQ(verify(allreduce(6), coll::allreduce_recursive_doubling), "");
  EXPECT_EQ(verify(make_job(Collective::barrier, 6, 0), coll::barrier_tree), "");
}

// Vectors that are not cut, are cut in a few pieces, and in pieces of the greatest length.
TEST(Verify, PipelinesPass) {
  constexpr std::uint64_t kCounts[] = {0, 1, 16'384, 16'385, 70'000, 200'001, 20'000'003};
  for (const Collective collective : {Collective::bcast, Collective::reduce, Collective::allreduce,
                                      Collective::allgather, Collective::reduce_scatter, Collective::scan}) {
    const Algorithm& pipeline = *coll::find_algorithm(collective, "pipeline");
    for (int size = 1; size <= 17; ++size) {
      Job job = make_job(collective, size, 0);
      for (int root = 0; root < (job.is_rooted() ? size : 1); ++root) {
        for (const std::uint64_t count : kCounts) {
          // At root 0, or of few ranks, all of them.
          if (root != 0 && size > 4 && count != kCounts[static_cast<std::size_t>(root + size) % std::size(kCounts)])
            continue;
          job = make_job(collective, size, count, root, (root + size) % 2 == 0 || !pipeline.serves(false, true));
          job.problem.in_place = collective != Collective::bcast && count % 2 == 1;
          EXPECT_EQ(verify(job, pipeline), "")
              << kCollectiveNames[static_cast<int>(collective)] << ' ' << size << ' ' << root << ' ' << count;
        }
      }
    }
  }
}
TEST(Verify, PipelinesOfPartsThatDifferPass) {
  constexpr std::uint64_t kLengths[] = {0, 100'000, 1, 16'385, 16'384, 2'000'000};
  for (int size = 1; size <= 17; ++size) {
    Job job = make_job(Collective::allgatherv, size, 0);
    job.problem.in_place = size % 2 == 0;
    job.begins.push_back(0);
    for (int r = 0; r < size; ++r)
      job.begins.push_back(job.begins.back() + kLengths[static_cast<std::size_t>(size + r) % std::size(kLengths)]);
    EXPECT_EQ(verify(job, *coll::find_algorithm(Collective::allgather, "pipeline")), "") << size;
  }
}

TEST(Verify, MissingReceive) {
  EXPECT_FINDS("nobody receives this", bcast(3), [](Builder& b, const Call& c) {
    if (c.group.me == 0) b.send(1, c.in);
  });
}
TEST(Verify, MissingSend) {
  EXPECT_FINDS("nobody sends this", bcast(3), [](Builder& b, const Call& c) {
    if (c.group.me == 1) b.recv(0, c.out);
  });
}
TEST(Verify, NobodyIsServed) {
  EXPECT_FINDS("was never written", bcast(3), [](Builder&, const Call&) {});
}
TEST(Verify, AnotherLength) {
  EXPECT_FINDS("21 units are sent, 20 expected", bcast(2), [](Builder& b, const Call& c) {
    if (c.group.me == 0) b.send(1, c.in);
    if (c.group.me == 1) b.recv(0, c.out.part(0, 20));
  });
}
TEST(Verify, AnotherPlace) {
  EXPECT_FINDS("position 1 instead of 0", bcast(2), [](Builder& b, const Call& c) {
    const Slice halves[] = {c.out.part(0, 20), c.out.part(1, 20)};
    if (c.group.me == 0) b.send(1, halves[1]), b.send(1, c.out.part(0, 1));
    if (c.group.me == 1) b.recv(0, halves[0]), b.recv(0, c.out.part(20, 1));
  });
}
TEST(Verify, NoSuchPeer) {
  EXPECT_FINDS("no such peer", bcast(2), [](Builder& b, const Call& c) { b.send(2, c.in); });
  EXPECT_FINDS("no such peer", bcast(2), [](Builder& b, const Call& c) { b.send(c.group.me, c.in); });
}
TEST(Verify, OutOfBounds) {
  EXPECT_FINDS("reads out of bounds", bcast(2),
               [](Builder& b, const Call& c) { b.copy(c.out.part(1, 21), b.scratch(21)); });
  EXPECT_FINDS("writes out of bounds", bcast(2),
               [](Builder& b, const Call& c) { b.copy(c.in, {sched::Buffer::scratch, 0, 21}); });
  EXPECT_FINDS("writes out of bounds", make_job(Collective::reduce, 2, 21), [](Builder& b, const Call& c) {
    b.copy(c.in, c.out);  // only the root has a receive buffer
  });
}
TEST(Verify, CallersBufferWritten) {
  EXPECT_FINDS("writes what is the caller's", allreduce(1), [](Builder& b, const Call& c) {
    const Slice aside = b.scratch(21);
    b.copy(c.in, aside);
    b.copy(aside, c.in);
  });
}
TEST(Verify, OverlappingSlices) {
  EXPECT_FINDS("its slices overlap", bcast(1),
               [](Builder& b, const Call& c) { b.copy(c.out.part(0, 10), c.out.part(5, 10)); });
}
TEST(Verify, ReadBeforeWritten) {
  EXPECT_FINDS("before it is written", bcast(2),
               [](Builder& b, const Call& c) { b.copy(b.scratch(3), c.out.part(0, 3)); });
}
TEST(Verify, SendsThatWaitForEachOther) {
  EXPECT_FINDS("deadlock", allreduce(2), [](Builder& b, const Call& c) {
    const Slice theirs = b.scratch(21);
    const auto sent = b.send(1 - c.group.me, c.in);  // right only if sends are buffered
    b.after(sent);
    b.recv(1 - c.group.me, theirs);
  });
}
TEST(Verify, ExchangeInOnePlace) {
  EXPECT_FINDS("deadlock", allreduce(2), [](Builder& b, const Call& c) {
    b.copy(c.in, c.out);
    b.send(1 - c.group.me, c.out);
    b.recv_reduce(1 - c.group.me, c.out, c.out, c.group.me == 0 ? Side::right : Side::left);
  });
}
TEST(Verify, ContributionCountedTwice) {
  EXPECT_FINDS("twice or out of order", allreduce(1), [](Builder& b, const Call& c) {
    b.copy(c.in, c.out);
    b.reduce(c.in, c.out, Side::left);
  });
}
TEST(Verify, ContributionLeftOut) {
  EXPECT_FINDS("not all of 0 to 2", allreduce(3), [](Builder& b, const Call& c) {
    Call two = c;
    two.group.size = 2;
    if (c.group.me != 2) coll::allreduce_recursive_doubling(b, two);
    if (c.group.me == 2) b.copy(c.in, c.out);
  });
}
TEST(Verify, PositionsMixed) {
  EXPECT_FINDS("combines different positions", allreduce(2), [](Builder& b, const Call& c) {
    if (c.group.me == 0) b.recv_reduce(1, c.in.part(0, 20), c.out.part(0, 20), Side::right);
    if (c.group.me == 1) b.send(0, c.in.part(1, 20));
  });
}
TEST(Verify, OrderCountsWhereOperationsDoNotCommute) {
  const auto swapped = [](Builder& b, const Call& c) {
    const int other = 1 - c.group.me;
    b.send(other, c.in);
    b.recv_reduce(other, c.in, c.out, Side::left);
  };
  EXPECT_FINDS("twice or out of order", allreduce(2, false), swapped);
  EXPECT_EQ(verify(allreduce(2, true), swapped), "");
  EXPECT_FINDS("twice or out of order", allreduce(4, false), coll::allreduce_ring);
  EXPECT_FINDS("twice or out of order", make_job(Collective::reduce_scatter, 4, 5, 0, false),
               coll::reduce_scatter_recursive_halving);
}
TEST(Verify, RanksMustAgreeToTheLastBit) {
  EXPECT_FINDS("was combined in another way than on rank 0", allreduce(3), [](Builder& b, const Call& c) {
    const int next = c.group.rank(c.group.around(c.group.me, 1));
    const int previous = c.group.rank(c.group.around(c.group.me, -1));
    const Slice two = b.scratch(21);
    b.send(next, c.in);
    b.send(previous, c.in);
    b.recv_reduce(previous, c.in, two, Side::left);  // (previous, own) first: another pair on every rank
    b.recv_reduce(next, two, c.out, Side::right);
  });
}
TEST(Verify, BarrierThatForgetsSomebody) {
  EXPECT_FINDS("has not heard from all ranks", make_job(Collective::barrier, 4, 0), [](Builder& b, const Call& c) {
    b.signal(c.group.rank(c.group.around(c.group.me, 1)));
    b.await(c.group.rank(c.group.around(c.group.me, -1)));
  });
  EXPECT_FINDS("has not heard from all ranks", make_job(Collective::barrier, 4, 0), [](Builder& b, const Call& c) {
    for (const int distance : {1, 2}) {  // the second round does not wait for the first
      b.signal(c.group.rank(c.group.around(c.group.me, distance)));
      b.await(c.group.rank(c.group.around(c.group.me, -distance)));
    }
  });
}
TEST(Verify, ScheduleThatRanOutOfMemory) {
  EXPECT_FINDS("not complete", bcast(1), [](Builder& b, const Call&) { b.fail(); });
}

struct Subject {
  const char* name;
  Job job;
  coll::Emit emit;
  Parameters parameters;
};
const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = {
      {"bcast chain", bcast(5, 2), coll::bcast_chain, {.segments = 3}},
      {"bcast scatter_bruck", bcast(6, 1), coll::bcast_scatter_bruck, {}},
      {"reduce binary", make_job(Collective::reduce, 7, 21, 3, false), coll::reduce_binary, {.segments = 2}},
      {"reduce scatter_gather", make_job(Collective::reduce, 6, 21, 0, false), coll::reduce_scatter_gather, {}},
      {"allreduce recursive_doubling", allreduce(6, false), coll::allreduce_recursive_doubling, {.segments = 2}},
      {"allreduce halving_doubling", allreduce(7, false), coll::allreduce_halving_doubling, {}},
      {"allreduce ring", allreduce(5), coll::allreduce_ring, {.segments = 2}},
      {"gather knomial", make_job(Collective::gather, 7, 5, 4), coll::gather_knomial, {.k = 3}},
      {"scatter knomial", make_job(Collective::scatter, 7, 5, 4), coll::scatter_knomial, {}},
      {"allgather bruck", make_job(Collective::allgather, 6, 5), coll::allgather_bruck, {}},
      {"alltoall bruck", make_job(Collective::alltoall, 5, 5), coll::alltoall_bruck, {}},
      {"reduce_scatter ring", make_job(Collective::reduce_scatter, 5, 5), coll::reduce_scatter_ring, {}},
      {"exscan doubling", make_job(Collective::exscan, 6, 5, 0, false), coll::exscan_doubling, {}},
  };
  return all;
}

// Applies every change that `spoil` knows to every step of every rank, one at a time. spoil(step,
// n) makes the n-th change and returns whether there is one.
template <class Spoil>
void spoil_each_step(Spoil spoil) {
  for (const Subject& subject : subjects()) {
    ASSERT_EQ(verify(subject.job, subject.emit, subject.parameters), "") << subject.name;
    int spoilt = 0;
    for (int rank = 0; rank < subject.job.problem.size; ++rank) {
      bool more = true;
      for (std::size_t i = 0; more; ++i) {
        for (int n = 0;; ++n) {
          bool changed = false;
          const std::string failure =
              verify(subject.job, subject.emit, subject.parameters, [&](int r, Schedule& schedule) {
                if (r != rank) return;
                more = i < schedule.steps.size();
                changed = more && spoil(schedule, schedule.steps[i], n);
              });
          if (!changed) break;
          ++spoilt;
          EXPECT_NE(failure, "") << subject.name << ", rank " << rank << ", step " << i << ", change " << n;
        }
      }
    }
    EXPECT_GT(spoilt, 0) << subject.name;
  }
}

TEST(Verify, EverySpoiltStepIsFound) {
  spoil_each_step([](Schedule&, Step& step, int n) {
    switch (n) {
      case 0: step.length -= 1; return true;  // loses a unit
      case 1: ++step.message_index; return step.is_message();
      default: return false;
    }
  });
}

TEST(Verify, EverySpoiltPlaceIsFound) {
  spoil_each_step([](Schedule&, Step& step, int n) {
    if (n > 0) return false;
    step.target_offset += 1;
    if (step.kind == Kind::send) step.source_offset += 1;
    return true;
  });
}

TEST(Verify, EverySwappedOperandIsFoundWhereOrderCounts) {
  int swapped = 0;
  for (const Subject& subject : subjects()) {
    if (subject.job.problem.commutative) continue;
    for (int rank = 0; rank < subject.job.problem.size; ++rank) {
      bool any = false;
      const std::string failure = verify(subject.job, subject.emit, subject.parameters, [&](int r, Schedule& schedule) {
        for (Step& step : schedule.steps) {
          if (r != rank || any || (step.kind != Kind::recv_reduce && step.kind != Kind::reduce)) continue;
          step.side = step.side == Side::left ? Side::right : Side::left;
          any = true;
        }
      });
      swapped += any;
      EXPECT_EQ(any, !failure.empty()) << subject.name << ", rank " << rank;
    }
  }
  EXPECT_GT(swapped, 10);
}

// The builder makes no unneeded dependency. Each one left out is a race, or a hole in a barrier.
TEST(Verify, EveryMissingDependencyIsFound) {
  for (const Subject& subject : subjects()) {
    int left_out = 0;
    int found = 0;
    for (int rank = 0; rank < subject.job.problem.size; ++rank) {
      bool more = true;
      for (std::size_t victim = 0; more; ++victim) {
        more = false;
        const std::string failure =
            verify(subject.job, subject.emit, subject.parameters, [&](int r, Schedule& schedule) {
              if (r != rank) return;
              for (Step& step : schedule.steps) {
                if (victim < step.first_dependency || victim >= step.first_dependency + step.dependencies) continue;
                std::swap(schedule.dependencies[victim], schedule.dependencies[step.first_dependency]);
                ++step.first_dependency;
                --step.dependencies;
                more = true;
                return;
              }
            });
        if (!more) break;
        ++left_out;
        found += !failure.empty();
      }
    }
    EXPECT_GT(left_out, 0) << subject.name;
    // Other dependencies of the same step imply some of them.
    EXPECT_GE(found, left_out * 9 / 10) << subject.name;
  }
}

}  // namespace
}  // namespace stretto::test
