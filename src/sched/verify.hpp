// SPDX-License-Identifier: BSD-3-Clause
// The verifier: executes the schedules of all ranks of a job on symbols instead of numbers.
//
// A unit of a buffer holds a term (whose contributions, combined how) and the position it came
// from. Steps run in any order that dependencies allow. A send waits for its receive, and a receive
// for its dependencies. A message waits until the one before it of the pair is posted. No transport
// does less.
//
// The verifier finds
//
// - steps that match none, or one of another length;
// - deadlocks;
// - memory that is read before it is written;
// - sums that count a contribution twice or out of order, or that mix positions;
// - slices out of bounds, and writes to read-only buffers;
// - two accesses to the same memory, one of them a write, that no chain of dependencies orders.
//
// If there is none of these, every order that dependencies allow gives the same result. expect()
// then looks at that result.
//
// It is not part of the preload library: it uses the standard containers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sched/schedule.hpp"
#include "sched/terms.hpp"

namespace stretto::sched {

// A slice in words, for messages: "send[0, 8)".
std::string text_of(const Slice& slice);

class Verifier {
 public:
  // Begins a new job. With `signals`, the verifier follows from whom each rank has heard, for
  // barriers.
  void start(int ranks, bool commutative, bool signals = false);
  // Adds the next rank's schedule, and the lengths in units of its send and receive buffers.
  void add(Schedule schedule, std::uint64_t send_units, std::uint64_t receive_units);
  // Before the run, `slice` of a rank holds that rank's contribution from position `origin` on.
  void hold(int rank, Slice slice, std::uint64_t origin);
  // Executes the job. False: failure() says what is wrong with it.
  bool run();

  // After a run: `slice` of a rank holds the contributions of ranks [first, last), from position
  // `origin` on.
  bool expect(int rank, Slice slice, int first, int last, std::uint64_t origin);
  // After a run: both ranks have computed `slice` in the same way.
  bool expect_same(int rank, int other, Slice slice);
  // After a run: the rank has heard from all ranks.
  bool expect_heard_all(int rank);

  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] std::uint64_t steps() const { return total_; }
  [[nodiscard]] std::uint64_t scratch_units(int rank) const { return schedules_[rank].scratch_units; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Cell {
    std::uint64_t begin, end;
    std::uint64_t origin;  // position of the unit at `begin`
    Terms::Id term;
    std::uint32_t writer;   // a step of this rank
    std::uint32_t readers;  // list of the steps that have read it since
  };
  struct Reader {
    std::uint32_t step, next;
  };
  struct Piece {  // a part of what a step moves
    std::uint64_t length, origin;
    Terms::Id term;
  };
  using Memory = std::vector<Cell>;

  bool fail(int rank, std::uint32_t step, const std::string& what);
  bool well_formed(int rank);
  bool match();
  void count_successors();
  bool execute();
  bool deadlock();
  void make_ready(std::uint32_t at);
  void complete(int rank, std::uint32_t step);
  bool perform(int rank, std::uint32_t step);
  bool deliver(int from, std::uint32_t sent, int to, std::uint32_t received);

  Memory& memory(int rank, Buffer buffer) {
    return memories_[kBuffers * static_cast<std::size_t>(rank) + static_cast<std::size_t>(buffer)];
  }
  static std::size_t find(const Memory& cells, std::uint64_t at);
  static void split(Memory& cells, std::uint64_t at);
  bool load(int rank, std::uint32_t step, Slice slice, std::vector<Piece>& pieces);
  bool store(int rank, std::uint32_t step, Slice slice, const std::vector<Piece>& pieces);
  bool combine(int rank, std::uint32_t step, const std::vector<Piece>& left, const std::vector<Piece>& right);
  bool ordered(int rank, std::uint32_t before, std::uint32_t step);
  void hear(int rank, std::uint32_t step, Terms::Id of);

  [[nodiscard]] std::size_t global(int rank, std::uint32_t step) const { return base_[rank] + step; }

  int ranks_ = 0;
  bool signals_ = false;
  std::string failure_;
  Terms terms_;
  std::vector<Schedule> schedules_;
  std::vector<std::uint64_t> extents_;  // of each rank: send, receive
  std::vector<Memory> memories_;
  std::vector<Reader> readers_;
  std::vector<std::size_t> base_;  // where each rank's steps begin among all
  std::uint64_t total_ = 0;
  std::uint64_t executed_ = 0;
  std::vector<std::uint32_t> owner_;  // rank of a step
  // Dependencies that are not complete, and the message before if it is not posted.
  std::vector<std::uint32_t> pending_;
  std::vector<std::uint32_t> following_;  // the next message of the pair in this direction
  std::vector<std::uint32_t> partner_;    // the step at a message's other end, counted among all
  std::vector<std::uint32_t> first_successor_, successors_;
  std::vector<std::uint32_t> ready_;
  std::vector<Terms::Id> heard_;
  std::vector<std::uint32_t> stamp_;  // for searches through dependencies
  std::uint32_t search_ = 0;
  std::vector<std::uint32_t> stack_;
  PairMap numbers_;
  std::vector<Piece> arriving_, own_, result_;
};

}  // namespace stretto::sched
