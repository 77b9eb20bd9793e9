// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/wire.hpp"

#include <pthread.h>

#include "mpi/edge.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {
namespace {

constexpr std::size_t kWords = kWireNumbers / 64;
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 30;  // counts are ints

constinit MPI_Comm g_comm{};
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit std::uint64_t g_taken[kWords] = {};
constinit bool g_taking = false;  // some thread is about to take a number

struct Offer {
  std::uint64_t able;
  std::uint64_t numbers[kWords];  // bit set
};

// What this rank can offer: all that is free, or nothing while another thread chooses among it.
bool offer(std::uint64_t (&free_numbers)[kWords]) {
  pthread_mutex_lock(&g_lock);
  const bool alone = !g_taking;
  g_taking = true;
  for (std::size_t i = 0; i < kWords; ++i) free_numbers[i] = alone ? ~g_taken[i] : 0;
  pthread_mutex_unlock(&g_lock);
  return alone;
}

int lowest(const std::uint64_t (&numbers)[kWords]) {
  for (std::size_t i = 0; i < kWords; ++i) {
    if (numbers[i] != 0) return static_cast<int>(64 * i) + __builtin_ctzll(numbers[i]);
  }
  return -1;
}

// Ends an offer: takes the number, if one was found.
void settle(bool offered, int number) {
  if (!offered) return;
  pthread_mutex_lock(&g_lock);
  if (number >= 0) g_taken[number / 64] |= std::uint64_t{1} << (number % 64);
  g_taking = false;
  pthread_mutex_unlock(&g_lock);
}

}  // namespace

bool wire_open() {
  if (host().Comm_dup(host().constants.comm_world, &g_comm) != MPI_SUCCESS) return false;
  host().Comm_set_errhandler(g_comm, host().constants.errors_return);  // errors are the user's communicator's affair
  return true;
}

void wire_close() { host().Comm_free(&g_comm); }

// Threads of one process may be here for several communicators, each with other members: then somebody offers nothing, and all
// members try again, for a while.
int wire_take_number(MPI_Comm comm, bool able) {
  constexpr int kTrials = 200;
  constexpr std::uint64_t kPauseNs = 20'000;
  for (int trial = 0; trial < kTrials; ++trial) {
    Offer mine, all{};
    const bool offered = offer(mine.numbers);
    mine.able = able ? ~std::uint64_t{0} : 0;
    const int code = host().Allreduce(&mine, &all, sizeof mine, host().constants.byte, host().constants.band, comm);
    const int number = code == MPI_SUCCESS && all.able != 0 ? lowest(all.numbers) : -1;
    settle(offered, number);
    if (number >= 0 || all.able == 0) return number;
    sys::nap_ns(kPauseNs * static_cast<std::uint64_t>(trial));
  }
  return -1;
}

void wire_release_number(int number) {
  pthread_mutex_lock(&g_lock);
  g_taken[number / 64] &= ~(std::uint64_t{1} << (number % 64));
  pthread_mutex_unlock(&g_lock);
}

// ---- one communicator ----

sched::Transport Wire::transport() {
  return {this,
          [](void* wire, int peer, std::uint32_t, const char* data, std::uint64_t bytes, std::uint32_t ticket) {
            Wire& w = *static_cast<Wire*>(wire);
            return w.post(bytes, ticket, [&](std::uint64_t at, int count, MPI_Request* request) {
              return host().Isend(data + at, count, host().constants.byte, w.job_ranks_[peer], w.number_, g_comm, request);
            });
          },
          [](void* wire, int peer, std::uint32_t, char* data, std::uint64_t bytes, std::uint32_t ticket) {
            Wire& w = *static_cast<Wire*>(wire);
            return w.post(bytes, ticket, [&](std::uint64_t at, int count, MPI_Request* request) {
              return host().Irecv(data + at, count, host().constants.byte, w.job_ranks_[peer], w.number_, g_comm, request);
            });
          },
          [](void* wire, std::uint32_t* tickets, int capacity) { return static_cast<Wire*>(wire)->poll(tickets, capacity); }};
}

// Messages beyond an int's reach go in pieces of one ticket, which comes back with the last of them.
template <class Post>
bool Wire::post(std::uint64_t bytes, std::uint32_t ticket, Post post) {
  std::uint64_t at = 0;
  do {
    const std::uint64_t count = bytes - at < kPieceBytes ? bytes - at : kPieceBytes;
    MPI_Request request{};
    if (!broken_ && post(at, static_cast<int>(count), &request) == MPI_SUCCESS) {
      broken_ = !requests_.push(request) || !messages_.push({ticket, bytes > kPieceBytes}) || !indices_.push(0);
    } else {
      broken_ = true;  // poll says so
    }
    at += count;
  } while (at != bytes);
  return true;
}

bool Wire::is_last_piece(const Message& message) const {
  if (!message.in_pieces) return true;
  for (const Message& other : messages_) {
    if (&other != &message && other.ticket == message.ticket) return false;
  }
  return true;
}

// Asks the host, which moves it forward as well, and puts away what is finished.
bool Wire::test() {
  const int active = static_cast<int>(requests_.size());
  if (active == 0) return true;
  int finished = 0;
  if (host().Testsome(active, requests_.data(), &finished, indices_.data(), MPI_STATUSES_IGNORE) != MPI_SUCCESS) return false;
  if (finished <= 0) return true;
  const MPI_Request null = host().constants.request_null;
  for (std::size_t i = 0; i < requests_.size();) {
    if (requests_[i] == null) {
      if (is_last_piece(messages_[i]) && !done_.push(messages_[i].ticket)) return false;
      requests_.splice(i, 1, 0);
      messages_.splice(i, 1, 0);
    } else {
      ++i;
    }
  }
  indices_.resize(requests_.size(), 0);
  return true;
}

int Wire::poll(std::uint32_t* tickets, int capacity) {
  if (done_.empty() && !broken_) broken_ = !test();
  if (broken_) return -1;
  return sched::hand_out(done_, tickets, capacity);
}

}  // namespace stretto::mpi
