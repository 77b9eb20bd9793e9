// SPDX-License-Identifier: BSD-3-Clause
// Waits for requests of the program, and tests of them.
#include <algorithm>
#include <cstdlib>

#include "mpi/requests/persistent.hpp"
#include "mpi/vendor/vendor.hpp"
#include "mpi/waits/host_requests.hpp"
#include "mpi/waits/program_waits.hpp"
#include "mpi/waits/wait_loop.hpp"

namespace stretto::mpi {
namespace {

MPI_Status* status_of(void* data) { return static_cast<MPI_Status*>(data); }

// The requests of one MPI_Waitall, where the host does not say of a request without an effect that
// it is complete. MPI_Testsome takes those that are complete, with their statuses. At the end
// stands what MPI_Waitall would have returned. MPI_Testall is no help: MPICH and Intel MPI return
// from it with an error before all requests are complete.
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
    for (int i = 0; i < count; ++i) {
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
        vendor::testsome_hides_errors()
            ? test_each(&done)
            : host().Testsome(count_, requests_, &done, indices_, statuses_ == nullptr ? MPI_STATUSES_IGNORE : found_);
    if (code != MPI_SUCCESS) code_ = code;
    is_refused_ = done == kUntouched || (done == 0 && code != MPI_SUCCESS);
    if (is_refused_ || done == MPI_UNDEFINED) return true;
    for (int i = 0; i < done; ++i) take(indices_[i], found_[i]);
    left_ -= done;
    return left_ <= 0;
  }

