// SPDX-License-Identifier: BSD-3-Clause
// A call that brings the ends of its vector by other means than messages of the driver.
#include "overlap/pending.hpp"

namespace stretto::overlap {

// Messages are posted when the ends are here, which otherwise wait in the network behind them. But
// each rank posts them soon by itself: no rank that has returned waits for one that needs its MPI.
//
// The driver neither uses the memory of the ends nor brings these pages home before it is told.
Status Pending::begin_with_ends(const Exchange& call, const shm::WaitPolicy& policy) {
  constexpr std::uint64_t kMostNs = 2'000'000;
  struct Beginning {
    Pending& pending;
    const Exchange& call;
    std::uint64_t due_ns;
    bool has_begun = false;
    Status status = Status::ok;
    void begin() {
      if (!has_begun) status = pending.begin(call);
      has_begun = true;
    }
    bool goes_on() {
      if (sys::now_ns() >= due_ns) begin();
      return !has_begun || pending.status_.load() == Status::ok;
    }
  } beginning{*this, call, sys::now_ns() + kMostNs};
  const Ends::Wait wait{policy, &beginning, [](void* begun) { return static_cast<Beginning*>(begun)->goes_on(); }};
  const char* from = call.ends.bring(call.ends.context, wait);
  beginning.begin();
  has_ends_ = from != nullptr;
  if (has_ends_) {
    for (const Block& block : call.ends.blocks) {
      take_to_buffer(block.offset, from, block.bytes);
      from += block.bytes;
    }
  } else {
    Status none = Status::ok;
    (void)status_.compare_exchange_strong(none, Status::peer_failed);
  }
  do_on_thread([](void* self) { static_cast<Pending*>(self)->ends_are_here(); });
  return beginning.status;
}

// The driver's thread.

void Pending::ends_are_here() {
  if (has_ends_ && is_covered()) {
    for (const Block& block : vector_ends_.blocks) bring_home(arrival_.arrived(block.offset, block.bytes));
    if (arrival_.edges_are_here()) edges_here_.store(true, std::memory_order_release);
  }
  one_receive_less();
}

}  // namespace stretto::overlap
