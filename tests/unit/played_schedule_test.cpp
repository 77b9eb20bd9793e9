// SPDX-License-Identifier: BSD-3-Clause
// What the driver of calls that return early gets from schedules: the messages of a chain, a ring
// and direct exchanges, as said here by hand; and which schedules it does not play.
#include "overlap/played_schedule.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <vector>

#include "unit/sched_support.hpp"

namespace stretto::test {
namespace {

using overlap::Exchange;
using overlap::MessageIn;
using Lengths = std::vector<std::uint64_t>;

constexpr int kMostRanks = 17, kFirstJobRank = 100;

// Parts in memory, with gaps, the last one first.
struct Memory {
  std::vector<char> bytes;
  Lengths displs;
  overlap::PlacedParts parts;

  explicit Memory(const Lengths& lengths) {
    constexpr std::uint64_t kGap = 64;
    std::uint64_t end = 1;
    for (std::size_t i = lengths.size(); i-- > 0; end += lengths[i] + kGap) displs.insert(displs.begin(), end);
    bytes.resize(end);
    const Blocks blocks{bytes.data(), &kPlainByte, 0, lengths.data(), displs.data(), true};
    EXPECT_TRUE(parts.start(blocks, static_cast<int>(lengths.size())));
  }
  [[nodiscard]] char* at(int part) const { return parts.at(part); }
};

// One rank's part in a job.
struct Played {
  Memory send, receive;
  overlap::PlayedSchedule messages{send.parts, receive.parts, job_ranks()};
  Exchange call;
  bool good = false;

  Played(const Job& job, const char* algorithm, const coll::Problem& p)
      : send(lengths(p, true)), receive(lengths(p, false)) {
    coll::Builder builder;
    const Schedule schedule = coll::build(builder, *coll::find_algorithm(p.collective, algorithm), p, {});
    if (job.is_reduction()) call.fold.combine = [](void*, const void*, const void*, std::size_t) {};
    good = messages.play(schedule, own(p), &call);
  }
  static const int* job_ranks() {
    static int all[kMostRanks];
    for (int r = 0; r < kMostRanks; ++r) all[r] = kFirstJobRank + r;
    return all;
  }
  static int own(const coll::Problem& p) {
    const Collective form = coll::regular_form(p.collective);
    return form == Collective::gather || form == Collective::allgather || form == Collective::alltoall ? p.rank : -1;
  }
  static Lengths lengths(const coll::Problem& p, bool sends) {
    const Collective form = coll::regular_form(p.collective);
    const bool all = form == Collective::alltoall || (form == Collective::allgather && !sends) ||
                     (p.rank == p.root && form == (sends ? Collective::scatter : Collective::gather)) ||
                     (form == Collective::reduce_scatter && sends);
    const coll::Extent units = coll::extent(p);
    if (!all) return {sends ? units.send : units.receive};
    Lengths each;
    const std::uint64_t* const begins = sends && p.sent_begins ? p.sent_begins : p.begins;
    for (int i = 0; i < p.size; ++i) each.push_back(begins ? begins[i + 1] - begins[i] : p.count);
    return each;
  }
};

// ---- The same by hand ----

struct Out {
  int peer;
  const char* data;
  std::uint64_t bytes;
  bool operator==(const Out&) const = default;
};
struct In {
  int peer;
  const char* at;  // null: it only goes on
  std::uint64_t bytes;
  int forward_to;
  bool shows_presence;
  const char* own;
  bool operator==(const In&) const = default;
};

class ByHand {
 public:
  ByHand(const coll::Problem& p, const Played& played) : p_(p), played_(played) {
    const bool aside = p.in_place && (!coll::has_root(p.collective) || p.rank == p.root);
    const char* const mine = (aside ? played.receive : played.send).at(0);
    switch (p.collective) {
      case Collective::bcast: chain_down(p.root, played.receive.at(0), p.count); break;
      case Collective::reduce: chain_up(p.root, mine, p.count); break;
      case Collective::allreduce: rings(mine, p.count); break;
      case Collective::scan: chain_of_all(mine, p.count); break;
      case Collective::reduce_scatter: ring_of_sums(p.count); break;
      case Collective::gather:
        for (int i = 1; i < p.size && p.rank == p.root; ++i) take(around(i));
        if (p.rank != p.root) outs.push_back({job(p.root), mine, p.count});
        break;
      case Collective::scatter:
        for (int i = 1; i < p.size && p.rank == p.root; ++i) give(around(-i));
        if (p.rank != p.root) ins.push_back({job(p.root), played.receive.at(0), p.count, -1, true, nullptr});
        break;
      case Collective::allgather: ring(); break;
      default:
        for (int i = 1; i < p.size; ++i) {
          take(around(-i));
          give(around(i));
        }
    }
    std::erase_if(outs, [](const Out& each) { return each.bytes == 0; });
    std::erase_if(ins, [](const In& each) { return each.bytes == 0; });
  }

