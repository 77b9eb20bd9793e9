// SPDX-License-Identifier: BSD-3-Clause
// A transport between threads, for tests. Every message is sent as the test says: buffered, or
// waiting for its receive. Now and then a mailbox says "not now", or hands tickets back late and in
// another order. Messages match by the order in which a pair posts them, and by nothing else.
#pragma once
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <tuple>
#include <vector>

#include "sched/execute.hpp"

namespace stretto::test {

enum class Sends { buffered, waiting, mixed };

class Mailboxes {
 public:
  Mailboxes(int ranks, Sends sends, std::uint64_t seed) : sends_(sends), boxes_(ranks) {
    for (int r = 0; r < ranks; ++r) {
      boxes_[r].all = this;
      boxes_[r].rank = r;
      boxes_[r].random.seed(seed * 1000 + static_cast<std::uint64_t>(r));
    }
  }

  transport::Transport transport(int rank) {
    return {&boxes_[rank],
            [](void* box, int peer, std::uint32_t, const char* data, std::uint64_t bytes, std::uint32_t ticket) {
              return static_cast<Box*>(box)->send(peer, data, bytes, ticket);
            },
            [](void* box, int peer, std::uint32_t, char* data, std::uint64_t bytes, std::uint32_t ticket) {
              return static_cast<Box*>(box)->recv(peer, data, bytes, ticket);
            },
            [](void* box, std::uint32_t* tickets, int capacity) {
              return static_cast<Box*>(box)->poll(tickets, capacity);
            }};
  }
  // As the MPI does: a receiver may have declared more than arrives.
  void take_shorter() { takes_shorter_ = true; }
  [[nodiscard]] std::uint32_t sent(int from, int to) const {
    const auto found = boxes_[from].sent_to.find(to);
    return found == boxes_[from].sent_to.end() ? 0 : found->second;
  }
  // Messages without a receive, and receives without a message.
  [[nodiscard]] std::size_t left_over() const {
    std::size_t left = 0;
    for (const Box& box : boxes_) left += box.arrived.size() + box.wanted.size() + box.finished.size();
    return left;
  }

 private:
  using Edge = std::pair<int, std::uint32_t>;  // from which rank, which message
  struct Sent {
    const char* data;
    std::vector<char> copy;
    std::uint64_t bytes;
    std::uint32_t ticket;  // of the sender that waits
    bool waits;
  };
  struct Wanted {
    char* data;
    std::uint64_t bytes;
    std::uint32_t ticket;
  };

  struct Box {
    bool send(int peer, const char* data, std::uint64_t bytes, std::uint32_t ticket) {
      if (not_now()) return false;
      const std::uint32_t message_index = sent_to[peer]++;
      const bool waits = all->sends_ == Sends::waiting || (all->sends_ == Sends::mixed && random() % 2 == 0);
      Sent sent{data, {}, bytes, ticket, waits};
      if (!waits) sent.copy.assign(data, data + bytes);
      {
        Box& to = all->boxes_[peer];
        const std::lock_guard lock(to.mutex);
        to.arrived.emplace(Edge{rank, message_index}, std::move(sent));
        to.meet({rank, message_index});
      }
      if (!waits) finish(ticket);
      return true;
    }
    bool recv(int peer, char* data, std::uint64_t bytes, std::uint32_t ticket) {
      if (not_now()) return false;
      const std::uint32_t message_index = received_from[peer]++;
      const std::lock_guard lock(mutex);
      wanted.emplace(Edge{peer, message_index}, Wanted{data, bytes, ticket});
      meet({peer, message_index});
      return true;
    }
    int poll(std::uint32_t* tickets, int capacity) {
      const std::lock_guard lock(finished_mutex);
      int count = 0;
      while (count < capacity && !finished.empty() && random() % 8 != 0) {
        const std::size_t i = random() % finished.size();
        tickets[count++] = finished[i];
        finished[i] = finished.back();
        finished.pop_back();
      }
      return count;
    }
    bool not_now() { return random() % 16 == 0; }
    void finish(std::uint32_t ticket) {
      const std::lock_guard lock(finished_mutex);
      finished.push_back(ticket);
    }
    // Called with the mutex held. The sender's thread may write the receiver's memory, and hands
    // out its ticket after that.
    void meet(const Edge& message_index) {
      const auto from = arrived.find(message_index);
      const auto to = wanted.find(message_index);
      if (from == arrived.end() || to == wanted.end()) return;
      const Sent& sent = from->second;
      broken = broken || (all->takes_shorter_ ? sent.bytes > to->second.bytes : sent.bytes != to->second.bytes);
      if (!broken && sent.bytes != 0)
        std::memcpy(to->second.data, sent.waits ? sent.data : sent.copy.data(), sent.bytes);
      if (sent.waits) all->boxes_[message_index.first].finish(sent.ticket);
      finish(to->second.ticket);
      arrived.erase(from);
      wanted.erase(to);
    }

    Mailboxes* all;
    int rank;
    std::map<int, std::uint32_t> sent_to, received_from;  // of the owner's thread
    std::mutex mutex;
    std::map<Edge, Sent> arrived;
    std::map<Edge, Wanted> wanted;
    bool broken = false;
    std::mutex finished_mutex;
    std::vector<std::uint32_t> finished;
    std::mt19937_64 random;  // of the owner's thread
  };

  Sends sends_;
  bool takes_shorter_ = false;
  std::vector<Box> boxes_;
};

}  // namespace stretto::test
