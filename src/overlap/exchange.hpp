// SPDX-License-Identifier: BSD-3-Clause
// What a collective that may be deferred moves: messages out, messages into one buffer, and those
// that go on to another rank as soon as they are there. On its way through a rank, a message may be
// combined with what this rank contributes.
#pragma once
#include <algorithm>
#include <span>

#include "overlap/gapped_parts.hpp"
#include "overlap/guard.hpp"
#include "overlap/pages.hpp"
#include "overlap/sites.hpp"
#include "sched/schedule.hpp"
#include "shm/waiter.hpp"
#include "transport/bulk/driver.hpp"

namespace stretto::overlap {

// Messages of a pair have different indices in a call, which both ends know. Messages without bytes
// are left out on both ends. Peers are ranks of the job.
struct MessageOut {
  int peer = -1;
  const char* data = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t index = 0;
  std::uint32_t position = 0;  // those with lower ones go first
};
struct MessageIn {
  static constexpr std::uint32_t kNoBlock = ~std::uint32_t{0};
  int peer = -1;
  Block range;  // in the buffer. Ranges do not overlap.
  std::uint32_t index = 0;
  int forward_to = -1;             // who gets it next
  std::uint32_t block = kNoBlock;  // which block of the call it is, if it is one as a whole
  bool shows_presence = true;      // the call may not return before some of it is there
  // This rank's contribution, of the message's length: what comes is combined with it, and the
  // result goes to the buffer (Fold) and on. Null: it stays as it is.
  const char* own = nullptr;
  bool to_buffer = true;                     // false: it only goes on. Then `range` has a length, but no place.
  std::uint32_t forward_index = 0;           // of the message that goes on
  std::uint32_t forward_position = 0;        // the same, as in MessageOut
  sched::Side arriving = sched::Side::left;  // of what comes, when it is combined

  // It comes to memory of the driver first, because it goes on, or is combined.
  [[nodiscard]] bool is_staged() const { return forward_to >= 0 || own != nullptr; }
};

// Elements are dense. The driver's thread calls it.
struct Fold {
  void (*combine)(void* out, const void* left, const void* right, std::size_t count) = nullptr;
  std::size_t element_bytes = 1;  // the lengths of messages are multiples of it
  // What the buffer gets of a message that is combined: the result, or, as in an Exscan, what came.
  // The result goes on in any case.
  bool result_to_buffer = true;
};

// Parts of the buffer that no message brings. The threads that make the call bring them, by other
// means. All ranks of the call do. So a rank that has its ends knows that all are in the call.
struct Ends {
  // In vain once `goes_on(context)` says so. It is to be asked as long as the thread waits.
  struct Wait {
    const shm::WaitPolicy& policy;
    void* context;
    bool (*goes_on)(void* context);
  };
  void* context = nullptr;
  // Returns where they stand, one behind the other; null: it has failed. Null: there are no ends.
  const char* (*bring)(void* context, const Wait& wait) = nullptr;
  Block blocks[2];
};

// Who is told, on the driver's thread, that a call has failed after it returned. It ends the job.
struct FailureHandler {
  void* context = nullptr;
  void (*failed)(void* context, const char* name, Status status, const transport::Lost& lost) = nullptr;
};

struct Exchange {
  std::uint64_t comm = 0, call = 0;  // as in bulk::Key
  const char* name = "";             // of the collective; static
  // For messages to the user: which communicator of its process it is, and how many ranks it has.
  std::uint64_t communicator = 0;
  std::uint32_t ranks = 0;
  std::span<const MessageOut> sends;
  std::span<const MessageIn> receives;
  bool is_pipeline = false;  // messages are pieces, which go from rank to rank as soon as they are there
  Fold fold;                 // for messages with a contribution of this rank
  char* buffer = nullptr;
  std::uint64_t buffer_bytes = 0;
  // Not null: `buffer` is a packed copy, and this says where its bytes belong. If the call returns
  // early, both are the driver's from then on, which puts data to their place and frees the copy.
  GappedParts* gapped = nullptr;
  // The parts of the buffer that the call fills. What lies between them is the program's.
  std::span<const Block> blocks;
  Ends ends;
  Block own;  // that of them which this rank has put there itself, before the call; it may be empty
  bool may_return_early = false;
  const char* place = "";     // where the program called from
  bool is_measuring = false;  // it is none of the program's, so it has no site
  FailureHandler on_failure;

  // Nothing that comes is for this rank's program.
  [[nodiscard]] bool fills_nothing() const {
    return std::none_of(receives.begin(), receives.end(), [](const MessageIn& what) { return what.to_buffer; });
  }
  // Where the program gets its data.
  [[nodiscard]] char* memory() const { return gapped != nullptr ? gapped->memory() : buffer; }
  [[nodiscard]] std::uint64_t memory_bytes() const { return gapped != nullptr ? gapped->bytes() : buffer_bytes; }
  [[nodiscard]] SiteKey site() const { return {comm, name, memory(), memory_bytes()}; }
};

}  // namespace stretto::overlap
