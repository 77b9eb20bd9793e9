// SPDX-License-Identifier: BSD-3-Clause
// Calls in which the program waits, outside collectives.
//
// Some MPIs spin in MPI_Recv, MPI_Wait and MPI_Probe. With more ranks than processors, a rank that
// spins keeps the processor that its peer needs. With *kind waiting* (STRETTO_KIND) Stretto posts
// the nonblocking form of such a call, tests it, and between tests gives the processor away as in a
// collective (shm/waiter.hpp). No message changes, so each rank decides alone.
//
// Such a wait also drives the requests that are Stretto's own (requests.hpp). With neither of the
// two, a call goes to the host after a load and a branch. This file does not include mpi.h.
#pragma once
#include <atomic>
#include <cstdint>

#include "mpi/host/entry.hpp"
#include "mpi/requests/own_requests.hpp"

namespace stretto::mpi {

extern constinit std::atomic<bool> g_kind;  // this rank waits kindly

// The host may wait where it gives the processor away (host_yields.hpp).
extern constinit std::atomic<bool> g_host_may_wait;
inline bool host_may_wait() { return g_host_may_wait.load(std::memory_order_relaxed) && !own_requests_outstanding(); }

inline bool waiting_needed() { return g_kind.load(std::memory_order_relaxed) || own_requests_outstanding(); }

// At MPI_Init, when this rank knows its peers, and before the host ends.
void waiting_begin();
void waiting_end();

// What a call does before the host's function when waiting is needed. True: it has done all,
// `code` is the result. False: nothing has happened, the host's turn.
bool wait_in_mprobe(int* code, int source, int tag, Handle comm, void* message, void* status);
bool wait_in_mrecv(int* code, void* buffer, std::int64_t count, Handle type, void* message, void* status);
bool wait_in_probe(int* code, int source, int tag, Handle comm, void* status);
bool wait_in_recv(int* code, void* buffer, std::int64_t count, Handle type, int source, int tag, Handle comm,
                  void* status);
bool wait_in_rsend(int* code, const void* buffer, std::int64_t count, Handle type, int target, int tag, Handle comm);
bool wait_in_send(int* code, const void* buffer, std::int64_t count, Handle type, int target, int tag, Handle comm);
bool wait_in_ssend(int* code, const void* buffer, std::int64_t count, Handle type, int target, int tag, Handle comm);
bool wait_in_sendrecv(int* code, const void* send, std::int64_t send_count, Handle send_type, int target, int send_tag,
                      void* receive, std::int64_t receive_count, Handle receive_type, int source, int receive_tag,
                      Handle comm, void* status);
bool wait_in_sendrecv_replace(int* code, void* buffer, std::int64_t count, Handle type, int target, int send_tag,
                              int source, int receive_tag, Handle comm, void* status);
bool wait_in_wait(int* code, void* request, void* status);
bool wait_in_waitall(int* code, int count, void* requests, void* statuses);
bool wait_in_waitany(int* code, int count, void* requests, int* index, void* status);
bool wait_in_waitsome(int* code, int count, void* requests, int* done, int* indices, void* statuses);
bool wait_in_win_wait(int* code, Handle window);

// MPI_Test and its like do not wait. A program may call nothing else for long, so they drive
// Stretto's own requests.
bool test_in_test(int* code, void* request, int* flag, void* status);
bool test_in_testall(int* code, int count, void* requests, int* flag, void* statuses);
bool test_in_testany(int* code, int count, void* requests, int* index, int* flag, void* status);
bool test_in_testsome(int* code, int count, void* requests, int* done, int* indices, void* statuses);
bool test_in_request_get_status(int* code, Handle request, int* flag, void* status);
// request_status.cpp
bool test_in_request_get_status_all(int* code, int count, const void* requests, int* flag, void* statuses);
bool test_in_request_get_status_any(int* code, int count, const void* requests, int* index, int* flag, void* status);
bool test_in_request_get_status_some(int* code, int count, const void* requests, int* done, int* indices,
                                     void* statuses);
// MPICH's: it returns whether the request is complete.
bool test_in_request_is_complete(int* complete, Handle request);
// They make the call by other functions, where the host lacks this one.
int request_get_status_all_stand_in(int count, const void* requests, int* flag, void* statuses);
int request_get_status_any_stand_in(int count, const void* requests, int* index, int* flag, void* status);
int request_get_status_some_stand_in(int count, const void* requests, int* done, int* indices, void* statuses);
int request_is_complete_stand_in(Handle request);
int stream_progress_stand_in(Handle stream);
// The same for probes.
inline constexpr auto drive_before = [](int*, auto...) {
  drive_own_requests();
  return false;
};

}  // namespace stretto::mpi
