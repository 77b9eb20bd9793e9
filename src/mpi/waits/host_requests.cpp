// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/waits/host_requests.hpp"

#include <algorithm>
#include <cstdlib>

#include "mpi/requests/persistent.hpp"

namespace stretto::mpi {

HostRequests::HostRequests(int count, void* requests) : count_(count), program_(static_cast<MPI_Request*>(requests)) {
  if (count > kFew) {
    now_ = static_cast<MPI_Request*>(std::malloc(2 * static_cast<std::size_t>(count) * sizeof(MPI_Request)));
    if (now_ == nullptr) return;
    given_ = now_ + count;
  }
  for (int i = 0; i < count; ++i) given_[i] = now_[i] = persistent_current(program_[i]);
  late_errors_forget();
}

HostRequests::~HostRequests() {
  if (now_ != few_) std::free(now_);
}

// A persistent request keeps the program's handle and becomes inactive.
void HostRequests::give_back() {
  for (int i = 0; i < count_; ++i) {
    if (now_[i] == given_[i]) continue;
    if (!persistent_ended(program_[i], given_[i])) program_[i] = now_[i];
  }
}

const LateError* HostRequests::error_of(int index) const {
  return now_[index] != given_[index] ? late_error_of(given_[index]) : nullptr;
}

int HostRequests::one_ended(int code, int index) {
  give_back();
  const LateError* const error = index >= 0 && index < count_ ? error_of(index) : nullptr;
  return error != nullptr ? late_error_raise(*error) : code;
}

// If the host has found an error, too, then it has called a handler.
int HostRequests::several_ended(int code, int done, const int* indices, MPI_Status* statuses) {
  give_back();
  const auto index_of = [&](int i) { return indices != nullptr ? indices[i] : i; };
  const LateError* first = nullptr;
  for (int i = done - 1; i >= 0; --i) {
    if (const LateError* const error = error_of(index_of(i))) first = error;
  }
  if (first == nullptr) return code;
  if (statuses != MPI_STATUSES_IGNORE) {
    for (int i = 0; i < done; ++i) {
      if (code == MPI_SUCCESS) statuses[i].MPI_ERROR = MPI_SUCCESS;
      if (const LateError* const error = error_of(index_of(i))) statuses[i].MPI_ERROR = error->code;
    }
  }
  if (code == MPI_SUCCESS) (void)late_error_raise(*first);
  return MPI_ERR_IN_STATUS;
}

}  // namespace stretto::mpi
