// SPDX-License-Identifier: BSD-3-Clause
// Calls of this process whose data are under way (src/overlap), in its segment: which bytes are
// missing, from whom, and what waits for them. The watchdog reads it, peers do, and so does
// `stretto top`.
//
// A note belongs to one call from its beginning until it is over, also after it has returned.
// Whoever makes the call takes a note and writes it. From then on the driver's thread counts what
// has come. Threads of the program that wait say so themselves, because they might wait in the
// handler of a signal: all is plain stores, and a compare-and-swap.
//
// `number` is kBusy while a note is written, and 0 when it is free. A reader that sees the same
// number before and after the rest has read one call. Counts and waits change meanwhile. Each is
// right by itself: it was so at some moment of the reading. All stores release, all loads acquire.
//
// There are few notes. A call that finds none free goes unnoticed, and nothing else changes.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "shm/atomic.hpp"

namespace stretto::shm {

// What a thread of the program waits for it by.
enum class DeferredWait : std::uint8_t {
  none,
  touch,        // a load or store of a page that is away
  system_call,  // user mode: a system call on such a page
  function,     // a function of MPI that gets the buffer, or all data
};

// One call, to readers.
struct DeferredCall {
  static constexpr unsigned kParts = 34;
  static constexpr int kOthers = -1;
  struct Part {
    int peer = kOthers;  // a rank of the job; kOthers: all that have no part of their own
    bool sends = false;
    std::uint64_t bytes = 0;  // that have not come, or that the peer has not taken
  };
  std::uint64_t number = 0;                     // n-th call of its process, from 1
  char name[16] = "";                           // of the collective, without MPI_
  std::uint64_t communicator = 0;               // which of its process
  std::uint32_t ranks = 0;                      // there
  std::uint64_t call = 0;                       // its number there, from 1, among calls that may return early
  char place[224] = "";                         // where the program called from (call_sites.hpp)
  std::uint64_t began_ns = 0, returned_ns = 0;  // 0: it has not returned
  DeferredWait wait{};
  std::uint64_t waits_since_ns = 0;
  int waits_for = kOthers;  // touch: whose data
  std::uint32_t part_count = 0;
  Part parts[kParts];

  // 0: nothing is under way any more.
  [[nodiscard]] std::uint64_t left_bytes() const {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < part_count; ++i) bytes += parts[i].bytes;
    return bytes;
  }
};

struct alignas(kLineBytes) DeferredNote {
  static constexpr std::uint64_t kBusy = ~std::uint64_t{0};
  struct Part {
    Atomic<std::uint64_t> peer;  // << 1 | sends
    Atomic<std::uint64_t> bytes;
  };
  Atomic<std::uint64_t> number;
  Atomic<std::uint64_t> name[2];
  Atomic<std::uint64_t> communicator, ranks, call;
  Atomic<std::uint64_t> began_ns, returned_ns;
  Atomic<std::uint64_t> touch_since_ns, touch_peer;        // the driver's; 0: none waits
  Atomic<std::uint64_t> call_since_ns, function_since_ns;  // of threads that wait; 0: none does
  Atomic<std::uint64_t> part_count, unused;
  static constexpr std::size_t kPlaceWords = sizeof DeferredCall::place / sizeof(std::uint64_t);
  Atomic<std::uint64_t> place[kPlaceWords];
  Part parts[DeferredCall::kParts];
};

struct DeferredNotes {
  static constexpr unsigned kNotes = 8;
  DeferredNote of[kNotes];
  alignas(kLineBytes) Atomic<std::uint64_t> calls;  // that have got a note
};

// False: no call is noted there, or it ended meanwhile.
inline bool deferred_read(const DeferredNote& note, DeferredCall* copy) {
  const std::uint64_t number = note.number.load_acquire();
  if (number == 0 || number == DeferredNote::kBusy) return false;
  *copy = {};
  copy->number = number;
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t word = note.name[i].load_acquire();
    std::memcpy(copy->name + i * sizeof word, &word, sizeof word);
  }
  copy->name[sizeof copy->name - 1] = 0;
  copy->communicator = note.communicator.load_acquire();
  copy->ranks = static_cast<std::uint32_t>(note.ranks.load_acquire());
  copy->call = note.call.load_acquire();
  std::uint64_t place[DeferredNote::kPlaceWords];
  for (std::size_t i = 0; i < DeferredNote::kPlaceWords; ++i) place[i] = note.place[i].load_acquire();
  std::memcpy(copy->place, place, sizeof place);
  copy->place[sizeof copy->place - 1] = 0;
  copy->began_ns = note.began_ns.load_acquire();
  copy->returned_ns = note.returned_ns.load_acquire();
  const std::uint64_t touch = note.touch_since_ns.load_acquire(), peer = note.touch_peer.load_acquire();
  const std::uint64_t caught = note.call_since_ns.load_acquire(), held = note.function_since_ns.load_acquire();
  // What answers a system call touches the pages, too.
  copy->waits_since_ns = caught != 0 ? caught : touch != 0 ? touch : held;
  copy->wait = caught != 0  ? DeferredWait::system_call
               : touch != 0 ? DeferredWait::touch
               : held != 0  ? DeferredWait::function
                            : DeferredWait::none;
  if (touch != 0) copy->waits_for = static_cast<int>(peer) - 1;
  copy->part_count =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(note.part_count.load_acquire(), DeferredCall::kParts));
  for (std::uint32_t i = 0; i < copy->part_count; ++i) {
    const auto word = static_cast<std::int64_t>(note.parts[i].peer.load_acquire());
    copy->parts[i] = {static_cast<int>(word >> 1), (word & 1) != 0, note.parts[i].bytes.load_acquire()};
  }
  return note.number.load_acquire() == number;
}

