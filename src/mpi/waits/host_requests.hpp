// SPDX-License-Identifier: BSD-3-Clause
// The requests of one wait or test of the program, as the host gets them.
//
// The host's call gets a copy of the program's array. In it stands, for a persistent request that
// Stretto has started, the generalized request of that start (persistent.hpp). After the call the
// copy shows which requests have ended. Errors of Stretto's own requests are raised here
// (late_errors.hpp).
//
//   HostRequests requests(count, program's array);
//   int code = host().Testsome(count, requests.get(), ...);
//   code = requests.some_ended(code, done, indices, statuses);
#pragma once
#include "mpi/state/late_errors.hpp"

namespace stretto::mpi {

class HostRequests {
 public:
  HostRequests(int count, void* requests);
  ~HostRequests();
  HostRequests(const HostRequests&) = delete;
  HostRequests& operator=(const HostRequests&) = delete;

  [[nodiscard]] bool has_memory() const { return now_ != nullptr; }
  [[nodiscard]] MPI_Request* get() { return now_; }

  // After the host's call, which has returned `code`. Each gives the program its handles back,
  // calls the error handler if a request of Stretto's own has failed, and returns the program's
  // code.
  int one_ended(int code, int index);
  int all_ended(int code, MPI_Status* statuses) { return several_ended(code, count_, nullptr, statuses); }
  // Status number i is that of request number indices[i].
  int some_ended(int code, int done, const int* indices, MPI_Status* statuses) {
    return several_ended(code, done, indices, statuses);
  }

 private:
  static constexpr int kFew = 16;

  void give_back();
  int several_ended(int code, int done, const int* indices, MPI_Status* statuses);
  [[nodiscard]] const LateError* error_of(int index) const;

  int count_;
  MPI_Request* program_;
  MPI_Request few_[2 * kFew];
  MPI_Request* now_ = few_;           // the host's copy
  MPI_Request* given_ = few_ + kFew;  // the same, as it was before the host's call
};

}  // namespace stretto::mpi
