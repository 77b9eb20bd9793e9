// SPDX-License-Identifier: BSD-3-Clause
// Measures one operation at one size. Contenders are interleaved in batches, and every call is
// timed on every rank.
#pragma once
#include <string>
#include <vector>

#include "ops.hpp"

namespace bench {

// used: as imb, and each rank reads what it has received, too. live: always the same buffers. Each
// rank writes what it sends before and reads what it has received after, as programs do.
// osu: always the same buffers and root, after each call a barrier of the same MPI, and means of
// the ranks' times, as the OSU benchmarks have it.
enum class Method { imb, warm, used, live, osu };
enum Contender { kOurs, kHost, kBound, kPlain, kContenders };

struct Plan {
  Method method = Method::imb;
  [[nodiscard]] bool same_buffers() const { return method != Method::imb && method != Method::used; }
  [[nodiscard]] bool reads() const { return method == Method::used || method == Method::live; }
  int root_shift = 1;
  double spread = 0;
  // Timed calls of a contender in a round. 0: as many as fit into the budget.
  int calls = 0;
  double budget_s = 0.4;  // of one contender at one size
  int fragment = 0;       // of the bound, in bytes; 0: the best of some
  bool with_bound = true;
  std::size_t pool_bytes = 0;  // of each of a rank's two pools; 0: by the last-level cache that the system tells
};

// Memory whose pieces are handed out in turn. It is longer than the last-level cache, so that the
// next piece is not in it.
class Pool {
 public:
  void reserve(std::size_t bytes);
  // What the contenders get at the next size: pieces of `bytes`, or always the same piece.
  void cut(std::size_t bytes, bool same);
  char* next();
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  char* memory_ = nullptr;
  std::size_t bytes_ = 0, stride_ = 0, at_ = 0;
  bool same_ = false;
};

struct Row {
  bool measured[kContenders] = {};
  double us[kContenders] = {};
  int calls[kContenders] = {};
  std::size_t fragment = 0;
  double flag_ns = 0;  // while it was measured
  const char* path = "off";
};

struct Bench {
  Team& team;
  Bound& bound;
  Functions functions[2];  // kOurs, kHost
  Plan plan;
  Pool send, receive;
  const char* (*last_path)() = nullptr;
  std::uint64_t clock_ns = 0;  // what reading the clock twice costs
  unsigned turn = 0;           // calls so far: the root follows from it

  Bench(Team& t, Bound& b, const HostLibrary& host, const Plan& p);
};

// All ranks call it. The result is valid on rank 0. Ends the program when a contender computes a
// wrong result.
Row measure(Bench& bench, const Op& op, const Shape& shape, bool with_plain);

// How long the pools must be for this operation and shape.
std::size_t pool_need(const Op& op, const Shape& shape);

double median(std::vector<double> values);

}  // namespace bench
