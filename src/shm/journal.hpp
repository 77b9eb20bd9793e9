// SPDX-License-Identifier: BSD-3-Clause
// The flight recorder: this process's last calls, in its segment, where peers can read them when a
// rank is missing. It is written at every call. That costs some stores to lines that stay in the
// cache, and no clock.
//
// A note has one writer, which writes it over after kNotes calls. `number` is 0 while that happens:
// the writer stores it first and last. A reader that sees the same number before and after it has
// read the rest has read one note. All stores release and all loads acquire: a field of a later
// note brings that note's 0 with it.
#pragma once
#include <atomic>

#include "base/signature.hpp"
#include "shm/atomic.hpp"
#include "shm/call_sites.hpp"
#include "shm/ledger.hpp"

namespace stretto::shm {

// Calls that shared memory does not serve are noted, too, without a communicator or a number there.
// Generations are odd, so these values are none.
inline constexpr std::uint64_t kByHost = 0;
inline constexpr std::uint64_t kBySchedule = 2;
// An agreement of a communicator's members. `call` has the communicator's number in its process,
// `bytes` the number of its ranks.
inline constexpr std::uint64_t kInAgreement = 4;

struct alignas(64) Note {
  Atomic<std::uint64_t> number;      // n-th call of its process, from 1
  Atomic<std::uint64_t> generation;  // of the communicator's instance, or one of the above
  Atomic<std::uint64_t> call;        // call number there << 8 | collective
  Atomic<std::uint64_t> bytes;
  Atomic<std::uint64_t> what;  // CallDescriptor, packed
  Atomic<std::uint64_t> progress;
  Atomic<std::uint64_t> caller;  // where the program called from (call_sites.hpp)
};
static_assert(sizeof(Note) == 64);

inline constexpr unsigned kNotes = 64;

// What a rank says about its call.
struct CallDescriptor {
  std::uint64_t bytes = 0;  // of its own block, or of its contribution
  int root = -1;            // -1: the collective has none
  std::uint8_t op = 0;      // 0: none; 1 + reduce::Op; kUserOp
  ElementCode element = 0;  // of its own block; 0: several kinds, or unknown
  bool good = true;         // its arguments are sound

  static constexpr std::uint8_t kUserOp = 255;
  [[nodiscard]] std::uint64_t packed() const {
    return static_cast<std::uint32_t>(root + 1) | std::uint64_t{op} << 32 | std::uint64_t{element} << 40 |
           std::uint64_t{!good} << 56;
  }
  static CallDescriptor unpacked(std::uint64_t bytes, std::uint64_t what) {
    return {bytes, static_cast<int>(static_cast<std::uint32_t>(what)) - 1, static_cast<std::uint8_t>(what >> 32),
            static_cast<ElementCode>(what >> 40), (what >> 56 & 1) == 0};
  }
};

enum class Progress : std::uint8_t {
  ended,
  open,
  failed,   // ended with an error of its own
  gave_up,  // ended without the peers: the call cannot end well
};

// A note as it was at one moment.
struct NoteCopy {
  std::uint64_t number = 0, generation = 0, call = 0;
  std::uint64_t caller = 0;
  CallDescriptor descriptor;
  Progress progress{};

  [[nodiscard]] bool open() const { return progress == Progress::open; }
};

// Whether shared memory does not serve that call.
inline bool is_elsewhere(const NoteCopy& note) {
  return note.generation == kByHost || note.generation == kBySchedule || note.generation == kInAgreement;
}

// False: the note is empty, or its writer is at it.
inline bool note_read(const Note& note, NoteCopy* copy) {
  const std::uint64_t number = note.number.load_acquire();
  copy->number = number;
  copy->generation = note.generation.load_acquire();
  copy->call = note.call.load_acquire();
  const std::uint64_t bytes = note.bytes.load_acquire();
  copy->descriptor = CallDescriptor::unpacked(bytes, note.what.load_acquire());
  copy->progress = static_cast<Progress>(note.progress.load_acquire());
  copy->caller = note.caller.load_acquire();
  return number != 0 && note.number.load_acquire() == number;
}

// The caller is that of this thread's call.
inline void note_write(Note& note, std::uint64_t number, std::uint64_t generation, std::uint64_t call,
                       const CallDescriptor& descriptor) {
  note.number.store_release(0);
  note.generation.store_release(generation);
  note.call.store_release(call);
  note.bytes.store_release(descriptor.bytes);
  note.what.store_release(descriptor.packed());
  note.progress.store_release(static_cast<std::uint64_t>(Progress::open));
  note.caller.store_release(t_call.caller);
  note.number.store_release(number);
}

class Journal {
 public:
  void attach(Note* notes, Activity* activity) {
    notes_ = notes;
    activity_ = activity;
  }
  void set_concurrent(bool concurrent) { concurrent_.store(concurrent, std::memory_order_relaxed); }
  [[nodiscard]] const Note* notes() const { return notes_; }

  // Returns the note's number.
  std::uint64_t begin(std::uint64_t generation, std::uint64_t call, const CallDescriptor& descriptor) {
    const std::uint64_t number = next_number();
    note_write(notes_[number % kNotes], number, generation, call, descriptor);
    t_call.note = number;
    t_call.located = false;
    return number;
  }
  // Another backend serves the call than the rank thought when the call began.
  void move(std::uint64_t number, std::uint64_t generation) {
    Note& note = notes_[number % kNotes];
    if (note.number.load_relaxed() == number) note.generation.store_release(generation);
  }
  // If kNotes calls of the process have begun since, the note belongs to a newer call and stays as
  // it is.
  void end(std::uint64_t number, Progress how) {
    Note& note = notes_[number % kNotes];
    if (note.number.load_relaxed() == number) note.progress.store_release(static_cast<std::uint64_t>(how));
  }

 private:
  std::uint64_t next_number() {
    if (concurrent_.load(std::memory_order_relaxed)) return activity_->calls.fetch_add(1) + 1;
    const std::uint64_t number = activity_->calls.load_relaxed() + 1;
    activity_->calls.store_relaxed(number);
    return number;
  }

  Note* notes_ = nullptr;
  Activity* activity_ = nullptr;
  std::atomic<bool> concurrent_{true};
};

// Finds the note of that call, if its process has not written over it since.
inline bool note_find(const Note* notes, std::uint64_t generation, std::uint64_t call_number, NoteCopy* found) {
  for (unsigned i = 0; i < kNotes; ++i) {
    if (note_read(notes[i], found) && found->generation == generation && found->call >> 8 == call_number) return true;
  }
  return false;
}

}  // namespace stretto::shm
