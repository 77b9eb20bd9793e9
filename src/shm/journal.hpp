// SPDX-License-Identifier: BSD-3-Clause
// The flight recorder: what this process' last calls were, in its segment, where peers can read it when somebody is
// missing. Written at every call, so it costs some stores to lines that stay in the cache, and no clock.
//
// A note has one writer and is written over after kNotes calls. `number` is 0 while that happens: it is stored first and
// last; a reader that sees the same number before and after it has read the rest has read one note. All stores release
// and all loads acquire: a field of a later note brings that note's 0 with it.
#pragma once
#include <atomic>

#include "shm/atomic.hpp"

namespace stretto::shm {

struct alignas(64) Note {
  Atomic<std::uint64_t> number;      // n-th call of its process, from 1
  Atomic<std::uint64_t> generation;  // of the communicator's instance
  Atomic<std::uint64_t> call;        // call number there << 8 | collective
  Atomic<std::uint64_t> bytes;       // of this rank's own block
  Atomic<std::uint64_t> root;        // + 1; 0: the collective has none
  Atomic<std::uint64_t> open;        // 1 until the call returns
};

inline constexpr unsigned kNotes = 64;

// A note as it was at one moment.
struct NoteCopy {
  std::uint64_t number, generation, call, bytes, root;
  bool open;
};

// False if the note is being written, or empty.
inline bool note_read(const Note& note, NoteCopy* copy) {
  const std::uint64_t number = note.number.load_acquire();
  *copy = {number,
           note.generation.load_acquire(),
           note.call.load_acquire(),
           note.bytes.load_acquire(),
           note.root.load_acquire(),
           note.open.load_acquire() != 0};
  return number != 0 && note.number.load_acquire() == number;
}

class Journal {
 public:
  void attach(Note* notes) { notes_ = notes; }
  void set_concurrent(bool concurrent) { concurrent_ = concurrent; }
  [[nodiscard]] const Note* notes() const { return notes_; }

  Note* begin(std::uint64_t generation, std::uint64_t call, std::uint64_t bytes, int root) {
    const std::uint64_t number = next_number();
    Note& note = notes_[number % kNotes];
    note.number.store_release(0);
    note.generation.store_release(generation);
    note.call.store_release(call);
    note.bytes.store_release(bytes);
    note.root.store_release(static_cast<std::uint64_t>(root + 1));
    note.open.store_release(1);
    note.number.store_release(number);
    return &note;
  }
  // A call so long that kNotes others of its process have begun since leaves the note to its new owner.
  static void end(Note* note, std::uint64_t call) {
    if (note->call.load_relaxed() == call) note->open.store_release(0);
  }

 private:
  std::uint64_t next_number() {
    if (concurrent_) return next_.fetch_add(1, std::memory_order_relaxed) + 1;
    const std::uint64_t number = next_.load(std::memory_order_relaxed) + 1;
    next_.store(number, std::memory_order_relaxed);
    return number;
  }

  Note* notes_ = nullptr;
  std::atomic<std::uint64_t> next_{0};
  bool concurrent_ = true;
};

}  // namespace stretto::shm
