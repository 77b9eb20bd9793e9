// SPDX-License-Identifier: BSD-3-Clause
// The host's MPI_Test and MPI_Iprobe find the same messages, statuses and errors as its MPI_Wait
// and MPI_Recv. An error of a request goes to the handler of the request's communicator. A host call
// may run a function of the program (an error handler, a generalized request's query). So none is
// marked as inside.
#include "mpi/waiting.hpp"

#include <cstdlib>

#include "engine/policy.hpp"
#include "mpi/host.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/progress.hpp"
#include "mpi/vendor/vendor.hpp"
#include "shm/wait.hpp"

namespace stretto::mpi {

constinit std::atomic<bool> g_kind{false};

namespace {

constinit shm::WaitPolicy g_policy = {};

// ---- The decision ----

// How a rank waits between two tests. The test itself drives the host, so every step makes one.
shm::WaitPolicy policy_of(engine::WaitMode mode) {
  shm::WaitPolicy policy;
  if (mode != engine::WaitMode::spin) policy.crowd();
  if (mode == engine::WaitMode::nap) policy.nap_after_ns = 0;
  policy.bare_spins = policy.spins = 0;
  policy.has_windows = &g_windows;
  if (policy.seldom_until != 0) policy.seldom_until = 1;
  return policy;
}

bool is_crowded() {
  unsigned ranks = vendor::launcher_ranks_on_node();
  if (!world().several_nodes && static_cast<int>(ranks) < world().size) ranks = static_cast<unsigned>(world().size);
  if (ranks < 2) return false;
  const sys::Cpus cpus = sys::usable_cpus();
  return engine::exceed_processors(ranks, cpus, cpus.count < cpus.online);
}

// ---- Waiting ----

// Calls `test` until it returns true. The first tests come at once: what is there already costs no
// more than the host's own call.
template <class Test>
void wait_until(const Test& test) {
  struct Wait {
    const Test& test;
    bool over;
  } wait = {test, false};
  for (unsigned looks = 0; looks < kTuning.kind_looks; looks++) {
    if (test()) return;
    drive_own_requests();
  }
  shm::WaitPolicy policy = g_policy;
  policy.host = &wait;
  policy.poke = [](void* data) {
    drive_own_requests();
    auto& tested = *static_cast<Wait*>(data);
    if (!tested.over) tested.over = tested.test();
  };
  shm::Waiter waiter(policy);
  while (!wait.over) waiter.step();
}

// One request that a blocking call has posted.
struct Posted {
  MPI_Request request = host().constants.request_null;
  int code = MPI_SUCCESS;
  bool over = false;

