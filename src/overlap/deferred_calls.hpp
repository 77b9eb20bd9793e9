// SPDX-License-Identifier: BSD-3-Clause
// Collectives that return before their data are there: the part that knows no MPI.
//
// Their messages go by a driver of connections (transport/bulk), which may serve others, too. The
// driver's thread also serves the guard of buffers (overlap/guard.hpp). run() makes one call. It
// returns when the call is complete, or early: then data goes home while the program computes. A
// thread that touches a page that is away waits for it, and the driver asks the source for it.
//
//   program's thread            driver's thread                 peers
//   guard the buffer
//   post messages        --->   ask for them, edges first  ---> send
//   wait                  <---  every source is in the call <---
//   return early
//   compute                     pages go home as data comes  <---
//   touch a page          --->  "this one next"             --->
//   (waits)              <---   the page goes home          <---
//
// Why a call returns only when all sources are in it: a peer may have to finish something else with
// this rank first, which needs this rank's MPI. A thread that sleeps in a fault does not drive the
// MPI. Once all sources are in the call, their drivers send without any MPI.
//
// System calls on pages that are away: the kernel waits for them where it may (kernel faults). In
// the other modes the calls of the thread that made the collective are caught until nothing is away
// (overlap/calls.hpp). Whoever else may hand such pages to the kernel makes the call wait for all
// its data (sys/kernel_access.hpp).
#pragma once
#include "base/locked.hpp"
#include "overlap/calls.hpp"
#include "overlap/pending.hpp"

namespace stretto::overlap {

class DeferredCalls {
 public:
  struct Settings {
    sys::FaultMode most = sys::FaultMode::kernel;
    std::size_t least_bytes = 64 << 10;   // of the pages of a buffer that is guarded
    shm::DeferredNotes* notes = nullptr;  // where others see what is under way; null: nowhere
  };
  struct Result {
    Status status = Status::ok;
    bool early = false;               // data are still to come
    Refusal refused = Refusal::none;  // why it did not return early, if it might have
    transport::Lost lost;
  };

  explicit DeferredCalls(transport::bulk::Driver& messages) : messages_(messages) {}
  ~DeferredCalls() { close(); }
  DeferredCalls(const DeferredCalls&) = delete;
  DeferredCalls& operator=(const DeferredCalls&) = delete;

  // Opens the guard. Without one all works, but no call returns early: see guard_error().
  void open(const Settings& settings);
  // Why no call returns early, as an errno value; 0: calls do.
  [[nodiscard]] int guard_error() const { return guard_error_; }
  [[nodiscard]] sys::FaultMode mode() const { return guard_.faults().mode; }
  [[nodiscard]] bool catches_calls() const { return guard_error_ == 0 && mode() != sys::FaultMode::kernel; }
  // Completes all calls, then stops the driver, whose thread serves the guard.
  void close();

  // When timelines begin. The first time counts.
  void starts(std::uint64_t now_ns) {
    std::uint64_t none = 0;
    (void)origin_ns_.compare_exchange_strong(none, now_ns);
  }

  // This rank makes no more calls on the communicator, and the peer hears that it failed.
  void abandon(int peer, std::uint64_t comm) { messages_.abandon(peer, comm, {Status::peer_failed, -1}); }

  // One call. Collective over those who exchange messages. Waits as `policy` says.
  Result run(const Exchange& call, const shm::WaitPolicy& policy);

  // What every site has come to, of calls that are over.
  template <class Visit>
  void each_site(const Visit& visit) {
    reap();
    const Locked locked(lock_);
    sites_.each(visit);
  }

  // So long threads of the program have waited for data of calls that had returned early. Grows.
  [[nodiscard]] std::uint64_t waited_ns();

  // ---- calls that have returned early ----
  // Whether a page is away. Costs one load.
  [[nodiscard]] bool any_away() const { return guard_.any_away(); }
  // Waits until no byte of the buffers that this memory touches is away. Drives the MPI meanwhile.
  void complete(const void* memory, std::uint64_t bytes, const shm::WaitPolicy& policy);
  void complete_all(const shm::WaitPolicy& policy);
  // Waits until no byte of this memory is away. Does not drive the MPI.
  void bring_home(const void* memory, std::uint64_t bytes) const;
  // The communicator is freed. Completes its calls first.
  void forget(std::uint64_t comm, const shm::WaitPolicy& policy);
  // For pthread_atfork: nothing is away when it returns. Does not drive the MPI.
  void complete_before_fork();

 private:
  Pending* take(const Exchange& call);
  void count_call(const Exchange& call, std::uint64_t begin_ns, std::uint64_t end_ns);
  Result make(const Exchange& call, const shm::WaitPolicy& policy);
  Refusal prepare(const Exchange& call, Pending& pending);
  Refusal cover_gapped(Pending& pending);
  Refusal check_kernel_access(const Exchange& call);
  Result give_up(const Exchange& call);
  bool serves_guard();
  bool too_much_is_copied();
  void reap();
  void wait_until_over(Pending& pending, const shm::WaitPolicy& policy);
  Result finish(Pending& pending);
  [[nodiscard]] bool has_returned_away() const;
  void wait_in_call(std::uint64_t begin, std::uint64_t bytes);
  template <class Chosen>
  void complete_those(const shm::WaitPolicy& policy, const Chosen& chosen);
  bool catch_calls();
  void on_events();
  static sys::CallAnswer answer(void* self, const sys::CaughtCall& call);

  transport::bulk::Driver& messages_;
  Guard guard_;
  int guard_error_ = 0;
  bool open_ = false, attended_ = false;
  shm::DeferredNotes* notes_ = nullptr;
  std::atomic<std::uint64_t> origin_ns_{0};
  std::atomic<std::uint64_t> waited_ns_{0};  // without the touches of calls that are not reaped
  CallWaits waits_;
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;  // guards the list of calls, and the sites
  Sites sites_;
  Array<Pending*> pending_;
  std::atomic<Pending*> by_cover_[Guard::kMostCovers] = {};
};

}  // namespace stretto::overlap
