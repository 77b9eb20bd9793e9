// SPDX-License-Identifier: BSD-3-Clause
// Calls of this process that the MPI serves and in which it may wait: messages, waits, probes,
// one-sided, files, new communicators. Written with a watchdog only. The watchdog reads it, peers
// do, and so does `stretto top`.
//
// A thread takes a note for one call, writes it, and gives it back when the call has ended. What it
// says stays there until another call takes the note: where a rank is in no call, the latest one
// tells how far it has come.
//
// One thread writes a note at a time: `owner` is taken by a compare-and-swap, which acquires what
// the owner before has stored. `version` is odd while the rest is written. The writer makes it odd,
// stores the words with release, and makes it even with release. So a reader that sees a word of a
// newer text also sees that text's odd version, or a later one. It reads the words with acquire
// between two loads of `version`, and takes them if both gave the same even number: then it has
// one text. A call may change its text while it waits, as when some requests of an MPI_Waitall are
// complete. Its number stays.
//
// There are few notes. A call that finds none free goes unnoticed, and nothing else changes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shm/atomic.hpp"

namespace stretto::shm {

enum class HostCallKind : std::uint8_t {
  message,  // waits for what its parts say: all of them, or one if `any`
  all,      // waits for all members of a communicator, a window or a file
  other,
};

// One message, or one request, that a call waits for.
struct Awaited {
  enum class What : std::uint8_t { receive, send, target, request };
  static constexpr int kAny = -1;      // of a rank or a tag
  static constexpr int kUnknown = -2;  // of a rank in the job
  static constexpr std::uint64_t kNoBytes = ~std::uint64_t{0};
  What what{};
  int rank = kAny;       // there
  int world = kUnknown;  // the same rank in the job
  int tag = kAny;
  std::uint64_t bytes = kNoBytes;
  std::uint64_t comm = 0;    // equal on all members, where it is known; 0: not known
  std::uint64_t caller = 0;  // where the request was made (call_sites.hpp); 0: here
  char where[56] = "";       // the communicator's or window's name; of a `request`: what made it
};

// One call, to readers.
struct HostCall {
  static constexpr unsigned kParts = 8;
  std::uint64_t number = 0;  // n-th noted call of its process, from 1
  std::uint64_t after = 0;   // so many calls are in the journal (journal.hpp) that began earlier
  bool open = false;
  HostCallKind kind{};
  bool any = false;               // one of its parts is enough
  bool tests = false;             // it does not wait: the program calls it until something has come
  char name[32] = "";             // "MPI_Recv"
  char where[56] = "";            // the communicator, window or file, where no part says it
  std::uint64_t comm = 0;         // as in Awaited
  std::uint32_t members = 0;      // there; 0: not known
  std::uint64_t caller = 0;       // where the program called from
  std::uint64_t line_caller = 0;  // the same, behind a binding; 0: there is none
  char line[224] = "";            // "solve.py:33 in step"; empty: the address says it
  std::uint32_t awaited = 0;      // how many there are, of which the first kParts are here
  Awaited parts[kParts];

  [[nodiscard]] unsigned known() const { return std::min(awaited, kParts); }
};

struct alignas(kLineBytes) HostCallNote {
  static constexpr std::size_t kWords = sizeof(HostCall) / sizeof(std::uint64_t);
  static_assert(sizeof(HostCall) % sizeof(std::uint64_t) == 0);
  Atomic<std::uint64_t> owner;    // 1: a call has it
  Atomic<std::uint64_t> version;  // odd: it is being written
  Atomic<std::uint64_t> number;   // of the call; 0: none yet
  Atomic<std::uint64_t> open;     // 1: the call has not ended
  Atomic<std::uint64_t> words[kWords];

