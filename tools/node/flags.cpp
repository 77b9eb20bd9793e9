// SPDX-License-Identifier: BSD-3-Clause
#include "flags.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace stretto::node {
namespace {

constexpr double kMessageNs = 100;             // of an MPI's send or receive, beside the lines
constexpr std::size_t kChunkBytes = 16 << 10;  // of a long Bcast
constexpr std::size_t kCopiedBytes = 4 << 10;  // up to here a Bcast's root copies its data

char* shared_memory(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<char*>(memory);
}

void add(char* to, const char* from, std::size_t bytes) { add_doubles(to, to, from, bytes / sizeof(double)); }

}  // namespace

bool Flags::start(Node& node, const std::string& shape, std::size_t most_bytes) {
  node_ = &node;
  messages_ = shape == "p2p";
  if (!messages_) tiers_ = tiers_of(shape, node);
  room_ = most_bytes / 4096 * 4096 + 4096;
  boards_.resize(node.ranks());
  data_.resize(node.ranks());
  sequences_.resize(node.ranks());
  return messages_ || !tiers_.empty();
}

void Flags::join() {
  const int self = node_->self();
  boards_[self] = reinterpret_cast<Board*>(shared_memory(sizeof(Board)));
  data_[self] = shared_memory(room_ * kRounds);
}

void Flags::fill(std::size_t bytes) {
  if (node_->self() == 0 && bytes > kCopiedBytes) std::memset(shared(0, 0), 1, bytes);
}

Flags::Work Flags::begin(Buffers& buffers, std::size_t bytes) {
  const int self = node_->self();
  Work work{self, bytes, buffers.received, buffers.received, ++sequences_[self]};
  if (bytes > kFlagBytes) work.data = shared(self, messages_ ? 0 : place_of(work));
  return work;
}

void Flags::await(Flag& flag, std::uint64_t sequence) {
  while (flag.sequence.load_acquire() < sequence) {
  }
}

void Flags::publish(const Work& work, Flag& flag) const {
  if (work.bytes <= kFlagBytes) std::memcpy(flag.value, work.data, work.bytes);
  flag.sequence.store_release(work.sequence);
}

// What a peer has published with this flag.
const char* Flags::look(const Work& work, int peer, Flag& flag) const {
  await(flag, work.sequence);
  return work.bytes <= kFlagBytes ? flag.value : shared(peer, place_of(work));
}

// ---- tiers ----

// Once in kWindow calls: all peers of this rank have read what it published before.
void Flags::await_readers(const Work& work) {
  if (place_of(work) != 0) return;
  for (int t = 0; t < static_cast<int>(tiers_.size()) && is_in(t, work.rank); ++t) {
    const Group& members = group(t, work.rank);
    const bool leads = members.front() == work.rank;
    for (std::size_t i = leads ? 1 : 0; i < (leads ? members.size() : 1); ++i)
      await(boards_[members[i]]->read[t], work.sequence - 1);
  }
}

// At the end of a call in which a rank may be ahead of its readers.
void Flags::acknowledge(const Work& work) {
  for (int t = 0; t < static_cast<int>(tiers_.size()) && is_in(t, work.rank); ++t)
    boards_[work.rank]->read[t].sequence.store_release(work.sequence);
}

void Flags::up(const Work& work) {
  for (int t = 0; t < static_cast<int>(tiers_.size()); ++t) {
    if (!is_in(t, work.rank)) return;
    const Group& members = group(t, work.rank);
    if (members.front() != work.rank) return publish(work, boards_[work.rank]->up[t][place_of(work)]);
    for (std::size_t i = 1; i < members.size(); ++i)
      add(work.data, look(work, members[i], boards_[members[i]]->up[t][place_of(work)]), work.bytes);
  }
}

void Flags::down(const Work& work) {
  for (int t = static_cast<int>(tiers_.size()) - 1; t >= 0; --t) {
    if (!is_in(t, work.rank) || group(t, work.rank).size() == 1) continue;
    const int leader = group(t, work.rank).front();
    if (leader == work.rank) {
      publish(work, boards_[work.rank]->down[t][place_of(work)]);
      continue;
    }
    const bool leads = t > 0;
    const char* const found = look(work, leader, boards_[leader]->down[t][place_of(work)]);
    std::memcpy(leads ? work.data : work.out, found, work.bytes);
  }
}

// Members copy each chunk as soon as their leader has it. The program gets its buffer back when all
// have read it.
void Flags::bcast_in_chunks(Work work) {
  for (std::size_t at = 0; at < work.bytes; at += kChunkBytes, work.sequence = ++sequences_[work.rank]) {
    const std::size_t chunk = std::min(kChunkBytes, work.bytes - at);
    for (int t = static_cast<int>(tiers_.size()) - 1; t >= 0; --t) {
      if (!is_in(t, work.rank) || group(t, work.rank).size() == 1) continue;
      const int leader = group(t, work.rank).front();
      if (leader == work.rank) {
        boards_[work.rank]->down[t][0].sequence.store_release(work.sequence);
        continue;
      }
      await(boards_[leader]->down[t][0], work.sequence);
      std::memcpy((t > 0 ? work.data : work.out) + at, shared(leader, 0) + at, chunk);
    }
  }
  acknowledge(work);
  for (int t = 0; t < static_cast<int>(tiers_.size()) && is_in(t, work.rank); ++t) {
    const Group& members = group(t, work.rank);
    if (members.front() != work.rank) return;
    for (std::size_t i = 1; i < members.size(); ++i) await(boards_[members[i]]->read[t], work.sequence);
  }
}

