// SPDX-License-Identifier: BSD-3-Clause
// What bench/overlap.cpp calls: collectives with data that tell their sender, receiver, place and
// turn, so that old data, data of others and data that are not there yet are found.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stretto::benching {

using Word = std::uint64_t;

constexpr std::size_t kPageWords = 4096 / sizeof(Word);
constexpr std::size_t kPieceWords = (64 << 10) / sizeof(Word);
constexpr std::size_t kLeastPieces = 4, kMostPieces = 64;  // of a block
constexpr std::size_t kGapWords = 3;                       // between the blocks of v-operations
constexpr Word kUntouched = 0x5EA1ED;                      // in gaps
constexpr int kRoot = 0;

struct Arguments {
  Word *send, *receive;
  int count;             // of a block
  int *counts, *starts;  // of all blocks
  MPI_Datatype type = MPI_UINT64_T;
  MPI_Comm comm = MPI_COMM_WORLD;
};

enum class Receivers { all, root, others };  // others: all but the root

struct Op {
  const char* name;
  bool many_to_send, many_to_receive;  // whether a sender, or a receiver, has a block for every rank
  bool by_counts;
  Receivers receivers;
  int (*call)(const Arguments&);
  bool in_place = false;  // the root sends what it has in its receive buffer
  bool sums = false;
};

// clang-format off
constexpr Op kOps[] = {
    {"alltoall", true, true, false, Receivers::all, [](const Arguments& a) {
       return MPI_Alltoall(a.send, a.count, a.type, a.receive, a.count, a.type, a.comm); }},
    {"alltoallv", true, true, true, Receivers::all, [](const Arguments& a) {
       return MPI_Alltoallv(a.send, a.counts, a.starts, a.type, a.receive, a.counts, a.starts, a.type, a.comm); }},
    {"allgather", false, true, false, Receivers::all, [](const Arguments& a) {
       return MPI_Allgather(a.send, a.count, a.type, a.receive, a.count, a.type, a.comm); }},
    {"allgatherv", false, true, true, Receivers::all, [](const Arguments& a) {
       return MPI_Allgatherv(a.send, a.count, a.type, a.receive, a.counts, a.starts, a.type, a.comm); }},
    {"gather", false, true, false, Receivers::root, [](const Arguments& a) {
       return MPI_Gather(a.send, a.count, a.type, a.receive, a.count, a.type, kRoot, a.comm); }},
    {"gatherv", false, true, true, Receivers::root, [](const Arguments& a) {
       return MPI_Gatherv(a.send, a.count, a.type, a.receive, a.counts, a.starts, a.type, kRoot, a.comm); }},
    {"scatter", true, false, false, Receivers::all, [](const Arguments& a) {
       return MPI_Scatter(a.send, a.count, a.type, a.receive, a.count, a.type, kRoot, a.comm); }},
    {"scatterv", true, false, true, Receivers::all, [](const Arguments& a) {
       return MPI_Scatterv(a.send, a.counts, a.starts, a.type, a.receive, a.count, a.type, kRoot, a.comm); }},
    {"bcast", false, false, false, Receivers::others, [](const Arguments& a) {
       return MPI_Bcast(a.receive, a.count, a.type, kRoot, a.comm); }, true},
    {"reduce", false, false, false, Receivers::root, [](const Arguments& a) {
       return MPI_Reduce(a.send, a.receive, a.count, a.type, MPI_SUM, kRoot, a.comm); }, false, true},
    {"allreduce", false, false, false, Receivers::all, [](const Arguments& a) {
       return MPI_Allreduce(a.send, a.receive, a.count, a.type, MPI_SUM, a.comm); }, false, true},
};
// clang-format on

struct Slice {
  std::size_t at, words;
  Word first;  // what its first word must be
};

