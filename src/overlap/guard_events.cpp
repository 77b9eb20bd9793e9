// SPDX-License-Identifier: BSD-3-Clause
// What the program does with guarded memory.
#include <algorithm>
#include <cerrno>

#include "overlap/guard.hpp"
#include "sys/sys.hpp"

namespace stretto::overlap {
namespace {

using Kind = sys::FaultEvent::Kind;

}  // namespace

// ---- telling ----

bool Guard::tell(const Told& told) {
  if (told_count_ == kMostTold) return false;
  told_[(told_begin_ + told_count_++) % kMostTold] = told;
  return true;
}

int Guard::events(Told* told, int most, int* count) {
  *count = 0;
  for (const int fd : children_) {
    if (fd < 0) continue;
    sys::Faults child = faults_;
    child.fd = fd;
    drain(child);
  }
  int error = 0;
  while (error == 0 && told_count_ <= kMostTold / 2) error = take_in();
  bring_due();
  open_overdue();
  for (; *count < most && told_count_ > 0; --told_count_) {
    const Told& next = told_[told_begin_];
    if (next.kind == Told::Kind::fork_end) sys::close_descriptor(next.fd);
    if (!is_answered(next)) told[(*count)++] = next;
    told_begin_ = (told_begin_ + 1) % kMostTold;
  }
  return error == EAGAIN ? 0 : error;
}

// A fault whose page has gone home meanwhile, which has woken the thread.
bool Guard::is_answered(const Told& told) const {
  if (told.kind != Told::Kind::fault || covers_[told.cover].state != State::live) return false;
  return told.offset < covers_[told.cover].landing.bytes && is_home(told.cover, told.offset);
}

// ---- events ----

// One read. EAGAIN: there is none. A thread whose munmap is read goes on, and may map and cover the
// same addresses. cover() therefore waits until what is read is applied.
int Guard::take_in() {
  sys::FaultEvent events[sys::kMostFaultEvents];
  int count = 0;
  ++applying_;
  const int error = sys::faults_next(faults_, events, &count);
  for (int i = 0; error == 0 && i < count; ++i) apply(events[i]);
  ++applying_;
  return error;
}

void Guard::apply(const sys::FaultEvent& event) {
  switch (event.kind) {
    case Kind::fault: on_fault(event); break;
    case Kind::remove:
    case Kind::unmap: on_dropped(event.address, event.bytes, event.kind == Kind::unmap); break;
    case Kind::remap: on_moved(event.address, event.to, event.bytes); break;
    case Kind::fork: on_fork(event.fd); break;
    case Kind::other: break;
  }
}

// Pages that are not away, in memory that is registered: dropped by the program, or grown onto a
// cover by mremap. They are as fresh memory is. Where no page can be placed now the thread is
// woken, and touches it again.
void Guard::on_fault(const sys::FaultEvent& event) {
  const std::uint64_t at = event.address / faults_.page_bytes * faults_.page_bytes;
  Told told;
  told.write = event.write;
  told.thread = event.thread;
  told.bytes = faults_.page_bytes;
  const bool is_away = find(at, &told.cover, &told.offset);
  if (is_away) {
    ++touches_;
    covers_[told.cover].is_touched = true;
    is_wanted(&covers_[told.cover], told.offset);
  }
  if (is_away && tell(told)) return;
  std::size_t done = 0;
  if (is_away || sys::faults_zero(faults_, address(at), faults_.page_bytes, &done) != 0)
    (void)sys::faults_wake(faults_, {address(at), faults_.page_bytes});
}

bool Guard::find(std::uint64_t at, int* index, std::uint64_t* offset) const {
  for (int n = 0; n < kMostCovers; ++n) {
    const Cover& cover = covers_[n];
    if (cover.state < State::opening) continue;
    for (int i = 0; i < cover.parts; ++i) {
      const std::uint64_t begin = cover.part[i].at;
      if (at < begin || at >= begin + cover.part[i].bytes) continue;
      const std::uint64_t found = cover.part[i].offset + (at - begin);
      if (page(cover, found).load(std::memory_order_acquire) == kHome) continue;
      *index = n;
      *offset = found;
      return true;
    }
  }
  return false;
}

// ---- parts ----

bool Guard::add_part(Cover* cover, const Piece& piece) {
  const int count = cover->parts;
  for (int i = 0; i < kMostParts; ++i) {
    if (i < count && cover->part[i].bytes != 0) continue;
    cover->part[i].at = piece.at;
    cover->part[i].offset = piece.offset;
    cover->part[i].bytes = piece.bytes;
    cover->parts = std::max(count, i + 1);
    return true;
  }
  return false;
}

// Takes the first piece of a range out of a cover's parts. False: there is none, or there is no
// room for the part behind it. Then that part stays whole, which keeps other covers away from it.
bool Guard::cut(Cover* cover, std::uint64_t at, std::uint64_t bytes, Piece* piece) {
  for (int i = 0; i < cover->parts; ++i) {
    Part& part = cover->part[i];
    const std::uint64_t first = part.at, end = first + part.bytes, offset = part.offset;
    const std::uint64_t from = std::max(at, first), to = std::min(at + bytes, end);
    if (from >= to) continue;
    *piece = {offset + (from - first), to - from, from};
    if (from == first) {
      part.at = to;
      part.offset = offset + (to - first);
      part.bytes = end - to;
    } else if (to == end || add_part(cover, {offset + (to - first), end - to, to})) {
      part.bytes = from - first;
    } else {
      continue;
    }
    return true;
  }
  return false;
}

void Guard::on_dropped(std::uint64_t at, std::uint64_t bytes, bool unmapped) {
  for (int n = 0; n < kMostCovers; ++n) {
    Cover* const cover = &covers_[n];
    if (cover->state < State::opening) continue;
    for (int i = 0; i < cover->parts; ++i) {
      const std::uint64_t first = cover->part[i].at;
      const std::uint64_t from = std::max(at, first), to = std::min(at + bytes, first + cover->part[i].bytes);
      if (from >= to) continue;
      const std::uint64_t offset = cover->part[i].offset + (from - first);
      if (mark_home(cover, offset, to - from) == 0) continue;
      cover->dirty = true;
      is_changed(cover);
      (void)tell({Told::Kind::dropped, false, n, offset, to - from});
    }
    if (!unmapped) continue;
    Piece gone;
    ++cover->version;
    while (cut(cover, at, bytes, &gone)) {
    }
    ++cover->version;
  }
}

// The pages stay without data.
void Guard::lose(int index, std::uint64_t offset, std::uint64_t bytes) {
  if (mark_home(&covers_[index], offset, bytes) == 0) return;
  covers_[index].dirty = true;
  is_changed(&covers_[index]);
  (void)tell({Told::Kind::lost, false, index, offset, bytes});
}

void Guard::on_moved(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  for (int n = 0; n < kMostCovers; ++n) {
    Cover* const cover = &covers_[n];
    if (cover->state < State::opening) continue;
    Piece pieces[kMostParts];
    int count = 0;
    ++cover->version;
    while (count < kMostParts && cut(cover, from, bytes, &pieces[count])) ++count;
    if (count != 0) is_changed(cover);
    // No room for the parts around what moved.
    for (int i = 0; i < cover->parts; ++i) {
      const std::uint64_t first = cover->part[i].at;
      const std::uint64_t begin = std::max(from, first), end = std::min(from + bytes, first + cover->part[i].bytes);
      if (begin >= end) continue;
      lose(n, cover->part[i].offset + (begin - first), end - begin);
    }
    for (int i = 0; i < count; ++i) {
      Piece& piece = pieces[i];
      piece.at = to + (piece.at - from);
      if (add_part(cover, piece)) continue;
      lose(n, piece.offset, piece.bytes);
    }
    ++cover->version;
  }
}

// ---- children ----

void Guard::on_fork(int fd) {
  for (int i = 0; any_away() && i < kMostChildren; ++i) {
    if (children_[i] >= 0) continue;
    children_[i] = fd;
    Told told;
    told.kind = Told::Kind::fork;
    told.fd = fd;
    (void)tell(told);
    return;
  }
  sys::close_descriptor(fd);
}

// What a child does with its copy is not followed. But its calls wait until they are read.
void Guard::drain(const sys::Faults& child) {
  sys::FaultEvent events[sys::kMostFaultEvents];
  int count = 0;
  ++applying_;
  while (sys::faults_next(child, events, &count) == 0) {
    for (int i = 0; i < count; ++i) {
      if (events[i].kind == Kind::fork) sys::close_descriptor(events[i].fd);
      if (events[i].kind != Kind::fault) continue;
      const std::uint64_t at = events[i].address / faults_.page_bytes * faults_.page_bytes;
      int cover = -1;
      std::uint64_t offset = 0;
      std::size_t done = 0;
      if (find(at, &cover, &offset)) continue;
      if (sys::faults_zero(child, address(at), faults_.page_bytes, &done) != 0)
        (void)sys::faults_wake(child, {address(at), faults_.page_bytes});
    }
  }
  ++applying_;
}

void Guard::copy_to_children(const Piece& piece, const char* from) {
  for (const int fd : children_) {
    if (fd < 0) continue;
    sys::Faults child = faults_;
    child.fd = fd;
    std::size_t done = 0;
    constexpr int kTries = 200;
    constexpr std::uint64_t kNapNs = 20'000;
    for (int i = 0; i < kTries && done < piece.bytes; ++i) {
      const int error = sys::faults_copy(child, address(piece.at), from, piece.bytes, &done);
      if (error == EEXIST || error == ENOENT) {
        done += faults_.page_bytes;  // the child has its own page there, or nothing any more
      } else if (error == EAGAIN) {
        drain(child);
        sys::nap_ns(kNapNs);
      } else if (error == ESRCH) {
        break;
      }
    }
  }
}

void Guard::end_children() {
  for (int& fd : children_) {
    if (fd < 0) continue;
    Told told;
    told.kind = Told::Kind::fork_end;
    told.fd = fd;
    if (!tell(told)) sys::close_descriptor(fd);
    fd = -1;
  }
}

}  // namespace stretto::overlap