// Visits the calls that have something under way.
template <class Visit>
void each_deferred(const DeferredNotes& all, const Visit& visit) {
  DeferredCall call;
  for (const DeferredNote& note : all.of) {
    if (deferred_read(note, &call) && call.left_bytes() != 0) visit(call);
  }
}

// The hand of the process on one of its notes. Without a note all functions do nothing.
class DeferredWriter {
 public:
  // The thread that makes the call: take(), a part for each peer and direction, put().
  void take(DeferredNotes* all, const DeferredCall& call) {
    DeferredNote* const note = all != nullptr ? free_note(*all) : nullptr;
    if (note != nullptr) {
      all_ = all;
      std::uint64_t words[2];
      std::memcpy(words, call.name, sizeof words);
      note->name[0].store_release(words[0]);
      note->name[1].store_release(words[1]);
      note->communicator.store_release(call.communicator);
      note->ranks.store_release(call.ranks);
      note->call.store_release(call.call);
      std::uint64_t place[DeferredNote::kPlaceWords];
      std::memcpy(place, call.place, sizeof place);
      for (std::size_t i = 0; i < DeferredNote::kPlaceWords; ++i) note->place[i].store_release(place[i]);
      note->began_ns.store_release(call.began_ns);
      for (auto* const word : {&note->returned_ns, &note->touch_since_ns, &note->touch_peer, &note->call_since_ns,
                               &note->function_since_ns, &note->part_count})
        word->store_release(0);
    }
    note_.store(note, std::memory_order_release);
  }
  // Adds to the peer's part, and returns which one it is. The last two parts are for all peers for
  // which there is no room.
  std::uint32_t part(int peer, bool sends, std::uint64_t bytes) {
    DeferredNote* const note = this->note();
    if (note == nullptr) return 0;
    const auto count = static_cast<std::uint32_t>(note->part_count.load_relaxed());
    const std::uint64_t word = word_of(peer, sends);
    std::uint32_t at = count;
    while (at > 0 && note->parts[at - 1].peer.load_relaxed() != word) --at;
    if (at > 0) {
      add(note->parts[at - 1], bytes);
      return at - 1;
    }
    constexpr std::uint32_t kOwn = DeferredCall::kParts - 2;
    if (count >= kOwn && peer != DeferredCall::kOthers) return part(DeferredCall::kOthers, sends, bytes);
    note->parts[count].peer.store_release(word);
    note->parts[count].bytes.store_release(bytes);
    note->part_count.store_release(count + 1);
    return count;
  }
  void put() {
    if (DeferredNote* const note = this->note()) note->number.store_release(all_->calls.fetch_add(1) + 1);
  }
  void returns(std::uint64_t now_ns) {
    if (DeferredNote* const note = this->note()) note->returned_ns.store_release(now_ns);
  }
  // The call is over, and the driver knows no more of it.
  void give_back() {
    if (DeferredNote* const note = note_.exchange(nullptr, std::memory_order_acq_rel)) note->number.store_release(0);
  }

  // The driver's thread, from put() until the call is over.
  void came(std::uint32_t part, std::uint64_t bytes) {
    DeferredNote* const note = this->note();
    if (note == nullptr) return;
    Atomic<std::uint64_t>& left = note->parts[part].bytes;
    left.store_release(left.load_relaxed() - std::min(bytes, left.load_relaxed()));
  }
  // Since when a thread waits for a page with this peer's data. 0: no longer.
  void touched(std::uint64_t since_ns, int peer) {
    DeferredNote* const note = this->note();
    if (note == nullptr) return;
    note->touch_peer.store_release(static_cast<std::uint64_t>(peer) + 1);
    note->touch_since_ns.store_release(since_ns);
  }

  // Any thread, also in a handler of a signal. The first one counts.
  void waits(DeferredWait how, std::uint64_t since_ns) {
    DeferredNote* const note = this->note();
    if (note == nullptr) return;
    (void)(how == DeferredWait::function ? note->function_since_ns : note->call_since_ns).compare_exchange(0, since_ns);
  }
  void waits_no_more() {  // in a system call
    if (DeferredNote* const note = this->note()) note->call_since_ns.store_release(0);
  }

 private:
  [[nodiscard]] DeferredNote* note() const { return note_.load(std::memory_order_acquire); }
  static std::uint64_t word_of(int peer, bool sends) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(peer)) << 1 | (sends ? 1 : 0);
  }
  static void add(DeferredNote::Part& part, std::uint64_t bytes) {
    part.bytes.store_release(part.bytes.load_relaxed() + bytes);
  }
  static DeferredNote* free_note(DeferredNotes& all) {
    for (DeferredNote& note : all.of) {
      if (note.number.load_relaxed() == 0 && note.number.compare_exchange(0, DeferredNote::kBusy)) return &note;
    }
    return nullptr;
  }

  DeferredNotes* all_ = nullptr;  // the maker's
  std::atomic<DeferredNote*> note_{nullptr};
};

}  // namespace stretto::shm
