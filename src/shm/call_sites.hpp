// SPDX-License-Identifier: BSD-3-Clause
// Where in the program a call comes from: the call's line of source, as far as this process can say
// it without reading debug information. It lies in the process's segment, so that peers and
// `stretto top` can tell it.
//
//   Note::caller   the address to which the call returns; each call stores it
//   Modules        the program and its libraries that have called: where each lies, and its file.
//                  With it an address becomes `/path/app+0x1234`, which the tool turns into a line.
//   SourceNotes    what the calling thread itself says once it has waited for long. A call may come
//                  through a Fortran binding of the MPI: then the address is that of the program's
//                  call. Or the program is Python: then the line is known here.
//
// Peers read all of it at any time. An entry of Modules is whole before `count` grows, and then
// only `end` changes. A source note has one writer, which stores `number` first and last, as in a
// note.
#pragma once
#include <cstdint>
#include <cstring>

#include "shm/atomic.hpp"

namespace stretto::shm {

// The collective that this thread is in.
struct ThisCall {
  std::uintptr_t caller;  // where it returns to; 0: unknown
  std::uint64_t note;     // its number; 0: it has none
  bool located;           // it has its source note, or needs none
};
extern thread_local constinit ThisCall t_call;

// A file whose code has called.
struct alignas(64) Module {
  static constexpr std::size_t kPathBytes = 232;
  std::uint64_t begin;
  Atomic<std::uint64_t> end;  // 0: another file lies there by now
  std::uint64_t base;         // addresses minus this are those in the file
  char path[kPathBytes];      // a path that does not fit has lost its beginning
};

struct Modules {
  static constexpr unsigned kMost = 32;
  Atomic<std::uint64_t> count;
  Module of[kMost];

  // The file that has the address now. Null: none that has called.
  [[nodiscard]] const Module* find(std::uint64_t address) const {
    const std::uint64_t all = count.load_acquire();
    for (std::uint64_t i = all < kMost ? all : kMost; i-- > 0;) {
      if (address >= of[i].begin && address < of[i].end.load_acquire()) return &of[i];
    }
    return nullptr;
  }
  // Adds a file. What lay in its place is gone. False: there is no room. One thread at a time.
  bool add(std::uint64_t begin, std::uint64_t end, std::uint64_t base, const char* path) {
    const std::uint64_t at = count.load_relaxed();
    for (std::uint64_t i = 0; i < at; ++i) {
      if (begin < of[i].end.load_relaxed() && of[i].begin < end) of[i].end.store_release(0);
    }
    if (at == kMost) return false;
    Module& module = of[at];
    module.begin = begin;
    module.end.store_relaxed(end);
    module.base = base;
    const std::size_t bytes = std::strlen(path);
    const std::size_t cut = bytes < sizeof module.path ? 0 : bytes - sizeof module.path + 1;
    std::memcpy(module.path, path + cut, bytes - cut + 1);
    count.store_release(at + 1);
    return true;
  }
  // Adds what `from` has more, and forgets what it has forgotten. One thread at a time.
  void follow(const Modules& from) {
    const std::uint64_t all = from.count.load_acquire();
    for (std::uint64_t i = 0; i < count.load_relaxed(); ++i) of[i].end.store_release(from.of[i].end.load_acquire());
    for (std::uint64_t i = count.load_relaxed(); i < all; ++i) {
      of[i].begin = from.of[i].begin;
      of[i].end.store_relaxed(from.of[i].end.load_acquire());
      of[i].base = from.of[i].base;
      std::memcpy(of[i].path, from.of[i].path, sizeof of[i].path);
      count.store_release(i + 1);
    }
  }
};

// What a thread says of its place in the source.
struct SourceLine {
  static constexpr std::size_t kTextBytes = 224;
  std::uint64_t caller = 0;    // of the program's call; 0: as in the note
  char text[kTextBytes] = "";  // "solve.py:33 in step"; empty: not known
};

struct alignas(64) SourceNote {
  static constexpr std::uint64_t kBusy = ~std::uint64_t{0};
  static constexpr std::size_t kWords = SourceLine::kTextBytes / sizeof(std::uint64_t);
  Atomic<std::uint64_t> number;  // of the call's note; 0: none yet
  Atomic<std::uint64_t> caller;
  Atomic<std::uint64_t> words[kWords];
};

struct SourceNotes {
  static constexpr unsigned kNotes = 8;  // threads that wait at a time, as a rule
  SourceNote of[kNotes];

  // If another thread is writing there, nothing is said.
  void write(std::uint64_t number, const SourceLine& line) {
    SourceNote& note = of[number % kNotes];
    const std::uint64_t before = note.number.load_relaxed();
    if (before == SourceNote::kBusy || !note.number.compare_exchange(before, SourceNote::kBusy)) return;
    std::uint64_t words[SourceNote::kWords];
    std::memcpy(words, line.text, sizeof words);
    note.caller.store_release(line.caller);
    for (std::size_t i = 0; i < SourceNote::kWords; ++i) note.words[i].store_release(words[i]);
    note.number.store_release(number);
  }
  // False: that call has none, or it is being written over.
  bool read(std::uint64_t number, SourceLine* line) const {
    const SourceNote& note = of[number % kNotes];
    if (number == 0 || note.number.load_acquire() != number) return false;
    std::uint64_t words[SourceNote::kWords];
    line->caller = note.caller.load_acquire();
    for (std::size_t i = 0; i < SourceNote::kWords; ++i) words[i] = note.words[i].load_acquire();
    std::memcpy(line->text, words, sizeof words);
    line->text[sizeof line->text - 1] = 0;
    return note.number.load_acquire() == number;
  }
};

// Whether a file of this path is a binding of an MPI: libmpi_mpifh, libmpi_usempif08, libmpifort,
// libmpichfort, libmpi_cxx and others, or mpi4py. Its calls are not the program's own.
[[nodiscard]] bool is_binding(const char* path);

// What a segment has of all this.
struct CallSites {
  Modules modules;
  SourceNotes lines;
};

// "solve.py:33 in step" or "/path/app+0x1234". Empty: not known, or known of a binding only.
struct CallSite {
  char text[320] = "";
  // The call with this note's number that returns to `caller`.
  CallSite(const CallSites& sites, std::uint64_t number, std::uint64_t caller);
  // The call that returns to `caller`, which is no binding's.
  CallSite(const Modules& modules, std::uint64_t caller) { name(modules, caller); }

 private:
  void name(const Modules& modules, std::uint64_t caller);
};

}  // namespace stretto::shm
