// SPDX-License-Identifier: BSD-3-Clause
// The host's MPI_Test and MPI_Iprobe find the same messages, statuses and errors as its MPI_Wait
// and MPI_Recv. An error of a request goes to the handler of the request's communicator. A host
// call may run a function of the program: an error handler, or the query of a generalized request.
// So none is marked as inside.
#include "mpi/waits/program_waits.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/log.hpp"
#include "engine/policy.hpp"
#include "mpi/host/host.hpp"
#include "mpi/host/windows.hpp"
#include "mpi/job/world.hpp"
#include "mpi/vendor/vendor.hpp"
#include "mpi/waits/wait_loop.hpp"

namespace stretto::mpi {

constinit std::atomic<bool> g_kind{false}, g_host_may_wait{false};
constinit shm::WaitPolicy g_wait_policy = {};
constinit unsigned g_wait_looks = 1;

namespace {

// ---- The decision ----

// How a rank waits between two tests. The test itself drives the host, so every step makes one.
shm::WaitPolicy policy_of(engine::WaitMode mode) {
  shm::WaitPolicy policy;
  if (mode != engine::WaitMode::spin) policy.crowd();
  if (mode == engine::WaitMode::nap) policy.nap_after_ns = 0;
  policy.bare_spins = policy.spins = 0;
  policy.has_windows = &g_windows;
  if (policy.seldom_until != 0) policy.seldom_until = 1;
  if (vendor::yields_when_idle()) policy.yield_after_ns = policy.nap_after_ns;  // in a test
  return policy;
}

struct Load {
  unsigned ranks;  // of this node
  sys::Cpus cpus;
  bool crowded;
};

Load load_of_node() {
  Load load = {vendor::launcher_ranks_on_node(), sys::usable_cpus(), false};
  if (!world().several_nodes) load.ranks = std::max(load.ranks, static_cast<unsigned>(world().size));
  const bool bound = world().agreed ? !world().same_processors : load.cpus.count < load.cpus.online;
  load.crowded = load.ranks > 1 && engine::exceed_processors(load.ranks, load.cpus, bound);
  return load;
}

// An Open MPI that yields is known before its first wait; of others each function is watched
// (host_yields.hpp). What a test of a host that reports failures (ULFM) says of a request whose
// peer has died is not what a wait says.
bool decide(const Load& load) {
  switch (options().kind()) {
    case KindChoice::on: return true;
    case KindChoice::off: return false;
    case KindChoice::automatic: return load.crowded && !vendor::yields_when_idle() && !vendor::reports_failures();
  }
  return false;
}

// One request that a blocking call has posted.
struct PostedMessage {
  MPI_Request request = host().constants.request_null;
  int code = MPI_SUCCESS;
  bool over = false;

