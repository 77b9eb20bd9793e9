// SPDX-License-Identifier: BSD-3-Clause
// The last transport of schedules: the host's own point-to-point messages, on one communicator of the job's own that is
// made at MPI_Init.
//
// A communicator of the program's costs a number, which is its messages' tag; its members agree on one that is free
// with all of them. Ranks are translated to the job's. Within a number, MPI's order of messages is all the matching
// there is: schedules post a pair's messages in order (sched/execute.hpp).
//
// A number may be used again as soon as a member has freed the communicator: whoever shares the next user of the number
// has freed it, too, and has then received all there was. Unless a call has failed on it: then it keeps the number
// (schedules_left_behind).
#pragma once
#include "base/array.hpp"
#include "mpi/host.hpp"
#include "sched/execute.hpp"

namespace stretto::mpi {

// Tags up to 32767 are allowed everywhere. So many communicators may be alive at once.
inline constexpr int kTransportNumbers = 4096;

// Collective over COMM_WORLD. False: the host would not.
bool transport_open();
void transport_close();

// Collective over `comm`: a number that is free with all members, now taken. -1 on all of them if there is none, or if
// one of them is not able to do its part.
int transport_take_number(MPI_Comm comm, bool able);
void transport_release_number(int number);
// Messages may lie here that nobody will receive: by a call that has failed.
void transport_leave_behind();

// One communicator's end of it: transport::Transport over requests of the host's.
class MpiTransport {
 public:
  // `job_ranks` are the members', and stay.
  void start(const int* job_ranks, int number) {
    job_ranks_ = job_ranks;
    number_ = number;
  }
  transport::Transport transport();

 private:
  struct Message {
    std::uint32_t ticket;
    bool in_pieces;  // others with this ticket
  };

  template <class Post>
  bool post(std::uint64_t bytes, std::uint32_t ticket, Post post);
  int poll(std::uint32_t* tickets, int capacity);
  bool test();
  [[nodiscard]] bool is_last_piece(const Message& message) const;

  const int* job_ranks_ = nullptr;
  int number_ = 0;
  bool broken_ = false;
  stretto::Array<MPI_Request> requests_;
  stretto::Array<Message> messages_;  // of the requests
  stretto::Array<int> indices_;
  stretto::Array<std::uint32_t> done_;  // tickets to be handed out
};

}  // namespace stretto::mpi
