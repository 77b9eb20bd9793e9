// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/transport.hpp"

#include <pthread.h>

#include <atomic>

#include "mpi/host/entry.hpp"
#include "mpi/vendor/vendor.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {
namespace {

constexpr std::size_t kWords = kTransportNumbers / 64;
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 30;  // counts are ints

constinit MPI_Comm g_comm{};
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit std::uint64_t g_taken[kWords] = {};
constinit std::atomic<bool> g_left_behind = false;
constinit std::uint32_t g_keys = 0;  // how many keys this rank has made

// A thread that takes a number for a communicator. All members of the communicator use the same
// key, and no other communicator has it.
struct Taker {
  std::uint64_t key;
  Taker* next;
};
constinit Taker* g_takers = nullptr;
constinit bool g_offering = false;  // one taker has made an offer and does not know the result yet

struct Offer {
  std::uint64_t made;             // all bits set, or none
  std::uint64_t numbers[kWords];  // bit set: free
};

std::uint64_t new_key() {
  int rank = 0;
  host().Comm_rank(g_comm, &rank);
  pthread_mutex_lock(&g_lock);
  const std::uint64_t key = static_cast<std::uint64_t>(rank) << 32 | g_keys++;
  pthread_mutex_unlock(&g_lock);
  return key;
}

void line_up(Taker& taker) {
  pthread_mutex_lock(&g_lock);
  taker.next = g_takers;
  g_takers = &taker;
  pthread_mutex_unlock(&g_lock);
}

void step_out(const Taker& taker) {
  pthread_mutex_lock(&g_lock);
  Taker** link = &g_takers;
  while (*link != &taker) link = &(*link)->next;
  *link = taker.next;
  pthread_mutex_unlock(&g_lock);
}

bool is_first(const Taker& taker) {
  for (const Taker* other = g_takers; other != nullptr; other = other->next) {
    if (other->key < taker.key) return false;
  }
  return true;
}

// What this rank offers: all free numbers, or nothing while another thread has an offer
// open or has a lower key.
Offer offer(const Taker& taker) {
  Offer mine{};
  pthread_mutex_lock(&g_lock);
  if (!g_offering && is_first(taker)) {
    g_offering = true;
    mine.made = ~std::uint64_t{0};
    for (std::size_t i = 0; i < kWords; ++i) mine.numbers[i] = ~g_taken[i];
  }
  pthread_mutex_unlock(&g_lock);
  return mine;
}

int lowest(const std::uint64_t (&numbers)[kWords]) {
  for (std::size_t i = 0; i < kWords; ++i) {
    if (numbers[i] != 0) return static_cast<int>(64 * i) + __builtin_ctzll(numbers[i]);
  }
  return -1;
}

// Ends an offer and takes the number, if there is one.
void settle(const Offer& mine, int number) {
  if (mine.made == 0) return;
  pthread_mutex_lock(&g_lock);
  if (number >= 0) g_taken[number / 64] |= std::uint64_t{1} << (number % 64);
  g_offering = false;
  pthread_mutex_unlock(&g_lock);
}

// The members repeat rounds until all make an offer in the same round. Returns -1 if no number
// is free on all of them.
int agree_on_number(MPI_Comm comm, const Taker& taker) {
  constexpr std::uint64_t kPauseNs = 20'000, kMostPauses = 50;
  for (std::uint64_t round = 0;; ++round) {
    const Offer mine = offer(taker);
    Offer all{};
    const int code = host().Allreduce(&mine, &all, sizeof mine, host().constants.byte, host().constants.band, comm);
    const int number = code == MPI_SUCCESS ? lowest(all.numbers) : -1;
    settle(mine, number);
    if (code != MPI_SUCCESS || all.made != 0) return number;
    sys::nap_ns(kPauseNs * (round < kMostPauses ? round : kMostPauses));
  }
}

}  // namespace

bool transport_open() {
  if (host().Comm_dup(host().constants.comm_world, &g_comm) != MPI_SUCCESS) return false;
  // Stretto raises errors on the program's communicator.
  host().Comm_set_errhandler(g_comm, host().constants.errors_return);
  return true;
}

void transport_leave_behind() { g_left_behind.store(true, std::memory_order_relaxed); }

// MPICH ends a job that frees a communicator with messages that nobody has received. It does not
// do so in MPI_Finalize.
void transport_close() {
  if (!g_left_behind.load(std::memory_order_relaxed)) host().Comm_free(&g_comm);
}