  std::vector<Out> outs;
  std::vector<In> ins;

 private:
  [[nodiscard]] int job(int rank) const { return kFirstJobRank + rank; }
  [[nodiscard]] int around(int places) const { return (p_.rank + places + p_.size) % p_.size; }
  // Calls visit(at, bytes, is an end).
  template <class Visit>
  static void pieces(std::uint64_t bytes, const Visit& visit) {
    constexpr std::uint64_t kEnd = 4096;
    if (bytes <= 16384) return visit(std::uint64_t{0}, bytes, true);
    visit(bytes - kEnd, kEnd, true);
    visit(std::uint64_t{0}, kEnd, true);
    const std::uint64_t most = bytes <= 1u << 20 ? 32768 : bytes >= 16u << 20 ? 524288 : (bytes / 32 + 63) / 64 * 64;
    for (std::uint64_t at = kEnd; at < bytes - kEnd; at += most) visit(at, std::min(most, bytes - kEnd - at), false);
  }
  void take(int from) {
    const Memory& m = played_.receive;
    ins.push_back({job(from), m.at(from), m.parts.bytes(from), -1, true, nullptr});
  }
  void give(int to) {
    const Memory& m = played_.send;
    outs.push_back({job(to), m.at(to), m.parts.bytes(to)});
  }
  void chain_down(int root, const char* data, std::uint64_t bytes) {
    const int behind = (p_.rank - root + p_.size) % p_.size;
    const bool last = behind == p_.size - 1;
    pieces(bytes, [&](std::uint64_t at, std::uint64_t length, bool end) {
      if (behind != 0)
        ins.push_back({job(around(-1)), data + at, length, last ? -1 : job(around(1)), end, nullptr});
      else if (!last)
        outs.push_back({job(around(1)), data + at, length});
    });
  }
  void chain_up(int root, const char* own, std::uint64_t bytes) {
    const int behind = (p_.rank - root + p_.size) % p_.size;
    const int next = behind != 0 ? job(around(-1)) : -1;
    pieces(bytes, [&](std::uint64_t at, std::uint64_t length, bool end) {
      if (behind == p_.size - 1)
        outs.push_back({next, own + at, length});
      else
        ins.push_back(
            {job(around(1)), behind == 0 ? played_.receive.at(0) + at : nullptr, length, next, end, own + at});
    });
  }
  // A vector's part of rank i, in multiples of 64 bytes.
  [[nodiscard]] overlap::Block part(std::uint64_t bytes, int i) const {
    const std::uint64_t grains = (bytes + 63) / 64, size = static_cast<std::uint64_t>(p_.size);
    const auto begin = [&](std::uint64_t k) {
      return std::min(bytes, 64 * (grains / size * k + std::min(k, grains % size)));
    };
    const auto first = static_cast<std::uint64_t>(i);
    return {begin(first), begin(first + 1) - begin(first)};
  }
  // A part's sum begins at the rank after its owner, and comes around to it. Then it goes around
  // once more.
  void rings(const char* own, std::uint64_t bytes) {
    const char* const result = played_.receive.at(0);
    for (int i = 0; i < p_.size; ++i) {
      const overlap::Block here = part(bytes, i);
      const int behind = (p_.rank - i - 1 + p_.size) % p_.size;  // the rank after the owner
      for (int step = behind; step < 2 * p_.size - 1; step += p_.size) {
        const bool adds = step < p_.size, is_sum = step >= p_.size - 1;
        const int next = step < 2 * p_.size - 2 ? job(around(1)) : -1;
        pieces(here.bytes, [&](std::uint64_t at, std::uint64_t length, bool) {
          const std::uint64_t begin = here.offset + at;
          const bool end = begin == 0 || begin + length == bytes;
          if (step == 0) return outs.push_back({next, own + begin, length});
          ins.push_back(
              {job(around(-1)), is_sum ? result + begin : nullptr, length, next, end, adds ? own + begin : nullptr});
        });
      }
    }
  }
  // Each rank gets the sum of those before it.
  void chain_of_all(const char* own, std::uint64_t bytes) {
    const int next = p_.rank < p_.size - 1 ? job(p_.rank + 1) : -1;
    pieces(bytes, [&](std::uint64_t at, std::uint64_t length, bool end) {
      if (p_.rank == 0) return outs.push_back({next, own + at, length});
      ins.push_back({job(p_.rank - 1), played_.receive.at(0) + at, length, next, end, own + at});
    });
  }
  // A part's sum begins at the rank after its owner.
  void ring_of_sums(std::uint64_t bytes) {
    for (int step = 0; step < p_.size; ++step) {
      const char* const own = played_.send.at(around(-1 - step));
      const bool last = step == p_.size - 1;
      pieces(bytes, [&](std::uint64_t at, std::uint64_t length, bool end) {
        if (step == 0) return outs.push_back({job(around(1)), own + at, length});
        ins.push_back({job(around(-1)), last ? played_.receive.at(0) + at : nullptr, length, last ? -1 : job(around(1)),
                       end, own + at});
      });
    }
  }
  void ring() {
    const Memory& m = played_.receive;
    for (int step = 0; step < p_.size; ++step) {
      const int i = around(-step);
      const int next = step < p_.size - 1 ? job(around(1)) : -1;
      pieces(m.parts.bytes(i), [&](std::uint64_t at, std::uint64_t length, bool end) {
        if (step != 0)
          ins.push_back({job(around(-1)), m.at(i) + at, length, next, end, nullptr});
        else
          outs.push_back({next, m.at(i) + at, length});
      });
    }
  }