  void write(const HostCall& call) {
    const std::uint64_t now = version.load_relaxed();
    version.store_release(now + 1);
    number.store_release(call.number);
    open.store_release(1);
    // Parts that are not there are not written.
    const std::size_t bytes = offsetof(HostCall, parts) + call.known() * sizeof(Awaited);
    for (std::size_t i = 0; i < bytes / sizeof(std::uint64_t); ++i) {
      std::uint64_t word;
      std::memcpy(&word, reinterpret_cast<const char*>(&call) + i * sizeof word, sizeof word);
      words[i].store_release(word);
    }
    version.store_release(now + 2);
  }
  void end() {
    open.store_release(0);
    owner.store_release(0);
  }
};

// A lock of a window that this process has. One thread at a time takes and gives back.
struct HeldLock {
  Atomic<std::uint64_t> target;  // 1 + its rank in the job; 0: none
  Atomic<std::uint64_t> window;  // hash of its name
  Atomic<std::uint64_t> caller;  // where it was taken
};

struct HostCalls {
  static constexpr unsigned kNotes = 16, kLocks = 8;
  HostCallNote of[kNotes];
  alignas(kLineBytes) HeldLock locks[kLocks];
  alignas(kLineBytes) Atomic<std::uint64_t> calls;  // noted so far
  Atomic<std::uint64_t> kept;                       // 1: all such calls are noted, from MPI_Init on

  static std::uint64_t window_of(const char* name) {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (; *name != 0; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 1099511628211u;
    return hash;
  }
  // Windows may have the same name: so a lock of another window may be taken for one of this.
  [[nodiscard]] const HeldLock* lock_of(int target, const char* window) const {
    for (const HeldLock& lock : locks) {
      if (lock.target.load_acquire() == static_cast<std::uint64_t>(target) + 1 &&
          lock.window.load_acquire() == window_of(window))
        return &lock;
    }
    return nullptr;
  }
  void lock(int target, const char* window, std::uint64_t caller) {
    for (HeldLock& lock : locks) {
      if (lock.target.load_relaxed() != 0) continue;
      lock.window.store_release(window_of(window));
      lock.caller.store_release(caller);
      lock.target.store_release(static_cast<std::uint64_t>(target) + 1);
      return;
    }
  }
  void unlock(int target, const char* window) {
    if (const HeldLock* const lock = lock_of(target, window)) locks[lock - locks].target.store_release(0);
  }
  // A free note, of which the caller is the owner from now on. Null: there is none.
  HostCallNote* take(std::uint64_t number) {
    for (unsigned i = 0; i < kNotes; ++i) {
      HostCallNote& note = of[(number + i) % kNotes];
      if (note.owner.load_relaxed() == 0 && note.owner.compare_exchange(0, 1)) return &note;
    }
    return nullptr;
  }
};

// False: there is none, or its writer is at it.
inline bool host_call_read(const HostCallNote& note, HostCall* copy) {
  const std::uint64_t version = note.version.load_acquire();
  if (version == 0 || (version & 1) != 0) return false;
  for (std::size_t i = 0; i < HostCallNote::kWords; ++i) {
    const std::uint64_t word = note.words[i].load_acquire();
    std::memcpy(reinterpret_cast<char*>(copy) + i * sizeof word, &word, sizeof word);
  }
  copy->number = note.number.load_acquire();
  copy->open = note.open.load_acquire() != 0;
  // An observer trusts nothing in a segment.
  for (char* const end :
       {copy->name + sizeof copy->name - 1, copy->where + sizeof copy->where - 1, copy->line + sizeof copy->line - 1})
    *end = 0;
  for (Awaited& part : copy->parts) part.where[sizeof part.where - 1] = 0;
  return note.version.load_acquire() == version;
}

// The call that the process is in, otherwise its latest one. Number 0: none. Of several threads the
// one that has waited longest counts.
inline HostCall host_call_now(const HostCalls& calls) {
  HostCall now;
  for (const HostCallNote& note : calls.of) {
    HostCall call;
    if (!host_call_read(note, &call)) continue;
    const bool better = now.number == 0 || (call.open != now.open ? call.open
                                            : call.open           ? call.number < now.number
                                                                  : call.number > now.number);
    if (better) now = call;
  }
  return now;
}

}  // namespace stretto::shm