  bool test(MPI_Status* status) {
    if (over) return true;
    int flag = kUntouched;
    code = host().Test(&request, &flag, status);
    return over = flag != 0 || code != MPI_SUCCESS;
  }
  [[nodiscard]] bool has_failed(int post_code) const {
    return post_code != MPI_SUCCESS || request == host().constants.request_null;
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

// Whether an error of a receive's request does what it does in MPI_Recv. A predefined handler does
// the same on every communicator.
bool keeps_handler(MPI_Comm comm) {
  const Constants& c = host().constants;
  if (vendor::requests_keep_handlers() || comm == c.comm_world || comm == c.comm_null) return true;
  MPI_Errhandler its, worlds;
  if (host().Comm_get_errhandler(comm, &its) != MPI_SUCCESS) return true;
  const bool known = host().Comm_get_errhandler(c.comm_world, &worlds) == MPI_SUCCESS;
  const bool same = known && its == worlds && (its == c.errors_are_fatal || its == c.errors_return);
  host().Errhandler_free(&its);
  if (known) host().Errhandler_free(&worlds);
  return same;
}

// Returns when the message is there, so that the host's MPI_Recv waits for the rest of its data
// only. No sender may rely on a blocking receive that is posted early. False: the host has refused.
bool wait_for_message(int* code, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  int flag = 0;
  wait_until([&] {
    flag = kUntouched;
    *code = host().Iprobe(source, tag, comm, &flag, status);
    return flag != 0 || *code != MPI_SUCCESS;
  });
  return *code == MPI_SUCCESS && flag != kUntouched;
}

bool fits(std::int64_t count) { return count == static_cast<int>(count); }

template <class Post>
bool send_by(Post post, int* code, const void* buffer, std::int64_t count, Handle type, int target, int tag,
             Handle comm) {
  if (!fits(count) || target == MPI_PROC_NULL) return false;
  PostedMessage send;
  *code = post(buffer, static_cast<int>(count), (MPI_Datatype)type, target, tag, (MPI_Comm)comm, &send.request);
  if (send.has_failed(*code)) return true;
  wait_until([&] { return send.test(MPI_STATUS_IGNORE); });
  *code = send.code;
  return true;
}

struct Receive {
  void* buffer;
  int count;
  MPI_Datatype type;
  int source, tag;
};

struct Send {
  const void* buffer;
  int count;
  MPI_Datatype type;
  int target, tag;
};

int exchange_by_probe(const Send& send, const Receive& receive, MPI_Comm comm, MPI_Status* status) {
  PostedMessage sent;
  int code = host().Isend(send.buffer, send.count, send.type, send.target, send.tag, comm, &sent.request);
  if (sent.has_failed(code)) return code;
  if (receive.source == MPI_PROC_NULL ||
      wait_for_message(&code, receive.source, receive.tag, comm, MPI_STATUS_IGNORE)) {
    code = host().Recv(receive.buffer, receive.count, receive.type, receive.source, receive.tag, comm, status);
  }
  wait_until([&] { return sent.test(MPI_STATUS_IGNORE); });
  return code != MPI_SUCCESS ? code : sent.code;
}

int exchange(const Send& send, const Receive& receive, MPI_Comm comm, MPI_Status* status) {
  // Of a receive from no rank, a request's status is not that of MPI_Recv in MPICH 4.
  if (receive.source == MPI_PROC_NULL || !keeps_handler(comm)) return exchange_by_probe(send, receive, comm, status);
  PostedMessage sent, received;
  int code =
      host().Irecv(receive.buffer, receive.count, receive.type, receive.source, receive.tag, comm, &received.request);
  if (received.has_failed(code)) return code;
  code = host().Isend(send.buffer, send.count, send.type, send.target, send.tag, comm, &sent.request);
  if (sent.has_failed(code)) {
    received.abandon();
    return code;
  }
  wait_until([&] {
    const bool has_received = received.test(status);
    return sent.test(MPI_STATUS_IGNORE) && has_received;
  });
  if (received.code != MPI_SUCCESS) received.abandon();
  return received.code != MPI_SUCCESS ? received.code : sent.code;
}

MPI_Status* status_of(void* data) { return static_cast<MPI_Status*>(data); }

}  // namespace

void waiting_begin() {
  const Load load = load_of_node();
  const bool kind = decide(load);
  g_wait_looks = std::max(kTuning.kind_looks / vendor::poke_every(), 1u);
  g_wait_policy = policy_of(engine::wait_mode(options().wait(), load.crowded));
  g_host_may_wait.store(options().kind() == KindChoice::automatic, std::memory_order_relaxed);
  g_kind.store(kind, std::memory_order_relaxed);
  if (world().rank != 0 || !options().explain()) return;
  log_explain("kind waiting: %s, %u ranks of this node, %u of %u processors%s", kind ? "on" : "off", load.ranks,
              load.cpus.count, load.cpus.online,
              vendor::yields_when_idle() ? "; the MPI gives processors away itself" : "");
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
  if (!keeps_handler((MPI_Comm)comm)) {
    return !wait_for_message(code, source, tag, (MPI_Comm)comm, MPI_STATUS_IGNORE);  // then the host's turn
  }
  PostedMessage receive;
  *code =
      host().Irecv(buffer, static_cast<int>(count), (MPI_Datatype)type, source, tag, (MPI_Comm)comm, &receive.request);
  if (receive.has_failed(*code)) return true;
  wait_until([&] { return receive.test(status_of(status)); });
  if ((*code = receive.code) != MPI_SUCCESS) receive.abandon();
  return true;
}

bool wait_in_mrecv(int* code, void* buffer, std::int64_t count, Handle type, void* message, void* status) {
  if (!fits(count)) return false;
  PostedMessage receive;
  *code = host().Imrecv(buffer, static_cast<int>(count), (MPI_Datatype)type, static_cast<MPI_Message*>(message),
                        &receive.request);
  if (receive.has_failed(*code)) return true;
  wait_until([&] { return receive.test(status_of(status)); });
  *code = receive.code;
  return true;
}

bool wait_in_sendrecv(int* code, const void* send, std::int64_t send_count, Handle send_type, int target, int send_tag,
                      void* receive, std::int64_t receive_count, Handle receive_type, int source, int receive_tag,
                      Handle comm, void* status) {
  if (!fits(send_count) || !fits(receive_count) || (target == MPI_PROC_NULL && source == MPI_PROC_NULL)) return false;
  *code = exchange({send, static_cast<int>(send_count), (MPI_Datatype)send_type, target, send_tag},
                   {receive, static_cast<int>(receive_count), (MPI_Datatype)receive_type, source, receive_tag},
                   (MPI_Comm)comm, status_of(status));
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
  int room = kUntouched, packed_bytes = 0;
  *code = host().Pack_size(elements, type, comm, &room);
  if (*code != MPI_SUCCESS || room == kUntouched) return true;
  void* const packed = std::malloc(room > 0 ? static_cast<std::size_t>(room) : 1);
  if (packed == nullptr) return false;
  *code = host().Pack(buffer, elements, type, packed, room, &packed_bytes, comm);
  if (*code == MPI_SUCCESS && (packed_bytes != 0 || bytes == 0)) {
    *code = exchange({packed, packed_bytes, host().constants.packed, target, send_tag},
                     {buffer, elements, type, source, receive_tag}, comm, status_of(status));
    if (*code == MPI_SUCCESS) clear_error(status_of(status));
  }
  std::free(packed);
  return true;
}

// ---- Probes ----

bool wait_in_probe(int* code, int source, int tag, Handle comm, void* status) {
  if (source == MPI_PROC_NULL) return false;
  (void)wait_for_message(code, source, tag, (MPI_Comm)comm, status_of(status));
  return true;
}

bool wait_in_mprobe(int* code, int source, int tag, Handle comm, void* message, void* status) {
  if (source == MPI_PROC_NULL) return false;
  wait_until([&] {
    int flag = kUntouched;
    *code = host().Improbe(source, tag, (MPI_Comm)comm, &flag, static_cast<MPI_Message*>(message), status_of(status));
    return flag != 0 || *code != MPI_SUCCESS;
  });
  return true;
}

}  // namespace stretto::mpi
