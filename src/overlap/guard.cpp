// SPDX-License-Identifier: BSD-3-Clause
// Opening and closing the guard, and beginning covers.
#include "overlap/guard.hpp"

#include <algorithm>
#include <cerrno>

#include "sys/call_layouts.hpp"
#include "sys/sys.hpp"

namespace stretto::overlap {
namespace {

std::uint64_t number(const char* at) { return reinterpret_cast<std::uintptr_t>(at); }

}  // namespace

Refusal refusal_of(int error) {
  switch (error) {
    case 0: return Refusal::none;
    case EINVAL: return Refusal::not_anonymous;
    case EBUSY: return Refusal::pinned;
    case EADDRINUSE: return Refusal::foreign;
    case EOPNOTSUPP: return Refusal::cannot_move;
    case EAGAIN: return Refusal::events_unread;
    case ETOOMANYREFS: return Refusal::threads;
    case EALREADY: return Refusal::handled;
    case EDEADLK: return Refusal::blocked;
    case ENOMEM: return Refusal::no_memory;
    default: return Refusal::failed;
  }
}

const char* text_of(Refusal why) {
  switch (why) {
    case Refusal::none: return "guarded";
    case Refusal::closed: return "no userfaultfd is open";
    case Refusal::too_small: return "the buffer has too few whole pages";
    case Refusal::too_many: return "too many buffers are guarded already";
    case Refusal::covered: return "another call still waits for data in the same pages";
    case Refusal::no_memory: return "there is no memory to receive into";
    case Refusal::not_anonymous: return "the memory belongs to a file, or is shared, read-only, locked or of hugetlbfs";
    case Refusal::pinned: return "a device or the kernel uses the memory";
    case Refusal::foreign: return "another userfaultfd guards the memory";
    case Refusal::cannot_move: return "the kernel cannot move these pages";
    case Refusal::events_unread: return "the thread that reads events of memory does not come";
    case Refusal::copied: return "calls that have returned still hold too much of what they send";
    case Refusal::no_thread: return "no thread could be started";
    case Refusal::threads: return "the program has several threads, and system calls of one alone are caught";
    case Refusal::elsewhere: return "a handler of a signal of the program may run on a thread of the MPI";
    case Refusal::children: return "the program has child processes, which may read its memory";
    case Refusal::stack: return "the memory is a stack, or the program runs on one of its own";
    case Refusal::gaps: return "there are more than 64 ranges of pages between the gaps of the blocks";
    case Refusal::handled: return "SIGSEGV has a handler of the program";
    case Refusal::blocked: return "the thread or a handler of a signal blocks SIGSEGV";
    case Refusal::not_caught: return "system calls cannot be caught: the thread or a handler of a signal blocks SIGSYS";
    case Refusal::gapped: return "blocks with gaps, and several threads, or no kernel faults";
    case Refusal::unsuitable:
      return "gaps in types of too many pieces, a staged buffer, one-sided windows, or STRETTO_CHECK=3";
    case Refusal::failed: return "the kernel refuses";
    case Refusal::lost: return "system calls failed, and a part of the buffer is lost";
  }
  return "unknown";
}

int Guard::open(const Limits& limits) {
  if (faults_.fd >= 0) return EALREADY;
  sys::Faults made;
  const bool by_signals = limits.most == sys::FaultMode::signal;
  const sys::Events events = limits.forks ? sys::Events::memory_and_fork : sys::Events::memory;
  const sys::FaultOwner owner{this,
                              [](void* self, std::uint64_t at) { return static_cast<Guard*>(self)->away(at, 1); }};
  const int error = by_signals ? sys::faults_open_signal(owner, &made) : sys::faults_open(limits.most, events, &made);
  if (error != 0) return error;
  if (!made.can_move || (!made.says_memory && !by_signals)) {
    sys::faults_close(&made);
    return EOPNOTSUPP;
  }
  limits_ = limits;
  faults_ = made;
  told_begin_ = told_count_ = 0;
  due_ns_ = kNever;
  return 0;
}

void Guard::close() {
  if (faults_.fd < 0) return;
  constexpr int kTries = 1000;
  for (int i = 0; i < kMostCovers; ++i)
    for (int n = 0; n < kTries && covers_[i].state == State::live && release(i) == EAGAIN; ++n) {
    }
  end_children();
  for (; told_count_ > 0; --told_count_) {
    const Told& told = told_[told_begin_];
    if (told.kind == Told::Kind::fork_end) sys::close_descriptor(told.fd);
    told_begin_ = (told_begin_ + 1) % kMostTold;
  }
  for (Cover& cover : covers_)
    if (cover.state == State::live) drop_cover(&cover, false);
  spares_.unmap_all(faults_);
  sys::faults_close(&faults_);
  spares_.free_states();
}

// ---- cover ----

Guard::Cover* Guard::take_slot() {
  for (Cover& cover : covers_) {
    State expected = State::free;
    if (cover.state.compare_exchange_strong(expected, State::taken)) return &cover;
  }
  return nullptr;
}

// All pages of the ranges count as away from here on: events may concern them before they have
// moved. Pages between them are at home.
void Guard::begin_cover(Cover* cover, const sys::Pages* ranges, std::size_t count) {
  cover->version += 2;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < cover->landing.bytes / faults_.page_bytes; ++i)
    page(*cover, i * faults_.page_bytes).store(kHome, std::memory_order_relaxed);
  for (std::size_t r = 0; r < count; ++r) {
    const std::uint64_t offset = number(ranges[r].at) - number(ranges[0].at);
    cover->part[r].at = number(ranges[r].at);
    cover->part[r].offset = offset;
    cover->part[r].bytes = ranges[r].bytes;
    for (std::uint64_t at = 0; at < ranges[r].bytes; at += faults_.page_bytes)
      page(*cover, offset + at).store(kAway, std::memory_order_relaxed);
    bytes += ranges[r].bytes;
  }
  cover->parts = static_cast<int>(count);
  cover->dirty = false;
  cover->units = 0;
  cover->changed = false;
  cover->making_ns = 0;
  cover->away_bytes = bytes;
  away_bytes_ += bytes;
  cover->state = State::opening;
}