  bool test(MPI_Status* status) {
    if (over) return true;
    int flag = 0;
    code = host().Test(&request, &flag, status);
    return over = flag != 0 || code != MPI_SUCCESS;
  }
  // After an error: the program must not get data any more. A host that reports failed processes
  // may leave a request incomplete.
  void abandon() {
    if (request == host().constants.request_null) return;
    host().Cancel(&request);
    over = false;
    wait_until([&] { return test(MPI_STATUS_IGNORE); });
  }
};

bool fits(std::int64_t count) { return count == static_cast<int>(count); }

template <class Post>
bool send_by(Post post, int* code, const void* buffer, std::int64_t count, Handle type, int target, int tag,
             Handle comm) {
  if (!fits(count) || target == MPI_PROC_NULL) return false;
  Posted send;
  *code = post(buffer, static_cast<int>(count), (MPI_Datatype)type, target, tag, (MPI_Comm)comm, &send.request);
  if (*code != MPI_SUCCESS) return true;
  wait_until([&] { return send.test(MPI_STATUS_IGNORE); });
  *code = send.code;
  return true;
}

// Both have been posted. `status` is the receive's.
int finish(Posted& send, Posted& receive, MPI_Status* status) {
  wait_until([&] {
    const bool received = receive.test(status);
    return send.test(MPI_STATUS_IGNORE) && received;
  });
  return receive.code != MPI_SUCCESS ? receive.code : send.code;
}

MPI_Request* requests_of(void* data) { return static_cast<MPI_Request*>(data); }
MPI_Status* status_of(void* data) { return static_cast<MPI_Status*>(data); }

}  // namespace

void waiting_begin() {
  const bool crowded = is_crowded();
  const KindChoice choice = options().kind();
  const engine::WaitMode mode = engine::wait_mode(options().wait(), crowded);
  g_policy = policy_of(mode);
  g_kind.store(choice == KindChoice::on || (choice == KindChoice::automatic && crowded), std::memory_order_relaxed);
}

void waiting_end() { g_kind.store(false, std::memory_order_relaxed); }

// ---- Sends and receives ----

bool wait_in_send(int* code, const void* buffer, std::int64_t count, Handle type, int target, int tag, Handle comm) {
  return send_by(host().Isend, code, buffer, count, type, target, tag, comm);
}
bool wait_in_ssend(int* code, const void* buffer, std::int64_t count, Handle type, int target, int tag, Handle comm) {
  return send_by(host().Issend, code, buffer, count, type, target, tag, comm);
}
bool wait_in_rsend(int* code, const void* buffer, std::int64_t count, Handle type, int target, int tag, Handle comm) {
  return send_by(host().Irsend, code, buffer, count, type, target, tag, comm);
}

bool wait_in_recv(int* code, void* buffer, std::int64_t count, Handle type, int source, int tag, Handle comm,
                  void* status) {
  if (!fits(count) || source == MPI_PROC_NULL) return false;
  Posted receive;
  *code =
      host().Irecv(buffer, static_cast<int>(count), (MPI_Datatype)type, source, tag, (MPI_Comm)comm, &receive.request);
  if (*code != MPI_SUCCESS) return true;
  wait_until([&] { return receive.test(status_of(status)); });
  if ((*code = receive.code) != MPI_SUCCESS) receive.abandon();
  return true;
}

bool wait_in_mrecv(int* code, void* buffer, std::int64_t count, Handle type, void* message, void* status) {
  if (!fits(count)) return false;
  Posted receive;
  *code = host().Imrecv(buffer, static_cast<int>(count), (MPI_Datatype)type, static_cast<MPI_Message*>(message),
                        &receive.request);
  if (*code != MPI_SUCCESS) return true;
  wait_until([&] { return receive.test(status_of(status)); });
  *code = receive.code;
  return true;
}

bool wait_in_sendrecv(int* code, const void* send, std::int64_t send_count, Handle send_type, int target, int send_tag,
                      void* receive, std::int64_t receive_count, Handle receive_type, int source, int receive_tag,
                      Handle comm, void* status) {
  if (!fits(send_count) || !fits(receive_count) || (target == MPI_PROC_NULL && source == MPI_PROC_NULL)) return false;
  Posted out, in;
  *code = host().Irecv(receive, static_cast<int>(receive_count), (MPI_Datatype)receive_type, source, receive_tag,
                       (MPI_Comm)comm, &in.request);
  if (*code != MPI_SUCCESS) return true;
  *code = host().Isend(send, static_cast<int>(send_count), (MPI_Datatype)send_type, target, send_tag, (MPI_Comm)comm,
                       &out.request);
  if (*code != MPI_SUCCESS) {
    in.abandon();
    return true;
  }
  *code = finish(out, in, status_of(status));
  return true;
}

// The host's own call sends a packed copy, too.
bool wait_in_sendrecv_replace(int* code, void* buffer, std::int64_t count, Handle type_handle, int target, int send_tag,
                              int source, int receive_tag, Handle comm_handle, void* status) {
  const auto type = (MPI_Datatype)type_handle;
  const auto comm = (MPI_Comm)comm_handle;
  MPI_Count element = 0;
  std::int64_t bytes = 0;
  if (!vendor::is_datatype(type, host().constants.datatype_null) || !fits(count) || count < 0 ||
      (target == MPI_PROC_NULL && source == MPI_PROC_NULL) || host().Type_size_x(type, &element) != MPI_SUCCESS ||
      __builtin_mul_overflow(element, count, &bytes) || !fits(bytes))
    return false;
  const int elements = static_cast<int>(count);
  int room = 0, packed_bytes = 0;
  if ((*code = host().Pack_size(elements, type, comm, &room)) != MPI_SUCCESS) return true;
  void* const packed = std::malloc(room > 0 ? static_cast<std::size_t>(room) : 1);
  if (packed == nullptr) return false;
  Posted out, in;
  *code = host().Pack(buffer, elements, type, packed, room, &packed_bytes, comm);
  if (*code == MPI_SUCCESS) {
    *code = host().Irecv(buffer, elements, type, source, receive_tag, comm, &in.request);
  }
  if (*code == MPI_SUCCESS) {
    *code = host().Isend(packed, packed_bytes, host().constants.packed, target, send_tag, comm, &out.request);
    if (*code == MPI_SUCCESS) {
      *code = finish(out, in, status_of(status));
    } else {
      in.abandon();
    }
  }
  std::free(packed);
  return true;
}

// ---- Probes ----

bool wait_in_probe(int* code, int source, int tag, Handle comm, void* status) {
  if (source == MPI_PROC_NULL) return false;
  wait_until([&] {
    int flag = 0;
    *code = host().Iprobe(source, tag, (MPI_Comm)comm, &flag, status_of(status));
    return flag != 0 || *code != MPI_SUCCESS;
  });
  return true;
}

bool wait_in_mprobe(int* code, int source, int tag, Handle comm, void* message, void* status) {
  if (source == MPI_PROC_NULL) return false;
  wait_until([&] {
    int flag = 0;
    *code = host().Improbe(source, tag, (MPI_Comm)comm, &flag, static_cast<MPI_Message*>(message), status_of(status));
    return flag != 0 || *code != MPI_SUCCESS;
  });
  return true;
}

// ---- Requests of the program ----

bool wait_in_wait(int* code, void* request, void* status) {
  if (request == nullptr) return false;
  wait_until([&] {
    int flag = 0;
    *code = host().Test(requests_of(request), &flag, status_of(status));
    return flag != 0 || *code != MPI_SUCCESS;
  });
  return true;
}

bool wait_in_waitall(int* code, int count, void* requests, void* statuses) {
  if (count <= 0 || requests == nullptr) return false;
  wait_until([&] {
    int flag = 0;
    *code = host().Testall(count, requests_of(requests), &flag, status_of(statuses));
    return flag != 0 || *code != MPI_SUCCESS;
  });
  return true;
}

bool wait_in_waitany(int* code, int count, void* requests, int* index, void* status) {
  if (count <= 0 || requests == nullptr || index == nullptr) return false;
  wait_until([&] {
    int flag = 0;
    *code = host().Testany(count, requests_of(requests), index, &flag, status_of(status));
    return flag != 0 || *code != MPI_SUCCESS;
  });
  return true;
}

bool wait_in_waitsome(int* code, int count, void* requests, int* done, int* indices, void* statuses) {
  if (count <= 0 || requests == nullptr || done == nullptr || indices == nullptr) return false;
  wait_until([&] {
    *code = host().Testsome(count, requests_of(requests), done, indices, status_of(statuses));
    return *done != 0 || *code != MPI_SUCCESS;
  });
  return true;
}

bool wait_in_win_wait(int* code, Handle window) {
  wait_until([&] {
    int flag = 0;
    *code = host().Win_test((MPI_Win)window, &flag);
    return flag != 0 || *code != MPI_SUCCESS;
  });
  return true;
}

}  // namespace stretto::mpi
