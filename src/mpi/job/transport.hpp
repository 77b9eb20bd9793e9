// SPDX-License-Identifier: BSD-3-Clause
// The last transport of schedules: the host's point-to-point messages, on one communicator that
// Stretto makes for the whole job at MPI_Init.
//
// Each communicator of the program takes a number, which is the tag of its messages. Its members
// agree on a number that is free on all of them. Members' ranks are translated to ranks of the job.
// MPI's message order alone matches messages of one number: schedules post the messages of a pair
// in order (sched/execute.hpp).
//
// A member gives the number back when it frees the communicator. The next communicator gets the
// number only if it is free on all of its members. Each of these has then received all messages of
// the earlier communicator. If a call has failed on a communicator, the member keeps the number
// (schedules_left_behind).
#pragma once
#include "base/array.hpp"
#include "mpi/host/host.hpp"
#include "sched/execute.hpp"

namespace stretto::mpi {

// How many communicators may be alive at once. Every MPI allows tags up to 32767.
inline constexpr int kTransportNumbers = 4096;

// Collective over MPI_COMM_WORLD. Returns false if the host makes no communicator.
bool transport_open();
void transport_close();

// Collective over `comm`. Takes a number that is free on all members. Returns -1 on all of them if
// there is none, or if one member is not able to do its part.
int transport_take_number(MPI_Comm comm, bool able);
void transport_release_number(int number);
// Says that a failed call may have left messages that nobody will receive.
void transport_leave_behind();

// The transport of one communicator, by requests of the host.
class MpiTransport {
 public:
  // `job_ranks` are the members' ranks in the job. The array must outlive this object.
  void start(const int* job_ranks, int number) {
    job_ranks_ = job_ranks;
    number_ = number;
  }
  transport::Transport transport();

 private:
  struct Message {
    std::uint32_t ticket;
    bool in_pieces;  // other messages have this ticket, too
  };

  template <class Post>
  bool post(std::uint64_t bytes, std::uint32_t ticket, Post post);
  int poll(std::uint32_t* tickets, int capacity);
  bool end_complete(int& finished);
  bool test();
  [[nodiscard]] bool is_last_piece(const Message& message) const;

  const int* job_ranks_ = nullptr;
  int number_ = 0;
  bool broken_ = false;
  Array<MPI_Request> requests_;
  Array<Message> messages_;  // one for each request
  Array<int> indices_;
  Array<std::uint32_t> done_;  // tickets to be handed out
};

}  // namespace stretto::mpi