// One operation with one size: its buffers, and what must be in them in the current turn.
class Exchange {
 public:
  Exchange(const Op& op, std::size_t words, int rank, int ranks)
      : op_(op), rank_(rank), ranks_(ranks), words_(words), stride_(words + (op.by_counts ? kGapWords : 0)) {
    const auto blocks = static_cast<std::size_t>(ranks);
    send_.assign(op.many_to_send ? blocks * stride_ : words, 0);
    receive_.assign(op.many_to_receive ? blocks * stride_ : words, kUntouched);
    counts_.assign(blocks, static_cast<int>(words));
    for (std::size_t b = 0; b < blocks; ++b) starts_.push_back(static_cast<int>(b * stride_));
  }
  [[nodiscard]] bool receives() const {
    return op_.receivers == Receivers::all || (op_.receivers == Receivers::root) == (rank_ == kRoot);
  }
  [[nodiscard]] int blocks() const { return op_.many_to_receive ? ranks_ : 1; }
  // In how many pieces the program computes on a block.
  [[nodiscard]] std::size_t pieces_of_block() const {
    return std::min(words_, std::clamp(words_ / kPieceWords, kLeastPieces, kMostPieces));
  }

  // Writes what this rank sends in the next turn.
  void prepare() {
    ++turn_;
    if (op_.in_place && rank_ != kRoot) return;
    Word* to = op_.in_place ? receive_.data() : send_.data();
    for (int b = 0; b < (op_.many_to_send ? ranks_ : 1); ++b, to += stride_) {
      Word value = first_word(rank_, op_.many_to_send ? b : 0);
      for (std::size_t w = 0; w < words_; ++w, value += kStep) to[w] = value;
    }
  }
  void call() { op_.call({send_.data(), receive_.data(), static_cast<int>(words_), counts_.data(), starts_.data()}); }

  // A part of what block `b` must be: `part` of `parts`.
  [[nodiscard]] Slice slice(int b, std::size_t part, std::size_t parts) const {
    const std::size_t begin = words_ * part / parts, end = words_ * (part + 1) / parts;
    return {static_cast<std::size_t>(b) * stride_ + begin, end - begin, expected(b) + begin * step()};
  }
  // Touches each page of it. Returns how many words are wrong among those that it looks at.
  [[nodiscard]] long touch(const Slice& s) const {
    long wrong = 0;
    const volatile Word* words = receive_.data() + s.at;
    for (std::size_t w = 0; w < s.words; w += kPageWords) wrong += words[w] != s.first + w * step();
    if (s.words != 0) wrong += words[s.words - 1] != s.first + (s.words - 1) * step();
    return wrong;
  }
  [[nodiscard]] long touch_all() const {
    long wrong = 0;
    for (int b = 0; receives() && b < blocks(); ++b) wrong += touch(slice(b, 0, 1));
    return wrong;
  }
  // Wrong words among all, and changed ones between blocks.
  [[nodiscard]] long check() const {
    long wrong = 0;
    for (int b = 0; receives() && b < blocks(); ++b) {
      const Word* block = receive_.data() + static_cast<std::size_t>(b) * stride_;
      Word value = expected(b);
      for (std::size_t w = 0; w < words_; ++w, value += step()) wrong += block[w] != value;
      for (std::size_t w = words_; blocks() > 1 && w < stride_; ++w) wrong += block[w] != kUntouched;
    }
    return wrong;
  }

 private:
  static constexpr Word kStep = 0x9E3779B97F4A7C15;

  // Words of a block grow by one step each, so their sums over ranks do, too.
  [[nodiscard]] Word first_word(int from, int to) const {
    return (static_cast<Word>(from) * 1009 + static_cast<Word>(to) * 31 + turn_) * 0xD1B54A32D192ED03;
  }
  [[nodiscard]] Word step() const { return op_.sums ? kStep * static_cast<Word>(ranks_) : kStep; }
  [[nodiscard]] Word expected(int b) const {
    if (!op_.sums) return first_word(op_.many_to_receive ? b : kRoot, op_.many_to_send ? rank_ : 0);
    Word sum = 0;
    for (int r = 0; r < ranks_; ++r) sum += first_word(r, 0);
    return sum;
  }

  const Op& op_;
  int rank_, ranks_;
  std::size_t words_, stride_;
  Word turn_ = 0;
  std::vector<Word> send_, receive_;
  std::vector<int> counts_, starts_;
};

}  // namespace stretto::benching
