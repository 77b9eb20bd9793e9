// SPDX-License-Identifier: BSD-3-Clause
// The messages of schedules by MPI_Isend and MPI_Irecv on one communicator; the number of a message is its tag.
#pragma once
#include <mpi.h>

#include <cstdint>
#include <vector>

#include "sched/execute.hpp"

namespace stretto::benching {

class Messages {
 public:
  // What a poll does: tests what is under way, or only hands out what wait() has found, where a poll would cost simulated time.
  enum class Polls : bool { nothing, test };

  Messages(MPI_Comm comm, Polls polls) : comm_(comm), polls_(polls) {}

  sched::Transport transport() { return {this, &Messages::send, &Messages::receive, &Messages::poll}; }

  // Until one more message is through.
  void wait() {
    int at = MPI_UNDEFINED;
    MPI_Waitany(static_cast<int>(requests_.size()), requests_.data(), &at, MPI_STATUS_IGNORE);
    if (at == MPI_UNDEFINED) return;
    through_.push_back(tickets_[static_cast<std::size_t>(at)]);
    drop_finished();
  }

 private:
  static Messages& of(void* context) { return *static_cast<Messages*>(context); }
  static bool send(void* context, int peer, std::uint32_t edge, const char* data, std::uint64_t bytes, std::uint32_t ticket) {
    MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, static_cast<int>(edge), of(context).comm_, of(context).next(ticket));
    return true;
  }
  static bool receive(void* context, int peer, std::uint32_t edge, char* data, std::uint64_t bytes, std::uint32_t ticket) {
    MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, static_cast<int>(edge), of(context).comm_, of(context).next(ticket));
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
    for (int i = 0; i < count; ++i) through_.push_back(tickets_[static_cast<std::size_t>(done_[static_cast<std::size_t>(i)])]);
    drop_finished();
  }
  MPI_Request* next(std::uint32_t ticket) {
    tickets_.push_back(ticket);
    requests_.push_back(MPI_REQUEST_NULL);
    return &requests_.back();
  }
  void drop_finished() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      requests_[kept] = requests_[i];
      tickets_[kept++] = tickets_[i];
    }
    requests_.resize(kept);
    tickets_.resize(kept);
  }

  MPI_Comm comm_;
  Polls polls_;
  std::vector<MPI_Request> requests_;
  std::vector<std::uint32_t> tickets_;
  std::vector<std::uint32_t> through_;  // tickets that are to be handed out
  std::vector<int> done_;
};

}  // namespace stretto::benching