// What the driver has read by now is applied.
void Guard::wait_for_driver() const {
  for (const std::uint64_t now = applying_; (now & 1) != 0 && applying_ == now;) sys::yield_through();
}

// The driver may look at the cover, and has looked when this returns. Threads in away() may look at
// it still: they see another version, and look again. Nobody waits for these here. A handler of
// signals may have interrupted one of them, and may wait for the driver.
void Guard::drop_cover(Cover* cover, bool reuse) {
  cover->state = State::taken;
  wait_for_driver();
  away_bytes_ -= cover->away_bytes.exchange(0);
  cover->parts = 0;
  spares_.give(cover->spare, reuse);
  cover->state = State::free;
}

bool Guard::shares_a_page(const Cover& cover) const {
  for (const Cover& other : covers_) {
    if (&other == &cover || other.state < State::opening) continue;
    for (int i = 0; i < other.parts; ++i) {
      const std::uint64_t at = other.part[i].at, bytes = other.part[i].bytes;
      const auto meets = [&](const Part& part) { return at < part.at + part.bytes && part.at < at + bytes; };
      if (std::any_of(cover.part, cover.part + cover.parts, meets)) return true;
    }
  }
  return false;
}

// Ends the guard of a range whose pages have all moved.
int Guard::unguard(const Cover& cover, sys::Pages range) {
  std::size_t moved = 0;
  char* const from = cover.landing.at + (number(range.at) - cover.part[0].at);
  const auto move = [&] { return sys::faults_move_in(faults_, range.at, from, range.bytes, &moved); };
  const int error = twice(move);
  return error != 0 ? error : twice([&] { return sys::faults_release(faults_, range); });
}

// All or nothing, as faults_guard.
int Guard::guard_all(const Cover& cover, const sys::Pages* ranges, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    char* const to = cover.landing.at + (number(ranges[i].at) - number(ranges[0].at));
    int error = sys::faults_guard(faults_, ranges[i], {to, ranges[i].bytes});
    if (error == 0) continue;
    for (std::size_t k = 0; k < i; ++k)
      if (unguard(cover, ranges[k]) != 0) error = ENOTRECOVERABLE;
    return error;
  }
  return 0;
}

