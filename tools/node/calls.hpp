// SPDX-License-Identifier: BSD-3-Clause
// The calls that the model measures, by name: the library's collectives.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "engine/engine.hpp"

namespace stretto::node {

// Makes one call of the rank. Each rank has one of its own.
using RankCall = std::function<void()>;

// A rank's buffers: long enough for `bytes` bytes to or from each rank.
class Buffers {
 public:
  Buffers(std::size_t bytes, int ranks);
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  char* sent = nullptr;
  char* received = nullptr;
  std::vector<std::uint64_t> begins;  // of the ranks' parts in a Reduce_scatter
};

std::vector<std::string> collectives();
// Whether the collective moves no data.
bool is_barrier(const std::string& collective);
// `bytes` is as MPI counts it: of a block for Gather, Scatter, Allgather, Alltoall and
// Reduce_scatter, otherwise of the whole. Empty: there is no such collective.
RankCall call_of(const std::string& collective, engine::Comm& comm, Buffers& buffers, std::size_t bytes);
// The library's way: what is built in, or an algorithm over shared memory such as "shm:flat".
inline constexpr char kOurs[] = "ours";
bool is_ours(const std::string& way);
// Makes the communicator's calls of the collective go that way. The text says what is wrong with
// it; empty: nothing.
std::string choose(const std::string& collective, const std::string& way, engine::Comm& comm);
// The algorithm that serves the call then.
std::string way_of(const std::string& collective, std::size_t bytes, const std::string& way, const engine::Comm& comm);

// What the model's sums cost: both operands are read, the result is written.
void add_doubles(void* out, const void* left, const void* right, std::size_t count);

}  // namespace stretto::node