RankCall Flags::by_tiers(const std::string& collective, Buffers& buffers, std::size_t bytes) {
  if (is_barrier(collective) || collective == "allreduce") {
    return [this, &buffers, bytes] {
      const Work work = begin(buffers, bytes);
      std::memcpy(work.data, buffers.sent, bytes);
      up(work);
      down(work);
    };
  }
  if (collective == "reduce") {
    return [this, &buffers, bytes] {
      const Work work = begin(buffers, bytes);
      await_readers(work);
      std::memcpy(work.data, buffers.sent, bytes);
      up(work);
      acknowledge(work);
    };
  }
  if (collective == "bcast") {
    return [this, &buffers, bytes] {
      Work work = begin(buffers, bytes);
      if (bytes > kCopiedBytes) {
        work.data = shared(work.rank, 0);
        return bcast_in_chunks(work);
      }
      await_readers(work);
      if (work.rank == 0) std::memcpy(work.data, buffers.sent, bytes);
      down(work);
      acknowledge(work);
    };
  }
  return nullptr;
}

// ---- messages ----

void Flags::send(const Work& work, int round) const {
  node_->spend(kMessageNs);
  Flag& flag = boards_[work.rank]->message[round];
  if (work.bytes > kFlagBytes) std::memcpy(shared(work.rank, round + 1), work.data, work.bytes);
  publish(work, flag);
}

const char* Flags::receive(const Work& work, int from, int round) const {
  Flag& flag = boards_[from]->message[round];
  await(flag, work.sequence);
  node_->spend(kMessageNs);
  return work.bytes <= kFlagBytes ? flag.value : shared(from, round + 1);
}

void Flags::disseminate(const Work& work) {
  const int ranks = node_->ranks();
  for (int round = 0, distance = 1; distance < ranks; ++round, distance *= 2) {
    send(work, round);
    receive(work, (work.rank + ranks - distance) % ranks, round);
  }
}

// In round k, from the highest down, rank r of those that have the data sends to r + 2^k.
void Flags::bcast_binomial(const Work& work) {
  const int ranks = node_->ranks();
  const int rounds = std::bit_width(static_cast<unsigned>(ranks - 1));
  const int mine = work.rank == 0 ? rounds : std::countr_zero(static_cast<unsigned>(work.rank));
  if (work.rank != 0) std::memcpy(work.data, receive(work, work.rank - (1 << mine), mine), work.bytes);
  for (int k = mine - 1; k >= 0; --k) {
    if (work.rank + (1 << k) < ranks) send(work, k);
  }
}

void Flags::reduce_binomial(const Work& work) {
  const int ranks = node_->ranks();
  const int rounds = std::bit_width(static_cast<unsigned>(ranks - 1));
  const int mine = work.rank == 0 ? rounds : std::countr_zero(static_cast<unsigned>(work.rank));
  for (int k = 0; k < mine; ++k) {
    if (work.rank + (1 << k) < ranks) add(work.data, receive(work, work.rank + (1 << k), k), work.bytes);
  }
  if (work.rank != 0) send(work, mine);
}

// Ranks beyond the power of two give their vector to a partner and get the result from it.
void Flags::double_recursively(const Work& work) {
  const int ranks = node_->ranks(), power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  constexpr int kFold = kRounds - 2;
  if (work.rank >= power) {
    send(work, kFold);
    std::memcpy(work.out, receive(work, work.rank - power, kFold), work.bytes);
    return;
  }
  const bool has_partner = work.rank + power < ranks;
  if (has_partner) add(work.data, receive(work, work.rank + power, kFold), work.bytes);
  for (int round = 0; 1 << round < power; ++round) {
    send(work, round);
    add(work.data, receive(work, work.rank ^ (1 << round), round), work.bytes);
  }
  if (has_partner) send(work, kFold);
}

RankCall Flags::by_messages(const std::string& collective, Buffers& buffers, std::size_t bytes) {
  void (Flags::*body)(const Work&) = is_barrier(collective)      ? &Flags::disseminate
                                     : collective == "bcast"     ? &Flags::bcast_binomial
                                     : collective == "reduce"    ? &Flags::reduce_binomial
                                     : collective == "allreduce" ? &Flags::double_recursively
                                                                 : nullptr;
  if (!body) return nullptr;
  return [this, &buffers, bytes, body] {
    const Work work = begin(buffers, bytes);
    std::memcpy(work.data, buffers.sent, bytes);
    (this->*body)(work);
  };
}

RankCall Flags::call_of(const std::string& collective, Buffers& buffers, std::size_t bytes) {
  return messages_ ? by_messages(collective, buffers, bytes) : by_tiers(collective, buffers, bytes);
}

}  // namespace stretto::node