// After ENOTRECOVERABLE: page by page, what lies in the landing. A page that is not there is at
// home. Pages that cannot be released stay registered, as in release().
bool Guard::rescue(const Cover& cover, sys::Pages range) {
  bool whole = true;
  char* const landing = cover.landing.at + (number(range.at) - cover.part[0].at);
  for (std::size_t at = 0; at < range.bytes; at += faults_.page_bytes) {
    std::size_t there = 0, done = 0;
    const sys::Pages one{landing + at, faults_.page_bytes};
    if (twice([&] { return sys::pages_resident(faults_, one, &there); }) != 0) whole = false;
    if (there == 0) continue;
    const auto move = [&] { return sys::faults_move_in(faults_, range.at + at, one.at, one.bytes, &done); };
    whole = twice(move) == 0 && whole;
  }
  (void)twice([&] { return sys::faults_release(faults_, range); });
  return whole;
}

Refusal Guard::cover(const sys::Pages* ranges, std::size_t count, int* cover) {
  if (faults_.fd < 0) return Refusal::closed;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if ((number(ranges[i].at) | ranges[i].bytes) % faults_.page_bytes != 0) return Refusal::too_small;
    bytes += ranges[i].bytes;
  }
  if (bytes == 0 || bytes < limits_.least_bytes) return Refusal::too_small;
  if (count > kMostRanges) return Refusal::gaps;
  const sys::Pages last = ranges[count - 1];
  const sys::Pages hull{ranges[0].at, static_cast<std::size_t>(last.at + last.bytes - ranges[0].at)};
  Cover* const made = take_slot();
  if (made == nullptr) return Refusal::too_many;
  Spares::Spare* spare = nullptr;
  std::size_t huge = 0;
  if (faults_.huge_bytes != 0 && hull.bytes >= faults_.huge_bytes) (void)sys::huge_pages(faults_, hull, nullptr, &huge);
  if (spares_.take(faults_, hull, huge != 0, limits_.spare_bytes, &spare, &made->landing) != 0) {
    made->state = State::free;
    return Refusal::no_memory;
  }
  wait_for_driver();  // it may be about to drop what was here before
  made->spare = spare;
  begin_cover(made, ranges, count);
  if (shares_a_page(*made)) {
    drop_cover(made, true);
    return Refusal::covered;
  }
  if (huge != 0) find_units(made, hull);
  const int error = guard_all(*made, ranges, count);
  if (error == 0) {
    if (huge != 0) check_units(made);
    made->began_ns = sys::now_ns();
    made->state = State::live;
    *cover = static_cast<int>(made - covers_);
    return Refusal::none;
  }
  bool whole = true;
  for (std::size_t i = 0; i < count && error == ENOTRECOVERABLE; ++i) whole = rescue(*made, ranges[i]) && whole;
  drop_cover(made, false);  // it may have lost its registration
  return whole ? refusal_of(error == ENOTRECOVERABLE ? EIO : error) : Refusal::lost;
}

// The cover may have become another one, with a spare of another size.
bool Guard::part_away(const Cover& cover, const Part& part, std::uint64_t at, std::uint64_t end,
                      std::uint64_t* where) const {
  const std::uint64_t step = faults_.page_bytes, from = part.at, offset = part.offset;
  const std::uint64_t begin = std::max(at, from), to = std::min(end, from + part.bytes);
  const Spares::Spare& spare = *cover.spare.load(std::memory_order_acquire);
  if (begin >= to) return false;
  const std::uint64_t first = (offset + (begin - from)) / step, last = (offset + (to - from) + step - 1) / step;
  for (std::uint64_t i = first; i < std::min<std::uint64_t>(last, spare.pages.bytes / step); ++i)
    if (spare.away[i].load(std::memory_order_acquire) != kHome) {
      *where = from + (i * step - offset);
      return true;
    }
  return false;
}

bool Guard::away(std::uint64_t at, std::uint64_t bytes, std::uint64_t* where) const {
  const std::uint64_t end = bytes > ~at ? ~std::uint64_t{0} : at + bytes;
  std::uint64_t ignored = 0;
  if (where == nullptr) where = &ignored;
  bool found = false;
  if (!any_away()) return false;
  wait_for_driver();  // the thread may just have moved the memory
  ++spares_.readers;
  for (const Cover& cover : covers_) {
    std::uint32_t version = 0;
    do {
      found = false;
      version = cover.version;
      if (cover.state != State::live) break;
      const int count = cover.parts;
      for (int i = 0; i < count && !found; ++i) found = part_away(cover, cover.part[i], at, end, where);
    } while ((version & 1) != 0 || cover.version != version);
    if (found) break;
  }
  --spares_.readers;
  return found;
}

}  // namespace stretto::overlap
