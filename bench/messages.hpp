// SPDX-License-Identifier: BSD-3-Clause
// Carries a schedule's messages by MPI_Isend and MPI_Irecv on one communicator. The index of a
// message is its tag.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sched/execute.hpp"

namespace stretto::benching {

class Messages {
 public:
  // What a poll does. It tests what is under way. Or it only hands out what wait() has found, where
  // a test would cost simulated time.
  enum class Polls : bool { nothing, test };

  // At most `most_to_one` sends to one rank are under way, each until its message has arrived. 0:
  // any number, each until MPI has the data.
  Messages(MPI_Comm comm, Polls polls, int most_to_one = 0) : comm_(comm), polls_(polls), most_to_one_(most_to_one) {}

  transport::Transport transport() { return {this, &Messages::send, &Messages::receive, &Messages::poll}; }

  // Waits until one more message is complete.
  void wait() {
    int at = MPI_UNDEFINED;
    MPI_Waitany(static_cast<int>(requests_.size()), requests_.data(), &at, MPI_STATUS_IGNORE);
    if (at == MPI_UNDEFINED) return;
    through_.push_back(pending_[static_cast<std::size_t>(at)].ticket);
    drop_finished();
  }

 private:
  static constexpr int kNobody = -1;

  struct Pending {
    std::uint32_t ticket;
    int receiver;  // kNobody: a receive
  };

  static Messages& of(void* context) { return *static_cast<Messages*>(context); }
  static bool send(void* context, int peer, std::uint32_t message_index, const char* data, std::uint64_t bytes,
                   std::uint32_t ticket) {
    Messages& self = of(context);
    if (self.most_to_one_ > 0 && self.under_way(peer) >= self.most_to_one_) return false;
    (self.most_to_one_ > 0 ? MPI_Issend : MPI_Isend)(data, static_cast<int>(bytes), MPI_BYTE, peer,
                                                     static_cast<int>(message_index), self.comm_,
                                                     self.next({ticket, peer}));
    return true;
  }
  static bool receive(void* context, int peer, std::uint32_t message_index, char* data, std::uint64_t bytes,
                      std::uint32_t ticket) {
    MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, static_cast<int>(message_index), of(context).comm_,
              of(context).next({ticket, kNobody}));
    return true;
  }
  static int poll(void* context, std::uint32_t* tickets, int capacity) {
    Messages& self = of(context);
    if (self.through_.empty() && self.polls_ == Polls::test) self.test();
    int count = 0;
    for (; count < capacity && !self.through_.empty(); ++count) {
      tickets[count] = self.through_.back();
      self.through_.pop_back();
    }
    return count;
  }
  void test() {
    const int active = static_cast<int>(requests_.size());
    int count = 0;
    done_.resize(requests_.size());
    if (active > 0) MPI_Testsome(active, requests_.data(), &count, done_.data(), MPI_STATUSES_IGNORE);
    if (count <= 0) return;
    for (int i = 0; i < count; ++i)
      through_.push_back(pending_[static_cast<std::size_t>(done_[static_cast<std::size_t>(i)])].ticket);
    drop_finished();
  }
  [[nodiscard]] int under_way(int receiver) const {
    return static_cast<int>(std::ranges::count(pending_, receiver, &Pending::receiver));
  }
  MPI_Request* next(Pending message) {
    pending_.push_back(message);
    requests_.push_back(MPI_REQUEST_NULL);
    return &requests_.back();
  }
  void drop_finished() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      requests_[kept] = requests_[i];
      pending_[kept++] = pending_[i];
    }
    requests_.resize(kept);
    pending_.resize(kept);
  }

  MPI_Comm comm_;
  Polls polls_;
  int most_to_one_;
  std::vector<MPI_Request> requests_;
  std::vector<Pending> pending_;        // of these requests
  std::vector<std::uint32_t> through_;  // tickets to hand out
  std::vector<int> done_;
};

}  // namespace stretto::benching
