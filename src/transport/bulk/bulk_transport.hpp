// SPDX-License-Identifier: BSD-3-Clause
// A communicator's schedules over the driver: the contract of transport.hpp. The driver moves the
// messages of a pair in any order. A poll only asks which ones are complete.
#pragma once
#include <atomic>

#include "transport/bulk/driver.hpp"
#include "transport/transport.hpp"

namespace stretto::transport::bulk {

class BulkTransport {
 public:
  BulkTransport() = default;
  BulkTransport(const BulkTransport&) = delete;
  BulkTransport& operator=(const BulkTransport&) = delete;

  // `ranks` are the members' ranks in the job, which the driver knows; they stay. All members name
  // the communicator alike, and no other one. `ready` returns when the driver's thread may use this
  // memory without a wait; null: it always may.
  void start(Driver& driver, std::uint64_t comm, const int* ranks, int size,
             void (*ready)(const void* memory, std::uint64_t bytes) = nullptr) {
    driver_ = &driver;
    comm_ = comm;
    ranks_ = ranks;
    size_ = size;
    ready_ = ready;
  }
  [[nodiscard]] Transport transport();
  // The member that has died, or whose connection is gone.
  [[nodiscard]] const Lost& lost() const { return lost_; }

 private:
  static void finished(void* self, Handle handle, Status status);
  [[nodiscard]] Listener listener(std::uint32_t ticket) { return {this, ticket, nullptr, finished}; }
  void make_ready(const void* memory, std::uint64_t bytes) const {
    if (ready_ != nullptr) ready_(memory, bytes);
  }
  void begin();
  bool posted(Status status);
  int poll(std::uint32_t* tickets, int capacity);
  void collect();
  void abort(Status why, int lost);
  [[nodiscard]] int member(int job_rank) const;
  void fail(Status status, const Lost& lost);

  Driver* driver_ = nullptr;
  std::uint64_t comm_ = 0, call_ = 0;
  const int* ranks_ = nullptr;
  int size_ = 0;
  void (*ready_)(const void* memory, std::uint64_t bytes) = nullptr;
  std::uint32_t open_ = 0;                   // messages
  std::atomic<Message*> finished_{nullptr};  // a stack: the driver pushes, a poll takes all
  Array<std::uint32_t> through_;             // tickets to be handed out
  Status status_ = Status::ok;               // why it is broken
  bool has_aborted_ = false;
  Lost lost_;
};

}  // namespace stretto::transport::bulk