// Threads of one process may be here at once for several communicators, each with other members.
// Then some member offers nothing, and all members try again.
//
// Why this ends: no member passes the Allreduce of `able` before all members have come. So a later
// round takes only as long as the members' threads need to reach it, whatever else their processes
// wait for. No offer stays open. Take all communicators whose members are all in line. The one with
// the least key goes first in every process. When its last member lines up, offers of other
// communicators may still be open. After these have ended, all its members make their offer in one
// round, and no other offer is made there.
int transport_take_number(MPI_Comm comm, bool able) {
  Taker taker{new_key(), nullptr};
  int mine = able ? 1 : 0, all = 0;
  const Constants& c = host().constants;
  if (host().Bcast(&taker.key, sizeof taker.key, c.byte, 0, comm) != MPI_SUCCESS) return -1;
  if (host().Allreduce(&mine, &all, 1, c.int_, c.min, comm) != MPI_SUCCESS || all == 0) return -1;
  line_up(taker);
  const int number = agree_on_number(comm, taker);
  step_out(taker);
  return number;
}

void transport_release_number(int number) {
  pthread_mutex_lock(&g_lock);
  g_taken[number / 64] &= ~(std::uint64_t{1} << (number % 64));
  pthread_mutex_unlock(&g_lock);
}

// ---- One communicator ----

transport::Transport MpiTransport::transport() {
  return {
      this,
      [](void* self, int peer, std::uint32_t, const char* data, std::uint64_t bytes, std::uint32_t ticket) {
        MpiTransport& w = *static_cast<MpiTransport*>(self);
        return w.post(bytes, ticket, [&](std::uint64_t at, int count, MPI_Request* request) {
          return host().Isend(data + at, count, host().constants.byte, w.job_ranks_[peer], w.number_, g_comm, request);
        });
      },
      [](void* self, int peer, std::uint32_t, char* data, std::uint64_t bytes, std::uint32_t ticket) {
        MpiTransport& w = *static_cast<MpiTransport*>(self);
        return w.post(bytes, ticket, [&](std::uint64_t at, int count, MPI_Request* request) {
          return host().Irecv(data + at, count, host().constants.byte, w.job_ranks_[peer], w.number_, g_comm, request);
        });
      },
      [](void* self, std::uint32_t* tickets, int capacity) {
        return static_cast<MpiTransport*>(self)->poll(tickets, capacity);
      },
      [](void*) { return Status::not_moved; }};
}

// A message that is too long for an int goes in pieces with the same ticket. The ticket comes
// back with the last piece.
template <class Post>
bool MpiTransport::post(std::uint64_t bytes, std::uint32_t ticket, Post post) {
  std::uint64_t at = 0;
  do {
    const std::uint64_t count = bytes - at < kPieceBytes ? bytes - at : kPieceBytes;
    MPI_Request request{};
    if (!broken_ && post(at, static_cast<int>(count), &request) == MPI_SUCCESS) {
      broken_ = !requests_.push(request) || !messages_.push({ticket, bytes > kPieceBytes}) || !indices_.push(0);
    } else {
      broken_ = true;  // poll reports it
    }
    at += count;
  } while (at != bytes);
  return true;
}

bool MpiTransport::is_last_piece(const Message& message) const {
  if (!message.in_pieces) return true;
  for (const Message& other : messages_) {
    if (&other != &message && other.ticket == message.ticket) return false;
  }
  return true;
}

// Ends the requests that are complete. MPICH gives errors of MPI_Testsome to the handler of
// MPI_COMM_WORLD. MPICH 5 gives those of MPI_Test to the handler of the request's communicator,
// which is ours, so it is called there, for the requests that are complete.
bool MpiTransport::end_complete(int& finished) {
  if (!vendor::looks_at_requests() || !vendor::drive()) {
    const int active = static_cast<int>(requests_.size());
    return host().Testsome(active, requests_.data(), &finished, indices_.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  }
  for (MPI_Request& request : requests_) {
    if (!vendor::is_complete(request)) continue;
    int done = 0;
    if (host().Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    finished += done;
  }
  return true;
}

// Tests all requests, which also drives the host, and takes out those that are complete.
bool MpiTransport::test() {
  if (requests_.empty()) return true;
  int finished = 0;
  if (!end_complete(finished)) return false;
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

int MpiTransport::poll(std::uint32_t* tickets, int capacity) {
  if (done_.empty() && !broken_) broken_ = !test();
  if (broken_) return -1;
  return transport::hand_out(done_, tickets, capacity);
}

}  // namespace stretto::mpi