  const coll::Problem& p_;
  const Played& played_;
};

void expect_as_by_hand(const coll::Problem& p, const Played& played) {
  const ByHand expected(p, played);
  const Exchange& call = played.call;
  std::vector<Out> outs;
  std::vector<In> ins;
  for (const overlap::MessageOut& send : call.sends) outs.push_back({send.peer, send.data, send.bytes});
  for (const MessageIn& what : call.receives) {
    const char* const at = what.to_buffer ? call.buffer + what.range.offset : nullptr;
    ins.push_back({what.peer, at, what.range.bytes, what.forward_to, what.shows_presence, what.own});
    if (what.block == MessageIn::kNoBlock) continue;
    EXPECT_EQ(call.blocks[what.block].offset, what.range.offset);
    EXPECT_EQ(call.blocks[what.block].bytes, what.range.bytes);
    EXPECT_FALSE(what.is_staged());
  }
  EXPECT_TRUE(outs == expected.outs);
  EXPECT_TRUE(ins == expected.ins);
}

// Both ends of a pair number their messages alike.
void expect_agreement(const std::deque<Played>& ranks) {
  using Messages = std::map<std::uint32_t, std::uint64_t>;
  std::map<std::pair<int, int>, Messages> sent, received;
  const auto note = [](Messages& all, std::uint32_t index, std::uint64_t bytes) {
    EXPECT_TRUE(all.emplace(index, bytes).second) << "two messages have one number";
  };
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
    const Exchange& call = ranks[static_cast<std::size_t>(r)].call;
    const int me = kFirstJobRank + r;
    for (const overlap::MessageOut& send : call.sends) note(sent[{me, send.peer}], send.index, send.bytes);
    for (const MessageIn& what : call.receives) {
      note(received[{what.peer, me}], what.index, what.range.bytes);
      if (what.forward_to >= 0) note(sent[{me, what.forward_to}], what.forward_index, what.range.bytes);
    }
  }
  EXPECT_TRUE(sent == received);
}

struct Subject {
  Collective collective;
  const char* algorithm;
};
constexpr Subject kPlayed[] = {{Collective::bcast, "pipeline"},     {Collective::reduce, "pipeline"},
                               {Collective::allreduce, "pipeline"}, {Collective::allgather, "pipeline"},
                               {Collective::gather, "flat"},        {Collective::scatter, "flat"},
                               {Collective::alltoall, "linear"},    {Collective::reduce_scatter, "pipeline"},
                               {Collective::scan, "pipeline"}};

void expect_messages(const Subject& subject, const Job& job) {
  SCOPED_TRACE(std::string(subject.algorithm) + " of " + std::to_string(job.problem.size) + " ranks, root " +
               std::to_string(job.problem.root) + ", " + std::to_string(job.problem.count) + " bytes");
  coll::View view(job);
  std::deque<Played> ranks;
  for (int r = 0; r < job.problem.size; ++r) {
    coll::Problem p = view.of(r);
    // MPI gives the lengths of a v-form's parts to the root alone.
    const bool parts = p.collective == Collective::gather || p.collective == Collective::scatter;
    if (parts && p.begins && r != p.root) {
      p.count = p.begins[r + 1] - p.begins[r];
      p.begins = nullptr;
    }
    Played& played = ranks.emplace_back(job, subject.algorithm, p);
    ASSERT_TRUE(played.good);
    expect_as_by_hand(p, played);
  }
  expect_agreement(ranks);
}

// The own block is in its place before.
bool goes_in_place(Collective collective) {
  return collective == Collective::gather || collective == Collective::scatter || collective == Collective::allgather;
}

TEST(PlayedSchedule, HasTheMessagesOfChainsRingsAndExchanges) {
  for (const Subject& subject : kPlayed) {
    for (const int size : {2, 3, 4, 7}) {
      for (const std::uint64_t bytes : {0ull, 100ull, 16384ull, 16385ull, 300'000ull, 5'000'001ull}) {
        if (bytes > 1'000'000 && size > 3) continue;
        Job job = make_job(subject.collective, size, bytes);
        for (int root = 0; root < (job.is_rooted() ? size : 1); ++root) {
          job.problem.root = root;
          job.problem.in_place = goes_in_place(subject.collective);
          expect_messages(subject, job);
          const bool adds_parts =
              subject.collective == Collective::reduce || subject.collective == Collective::allreduce;
          if (!adds_parts) continue;  // others are never played in place
          job.problem.in_place = true;
          expect_messages(subject, job);
        }
      }
    }
  }
}

TEST(PlayedSchedule, PartsDifferInLength) {
  std::mt19937_64 random(5);
  const auto any = [&] { return random() % 4 == 0 ? 0 : random() % 200'000; };
  for (const Collective collective :
       {Collective::gather, Collective::scatter, Collective::allgather, Collective::alltoall}) {
    const Subject& subject = *std::find_if(std::begin(kPlayed), std::end(kPlayed),
                                           [&](const Subject& each) { return each.collective == collective; });
    for (const int size : {2, 5, 6}) {
      Job job = make_job(collective, size, 0, size - 1);
      job.problem.in_place = goes_in_place(collective);
      for (int i = 0; i < size * size && !job.problem.in_place; ++i) job.exchanged.push_back(any());
      if (job.problem.in_place) job.begins.push_back(0);
      for (int i = 0; i < size && job.problem.in_place; ++i) job.begins.push_back(job.begins.back() + any());
      expect_messages(subject, job);
    }
  }
}

// The last rank of each node owns a part. However many ranks a node has, it sends 2 (N - 1) / N of
// the vector to others.
TEST(PlayedSchedule, AnAllreduceOfNodesUsesLinksAsIfEachHadOneRank) {
  for (const std::vector<int>& nodes : std::vector<std::vector<int>>{{2, 2, 2, 2}, {1, 3}, {3, 1, 2}, {1, 1, 1}, {4}}) {
    const std::uint64_t count = nodes.size() * 64 * 600;
    std::vector<std::size_t> node_of;
    Job job = make_job(Collective::allreduce, 0, count);
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      job.begins.insert(job.begins.end(), static_cast<std::size_t>(nodes[node]), node * count / nodes.size());
      node_of.insert(node_of.end(), static_cast<std::size_t>(nodes[node]), node);
    }
    job.begins.push_back(count);
    job.problem.size = static_cast<int>(node_of.size());
    for (const bool in_place : {false, true}) {
      job.problem.in_place = in_place;
      EXPECT_EQ(verify(job, *coll::find_algorithm(Collective::allreduce, "pipeline")), "");
      coll::View view(job);
      std::deque<Played> ranks;
      Lengths leaves(nodes.size(), 0);
      const auto note = [&](std::size_t rank, int peer, std::uint64_t bytes) {
        if (node_of[rank] != node_of[static_cast<std::size_t>(peer - kFirstJobRank)]) leaves[node_of[rank]] += bytes;
      };
      for (std::size_t r = 0; r < node_of.size(); ++r) {
        const Played& played = ranks.emplace_back(job, "pipeline", view.of(static_cast<int>(r)));
        ASSERT_TRUE(played.good);
        for (const overlap::MessageOut& send : played.call.sends) note(r, send.peer, send.bytes);
        for (const MessageIn& what : played.call.receives)
          if (what.forward_to >= 0) note(r, what.forward_to, what.range.bytes);
      }
      expect_agreement(ranks);
      EXPECT_EQ(leaves, Lengths(nodes.size(), 2 * (nodes.size() - 1) * count / nodes.size()));
    }
  }
}

// What a rank has for itself is there before the call.
TEST(PlayedSchedule, KnowsTheOwnBlock) {
  const Job job = make_job(Collective::alltoall, 3, 10);
  coll::View view(job);
  coll::Problem p = view.of(1);
  const Memory send({10, 10, 10}), receive({10, 10, 10});
  coll::Builder builder;
  const Schedule schedule = coll::build(builder, *coll::find_algorithm(p.collective, "linear"), p, {});
  overlap::PlayedSchedule messages(send.parts, receive.parts, Played::job_ranks());
  Exchange call;
  ASSERT_TRUE(messages.play(schedule, 1, &call));
  EXPECT_EQ(call.own.offset, static_cast<std::uint64_t>(receive.at(1) - call.buffer));
  EXPECT_EQ(call.own.bytes, 10u);
}

// The driver passes a message on once, and combines it once. It holds nothing back.
TEST(PlayedSchedule, RefusesWhatTheDriverCannotDo) {
  constexpr Subject kRefused[] = {{Collective::bcast, "binomial"},        {Collective::reduce, "flat"},
                                  {Collective::allreduce, "bine"},        {Collective::allgather, "bruck"},
                                  {Collective::alltoall, "pairwise"},     {Collective::alltoall, "bruck"},
                                  {Collective::gather, "binomial"},       {Collective::reduce_scatter, "pairwise"},
                                  {Collective::allreduce, "reduce_bcast"}};
  for (const auto& [collective, algorithm] : kRefused) {
    const Job job = make_job(collective, 8, 800);
    coll::View view(job);
    bool all = true;
    for (int r = 0; r < 8; ++r) {
      const coll::Problem& p = view.of(r);
      all = Played(job, algorithm, p).good && all;
    }
    EXPECT_FALSE(all) << algorithm;
  }
}

}  // namespace
}  // namespace stretto::test
