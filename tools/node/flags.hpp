// SPDX-License-Identifier: BSD-3-Clause
// Collectives by bare flags, to compare the library's with: what the lines alone cost on this
// machine, without counters, checks and queues.
//
//   tiers ("l3+numa+socket", "flat", "4+socket", ...)
//         in the shape of Open MPI's xhc. Each member of a group publishes its contribution and a
//         flag. Its leader waits for one after the other and adds them up, and is a member of the
//         next group. Downward, the members of a group copy from its leader.
//   "p2p" messages of an MPI in trees, with 100 ns for each send and receive: binomial trees,
//         recursive doubling, dissemination
//
// Up to kFlagBytes the data lie beside the flag. Flags and data of kWindow calls have places of
// their own. Before a place is used again, its writer looks whether all readers have acknowledged
// it.
//
// xhc: G. Katevenis, M. Ploumidis, M. Marazakis, "A framework for hierarchical single-copy MPI
// collectives on multicore nodes", IEEE CLUSTER 2022.
#pragma once
#include "calls.hpp"
#include "shm/atomic.hpp"
#include "tiers.hpp"

namespace stretto::node {

class Flags {
 public:
  static constexpr std::size_t kFlagBytes = 56;  // what fits the line of a flag

  // False: there is no such shape.
  bool start(Node& node, const std::string& shape, std::size_t most_bytes);
  // Each rank calls it once, before its calls.
  void join();
  // Empty: this shape does not have the collective.
  RankCall call_of(const std::string& collective, Buffers& buffers, std::size_t bytes);
  // Of each rank, before each call: the program writes the data that a long Bcast sends.
  void fill(std::size_t bytes);

 private:
  struct alignas(64) Flag {
    shm::Atomic<std::uint64_t> sequence;
    char value[kFlagBytes];
  };
  static constexpr int kWindow = 8, kTiers = 8, kRounds = 16;
  // What a rank publishes: up to its leader and down to its members, and what it has read of them.
  struct Board {
    Flag up[kTiers][kWindow], down[kTiers][kWindow], read[kTiers], message[kRounds];
  };
  // What a rank works on in one call.
  struct Work {
    int rank;
    std::size_t bytes;
    char* data;  // the vector: in the rank's shared memory, or its own if it fits a flag
    char* out;
    std::uint64_t sequence;
  };

  Work begin(Buffers& buffers, std::size_t bytes);
  [[nodiscard]] char* shared(int rank, std::uint64_t place) const { return data_[rank] + place * room_; }
  [[nodiscard]] static std::uint64_t place_of(const Work& work) { return work.sequence % kWindow; }
  [[nodiscard]] const Group& group(int tier, int rank) const {
    return tiers_[tier].groups[tiers_[tier].group_of[rank]];
  }
  [[nodiscard]] bool is_in(int tier, int rank) const { return tiers_[tier].group_of[rank] >= 0; }
  static void await(Flag& flag, std::uint64_t sequence);
  void publish(const Work& work, Flag& flag) const;
  const char* look(const Work& work, int peer, Flag& flag) const;
  void await_readers(const Work& work);

  void up(const Work& work);
  void down(const Work& work);
  void acknowledge(const Work& work);
  void send(const Work& work, int round) const;
  const char* receive(const Work& work, int from, int round) const;
  void bcast_in_chunks(Work work);
  RankCall by_tiers(const std::string& collective, Buffers& buffers, std::size_t bytes);
  RankCall by_messages(const std::string& collective, Buffers& buffers, std::size_t bytes);
  void disseminate(const Work& work);
  void bcast_binomial(const Work& work);
  void reduce_binomial(const Work& work);
  void double_recursively(const Work& work);

  Node* node_ = nullptr;
  bool messages_ = false;
  std::vector<Tier> tiers_;
  std::size_t room_ = 0;
  std::vector<Board*> boards_;
  std::vector<char*> data_;
  std::vector<std::uint64_t> sequences_;
};

}  // namespace stretto::node
