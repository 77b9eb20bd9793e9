// SPDX-License-Identifier: BSD-3-Clause
// Messages over queues. A message is a sequence of records in one queue. A short one is one record
// with the payload inside. A longer one goes in fragments through slots, so readers copy fragment k
// out while the writer copies fragment k+1 in. Both sides advance by steps that never block. A
// collective drives as many messages as it likes at once, and waits only when none of them moves.
//
// Cost of a message of m bytes: two copies of m; one record line and one ack line per fragment.
#pragma once
#include <new>

#include "base/collective.hpp"
#include "base/region.hpp"
#include "base/status.hpp"
#include "shm/call.hpp"
#include "shm/message_states.hpp"

namespace stretto::shm {

// How a message is cut into fragments.
struct Cut {
  std::size_t fragment_bytes = 0;  // at most; 0: as its length suggests
  std::uint64_t period_bytes = 0;  // no fragment goes across a multiple of this; 0: any may
};

// A message being written to a queue.
class Outgoing {
 public:
  Outgoing() : done_(true) {}  // start() sets the rest
  // A poisoned message tells its readers that this rank's arguments were wrong. `cut`: how the
  // message is cut, where that matters to others.
  void start(const Region& region, bool poisoned, const Cut& cut = {}) {
    stream_.start(poisoned ? kNothing : region);
    layout_ = poisoned ? nullptr : region.layout;
    count_ = region.count;
    total_ = stream_.left();
    source_ = stream_.flat();
    stage_ = Stage::writing;
    cut_ = cut;
    allowed_ = total_;
    poisoned_ = poisoned;
    ahead_ = false;
    done_ = false;
  }
  // Whether the reader may not be in the call yet. Call again when it is.
  void go_ahead(bool ahead) { ahead_ = ahead; }
  // Only the first `bytes` bytes of the region hold data so far. Call again as they become more.
  void allow(std::uint64_t bytes) { allowed_ = bytes; }
  void skip() { done_ = true; }
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] std::uint64_t written() const { return total_ - stream_.left(); }
  // Publishes a fragment, or as much of a message without slots as there is room for. False:
  // readers must move first, or data must come.
  bool step(Call& call, OutQueue& queue) {
    if (stage_ != Stage::writing) [[unlikely]]
      return stage_ == Stage::single_copy ? await_readers(call, queue) : repeat(call);
    if (total_ >= call.single_copy_from_bytes() && source_) [[unlikely]]
      return publish_single_copy(call, queue);
    const bool in_slot = total_ > kMostInlineBytes && lane(call) != nullptr;
    if (!publish(call, queue, in_slot)) return false;
    while (!in_slot && !done_ && publish(call, queue, false)) {
    }
    return true;
  }

 private:
  enum class Stage : std::uint8_t {
    writing,
    single_copy,  // published as a whole, to be read by all
    repeating,    // sent again to a reader that could not read it
  };

  [[nodiscard]] Lane* lane(Call& call) const { return ahead_ ? call.lane_ahead() : call.lane(); }
  [[nodiscard]] std::size_t slot_bytes(const Call& call) const;
  bool publish(Call& call, OutQueue& queue, bool in_slot);
  bool publish_single_copy(Call& call, OutQueue& queue);
  bool await_readers(Call& call, OutQueue& queue);
  bool repeat(Call& call);
  void next_refuser(Call& call);
  bool fill_slot(Call& call, OutQueue& queue, Record* record, std::size_t bytes);
  // Computed for the first record only: readers look at no other stamp.
  [[nodiscard]] Stamp stamp(const Call& call) const {
    if (!call.checked() || layout_ == nullptr || written() != 0) return 0;
    return call.stamp() != 0 ? call.stamp() : layout_->signature.stamp(count_);
  }

  Stream stream_;
  const Layout* layout_;  // of the message; null: poison
  std::uint64_t count_;
  std::uint64_t total_;
  std::uint64_t allowed_;
  Cut cut_;
  const char* source_;      // the message in plain memory, if it lies so
  std::uint64_t position_;  // of a single-copy message in its queue
  int reader_;              // the rank that may have refused it, or kEverybody
  int refuser_;             // the rank that gets it again
  Stage stage_;
  bool poisoned_;
  bool ahead_;
  bool done_;
};

