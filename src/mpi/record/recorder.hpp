// SPDX-License-Identifier: BSD-3-Clause
// The recording of this process's calls (STRETTO_RECORD): where it goes, what it knows of handles,
// and when it begins and ends. recorded.hpp is one call.
//
// With a recording, wrappers take the slow path, as with a watchdog. Without one it costs nothing
// there, and a load and a branch in collectives. It works as well where Stretto serves no call.
#pragma once
#include <pthread.h>

#include <cstdint>

#include "base/array.hpp"
#include "mpi/host/host.hpp"
#include "mpi/record/numbers.hpp"
#include "record/writer.hpp"

namespace stretto::mpi {

// All communicators with these members, in this order.
struct RecordedComm {
  std::uint64_t hash;
  bool alive;  // one of them is
  bool inter;
  int rank;
  int peers;  // to whom collectives and messages go: the remote group's size, or this one's
  int sources, destinations;
};

struct RecordedRequest {
  bool wild = false;  // its status says more than its call did
  int rank = 0;       // this rank's in its communicator
};

// All of it belongs to whoever holds the lock.
class Recorder {
 public:
  // Opens the file. False, after a warning: there is no recording. `complete`: all ranks come here.
  bool begin(bool complete);

  record::Writer writer;
  Numbers comms, requests, messages, windows, files;  // handles
  Array<RecordedComm> comm_facts;                     // by id
  Array<RecordedRequest> request_facts;               // by slot

  // The communicator's id. One that is new gets a definition.
  std::uint32_t comm(MPI_Comm handle);
  void comm_goes(std::uintptr_t handle);
  std::uint32_t function(int entry);
  std::uint32_t place(std::uintptr_t caller);
  std::uint32_t thread() { return threads_++; }
  // Whether several threads may call at a time.
  bool threaded = false;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  // Ticks of the counter for a time of the processor.
  [[nodiscard]] std::uint64_t ticks(std::uint64_t ns) const;
  // So long a gap is worth a look at the thread's processor time, which is a system call.
  std::uint64_t long_ticks() {
    if (++asked_ % kAskedOften == 0) long_ticks_ = ticks(kLongNs);
    return long_ticks_;
  }

 private:
  static constexpr std::uint64_t kLongNs = 100'000;
  static constexpr std::uint64_t kLongTicks = 200'000;  // until it has been measured
  static constexpr std::uint64_t kAskedOften = 1024;
  std::uint64_t asked_ = 0, long_ticks_ = kLongTicks;

  std::uint32_t add_comm(MPI_Comm handle);

  Array<std::uint32_t> comm_ids_;  // by number
  std::uint64_t first_counter_ = 0, first_ns_ = 0;
  std::uint32_t threads_ = 0;
  std::uint64_t functions_[16] = {};  // bits of entries that have their definition
  Numbers places_;
};

// Null: nothing is recorded.
extern constinit Recorder* g_recorder;
}  // namespace stretto::mpi
