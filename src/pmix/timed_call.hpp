// SPDX-License-Identifier: BSD-3-Clause
// A call of the PMIx library that ends in time: with its result, when the time is up, or when the
// runtime is gone.
//
// The library's own calls may not end in time. Between nodes, runtimes ignore PMIX_TIMEOUT in a
// fence. When its daemon dies during a call, OpenPMIx 5 never returns from it, and PMIx_Get_nb
// never calls back. So each call runs in a thread of its own, and the caller waits. A caller that
// gives up leaves the call to its thread, which frees it if it ever returns. A thread costs 20 us;
// a query to another node takes some 300.
#pragma once
#include <pmix.h>
#include <pthread.h>

#include <cstdint>

#include "kv/remote_exchange.hpp"

namespace stretto::pmix {

// Lives in memory of its own, with everything that the library goes on reading.
struct TimedCall {
  static TimedCall* make();  // null: no memory
  void add(const pmix_info_t& what) { directives[count++] = what; }

  // Runs `call` on a thread of its own and waits. The object is gone afterwards. Timed out: no
  // answer. Peer gone: `*gone` has become true. Found: `status` is what `call` has returned.
  kv::Outcome run(pmix_status_t (*call)(TimedCall& timed), std::uint64_t timeout_ns, const bool* gone,
                  pmix_status_t* status, kv::Fetched* brought);

  pmix_proc_t proc{};
  char key[64] = {};
  pmix_info_t directives[2]{};
  std::size_t count = 0;
  kv::Fetched value;  // `call` fills it

 private:
  static void* thread(void* timed);
  bool start();
  void discard();

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t over_ = PTHREAD_COND_INITIALIZER;
  bool is_over_ = false, given_up_ = false;
  pmix_status_t (*call_)(TimedCall&) = nullptr;
  pmix_status_t status_ = PMIX_SUCCESS;
};

}  // namespace stretto::pmix
