// SPDX-License-Identifier: BSD-3-Clause
// Waits for requests of the program.
#include <algorithm>
#include <cstdlib>

#include "mpi/vendor/vendor.hpp"
#include "mpi/waiting.hpp"
#include "mpi/waiting_loop.hpp"

namespace stretto::mpi {
namespace {

MPI_Request* requests_of(void* data) { return static_cast<MPI_Request*>(data); }
MPI_Status* status_of(void* data) { return static_cast<MPI_Status*>(data); }

// The requests of one MPI_Waitall. MPI_Testsome takes those that are complete, with their statuses.
// At the end stands what MPI_Waitall would have returned. MPI_Testall is no help: in MPICH 5 it
// returns with an error before all requests are complete.
class Several {
 public:
  Several(int count, MPI_Request* requests, MPI_Status* statuses)
      : count_(count), requests_(requests), statuses_(statuses == MPI_STATUSES_IGNORE ? nullptr : statuses) {
    const auto null = host().constants.request_null;
    left_ = static_cast<int>(std::count_if(requests, requests + count, [&](auto each) { return each != null; }));
    if (count > kFew) {
      const auto many = static_cast<std::size_t>(count);
      memory_ = std::malloc(many * (sizeof(MPI_Status) + 2 * sizeof(int)));
      if (memory_ == nullptr) return;
      found_ = static_cast<MPI_Status*>(memory_);
      indices_ = reinterpret_cast<int*>(found_ + many);
      errors_ = indices_ + many;
    }
    for (int i = 0; i < count; i++) {
      found_[i].MPI_ERROR = MPI_SUCCESS;
      errors_[i] = kNotTaken;
    }
  }
  ~Several() { std::free(memory_); }
  Several(const Several&) = delete;
  Several& operator=(const Several&) = delete;

  // Whether there is something to wait for, and memory for it.
  [[nodiscard]] bool can_wait() const { return left_ > 0 && (count_ <= kFew || memory_ != nullptr); }

  // True: no request is active any more, or the host has refused.
  bool test() {
    int done = kUntouched;
    const int code =
        host().Testsome(count_, requests_, &done, indices_, statuses_ == nullptr ? MPI_STATUSES_IGNORE : found_);
    if (code != MPI_SUCCESS) code_ = code;
    is_refused_ = done == kUntouched || (done == 0 && code != MPI_SUCCESS);
    if (is_refused_ || done == MPI_UNDEFINED) return true;
    for (int i = 0; i < done; i++) take(indices_[i], found_[i]);
    left_ -= done;
    return left_ <= 0;
  }

  int finish() {
    if (statuses_ == nullptr || is_refused_) return code_;
    for (int i = 0; i < count_; i++) {
      int flag = 0;
      const bool was_active = errors_[i] != kNotTaken;
      if (!was_active) host().Test(&requests_[i], &flag, &statuses_[i]);  // gives an empty status
      if (has_errors_) {
        statuses_[i].MPI_ERROR = was_active ? errors_[i] : MPI_SUCCESS;
      } else if (was_active) {
        statuses_[i].MPI_ERROR = MPI_SUCCESS;  // all hosts say so, and programs look
      }
    }
    return code_;
  }

 private:
  static constexpr int kFew = 32, kNotTaken = -1;

  // The program's MPI_ERROR stays until it is clear whether there is an error.
  void take(int index, MPI_Status& found) {
    errors_[index] = found.MPI_ERROR;
    has_errors_ = has_errors_ || found.MPI_ERROR != MPI_SUCCESS;
    found.MPI_ERROR = MPI_SUCCESS;
    if (statuses_ == nullptr) return;
    const int before = statuses_[index].MPI_ERROR;
    statuses_[index] = found;
    statuses_[index].MPI_ERROR = before;
  }

  int count_;
  MPI_Request* requests_;
  MPI_Status* statuses_;  // null: the program wants none
  int left_ = 0;          // an upper bound: of requests that are not null, some may be inactive
  int code_ = MPI_SUCCESS;
  bool has_errors_ = false, is_refused_ = false;
  MPI_Status few_found_[kFew];
  int few_indices_[kFew], few_errors_[kFew];
  void* memory_ = nullptr;
  MPI_Status* found_ = few_found_;
  int *indices_ = few_indices_, *errors_ = few_errors_;
};

}  // namespace

bool wait_in_wait(int* code, void* request, void* status) {
  if (request == nullptr) return false;
  wait_until([&] {
    int flag = kUntouched;
    *code = host().Test(requests_of(request), &flag, status_of(status));
    return flag != 0 || *code != MPI_SUCCESS;
  });
  return true;
}

bool wait_in_waitall(int* code, int count, void* requests, void* statuses) {
  if (count <= 0 || requests == nullptr) return false;
  Several several(count, requests_of(requests), status_of(statuses));
  if (!several.can_wait()) return false;
  wait_until([&] { return several.test(); });
  *code = several.finish();
  return true;
}

// MPICH 4 leaves the status alone where MPI_Testany finds no active request, MPI_Waitany does not.
bool wait_in_waitany(int* code, int count, void* requests, int* index, void* status) {
  if (count <= 0 || requests == nullptr || index == nullptr) return false;
  int found = kUntouched;
  wait_until([&] {
    int flag = kUntouched;
    *code = host().Testany(count, requests_of(requests), &found, &flag, status_of(status));
    return flag != 0 || *code != MPI_SUCCESS;
  });
  if (found == MPI_UNDEFINED && *code == MPI_SUCCESS) return false;  // the host's turn: there is nothing to wait for
  if (found != kUntouched) *index = found;
  return true;
}

bool wait_in_waitsome(int* code, int count, void* requests, int* done, int* indices, void* statuses) {
  if (count <= 0 || requests == nullptr || done == nullptr || indices == nullptr) return false;
  int found = 0;
  wait_until([&] {
    found = kUntouched;
    *code = host().Testsome(count, requests_of(requests), &found, indices, status_of(statuses));
    return found != 0 || *code != MPI_SUCCESS;
  });
  if (found != kUntouched) *done = found;
  return true;
}

bool wait_in_win_wait(int* code, Handle window) {
  wait_until([&] {
    int flag = kUntouched;
    *code = host().Win_test((MPI_Win)window, &flag);
    return flag != 0 || *code != MPI_SUCCESS;
  });
  return true;
}

}  // namespace stretto::mpi