  int finish() {
    if (statuses_ == nullptr || is_refused_) return code_;
    for (int i = 0; i < count_; ++i) {
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

  // MPI_Testsome of one request after the other. Then the code tells which of them has failed. What
  // fails in a receive that the host has accepted is its length.
  int test_each(int* done) {
    int result = MPI_SUCCESS, taken = 0;
    bool some_wait = false;
    for (int i = 0; i < count_; ++i) {
      if (errors_[i] != kNotTaken || requests_[i] == host().constants.request_null) continue;
      MPI_Status& status = found_[taken];
      status.MPI_ERROR = MPI_SUCCESS;
      int found = kUntouched;
      const int code = host().Testsome(1, &requests_[i], &found, &indices_[taken], &status);
      if (found == kUntouched) return code;  // refused
      if (code != MPI_SUCCESS) result = code;
      if (code != MPI_SUCCESS && status.MPI_ERROR == MPI_SUCCESS) status.MPI_ERROR = MPI_ERR_TRUNCATE;
      some_wait = some_wait || found == 0;
      if (found == 1) indices_[taken++] = i;
    }
    *done = taken == 0 && !some_wait ? MPI_UNDEFINED : taken;
    return result;
  }

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

// Waits until all are complete. Then the host's own function says which of them have failed.
int wait_by_looks(int count, MPI_Request* requests, MPI_Status* statuses) {
  int complete = 0;  // so many at the array's begin
  wait_until([&] {
    while (complete < count && vendor::is_complete(requests[complete])) ++complete;
    if (complete < count) (void)vendor::drive();
    return complete == count;
  });
  return host().Waitall(count, requests, statuses);
}

// Whether requests of Stretto's own may be among those that are tested.
bool drive_before_test() {
  drive_own_requests();
  return own_requests_outstanding();
}

// MPI_Testany, made of MPI_Testsome of one request after the other.
int test_any(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  *flag = 0;
  bool some_wait = false;
  for (int i = 0; i < count; ++i) {
    int found = kUntouched, unused = 0;
    MPI_Status own;
    own.MPI_ERROR = MPI_SUCCESS;
    const int code = host().Testsome(1, &requests[i], &found, &unused, &own);
    if (found == kUntouched) return code;  // refused
    some_wait = some_wait || found == 0;
    if (found != 1) continue;
    *index = i;
    *flag = 1;
    const int failed = own.MPI_ERROR;
    if (status != MPI_STATUS_IGNORE) {
      own.MPI_ERROR = status->MPI_ERROR;
      *status = own;
    }
    return code != MPI_SUCCESS ? failed : code;
  }
  if (some_wait) return MPI_SUCCESS;
  return host().Testany(count, requests, index, flag, status);  // none is active
}

bool fail_for_memory(int* code) {
  *code = MPI_ERR_NO_MEM;
  return true;
}

}  // namespace

bool wait_in_wait(int* code, void* request, void* status) {
  if (request == nullptr) return false;
  HostRequests requests(1, request);
  wait_until([&] {
    int flag = kUntouched;
    *code = host().Test(requests.get(), &flag, status_of(status));
    return flag != 0 || *code != MPI_SUCCESS;
  });
  *code = requests.one_ended(*code, 0);
  return true;
}

bool wait_in_waitall(int* code, int count, void* array, void* statuses) {
  if (count <= 0 || array == nullptr) return false;
  HostRequests requests(count, array);
  if (!requests.has_memory()) return fail_for_memory(code);
  if (vendor::looks_at_requests()) {
    *code = wait_by_looks(count, requests.get(), status_of(statuses));
    *code = requests.all_ended(*code, status_of(statuses));
    return true;
  }
  Several several(count, requests.get(), status_of(statuses));
  if (!several.can_wait()) return false;
  wait_until([&] { return several.test(); });
  *code = requests.all_ended(several.finish(), status_of(statuses));
  return true;
}

// MPICH 4 leaves the status alone where MPI_Testany finds no active request, MPI_Waitany does not.
bool wait_in_waitany(int* code, int count, void* array, int* index, void* status) {
  if (count <= 0 || array == nullptr || index == nullptr) return false;
  HostRequests requests(count, array);
  if (!requests.has_memory()) return fail_for_memory(code);
  int found = kUntouched;
  wait_until([&] {
    int flag = kUntouched;
    *code = vendor::testany_hides_errors() ? test_any(count, requests.get(), &found, &flag, status_of(status))
                                           : host().Testany(count, requests.get(), &found, &flag, status_of(status));
    return flag != 0 || *code != MPI_SUCCESS;
  });
  if (found == MPI_UNDEFINED && *code == MPI_SUCCESS) return false;  // the host's turn: there is nothing to wait for
  *code = requests.one_ended(*code, found);
  if (found != kUntouched) *index = found;
  return true;
}

bool wait_in_waitsome(int* code, int count, void* array, int* done, int* indices, void* statuses) {
  if (count <= 0 || array == nullptr || done == nullptr || indices == nullptr) return false;
  HostRequests requests(count, array);
  if (!requests.has_memory()) return fail_for_memory(code);
  int found = 0;
  wait_until([&] {
    found = kUntouched;
    *code = host().Testsome(count, requests.get(), &found, indices, status_of(statuses));
    return found != 0 || *code != MPI_SUCCESS;
  });
  *code = requests.some_ended(*code, found, indices, status_of(statuses));
  if (found != kUntouched) *done = found;
  return true;
}

// ---- Tests ----

bool test_in_test(int* code, void* request, int* flag, void* status) {
  if (!drive_before_test() || request == nullptr) return false;
  HostRequests requests(1, request);
  *code = requests.one_ended(host().Test(requests.get(), flag, status_of(status)), 0);
  return true;
}

bool test_in_testall(int* code, int count, void* array, int* flag, void* statuses) {
  if (!drive_before_test() || count <= 0 || array == nullptr) return false;
  HostRequests requests(count, array);
  if (!requests.has_memory()) return fail_for_memory(code);
  *code = host().Testall(count, requests.get(), flag, status_of(statuses));
  *code = requests.all_ended(*code, status_of(statuses));
  return true;
}

bool test_in_testany(int* code, int count, void* array, int* index, int* flag, void* status) {
  if (!drive_before_test() || count <= 0 || array == nullptr || index == nullptr) return false;
  HostRequests requests(count, array);
  if (!requests.has_memory()) return fail_for_memory(code);
  *code = host().Testany(count, requests.get(), index, flag, status_of(status));
  *code = requests.one_ended(*code, *index);
  return true;
}

bool test_in_testsome(int* code, int count, void* array, int* done, int* indices, void* statuses) {
  if (!drive_before_test() || count <= 0 || array == nullptr || done == nullptr) return false;
  HostRequests requests(count, array);
  if (!requests.has_memory()) return fail_for_memory(code);
  *done = 0;
  *code = host().Testsome(count, requests.get(), done, indices, status_of(statuses));
  *code = requests.some_ended(*code, *done, indices, status_of(statuses));
  return true;
}

bool test_in_request_get_status(int* code, Handle request, int* flag, void* status) {
  if (!drive_before_test()) return false;
  *code = host().Request_get_status(persistent_current((MPI_Request)request), flag, status_of(status));
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