// A reader that waits for the rest of a message fetches the first lines of its target meanwhile:
// they may be in no cache of this processor. `bytes` is the length of the rest. `target` may be
// null.
inline void fetch_target(const char* target, std::uint64_t bytes) {
  if (target == nullptr || bytes <= kMostInlineBytes) return;
  const std::uint64_t end = bytes < kTuning.fetched_bytes ? bytes : kTuning.fetched_bytes;
  for (std::uint64_t at = 0; at < end; at += kLineBytes) sys::fetch_to_write(target + at);
}

// A message being read from a queue, where its bytes lie.
class Reader {
 public:
  void start() { *this = Reader{}; }
  // True: there are bytes at hand, or the message has ended, or it will not come (failed()).
  bool poll(Call& call, InQueue& queue) { return bytes_ != 0 || done_ || look(call, queue); }
  // The bytes at hand lie at data(), or, with single copy, at this address of the writer's memory.
  [[nodiscard]] bool is_single_copy() const { return single_copy_; }
  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] const char* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // Gives `bytes` of the bytes at hand back to the writer.
  void take(InQueue& queue, std::size_t bytes) {
    if (single_copy_) {
      address_ += bytes;
    } else {
      data_ += bytes;
    }
    bytes_ -= bytes;
    left_ -= bytes;
    if (bytes_ != 0) return;
    queue.consume();
    done_ = left_ == 0;
  }
  // Length of the whole message, known from the first poll() on.
  [[nodiscard]] std::uint64_t message_bytes() const { return message_bytes_; }
  [[nodiscard]] Stamp stamp() const { return stamp_; }
  [[nodiscard]] bool begun() const { return begun_; }
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  bool look(Call& call, InQueue& queue);
  bool will_not_come(Call& call, const InQueue& queue);
  void begin(Call& call, const InQueue& queue, const Record* record);
  bool is_ours(Call& call, InQueue& queue, const Record* record);

  const char* data_ = nullptr;
  std::uint64_t address_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t message_bytes_ = 0;
  std::uint64_t left_ = 0;
  Stamp stamp_ = 0;
  bool single_copy_ = false;
  bool begun_ = false;
  bool done_ = false;
  bool failed_ = false;
};

// A message being read into a region.
class Incoming {
 public:
  Incoming() : done_(true) {}  // start() sets the rest
  // What does not fit `region` is read and dropped, and the call fails as truncated. A rank whose
  // own arguments are wrong passes an empty region and `dropping`.
  void start(const Region& region, bool dropping) {
    stream_.start(region);
    reader_.start();
    expected_ = dropping ? 0 : region.stamp();  // mostly while there is nothing to read yet
    known_ = 0;
    refused_ = false;
    looks_ = 0;
    dropping_ = dropping;
    done_ = false;
  }
  void skip() { done_ = true; }
  [[nodiscard]] bool done() const { return done_; }
  // Reads at most one record. False: there is none.
  bool step(Call& call, InQueue& queue);

 private:
  void take(Call& call, InQueue& queue);
  bool pull(Call& call, InQueue& queue);
  void refuse(Call& call, InQueue& queue, int error);
  void compare(Call& call, const InQueue& queue);

  Stream stream_;
  Reader reader_;
  Stamp expected_;  // 0: nothing, or it has been compared
  // Bytes at the beginning that are in place already, when the message comes again.
  std::uint64_t known_;
  // Looks in vain for fewer readers of a single-copy message's writer.
  unsigned looks_;
  // A single-copy message could not be read: it comes again, through the channel.
  bool refused_;
  bool dropping_;
  bool done_;
};

struct MessageState {
  Outgoing out;
  Incoming in;
  Reader reader;
};

inline constexpr MessageStates::Kind kMessageStates{sizeof(MessageState), [](MessageState* states, int count) {
                                                      for (int i = 0; i < count; ++i) new (states + i) MessageState;
                                                    }};

}  // namespace stretto::shm
