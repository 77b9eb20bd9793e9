// SPDX-License-Identifier: BSD-3-Clause
// Messages of a replay, and what its ranks wait for. A send meets its receive by communicator, both
// ranks, tag and order.
#pragma once
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "job_critical.hpp"
#include "job_network.hpp"

namespace stretto::modelling {

// Things that come and go, by number. A number is used again.
template <class T>
class Pool {
 public:
  std::uint32_t take() {
    if (free_.empty()) {
      all_.emplace_back();
      return static_cast<std::uint32_t>(all_.size() - 1);
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    all_[number] = {};
    return number;
  }
  void give_back(std::uint32_t number) { free_.push_back(number); }
  T& operator[](std::uint32_t number) { return all_[number]; }

 private:
  std::vector<T> all_;
  std::vector<std::uint32_t> free_;
};

// What a rank may wait for: its end of a message, or its part of a collective.
struct Operation {
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  double done = -1;                // when; negative: not yet
  double overhead = 0;             // the processor's, behind it
  std::uint32_t waiter = kNobody;  // a rank
  Cause cause;
};

class Operations {
 public:
  // One that is not done yet, or was at a time.
  std::uint32_t make(double done = -1) {
    const std::uint32_t made = all_.take();
    all_[made].done = done;
    return made;
  }
  void end(std::uint32_t operation) { all_.give_back(operation); }
  Operation& operator[](std::uint32_t operation) { return all_[operation]; }
  // Whether all are done. If not, the rank waits for one that is not.
  bool have_ended(const std::vector<std::uint32_t>& operations, std::uint32_t rank);
  // The rank that waits for it, if there is one, is among woken().
  void finish(std::uint32_t operation, double done, const Cause& cause);

  struct Woken {
    std::uint32_t rank;
    double time;
  };
  std::vector<Woken>& woken() { return woken_; }

 private:
  Pool<Operation> all_;
  std::vector<Woken> woken_;
};

class Messages {
 public:
  // Longer messages than `eager_bytes` wait for their receive.
  Messages(Operations& operations, const select::Machine* machine, std::size_t ranks, std::uint64_t eager_bytes)
      : operations_(operations), network_(machine, ranks), eager_bytes_(eager_bytes) {}

  struct End {
    std::uint32_t comm;  // its name (job_comms.hpp)
    int from, to;        // in MPI_COMM_WORLD
    std::int64_t tag;
    bool operator==(const End&) const = default;
  };
  // Both return an operation. `by`: what the rank does, and when. A send comes when the sender's
  // processor has done its part, which takes send_time(). `waits`: for the receive, in any case.
  std::uint32_t send(const End& end, std::uint64_t bytes, bool waits, const Cause& by);
  std::uint32_t receive(const End& end, const Cause& by);
  [[nodiscard]] Network& network() { return network_; }
  [[nodiscard]] double send_time(const End& end, std::uint64_t bytes) const {
    return network_.send_time(end.from, end.to, bytes);
  }

 private:
  struct Message {
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    std::uint32_t send = kNone, receive = kNone;  // operations
    int from = 0, to = 0;
    std::uint64_t bytes = 0;
    bool waits = false;
    double arrived = -1;  // negative: not yet
    Cause sent, posted;
  };
  struct Channel {
    std::deque<std::uint32_t> sends, receives;  // messages that lack the other end
  };
  struct Hash {
    std::size_t operator()(const End& end) const;
  };

  std::uint32_t match(std::deque<std::uint32_t>& others, std::deque<std::uint32_t>& own);
  void deliver(Message& message);

  Operations& operations_;
  Network network_;
  std::uint64_t eager_bytes_;
  Pool<Message> messages_;
  std::unordered_map<End, Channel, Hash> channels_;
};

}  // namespace stretto::modelling
